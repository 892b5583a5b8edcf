//! Names of images: which can be one.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use kubewright_apimachinery::regex::Regex;

const PATH_BYTES_MAX: usize = 255;
const INVALID: &str = "invalid reference format";

/// Says of a name why it cannot be that of an image, in the words of the library by which kubelet
/// reads it; none if it can.
pub(super) fn fault(image: &str) -> Option<String> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if image.len() == 64 && image.bytes().all(is_hex) {
        return Some(format!(
            "invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
        ));
    }
    let (domain, rest) = split(image);
    let path = rest.split(':').next().unwrap_or_default();
    if path.to_lowercase() != path {
        return Some(format!("{INVALID}: repository name ({path}) must be lowercase"));
    }
    let whole = format!("{domain}/{rest}");
    if !REFERENCE.is_match(&whole) {
        return Some(match REFERENCE.is_match(&whole.to_lowercase()) {
            true => "repository name must be lowercase".to_owned(),
            false => INVALID.to_owned(),
        });
    }
    let path = path.split('@').next().unwrap_or_default();
    (path.len() > PATH_BYTES_MAX)
        .then(|| format!("repository name must not be more than {PATH_BYTES_MAX} characters"))
}

/// The registry and the rest of a name, as Docker completes short ones.
fn split(image: &str) -> (&str, String) {
    const HUB: &str = "docker.io";
    let (domain, rest) = match image.split_once('/') {
        Some(("index.docker.io", rest)) => (HUB, rest),
        Some((first, rest))
            if first == "localhost"
                || first.contains(['.', ':'])
                || first.to_lowercase() != first =>
        {
            (first, rest)
        }
        _ => (HUB, image),
    };
    match domain == HUB && !rest.contains('/') {
        true => (domain, format!("library/{rest}")),
        false => (domain, rest.to_owned()),
    }
}

/// A registry, a path, and perhaps a tag and a digest.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
    let registry = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let tag = r"[\w][\w.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[[:xdigit:]]{32,}";
    let whole = format!("^{registry}/{part}(?:/{part})*(?::{tag})?(?:@{digest})?$");
    Regex::new(&whole).expect("it is a pattern")
});
