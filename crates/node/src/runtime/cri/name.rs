//! Names of images in full, as runtimes keep them.

#[cfg(test)]
mod tests;

const REGISTRY: &str = "docker.io";
const TAG: &str = "latest";

/// The whole of a name of which the usual parts may be missing: `busybox` is
/// `docker.io/library/busybox:latest`.
pub(super) fn whole(name: &str) -> String {
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    let is_registry = !rest.is_empty() && (first.contains(['.', ':']) || first == "localhost");
    let name = match (is_registry, rest.is_empty()) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{REGISTRY}/library/{name}"),
        (false, false) => format!("{REGISTRY}/{name}"),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.contains([':', '@']) { name } else { format!("{name}:{TAG}") }
}
