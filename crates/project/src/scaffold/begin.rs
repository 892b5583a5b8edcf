//! A new project.

use std::path::{Path, PathBuf};

use super::{ScaffoldError, finished};
use crate::change::{Draft, Plan};
use crate::name;
use crate::project::Project;
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
const APACHE: &str = include_str!("../../templates/Apache-2.0.txt");
const MIT: &str = include_str!("../../templates/MIT.txt");

/// Plans a new project in the folder `root`. If it is there already, there is nothing to be done.
///
/// # Errors
/// If a name cannot be, another project is there, or a file would be overwritten.
pub fn init(root: &Path, wanted: &Init) -> Result<Plan, ScaffoldError> {
    let Init { name, domain, .. } = wanted;
    name::operator(name)?;
    name::domain(domain)?;
    if let Some(there) = Project::open(root)? {
        if (&there.name, &there.domain) == (name, domain) {
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
            Some(there) if there != text => {
                return Err(ScaffoldError::Occupied { path: path.to_owned() });
            }
            _ => draft.write(path, text)?,
        }
    }
    Ok(finished(draft))
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
    let license = match wanted.license {
        License::None => None,
        License::Apache2 => Some("Apache-2.0"),
        License::Mit => Some("MIT"),
    };
    let about = [
        line("authors", wanted.owner.as_deref().map(|owner| format!("[{}]", quoted(owner)))),
        line("license", license.map(quoted)),
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
