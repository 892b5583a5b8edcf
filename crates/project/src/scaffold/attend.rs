//! Controllers and webhooks of kinds that something else defines: Kubernetes, or whoever's
//! definition was imported.
//!
//! The module of such a kind has its type under its own name, which is how it is known again.

use super::ScaffoldError;
use super::api::{allow, own};
use super::finished;
use super::piece::Piece;
use crate::change::{Draft, Plan};
use crate::elsewhere::{self, Known};
use crate::name;
use crate::project::{Api, LIBRARY, Project, declared, module_path};
use crate::template::fill;

const KIND: &str = include_str!("../../templates/attended_kind.rs.txt");
pub(super) const CONTROLLER: &str = include_str!("../../templates/attended_controller.rs.txt");
pub(super) const DEFAULTING: &str = include_str!("../../templates/attended_defaulting.rs.txt");
pub(super) const VALIDATION: &str = include_str!("../../templates/attended_validation.rs.txt");

/// The kind of others with this name that a project attends to. One of its own goes first.
pub(super) fn find<'a>(
    project: &Project,
    apis: &'a [Api],
    group: &str,
    kind: &str,
) -> Option<&'a Api> {
    let whole = name::whole_group(group, &project.domain);
    if own(apis, &whole, kind).is_some() {
        return None;
    }
    apis.iter().find(|api| {
        api.elsewhere.is_some() && api.kind == kind && elsewhere::is_group(&api.group, group)
    })
}

/// The kind of others with this name; none if there is none, or it is one of the project's own.
pub(super) fn find_or_new(
    project: &Project,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Option<Api>, ScaffoldError> {
    let apis = project.apis()?;
    if let Some(there) = find(project, &apis, group, kind) {
        if there.versions.iter().any(|it| it == version) {
            return Ok(Some(there.clone()));
        }
        return Err(ScaffoldError::Contradiction(format!(
            "--version {version:?}: `src/{}.rs` is {there}: change what it uses, or leave the \
             version as it is",
            there.module
        )));
    }
    let whole = name::whole_group(group, &project.domain);
    if own(&apis, &whole, kind).is_some() {
        return Ok(None);
    }
    let mut draft = Draft::of(&project.root);
    let mut known = elsewhere::imported(&mut draft)?;
    known.extend(elsewhere::built_in());
    known.retain(|it| it.kind == kind && elsewhere::is_group(&it.group, group));
    let Some(first) = known.first() else { return Ok(None) };
    let Some(found) = known.iter().find(|it| it.version == version) else {
        let versions: Vec<&str> = known.iter().map(|it| it.version.as_str()).collect();
        return Err(ScaffoldError::Contradiction(format!(
            "--version {version:?}: {kind} of {} has {}",
            elsewhere::group_name(&first.group),
            versions.join(", ")
        )));
    };
    if let Some((file, module)) = &found.hidden_by {
        return Err(ScaffoldError::Contradiction(format!(
            "{}: nothing else sees `mod {module}`, where {kind} is: make it `pub mod {module}`",
            file.display()
        )));
    }
    name::kind(kind)?;
    Ok(Some(Api::of(found.clone(), free_module(&mut draft, found)?)))
}

/// What the module of a kind is called. Kinds of several groups may have one name.
fn free_module(draft: &mut Draft<'_>, known: &Known) -> Result<String, ScaffoldError> {
    let there = declared(draft, LIBRARY.as_ref())?;
    let modules = elsewhere::modules(known);
    match modules.iter().find(|module| !there.contains(module)) {
        Some(module) => Ok(module.clone()),
        None => Err(ScaffoldError::Occupied { path: module_path(&modules[0]) }),
    }
}

/// The module of the kind, in which the others are.
pub(super) fn kind_pieces(api: &Api) -> Vec<Piece> {
    let Api { module, kind, group, elsewhere, .. } = api;
    let path = elsewhere.as_deref().unwrap_or_default();
    let values = [("kind", kind.as_str()), ("group", elsewhere::group_name(group)), ("path", path)];
    let text = fill(KIND, &values);
    vec![Piece::module(LIBRARY, format!("pub mod {module};"), module_path(module), text)]
}

/// Plans the end of parts. With the last of them goes the module that they are in.
pub(super) fn delete(
    mut draft: Draft<'_>,
    api: &Api,
    parts: &[&str],
    pieces: &[Piece],
    force: bool,
) -> Result<Plan, ScaffoldError> {
    let there = declared(&mut draft, &module_path(&api.module))?;
    let is_end = !parts.is_empty() && there.iter().all(|it| parts.contains(&it.as_str()));
    let kind = if is_end { kind_pieces(api) } else { Vec::new() };
    let mut edited = Vec::new();
    for piece in kind.iter().chain(pieces).rev() {
        piece.delete(&mut draft, &mut edited)?;
    }
    allow(edited, force)?;
    Ok(finished(draft))
}
