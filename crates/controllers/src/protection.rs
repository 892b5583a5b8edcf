//! What is used is not lost: claims and volumes wait, once deleted, until nobody uses them.
//!
//! The server gives each of them a finalizer when it is made. Here it is given to those that came
//! without, and taken from those that are deleted and free.

mod claims;
#[cfg(test)]
mod tests;
mod volumes;

use kube::api::ObjectMeta;

pub(crate) use claims::claims;
pub(crate) use volumes::volumes;

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
