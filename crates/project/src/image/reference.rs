//! Names of images: `registry.example.com:5000/team/pets:1.2.3`.

use std::fmt;
use std::str::FromStr;

/// Where an image is, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// With its port, if it is said.
    pub registry: String,
    pub repository: String,
    pub tag: String,
}

/// What is wrong with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} names no image: {problem}; one is registry.example.com/team/name:tag")]
pub struct ReferenceError {
    name: String,
    problem: &'static str,
}

/// Whether containers can be told to run this: unlike what an image is to be called, it may end in a
/// digest.
///
/// # Errors
/// It names no image.
pub fn check_image(name: &str) -> Result<(), ReferenceError> {
    let wrong = |problem| ReferenceError { name: name.to_owned(), problem };
    let Some((called, digest)) = name.split_once('@') else {
        return name.parse::<Reference>().map(|_| ());
    };
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    let is_digest =
        hex.len() == 64 && hex.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        return Err(wrong("a digest is sha256: and 64 hexadecimal digits"));
    }
    called.parse::<Reference>().map(|_| ()).map_err(|error| wrong(error.problem))
}

/// What a name without a registry is short for.
const DEFAULT_REGISTRY: &str = "docker.io";

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(name: &str) -> Result<Self, ReferenceError> {
        let wrong = |problem| ReferenceError { name: name.to_owned(), problem };
        if name.contains('@') {
            return Err(wrong("a digest says what an image is, not what it is to be called"));
        }
        // The first part is a registry if it could not be part of a repository.
        let is_registry = |part: &str| part.contains(['.', ':']) || part == "localhost";
        let (registry, rest) = match name.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest),
            _ => (DEFAULT_REGISTRY, name),
        };
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, tag),
            None => (rest, "latest"),
        };
        let is_word = |part: &str| {
            let is_inner = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
            let is_end = |c: char| matches!(c, 'a'..='z' | '0'..='9');
            part.chars().all(is_inner) && part.starts_with(is_end) && part.ends_with(is_end)
        };
        if !repository.split('/').all(is_word) {
            return Err(wrong(
                "a repository has lower-case letters, digits, and . _ - between them",
            ));
        }
        let is_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if tag.is_empty() || tag.len() > 128 || !tag.chars().all(is_tag) {
            return Err(wrong("a tag has letters, digits, and . _ -, at most 128 of them"));
        }
        let is_official = registry == DEFAULT_REGISTRY && !repository.contains('/');
        let library = if is_official { "library/" } else { "" };
        Ok(Reference {
            registry: registry.to_owned(),
            repository: format!("{library}{repository}"),
            tag: tag.to_owned(),
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reference { registry, repository, tag } = self;
        write!(f, "{registry}/{repository}:{tag}")
    }
}
