//! The resources that serve the built-in kinds, as discovery lists them.
//!
//! Reads `data/resources.txt`: a line per version, below it a line per resource, below that a line
//! per subresource, each indented by one space more. The order is discovery's.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::table::split_api_version;

/// The resource that is served under this name.
pub fn resource(group: &str, version: &str, name: &str) -> Option<&'static Resource> {
    let (version, resource) = *RESOURCES.index.get(&(group, version, name))?;
    Some(&RESOURCES.versions[version].resources[resource])
}

/// Every version of every group, in the order of discovery.
pub fn versions() -> &'static [Version] {
    &RESOURCES.versions
}

/// A version of a group.
#[derive(Debug)]
pub struct Version {
    pub group: &'static str,
    pub version: &'static str,
    /// `None` for the group of APIServices, which has no APIService itself.
    pub priority: Option<Priority>,
    pub resources: Vec<Resource>,
}

/// How the APIService of a version ranks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// `groupPriorityMinimum`
    pub group: u32,
    /// `versionPriority`
    pub version: u32,
}

/// A resource in one version.
#[derive(Debug)]
pub struct Resource {
    pub group: &'static str,
    pub version: &'static str,
    /// The plural, as in paths.
    pub name: &'static str,
    pub kind: &'static str,
    pub singular: &'static str,
    pub namespaced: bool,
    pub verbs: Vec<&'static str>,
    pub short_names: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    /// `None` when nothing of it is stored, as with reviews.
    pub storage: Option<Storage>,
    pub subresources: Vec<Subresource>,
}

/// The version in which a resource is stored; it need not be a served one.
#[derive(Debug)]
pub struct Storage {
    pub group: &'static str,
    pub version: &'static str,
    /// `storageVersionHash`
    pub hash: &'static str,
}

/// A part or an action of a resource.
#[derive(Debug)]
pub struct Subresource {
    pub name: &'static str,
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: Vec<&'static str>,
}

static RESOURCES: LazyLock<Resources> =
    LazyLock::new(|| Resources::parse(include_str!("../../data/resources.txt")));

struct Resources {
    versions: Vec<Version>,
    /// Positions of a version and of a resource in it.
    index: HashMap<(&'static str, &'static str, &'static str), (usize, usize)>,
}

impl Resources {
    fn parse(text: &'static str) -> Self {
        let mut versions: Vec<Version> = Vec::new();
        let mut index = HashMap::new();
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("version ") {
                versions.push(parse_version(line));
                continue;
            }
            let Some(line) = line.strip_prefix(' ') else {
                continue;
            };
            let position = versions.len() - 1;
            let version = &mut versions[position];
            if let Some(line) = line.strip_prefix(' ') {
                let resource = version.resources.last_mut().expect("it follows its resource");
                resource.subresources.push(parse_subresource(line, resource));
            } else {
                let resource = parse_resource(line, version);
                let key = (version.group, version.version, resource.name);
                index.insert(key, (position, version.resources.len()));
                version.resources.push(resource);
            }
        }
        Self { versions, index }
    }
}

fn parse_version(line: &'static str) -> Version {
    let mut words = line.split(' ');
    let (group, version) = split_api_version(words.next().expect("a version has a name"));
    let mut number = || words.next()?.parse().ok();
    let priority = match (number(), number()) {
        (Some(group), Some(version)) => Some(Priority { group, version }),
        _ => None,
    };
    Version { group, version, priority, resources: Vec::new() }
}

fn parse_resource(line: &'static str, version: &Version) -> Resource {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("a resource has names, a scope and verbs");
    let mut resource = Resource {
        group: version.group,
        version: version.version,
        name: word(),
        kind: word(),
        singular: word(),
        namespaced: word() == "namespaced",
        verbs: word().split(',').collect(),
        short_names: Vec::new(),
        categories: Vec::new(),
        storage: None,
        subresources: Vec::new(),
    };
    let mut stored = None;
    for fact in words {
        let (name, value) = fact.split_once('=').expect("facts have values");
        match name {
            "short" => resource.short_names = value.split(',').collect(),
            "categories" => resource.categories = value.split(',').collect(),
            "stored" => stored = Some(split_api_version(value)),
            "hash" => {
                let (group, version) = stored.expect("the stored version comes first");
                resource.storage = Some(Storage { group, version, hash: value });
            }
            _ => panic!("unknown fact {fact}"),
        }
    }
    resource
}

fn parse_subresource(line: &'static str, resource: &Resource) -> Subresource {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("a subresource has a name, a kind and verbs");
    let name = word();
    let kind = word();
    // A kind of another version is written in full.
    let (group, version, kind) = match kind.rsplit_once('/') {
        Some((api_version, kind)) => {
            let (group, version) = split_api_version(api_version);
            (group, version, kind)
        }
        None => (resource.group, resource.version, kind),
    };
    Subresource { name, group, version, kind, verbs: word().split(',').collect() }
}
