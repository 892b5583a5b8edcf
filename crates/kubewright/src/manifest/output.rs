//! Writing manifests: as one stream, or as files in a folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_apimachinery::yaml;

use super::{Manifest, Package, Part, reference};

/// Manifests as one YAML stream, as kubectl takes it.
pub fn stream(package: &Package, manifests: &[Manifest]) -> String {
    let documents = manifests.iter().map(|manifest| yaml::to_string(&manifest.object));
    let documents: Vec<_> = documents.collect();
    format!("{}{}", mark(package), documents.join("---\n"))
}

/// Why a folder is not what it should be. What was written until then stays.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("write {path:?}")]
    Write { path: PathBuf, source: io::Error },
}

/// Writes a file for each manifest, samples into a folder `samples` of their own, so that
/// `kubectl apply -f` of the folder leaves them out. Files of an earlier rendering that nothing
/// belongs in any more are removed; those of others are left alone, and so are files that would not
/// change.
///
/// # Errors
/// The folder cannot be read or written.
pub fn write_folder(
    package: &Package,
    manifests: &[Manifest],
    folder: &Path,
) -> Result<(), WriteError> {
    let files = files(package, manifests);
    for place in [folder.to_owned(), folder.join(SAMPLES)] {
        remove_stale(&files, folder, rendered_before(&place, "yaml", &mark(package))?)?;
    }
    files.into_iter().try_for_each(|(name, text)| write(folder, &name, &text))
}

/// Writes a page about each of the package's kinds, in Markdown. Pages about kinds that are no more
/// are removed; those of others are left alone.
///
/// # Errors
/// The folder cannot be read or written.
pub fn write_pages(package: &Package, folder: &Path) -> Result<(), WriteError> {
    // What no reader of the page sees.
    let mark = format!("<!-- {} -->\n\n", mark(package).trim_matches(['#', ' ', '\n']));
    let page = |definition: &CustomResourceDefinition| {
        let name = definition.metadata.name.as_deref().unwrap_or(&definition.spec.names.plural);
        (PathBuf::from(format!("{name}.md")), format!("{mark}{}", reference(definition)))
    };
    let files: BTreeMap<_, _> = package.definitions.iter().map(page).collect();
    remove_stale(&files, folder, rendered_before(folder, "md", &mark)?)?;
    files.into_iter().try_for_each(|(name, text)| write(folder, &name, &text))
}

/// Removes those of an earlier rendering that nothing belongs in any more.
fn remove_stale(
    files: &BTreeMap<PathBuf, String>,
    folder: &Path,
    before: Vec<PathBuf>,
) -> Result<(), WriteError> {
    let is_stale = |path: &PathBuf| !files.contains_key(path.strip_prefix(folder).unwrap_or(path));
    before.into_iter().filter(is_stale).try_for_each(|path| {
        fs::remove_file(&path).map_err(|source| WriteError::Write { path, source })
    })
}

/// Leaves a file alone that would not change.
fn write(folder: &Path, name: &Path, text: &str) -> Result<(), WriteError> {
    let path = folder.join(name);
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| replace(&path, text))
        .map_err(|source| WriteError::Write { path, source })
}

/// Gives a file another text: whoever reads it sees the old one or the new one, also if this is
/// killed.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // Neither kubectl nor this takes it for a manifest.
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(".kubewright-unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if let Ok(there) = fs::metadata(&path) {
        file.set_permissions(there.permissions())?;
    }
    fs::rename(&unfinished, &path)
}

const SAMPLES: &str = "samples";

/// The first line of every file, by which they are known again.
fn mark(package: &Package) -> String {
    format!("# Rendered by `{} manifests`; changes are lost.\n", package.name)
}

/// What is to be in which file.
pub(super) fn files(package: &Package, manifests: &[Manifest]) -> BTreeMap<PathBuf, String> {
    let mark = mark(package);
    manifests
        .iter()
        .map(|manifest| {
            let path = path(package, manifest);
            (path, format!("{mark}{}", yaml::to_string(&manifest.object)))
        })
        .collect()
}

fn path(package: &Package, manifest: &Manifest) -> PathBuf {
    let kind = manifest.kind().to_lowercase();
    let mut file = format!("{kind}-{}", manifest.name());
    // Objects of the same name in several namespaces are those of an operator that watches several.
    if let Some(namespace) = manifest.namespace().filter(|&it| it != package.namespace) {
        file = format!("{file}-{namespace}");
    }
    let folder = if manifest.part == Part::Samples { SAMPLES } else { "" };
    Path::new(folder).join(file + ".yaml")
}

/// The files of a kind in a folder that begin with this mark.
fn rendered_before(folder: &Path, kind: &str, mark: &str) -> Result<Vec<PathBuf>, WriteError> {
    let failed = |source| WriteError::Read { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let is_meant = path.extension().is_some_and(|extension| extension == kind);
        if is_meant && fs::read_to_string(&path).is_ok_and(|text| text.starts_with(mark)) {
            paths.push(path);
        }
    }
    Ok(paths)
}
