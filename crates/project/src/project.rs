//! A project as its files tell it. Nothing is recorded beside them: the domain is in `Cargo.toml`,
//! and kinds are where the program has them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

use crate::change::{Draft, ReadError};
use crate::elsewhere::{self, Known};
use crate::name;
use crate::source::{self, EditError, Kind};

/// An operator project.
#[derive(Debug, Clone)]
pub struct Project {
    pub root: PathBuf,
    /// Of the package, and of the operator.
    pub name: String,
    /// What the groups of its kinds end with.
    pub domain: String,
    /// Whether it is to be installed for its own namespace only.
    pub namespaced: bool,
}

/// A kind that a project defines, in all its versions, or one of others that it attends to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Api {
    pub module: String,
    pub group: String,
    pub kind: String,
    pub plural: Option<String>,
    pub namespaced: bool,
    /// In the order the source has them.
    pub versions: Vec<String>,
    /// The path of its type, if something else defines it: Kubernetes, or whoever's definition was
    /// imported.
    pub elsewhere: Option<String>,
}

/// As people are told of it: its kind, its group, and all its versions.
impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = elsewhere::group_name(&self.group);
        write!(f, "{} of {group}/{}", self.kind, self.versions.join(","))
    }
}

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error(
        "there is no operator project in {} or above it: `kubewright init --domain my.domain` \
         makes one",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("{}: is no manifest of a package: {reason}", path.display())]
    Manifest { path: PathBuf, reason: String },
    /// Change it where it stands.
    #[error(
        "{}: `{dependency}` is taken from the workspace: say in {} where it comes from",
        path.display(),
        workspace.display()
    )]
    Inherited { path: PathBuf, dependency: String, workspace: PathBuf },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}:{error}", path.display())]
    Source { path: PathBuf, error: EditError },
}

/// Where a project says what `kubewright` needs to know.
pub(crate) const METADATA: [&str; 3] = ["package", "metadata", "kubewright"];
pub(crate) const MANIFEST: &str = "Cargo.toml";

impl Project {
    /// The project that a folder is in.
    ///
    /// # Errors
    /// If it is in none, or its manifest is not understood.
    pub fn find(folder: &Path) -> Result<Self, ProjectError> {
        for root in folder.ancestors() {
            if let Some(project) = Project::open(root)? {
                return Ok(project);
            }
        }
        Err(ProjectError::Missing(folder.to_owned()))
    }

    /// The project whose root a folder is; none if it is none.
    ///
    /// # Errors
    /// If there is a manifest that is not understood.
    pub fn open(root: &Path) -> Result<Option<Self>, ProjectError> {
        let path = root.join(MANIFEST);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ReadError { path, source }.into()),
        };
        let refused = |reason: String| ProjectError::Manifest { path: path.clone(), reason };
        let manifest: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| refused(error.to_string()))?;
        let [package, metadata, ours] = METADATA;
        let Some(known) = manifest.get(package).and_then(|it| it.get(metadata)?.get(ours)) else {
            return Ok(None);
        };
        let text = |name: &str, value: Option<&toml_edit::Item>| {
            let value = value.and_then(toml_edit::Item::as_str).map(str::to_owned);
            value.ok_or_else(|| refused(format!("{name} is no text: set it")))
        };
        Ok(Some(Project {
            root: root.to_owned(),
            name: text("package.name", manifest[package].get("name"))?,
            domain: text("package.metadata.kubewright.domain", known.get("domain"))?,
            namespaced: known.get("namespaced").and_then(|it| it.as_bool()).unwrap_or(false),
        }))
    }

    /// What sources call the project's library.
    pub fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The kinds that it defines, and those of others that it attends to.
    ///
    /// # Errors
    /// If a source cannot be read.
    pub fn apis(&self) -> Result<Vec<Api>, ProjectError> {
        let mut draft = Draft::of(&self.root);
        let mut apis = Vec::new();
        for module in declared(&mut draft, Path::new(LIBRARY))? {
            let mut api: Option<Api> = None;
            for version in declared(&mut draft, &module_path(&module))? {
                if name::version("version", &version).is_err() {
                    continue;
                }
                for found in kinds(&mut draft, &version_path(&module, &version))? {
                    let Kind { group, kind, plural, namespaced, .. } = found;
                    if found.version != version || name::module(&kind) != module {
                        continue;
                    }
                    let module = module.clone();
                    let versions = Vec::new();
                    let elsewhere = None;
                    let new =
                        || Api { module, group, kind, plural, namespaced, versions, elsewhere };
                    api.get_or_insert_with(new).versions.push(version.clone());
                }
            }
            match api {
                Some(api) => apis.push(api),
                None => apis.extend(attended(&mut draft, &module)?),
            }
        }
        Ok(apis)
    }
}

impl Api {
    /// A kind of others, as a module attends to it.
    pub(crate) fn of(known: Known, module: String) -> Self {
        let Known { group, version, kind, plural, namespaced, path, .. } = known;
        Api {
            module,
            group,
            kind,
            plural: Some(plural),
            namespaced,
            versions: vec![version],
            elsewhere: Some(path),
        }
    }
}

/// The kind of others that a module attends to: the one whose type it has under its own name.
fn attended(draft: &mut Draft<'_>, module: &str) -> Result<Option<Api>, ProjectError> {
    let path = module_path(module);
    let Some(text) = draft.read(&path)? else { return Ok(None) };
    let exported = source::exported(&text).map_err(|error| in_file(&path, error))?;
    let is_its = |known: &Known| {
        exported.contains(&known.path) && elsewhere::modules(known).iter().any(|it| it == module)
    };
    if exported.is_empty() {
        return Ok(None);
    }
    let found = match elsewhere::built_in().into_iter().find(is_its) {
        Some(known) => Some(known),
        None => elsewhere::imported(draft)?.into_iter().find(is_its),
    };
    Ok(found.map(|known| Api::of(known, module.to_owned())))
}

pub(crate) const LIBRARY: &str = "src/lib.rs";
pub(crate) const TESTS: &str = "tests/it/main.rs";

/// Where a kind is declared.
pub(crate) fn module_path(module: &str) -> PathBuf {
    format!("src/{module}.rs").into()
}

/// Where a part of a kind is: a version, a controller, a webhook.
pub(crate) fn part_path(module: &str, part: &str) -> PathBuf {
    format!("src/{module}/{part}.rs").into()
}

fn version_path(module: &str, version: &str) -> PathBuf {
    part_path(module, version)
}

/// The modules that a source declares; none if it is not there.
pub(crate) fn declared(draft: &mut Draft<'_>, path: &Path) -> Result<Vec<String>, ProjectError> {
    let Some(text) = draft.read(path)? else { return Ok(Vec::new()) };
    source::declared(&text).map_err(|error| in_file(path, error))
}

pub(crate) fn kinds(draft: &mut Draft<'_>, path: &Path) -> Result<Vec<Kind>, ProjectError> {
    let Some(text) = draft.read(path)? else { return Ok(Vec::new()) };
    source::kinds(&text).map_err(|error| in_file(path, error))
}

pub(crate) fn in_file(path: &Path, error: EditError) -> ProjectError {
    ProjectError::Source { path: path.to_owned(), error }
}
