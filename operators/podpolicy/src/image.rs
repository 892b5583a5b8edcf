//! Which images are allowed.

#[cfg(test)]
mod tests;

/// Registries, and parts of them, whose images are allowed.
#[derive(Debug, Clone)]
pub struct AllowList(Vec<String>);

impl AllowList {
    /// A list of prefixes, as `registry.acme.com/team`. They are compared by whole parts of a path.
    pub fn new(prefixes: &[String]) -> Self {
        AllowList(prefixes.iter().map(|prefix| prefix.trim_end_matches('/').to_owned()).collect())
    }

    pub fn has(&self, image: &str) -> bool {
        let image = qualified(image);
        self.0.iter().any(|prefix| {
            let rest = image.strip_prefix(prefix.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@']))
        })
    }

    /// The list, for people.
    pub fn text(&self) -> String {
        self.0.join(", ")
    }
}

/// An image with all that runtimes add when it is left out: `nginx` is
/// `docker.io/library/nginx:latest`.
pub fn qualified(image: &str) -> String {
    let image = match image.split_once('/') {
        // A registry has a dot or a port in it, or is on this machine; what has none is a part of
        // the path.
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
        None => format!("docker.io/library/{image}"),
    };
    let name = image.rsplit('/').next().unwrap_or_default();
    match name.contains([':', '@']) {
        true => image,
        false => format!("{image}:latest"),
    }
}
