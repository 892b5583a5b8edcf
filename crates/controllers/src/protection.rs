//! What is used is not lost: claims and volumes wait, once deleted, until nobody uses them.
//!
//! The server gives each of them a finalizer when it is made. Here it is given to those that came
//! without, and taken from those that are deleted and free. Metadata tells whom to look at; whether
//! something is in use is asked of live objects.

mod claims;
#[cfg(test)]
mod tests;
mod volumes;

use kube::Error;
use kube::api::{Api, DynamicObject, ObjectMeta, PostParams};

use crate::answer::present;
use crate::controller::text;

pub(crate) use claims::Claims;
pub(crate) use volumes::Volumes;

/// The finalizers that an object should have, if it has others.
fn plan(object: &ObjectMeta, finalizer: &str, in_use: bool) -> Option<Vec<String>> {
    let mut finalizers = object.finalizers.clone().unwrap_or_default();
    let is_held = finalizers.iter().any(|held| held == finalizer);
    match (is_held, object.deletion_timestamp.is_some()) {
        (false, false) => finalizers.push(finalizer.to_owned()),
        (true, true) if !in_use => finalizers.retain(|held| held != finalizer),
        _ => return None,
    }
    Some(finalizers)
}

/// Whether there may be something to do about an object.
fn is_unsettled(object: &ObjectMeta, finalizer: &str) -> bool {
    plan(object, finalizer, false).is_some()
}

/// Does what is planned for an object, unless it has changed or is gone.
async fn settle(
    api: &Api<DynamicObject>,
    mut object: DynamicObject,
    finalizer: &str,
    in_use: bool,
) -> Result<(), Error> {
    let Some(finalizers) = plan(&object.metadata, finalizer, in_use) else { return Ok(()) };
    let name = text(&object.metadata.name).to_owned();
    object.metadata.finalizers = Some(finalizers);
    present(api.replace(&name, &PostParams::default(), &object).await).map(drop)
}
