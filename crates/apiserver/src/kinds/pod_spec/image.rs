//! Whether the name of an image means the newest there is.

use kubewright_apimachinery::image::Reference;

/// Whether an image is pulled each time because its name does not say which one it is. A name
/// that makes no sense is not.
pub(in crate::kinds) fn is_latest(image: &str) -> bool {
    Reference::parse(image).is_ok_and(|reference| match reference.tag {
        Some(tag) => tag == "latest",
        None => reference.digest.is_none(),
    })
}

#[cfg(test)]
mod tests;
