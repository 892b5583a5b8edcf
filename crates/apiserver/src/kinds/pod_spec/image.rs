//! The names of images, as far as pods care: whether one means the newest there is.

use std::sync::LazyLock;

use kubewright_apimachinery::regex::Regex;

/// Hub, and the folder in it, that names without a registry belong to.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_OLD: &str = "index.docker.io";
const OFFICIAL: &str = "library/";
/// The longest name without tag and digest.
const NAME_BYTES_MAX: usize = 255;

static BARE_DIGEST: LazyLock<Regex> = LazyLock::new(|| regex("^[a-f0-9]{64}$"));
static DOMAIN: LazyLock<Regex> = LazyLock::new(|| {
    let component = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let name = format!(r"{component}(?:\.{component})*");
    regex(&format!(r"^(?:{name}|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?$"))
});
static REPOSITORY: LazyLock<Regex> = LazyLock::new(|| {
    let component = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*";
    regex(&format!("^{component}(?:/{component})*$"))
});
static TAG: LazyLock<Regex> = LazyLock::new(|| regex(r"^[\w][\w.-]{0,127}$"));
static DIGEST: LazyLock<Regex> =
    LazyLock::new(|| regex("^(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Whether an image is pulled each time because its name does not say which one it is. A name
/// that makes no sense is not.
pub(in crate::kinds) fn is_latest(image: &str) -> bool {
    parse(image).is_some_and(|reference| match reference.tag {
        Some(tag) => tag == "latest",
        None => !reference.has_digest,
    })
}

struct Reference<'a> {
    tag: Option<&'a str>,
    has_digest: bool,
}

fn parse(image: &str) -> Option<Reference<'_>> {
    if BARE_DIGEST.is_match(image) {
        return None;
    }
    let (domain, rest) = split_domain(image);
    let (rest, digest) = split_optional(rest, '@');
    let (name, tag) = split_optional(rest, ':');
    // A name without a folder on the hub has a prefix that is not spelt out.
    let prefix = if domain == DOCKER_HUB && !name.contains('/') { OFFICIAL.len() } else { 0 };
    let is_sound = DOMAIN.is_match(domain)
        && REPOSITORY.is_match(name)
        && domain.len() + 1 + prefix + name.len() <= NAME_BYTES_MAX
        && tag.is_none_or(|tag| TAG.is_match(tag))
        && digest.is_none_or(|digest| DIGEST.is_match(digest));
    is_sound.then_some(Reference { tag, has_digest: digest.is_some() })
}

/// What stands before the first slash is a registry only if it cannot be a folder.
fn split_domain(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((DOCKER_HUB_OLD, rest)) => (DOCKER_HUB, rest),
        Some((domain, rest))
            if domain == "localhost"
                || domain.contains(['.', ':'])
                || domain.to_lowercase() != domain =>
        {
            (domain, rest)
        }
        _ => (DOCKER_HUB, image),
    }
}

fn split_optional(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests;
