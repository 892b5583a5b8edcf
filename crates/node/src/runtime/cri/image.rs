//! Images: whether they are there, and how they come to be.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Container, ContainerImage};
use tokio::time::Instant;

use super::api::{
    Api, AuthConfig, Image, ImageSpec, ImageStatusRequest, PodSandboxConfig, PullImageRequest,
};
use super::message;
use crate::runtime::{Fetched, Pulled, StartError};

/// So many images a node shows, the largest, and so many names of each.
const SHOWN_MAX: usize = 50;
const NAMES_MAX: usize = 5;

/// Images as nodes show them, by which a scheduler knows who need not fetch them.
pub(super) fn shown(mut images: Vec<Image>) -> Vec<ContainerImage> {
    images.sort_by(|one, other| other.size.cmp(&one.size).then_with(|| one.id.cmp(&other.id)));
    let shown = images.into_iter().take(SHOWN_MAX).map(|image| {
        let names = image.repo_digests.into_iter().chain(image.repo_tags);
        let names: Vec<String> = names.take(NAMES_MAX).collect();
        ContainerImage {
            names: (!names.is_empty()).then_some(names),
            size_bytes: i64::try_from(image.size).ok(),
        }
    });
    shown.collect()
}

/// Sees that a container's image is there, as its policy says.
pub(super) async fn ensure(
    api: &Api,
    container: &Container,
    sandbox: PodSandboxConfig,
    auths: Vec<AuthConfig>,
    tell: &(dyn Fn() + Send + Sync),
) -> Result<Pulled, StartError> {
    let image = container.image.as_deref().unwrap_or_default();
    let policy = container.image_pull_policy.as_deref().unwrap_or("IfNotPresent");
    let found = find(api, image).await.map_err(|why| inspect(image, &why))?;
    let is_there = match (&found, policy) {
        // What was loaded from a file is known to no registry: there is none that could have a
        // newer one.
        (Some(found), "Always") => found.repo_digests.is_empty(),
        (found, _) => found.is_some(),
    };
    match (is_there, policy) {
        (true, _) => return Ok(Pulled { fetched: None, remark: None }),
        (false, "Never") => return Err(StartError::NeverPull(image.to_owned())),
        (false, _) => {}
    }
    tell();
    let began = Instant::now();
    pull(api, image, &sandbox, auths).await.map_err(StartError::Pull)?;
    let took = began.elapsed();
    let bytes = find(api, image).await.ok().flatten().map_or(0, |image| image.size);
    Ok(Pulled { fetched: Some(Fetched { took, bytes }), remark: None })
}

/// Gets an image, with the first of these credentials that will do.
///
/// # Errors
/// Why none does.
async fn pull(
    api: &Api,
    image: &str,
    sandbox: &PodSandboxConfig,
    auths: Vec<AuthConfig>,
) -> Result<(), String> {
    let auths: Vec<Option<AuthConfig>> = match auths.is_empty() {
        true => vec![None],
        false => auths.into_iter().map(Some).collect(),
    };
    let mut refusals: Vec<String> = Vec::new();
    for auth in auths {
        let request = PullImageRequest {
            image: Some(spec(image)),
            auth,
            sandbox_config: Some(sandbox.clone()),
        };
        match api.images.clone().pull_image(request).await {
            Ok(_) => return Ok(()),
            Err(status) => refusals.push(message(&status)),
        }
    }
    // What is said twice is told once.
    refusals.dedup();
    Err(match refusals.len() {
        1 => refusals.remove(0),
        _ => format!("[{}]", refusals.join(", ")),
    })
}

/// The image of this name, if the runtime has it.
///
/// # Errors
/// Why it cannot tell.
pub(super) async fn find(api: &Api, image: &str) -> Result<Option<Image>, String> {
    let request = ImageStatusRequest { image: Some(spec(image)), verbose: false };
    let found = api.images.clone().image_status(request).await;
    found.map(|found| found.into_inner().image).map_err(|status| message(&status))
}

fn inspect(image: &str, why: &str) -> StartError {
    StartError::Inspect(format!("Failed to inspect image {image:?}: {why}"))
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec { image: image.to_owned(), ..ImageSpec::default() }
}
