//! The names of images, as Docker reads them, and kubelet and kube-apiserver with its library.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::regex::Regex;

/// The longest path within a registry.
const PATH_BYTES_MAX: usize = 255;
/// Where names without a registry belong, and its folder for those without one.
const HUB: &str = "docker.io";
const HUB_OLD: &str = "index.docker.io";
const OFFICIAL: &str = "library/";

/// What a name says of which image it means, beside where that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference<'a> {
    pub tag: Option<&'a str>,
    pub digest: Option<&'a str>,
}

/// Why a text cannot be the name of an image, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Identifier(String),
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    UppercasePath(String),
    #[error("repository name must be lowercase")]
    Uppercase,
    #[error("invalid reference format")]
    Format,
    #[error("repository name must not be more than {PATH_BYTES_MAX} characters")]
    TooLong,
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    #[error("invalid checksum digest length")]
    DigestLength,
    #[error("invalid checksum digest format")]
    DigestFormat,
}

impl<'a> Reference<'a> {
    pub fn parse(image: &'a str) -> Result<Self, ReferenceError> {
        if image.len() == 64 && image.bytes().all(is_lower_hex) {
            return Err(ReferenceError::Identifier(image.to_owned()));
        }
        let (registry, rest) = split_registry(image);
        let folder = match registry == HUB && !rest.contains('/') {
            true => OFFICIAL,
            false => "",
        };
        // With the algorithm of a digest, if there is no tag: so it is upstream.
        let path = rest.split(':').next().unwrap_or_default();
        if path.to_lowercase() != path {
            return Err(ReferenceError::UppercasePath(format!("{folder}{path}")));
        }
        let whole = format!("{registry}/{folder}{rest}");
        if !REFERENCE.is_match(&whole) {
            return Err(match REFERENCE.is_match(&whole.to_lowercase()) {
                true => ReferenceError::Uppercase,
                false => ReferenceError::Format,
            });
        }
        let (rest, digest) = cut(rest, '@');
        let (path, tag) = cut(rest, ':');
        if folder.len() + path.len() > PATH_BYTES_MAX {
            return Err(ReferenceError::TooLong);
        }
        digest.map_or(Ok(()), check_digest)?;
        Ok(Reference { tag, digest })
    }
}

/// The registry and the rest. What stands before the first slash is a registry only if it cannot
/// be a folder.
fn split_registry(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((HUB_OLD, rest)) => (HUB, rest),
        Some((first, rest))
            if first == "localhost"
                || first.contains(['.', ':'])
                || first.to_lowercase() != first =>
        {
            (first, rest)
        }
        _ => (HUB, image),
    }
}

fn cut(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn check_digest(digest: &str) -> Result<(), ReferenceError> {
    let (algorithm, sum) = digest.split_once(':').ok_or(ReferenceError::DigestFormat)?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(ReferenceError::DigestAlgorithm),
    };
    if sum.len() != length {
        return Err(ReferenceError::DigestLength);
    }
    match sum.bytes().all(is_lower_hex) {
        true => Ok(()),
        false => Err(ReferenceError::DigestFormat),
    }
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
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
