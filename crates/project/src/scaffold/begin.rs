//! A new project.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TomlError};

use super::{ScaffoldError, finished};
use crate::change::{Draft, Plan};
use crate::name;
use crate::project::{self, Project, ProjectError};
use crate::template::fill;

/// What a project begins with.
#[derive(Debug, Clone)]
pub struct Init {
    pub name: String,
    /// What the groups of its kinds end with.
    pub domain: String,
    /// Where its sources are, a URL.
    pub repository: Option<String>,
    pub license: License,
    /// Who holds the rights.
    pub owner: Option<String>,
    /// Whether it is to be installed for its own namespace only.
    pub namespaced: bool,
    pub library: Library,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum License {
    None,
    Apache2,
    Mit,
}

/// Where the crates of Kubewright come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    Version(String),
    /// The folder that has a folder for each crate.
    Path(PathBuf),
    /// The URL of a repository, and a commit or tag.
    Git {
        url: String,
        revision: Option<String>,
    },
}

/// What scaffolded projects are made of, as this repository has it.
const MANIFEST: &str = include_str!("../../templates/Cargo.toml.txt");
/// In every project, with this text. Those of sources are between `{{` and `}}`.
const FILES: &[(&str, &str)] = &[
    (".dockerignore", include_str!("../../templates/dockerignore.txt")),
    (".github/workflows/ci.yaml", include_str!("../../templates/ci.yaml.txt")),
    (".gitignore", include_str!("../../templates/gitignore.txt")),
    ("Dockerfile", include_str!("../../templates/Dockerfile.txt")),
    ("README.md", include_str!("../../templates/README.md.txt")),
    ("src/lib.rs", include_str!("../../templates/lib.rs.txt")),
    ("src/main.rs", include_str!("../../templates/main.rs.txt")),
    ("tests/it/main.rs", include_str!("../../templates/tests.rs.txt")),
];
/// What is as good in an author's own words, and is there where the repository was made before its
/// project.
const KEPT: &[&str] = &["LICENSE", "README.md"];
/// The same, and must say some things all the same.
const IGNORED: &str = ".gitignore";
const APACHE: &str = include_str!("../../templates/Apache-2.0.txt");
const MIT: &str = include_str!("../../templates/MIT.txt");

/// Plans a new project in the folder `root`. If it is there already, there is nothing to be done.
///
/// # Errors
/// If a name cannot be, another project is there or one that differs, or a file would be
/// overwritten.
pub fn init(root: &Path, wanted: &Init) -> Result<Plan, ScaffoldError> {
    let Init { name, domain, .. } = wanted;
    name::operator(name)?;
    name::domain(domain)?;
    if let Some(there) = Project::open(root)? {
        if (&there.name, &there.domain) == (name, domain) {
            agree(&there, wanted)?;
            return Ok(Plan::default());
        }
        return Err(ScaffoldError::Contradiction(format!(
            "here is a project already, {:?} with the domain {:?}: go to another folder, or leave \
             --name and --domain as they are",
            there.name, there.domain
        )));
    }
    let values = [("name", name.as_str()), ("crate", &name.replace('-', "_"))];
    let mut files: Vec<(&str, String)> =
        FILES.iter().map(|(path, template)| (*path, fill(template, &values))).collect();
    files.push(("Cargo.toml", manifest(wanted)));
    files.extend(license(wanted).map(|text| ("LICENSE", text)));

    let mut draft = Draft::of(root);
    for (path, text) in files {
        let path = Path::new(path);
        match draft.read(path)? {
            Some(_) if KEPT.iter().any(|it| path == Path::new(it)) => {}
            Some(there) if path == Path::new(IGNORED) => {
                draft.write(path, with_lines(there, &text))?;
            }
            Some(there) if there != text => {
                return Err(ScaffoldError::Occupied { path: path.to_owned() });
            }
            _ => draft.write(path, text)?,
        }
    }
    Ok(finished(draft))
}

/// A list of paths that has these as well. `/target`, `target/` and `target` are the same here.
fn with_lines(mut there: String, wanted: &str) -> String {
    let names: Vec<String> =
        there.lines().map(|it| it.trim().trim_matches('/').to_owned()).collect();
    for line in wanted.lines() {
        if names.iter().any(|it| it == line.trim_matches('/')) {
            continue;
        }
        if !there.is_empty() && !there.ends_with('\n') {
            there.push('\n');
        }
        there = there + line + "\n";
    }
    there
}

/// A project that is there is its author's. What nobody asks for is as its author has it.
fn agree(there: &Project, wanted: &Init) -> Result<(), ScaffoldError> {
    let path = Path::new(project::MANIFEST);
    let text = Draft::of(&there.root).read(path)?.unwrap_or_default();
    let manifest: DocumentMut = text.parse().map_err(|error: TomlError| {
        ProjectError::Manifest { path: path.to_owned(), reason: error.to_string() }
    })?;
    let about = |key: &str| manifest.get("package").and_then(|it| it.get(key));
    // What is no text is taken from a workspace.
    let differs = |key: &str, wanted: &str| {
        about(key).is_none_or(|it| it.as_str().is_some_and(|there| there != wanted))
    };
    let mut edits = Vec::new();
    if let Some(license) = wanted.license.name().filter(|name| differs("license", name)) {
        edits.push(format!("`license = {license:?}` into [package], and its text into LICENSE"));
    }
    if let Some(url) = wanted.repository.as_deref().filter(|url| differs("repository", url)) {
        edits.push(format!("`repository = {url:?}` into [package]"));
    }
    if let Some(owner) = &wanted.owner {
        let is_other = |authors: &Item| {
            let authors = authors.as_array();
            authors.is_some_and(|it| it.iter().all(|it| it.as_str() != Some(owner.as_str())))
        };
        if about("authors").is_none_or(is_other) {
            edits.push(format!("`authors = [{owner:?}]` into [package]"));
        }
    }
    if wanted.namespaced && !there.namespaced {
        edits.push("`namespaced = true` into [package.metadata.kubewright]".to_owned());
    }
    if edits.is_empty() {
        return Ok(());
    }
    Err(ScaffoldError::Contradiction(format!(
        "here is the project {:?} already, and it is left as it is: if it is to be as you say, \
         write in {} {}",
        there.name,
        path.display(),
        edits.join("; ")
    )))
}

fn license(wanted: &Init) -> Option<String> {
    let owner = wanted.owner.as_deref().unwrap_or(&wanted.name);
    match wanted.license {
        License::None => None,
        License::Apache2 => Some(APACHE.to_owned()),
        License::Mit => Some(fill(MIT, &[("owner", owner)])),
    }
}

fn manifest(wanted: &Init) -> String {
    let line = |key: &str, value: Option<String>| {
        value.map(|value| format!("{key} = {value}\n")).unwrap_or_default()
    };
    let quoted = |text: &str| toml_edit::Value::from(text).to_string().trim().to_owned();
    let about = [
        line("authors", wanted.owner.as_deref().map(|owner| format!("[{}]", quoted(owner)))),
        line("license", wanted.license.name().map(quoted)),
        line("repository", wanted.repository.as_deref().map(quoted)),
    ];
    let namespaced = line("namespaced", wanted.namespaced.then(|| "true".to_owned()));
    fill(
        MANIFEST,
        &[
            ("name", &wanted.name),
            ("about", &about.concat()),
            ("domain", &wanted.domain),
            ("namespaced", &namespaced),
            ("kubewright", &wanted.library.dependency("kubewright")),
            ("testing", &wanted.library.dependency("testing")),
        ],
    )
}

impl License {
    /// As manifests call it.
    fn name(self) -> Option<&'static str> {
        match self {
            License::None => None,
            License::Apache2 => Some("Apache-2.0"),
            License::Mit => Some("MIT"),
        }
    }
}

impl Library {
    /// What a manifest says of the crate in a folder of this name.
    pub(crate) fn dependency(&self, folder: &str) -> String {
        let quoted = |text: &str| toml_edit::Value::from(text).to_string().trim().to_owned();
        match self {
            Library::Version(version) => quoted(version),
            Library::Path(path) => {
                format!("{{ path = {} }}", quoted(&path.join(folder).display().to_string()))
            }
            Library::Git { url, revision: None } => format!("{{ git = {} }}", quoted(url)),
            Library::Git { url, revision: Some(revision) } => {
                format!("{{ git = {}, rev = {} }}", quoted(url), quoted(revision))
            }
        }
    }
}
