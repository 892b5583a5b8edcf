//! Brings a project to another version of the library. What it consists of is in the library, so
//! an upgrade is a number in `Cargo.toml`, and the numbers of what goes along with it.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::change::{Draft, Plan};
use crate::project::{MANIFEST, Project, ProjectError};
use crate::scaffold::Library;

/// What must be of the version that the library is made with, or their types are not the same.
pub(crate) const COMPANIONS: &[(&str, &str)] =
    &[("k8s-openapi", "0.29"), ("kube", "5.0"), ("schemars", "1")];
/// Crates of the library, by the folder that each is in.
const OURS: &[(&str, &str)] = &[("kubewright", "kubewright"), ("kubewright-testing", "testing")];

/// What says where a dependency comes from.
const SOURCES: &[&str] = &["version", "path", "git", "rev", "branch", "tag"];

/// Plans to take the library from elsewhere. If it is taken from there already, there is nothing to
/// be done.
///
/// # Errors
/// If the manifest is not understood, or leaves it to a workspace where the library comes from.
pub fn upgrade(project: &Project, library: &Library) -> Result<Plan, ProjectError> {
    let path = Path::new(MANIFEST);
    let mut draft = Draft::of(&project.root);
    let text = draft.read(path)?.unwrap_or_default();
    let refused = |reason: String| ProjectError::Manifest { path: path.to_owned(), reason };
    let mut manifest: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| refused(error.to_string()))?;
    let workspace = workspace_of(&project.root, &manifest);
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(section) = manifest.get_mut(section).and_then(Item::as_table_like_mut) else {
            continue;
        };
        for (name, folder) in OURS {
            if section.get(name).and_then(|it| it.get("workspace")?.as_bool()) == Some(true) {
                let (path, dependency) = (path.to_owned(), (*name).to_owned());
                return Err(ProjectError::Inherited { path, dependency, workspace });
            }
            take_from(section, name, library, folder).map_err(&refused)?;
        }
        for (name, version) in COMPANIONS {
            set_version(section, name, version);
        }
    }
    draft.write(path, manifest.to_string())?;
    Ok(draft.into_plan(|_| None))
}

/// The manifest of the workspace that a package is in, as Cargo finds it.
fn workspace_of(root: &Path, manifest: &DocumentMut) -> PathBuf {
    if let Some(folder) = manifest.get("package").and_then(|it| it.get("workspace")?.as_str()) {
        return root.join(folder).join(MANIFEST);
    }
    let has_members = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.parse::<DocumentMut>().is_ok_and(|manifest| manifest.contains_key("workspace"))
    };
    let manifests = root.ancestors().map(|folder| folder.join(MANIFEST));
    // Where there is none, Cargo says so of the package's own.
    manifests.into_iter().find(has_members).unwrap_or_else(|| root.join(MANIFEST))
}

/// Where a dependency comes from changes; its features stay.
fn take_from(
    section: &mut dyn TableLike,
    name: &str,
    library: &Library,
    folder: &str,
) -> Result<(), String> {
    let Some(there) = section.get_mut(name) else { return Ok(()) };
    let line = format!("it = {}", library.dependency(folder));
    let wanted: DocumentMut = line.parse().map_err(|error| format!("{line:?}: {error}"))?;
    let wanted = wanted["it"].clone();
    let is_source = |(key, _): (&str, &Item)| SOURCES.contains(&key);
    if there.as_table_like().is_none_or(|table| table.iter().all(is_source)) {
        if there.to_string().trim() != wanted.to_string().trim() {
            let decor = there.as_value().map(|value| value.decor().clone());
            *there = wanted;
            if let (Some(value), Some(decor)) = (there.as_value_mut(), decor) {
                *value.decor_mut() = decor;
            }
        }
        return Ok(());
    }
    let Some(table) = there.as_table_like_mut() else { return Ok(()) };
    let mut is_changed = false;
    for source in SOURCES {
        let value = match (&wanted, *source) {
            (Item::Value(value), "version") if value.is_str() => Some(value.clone()),
            _ => wanted.get(source).and_then(Item::as_value).cloned(),
        };
        let former = table.get(source).and_then(Item::as_str);
        if former == value.as_ref().and_then(Value::as_str) {
            continue;
        }
        is_changed = true;
        match value {
            Some(value) => table.insert(source, Item::Value(value)),
            None => table.remove(source),
        };
    }
    if let Some(inline) = there.as_inline_table_mut().filter(|_| is_changed) {
        inline.fmt();
    }
    Ok(())
}

/// Another version of what comes from the registry; what comes from elsewhere is its author's.
fn set_version(section: &mut dyn TableLike, name: &str, version: &str) {
    let Some(there) = section.get_mut(name) else { return };
    let place = match there.as_table_like_mut() {
        Some(table) => table.get_mut("version"),
        None => Some(there),
    };
    let Some(Item::Value(value)) = place else { return };
    if value.as_str().is_some_and(|there| there != version) {
        let decor = value.decor().clone();
        *value = version.into();
        *value.decor_mut() = decor;
    }
}
