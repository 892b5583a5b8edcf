//! Who one is to registries, by the Secrets that a pod names for that.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::api::core::v1::{Pod, Secret};
use serde::Deserialize;

use super::api::AuthConfig;
use super::name::whole;

/// How the files of Docker call the registry that has no name.
const HUB: &str = "index.docker.io";
const REGISTRY: &str = "docker.io";

/// The file of Docker that has credentials, in both of its forms.
#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    New { auths: BTreeMap<String, Entry> },
    Old(BTreeMap<String, Entry>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
struct Entry {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    auth: String,
    #[serde(default)]
    identitytoken: String,
}

/// The Secrets that a pod names for registries.
pub(super) fn secrets(pod: &Pod) -> Vec<String> {
    let secrets = pod.spec.as_ref().and_then(|spec| spec.image_pull_secrets.as_ref());
    secrets.into_iter().flatten().map(|secret| secret.name.clone()).collect()
}

/// What is shown to the registry of an image, one after the other until it is content: first what is
/// said of the longest beginning of its name.
pub(super) fn find<'a>(
    image: &str,
    secrets: impl IntoIterator<Item = &'a Secret>,
) -> Vec<AuthConfig> {
    let image = whole(image);
    let mut found: Vec<(String, AuthConfig)> = Vec::new();
    for (registry, entry) in secrets.into_iter().flat_map(entries) {
        let place = place(&registry);
        let is_of =
            image.strip_prefix(&place).is_some_and(|rest| rest.starts_with(['/', ':', '@']));
        if is_of {
            found.push((place, entry.config(registry)));
        }
    }
    // Those of one place in the order in which the pod names their Secrets.
    found.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
    found.into_iter().map(|(_, config)| config).collect()
}

fn entries(secret: &Secret) -> Vec<(String, Entry)> {
    let data = secret.data.as_ref();
    let file = [".dockerconfigjson", ".dockercfg"].iter().find_map(|key| data?.get(*key));
    let file = file.and_then(|file| serde_json::from_slice(&file.0).ok());
    match file {
        Some(File::New { auths }) => auths.into_iter().collect(),
        Some(File::Old(auths)) => auths.into_iter().collect(),
        // Whoever reads its events learns that the registry refuses.
        None => Vec::new(),
    }
}

/// What names of images begin with that are of this registry.
fn place(registry: &str) -> String {
    let place = registry.split_once("://").map_or(registry, |(_, rest)| rest);
    let place = place.trim_end_matches('/');
    let place = place.strip_suffix("/v1").or(place.strip_suffix("/v2")).unwrap_or(place);
    match place == HUB {
        true => REGISTRY.to_owned(),
        false => place.to_owned(),
    }
}

impl Entry {
    fn config(self, registry: String) -> AuthConfig {
        let decoded = BASE64.decode(&self.auth).unwrap_or_default();
        let decoded = String::from_utf8_lossy(&decoded).into_owned();
        let (username, password) = match (self.username.is_empty(), decoded.split_once(':')) {
            (true, Some((username, password))) => (username.to_owned(), password.to_owned()),
            _ => (self.username, self.password),
        };
        AuthConfig {
            username,
            password,
            server_address: registry,
            identity_token: self.identitytoken,
            ..AuthConfig::default()
        }
    }
}
