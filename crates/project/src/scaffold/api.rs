//! Kinds of a project, with their controllers.

use std::path::PathBuf;

use super::piece::Piece;
use super::{ScaffoldError, attend, finished};
use crate::change::{Draft, Plan};
use crate::elsewhere;
use crate::name::{self, NameError};
use crate::project::{
    Api, LIBRARY, Project, TESTS, declared, in_file, kinds, module_path, part_path,
};
use crate::source::{calls, undeclare, with_version};
use crate::template::fill;

/// A version of a kind that is to be.
#[derive(Debug, Clone)]
pub struct NewApi {
    /// Without the domain.
    pub group: String,
    pub version: String,
    pub kind: String,
    /// None for what follows from the kind.
    pub plural: Option<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether the kind is defined here.
    pub resource: bool,
    pub controller: bool,
}

/// A version of a kind that is to go.
#[derive(Debug, Clone)]
pub struct OldApi {
    /// Without the domain.
    pub group: String,
    pub version: String,
    pub kind: String,
    /// What it was created with, if somebody says so; it must be as they say.
    pub plural: Option<String>,
    pub cluster_scoped: bool,
    /// Whether the version goes.
    pub resource: bool,
    /// Whether the controller of this version goes.
    pub controller: bool,
    /// Whether what its author wrote may go as well.
    pub force: bool,
}

const KIND: &str = include_str!("../../templates/kind.rs.txt");
const TYPES: &str = include_str!("../../templates/types.rs.txt");
const CONTROLLER: &str = include_str!("../../templates/controller.rs.txt");
const CONTROLLER_TEST: &str = include_str!("../../templates/controller_test.rs.txt");

/// Plans a kind, another version of one, or a controller for one: also for a kind of Kubernetes, or
/// one whose types were imported.
///
/// # Errors
/// If a name cannot be or is taken, or a source cannot be edited.
pub fn create_api(project: &Project, wanted: &NewApi) -> Result<Plan, ScaffoldError> {
    let NewApi { group, version, kind, plural, .. } = wanted;
    if !wanted.resource
        && let Some(api) = attend::find_or_new(project, group, version, kind)?
    {
        agree(&api, None, plural.as_ref())?;
        let mut draft = Draft::of(&project.root);
        if wanted.controller && !has_part(&mut draft, &api, "controller")? {
            let pieces = [attend::kind_pieces(&api), controller_pieces(project, &api, version)];
            pieces.iter().flatten().try_for_each(|piece| piece.create(&mut draft))?;
        }
        return Ok(finished(draft));
    }
    name::group(group, &project.domain)?;
    name::version("version", version)?;
    name::kind(kind)?;
    plural.as_deref().map_or(Ok(()), name::plural)?;
    let whole = name::whole_group(group, &project.domain);
    let apis = project.apis()?;
    let there = find(&apis, &whole, kind)?;
    let api = match there {
        Some(there) => {
            agree(there, wanted.resource.then_some(wanted.namespaced), plural.as_ref())?;
            there.clone()
        }
        None if wanted.resource => {
            let api = Api {
                module: name::module(kind),
                group: whole,
                kind: kind.clone(),
                plural: plural.clone(),
                namespaced: wanted.namespaced,
                versions: Vec::new(),
                elsewhere: None,
            };
            let plural = api.plural.clone().unwrap_or_else(|| name::plural_of(kind));
            name::definition(&plural, &api.group)?;
            differ(&apis, &api)?;
            api
        }
        None => {
            return Err(ScaffoldError::Contradiction(format!(
                "{kind} of {whole} is no kind of this project, none of Kubernetes that is called \
                 {}/{version}, and none that was imported into it: `kubewright import --crd FILE \
                 --output src/imported` makes types of a definition; or add --resource to define it",
                elsewhere::group_name(group)
            )));
        }
    };
    let mut draft = Draft::of(&project.root);
    let mut pieces = Vec::new();
    if wanted.resource {
        pieces.extend(version_pieces(&mut draft, &api, version)?);
    } else if !api.versions.contains(version) {
        return Err(no_version(&api, version));
    }
    if wanted.controller && !has_part(&mut draft, &api, "controller")? {
        pieces.extend(controller_pieces(project, &api, version));
    }
    pieces.iter().try_for_each(|piece| piece.create(&mut draft))?;
    Ok(finished(draft))
}

/// Plans the end of a version of a kind, of its controller, or of both. If there is no such version
/// or controller, there is nothing to be done.
///
/// # Errors
/// If something else needs it, or its author has changed it.
pub fn delete_api(project: &Project, unwanted: &OldApi) -> Result<Plan, ScaffoldError> {
    let OldApi { group, version, kind, plural, .. } = unwanted;
    let whole = name::whole_group(group, &project.domain);
    let apis = project.apis()?;
    if let Some(api) = attend::find(project, &apis, group, kind) {
        return delete_attended(project, api, unwanted);
    }
    let api = own(&apis, &whole, kind).filter(|api| api.versions.contains(version));
    let Some(api) = api else { return Ok(Plan::default()) };
    agree(api, unwanted.cluster_scoped.then_some(false), plural.as_ref())?;
    let mut draft = Draft::of(&project.root);
    let mut pieces = Vec::new();
    if unwanted.resource {
        check_unneeded(&mut draft, api, unwanted)?;
        pieces.extend(version_pieces(&mut draft, api, version)?);
    }
    // With the last version goes all that is left of a controller.
    let is_end = unwanted.resource && api.versions.len() == 1;
    if unwanted.controller && (is_end || controls(&mut draft, api, version)?) {
        pieces.extend(controller_pieces(project, api, version));
    }
    let mut edited = Vec::new();
    let mut draft = Draft::of(&project.root);
    for piece in pieces.iter().rev() {
        piece.delete(&mut draft, &mut edited)?;
    }
    allow(edited, unwanted.force)?;
    Ok(finished(draft))
}

/// The same for a kind of others, of which there is a controller at most.
fn delete_attended(project: &Project, api: &Api, unwanted: &OldApi) -> Result<Plan, ScaffoldError> {
    let OldApi { version, kind, plural, .. } = unwanted;
    if !unwanted.controller {
        return Err(ScaffoldError::Contradiction(format!(
            "{kind} is not defined here, and cannot be deleted: its controller can, with \
             --controller"
        )));
    }
    agree(api, unwanted.cluster_scoped.then_some(false), plural.as_ref())?;
    let mut draft = Draft::of(&project.root);
    if !api.versions.contains(version) || !has_part(&mut draft, api, "controller")? {
        return Ok(Plan::default());
    }
    let pieces = controller_pieces(project, api, version);
    attend::delete(draft, api, &["controller"], &pieces, unwanted.force)
}

/// Refuses to take away a version that something else needs.
fn check_unneeded(
    draft: &mut Draft<'_>,
    api: &Api,
    unwanted: &OldApi,
) -> Result<(), ScaffoldError> {
    let OldApi { group, version, kind, .. } = unwanted;
    let is_last = api.versions.len() == 1;
    let flags = format!("--group {group:?} --version {version} --kind {kind}");
    for (part, flag) in [("defaulting", "defaulting"), ("validation", "programmatic-validation")] {
        if is_last && has_part(draft, api, part)? {
            return Err(ScaffoldError::Contradiction(format!(
                "{kind} has a webhook: `kubewright delete webhook {flags} --{flag}` first"
            )));
        }
    }
    let conversion = part_path(&api.module, "conversion");
    if declared(draft, &conversion)?.contains(version) {
        return Err(ScaffoldError::Contradiction(format!(
            "{version} of {kind} is converted: `kubewright delete webhook --group {group:?} \
             --version {} --kind {kind} --conversion --spoke {version}` first",
            stored(draft, api)?
        )));
    }
    if !is_last && stored(draft, api)? == *version {
        return Err(ScaffoldError::Contradiction(format!(
            "{version} is the version that {kind} is stored in: delete the others first, or change \
             `.kind::<…>()` in {LIBRARY}"
        )));
    }
    if !unwanted.controller && controls(draft, api, version)? {
        return Err(ScaffoldError::Contradiction(format!(
            "{version} of {kind} has a controller, which would have nothing to control: add \
             --controller"
        )));
    }
    Ok(())
}

/// Whether what was edited may go.
pub(super) fn allow(mut edited: Vec<PathBuf>, force: bool) -> Result<(), ScaffoldError> {
    edited.sort();
    edited.dedup();
    if edited.is_empty() || force { Ok(()) } else { Err(ScaffoldError::Edited(edited)) }
}

/// The kind of a project's own with this name.
pub(super) fn own<'a>(apis: &'a [Api], group: &str, kind: &str) -> Option<&'a Api> {
    apis.iter().find(|api| api.elsewhere.is_none() && api.group == group && api.kind == kind)
}

/// The same; refuses a name that something else has.
pub(super) fn find<'a>(
    apis: &'a [Api],
    group: &str,
    kind: &str,
) -> Result<Option<&'a Api>, ScaffoldError> {
    let module = name::module(kind);
    let Some(api) = apis.iter().find(|api| api.module == module) else { return Ok(None) };
    if (api.group.as_str(), api.kind.as_str()) == (group, kind) {
        return Ok(Some(api));
    }
    let reason = format!("`src/{module}.rs` is {api}: choose another");
    Err(NameError { flag: "kind", value: kind.to_owned(), reason }.into())
}

pub(super) fn no_version(api: &Api, version: &str) -> ScaffoldError {
    ScaffoldError::Contradiction(format!(
        "--version {version:?}: {} has only {}: `kubewright create api --resource` adds another",
        api.kind,
        api.versions.join(", ")
    ))
}

/// Kinds of one group have no name of the API in common: a cluster would serve only the first.
fn differ(apis: &[Api], new: &Api) -> Result<(), NameError> {
    let names = |api: &Api| {
        let plural = api.plural.clone().unwrap_or_else(|| name::plural_of(&api.kind));
        [api.kind.to_ascii_lowercase(), plural]
    };
    let ours = names(new);
    for there in apis.iter().filter(|there| there.group == new.group) {
        let Some(taken) = names(there).into_iter().find(|it| ours.contains(it)) else { continue };
        let (flag, value, other) = match &new.plural {
            Some(plural) if *plural == taken => ("plural", plural, "choose another"),
            None if taken == ours[1] => ("kind", &new.kind, "choose another, or add --plural"),
            _ => ("kind", &new.kind, "choose another"),
        };
        let reason = format!("{taken:?} is a name of {there} already: {other}");
        return Err(NameError { flag, value: value.clone(), reason });
    }
    Ok(())
}

/// Versions of one kind differ in their fields alone. What nobody asks for is as it is.
fn agree(
    there: &Api,
    namespaced: Option<bool>,
    plural: Option<&String>,
) -> Result<(), ScaffoldError> {
    let scope = |namespaced: bool| if namespaced { "in namespaces" } else { "in no namespace" };
    if namespaced.is_some_and(|it| it != there.namespaced) {
        return Err(ScaffoldError::Contradiction(format!(
            "objects of {} are {}, in all versions: {} --cluster-scoped",
            there.kind,
            scope(there.namespaced),
            if there.namespaced { "leave out" } else { "add" }
        )));
    }
    if plural.is_some() && there.plural.as_ref() != plural {
        return Err(ScaffoldError::Contradiction(format!(
            "--plural: {} has its plural already, in all versions: leave it out",
            there.kind
        )));
    }
    Ok(())
}

/// What a version of a kind consists of. One that is not the first begins as a copy of the version
/// that is stored.
fn version_pieces(
    draft: &mut Draft<'_>,
    api: &Api,
    version: &str,
) -> Result<Vec<Piece>, ScaffoldError> {
    let Api { module, kind, .. } = api;
    let is_first = api.versions.first().is_none_or(|first| first == version);
    let stored = if is_first { version.to_owned() } else { stored(draft, api)? };
    let text = match stored == version {
        true => types(api, version),
        false => copied(draft, api, &stored, version)?,
    };
    let header = fill(KIND, &[("kind", kind), ("group", &api.group)]);
    let path = module_path(module);
    let mut pieces = Vec::new();
    if api.versions.is_empty() || api.versions.as_slice() == [version] {
        pieces.push(Piece::module(LIBRARY, format!("pub mod {module};"), &path, header));
    }
    pieces.push(Piece::module(
        &path,
        format!("pub mod {version};"),
        part_path(module, version),
        text,
    ));
    let method = if stored == version { "kind" } else { "version" };
    let about = format!("{module}::{version}::{kind}");
    pieces.push(Piece::call(LIBRARY, "operator", method, &about));
    Ok(pieces)
}

/// The version that objects are stored in: the one that the program calls the kind.
pub(super) fn stored(draft: &mut Draft<'_>, api: &Api) -> Result<String, ScaffoldError> {
    let text = draft.read(LIBRARY.as_ref())?.unwrap_or_default();
    let calls = calls(&text).map_err(|error| in_file(LIBRARY.as_ref(), error))?;
    let is_stored = |version: &&String| {
        let call = format!(".kind::<{}::{version}::{}>()", api.module, api.kind);
        calls.iter().any(|it| it.words == call)
    };
    let found = api.versions.iter().find(is_stored).or(api.versions.first());
    Ok(found.cloned().unwrap_or_default())
}

fn types(api: &Api, version: &str) -> String {
    let plural = api.plural.as_deref().map(|plural| format!(", plural = {plural:?}"));
    let plural = plural.unwrap_or_default();
    let scope = if api.namespaced { ", namespaced" } else { "" };
    fill(
        TYPES,
        &[
            ("kind", &api.kind),
            ("group", &api.group),
            ("version", version),
            ("plural", &plural),
            ("scope", scope),
        ],
    )
}

/// The source of one version as that of another, without modules of its own.
fn copied(draft: &mut Draft<'_>, api: &Api, from: &str, to: &str) -> Result<String, ScaffoldError> {
    let path = part_path(&api.module, from);
    let found = kinds(draft, &path)?;
    let mut text = draft.read(&path)?.unwrap_or_default();
    if let Some(kind) = found.iter().find(|found| found.kind == api.kind) {
        text = with_version(&text, kind, to);
    }
    for module in declared(draft, &path)? {
        text = undeclare(&text, &module).map_err(|error| in_file(&path, error))?;
    }
    Ok(text)
}

fn controller_pieces(project: &Project, api: &Api, version: &str) -> Vec<Piece> {
    let Api { module, kind, .. } = api;
    let namespace = if api.namespaced { "Some(cluster.namespace())" } else { "None" };
    let values = [
        ("crate", project.crate_name()),
        ("kind", kind.clone()),
        ("small", kind.to_lowercase()),
        ("words", module.replace('_', "-")),
        ("module", module.clone()),
        ("version", version.to_owned()),
        ("namespace", namespace.to_owned()),
    ];
    let values: Vec<(&str, &str)> = values.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let template = if api.elsewhere.is_some() { attend::CONTROLLER } else { CONTROLLER };
    let mut pieces = vec![
        Piece::module(
            module_path(module),
            "pub mod controller;",
            part_path(module, "controller"),
            fill(template, &values),
        ),
        Piece::call(LIBRARY, "operator", "controller", &format!("{module}::controller::new()")),
    ];
    // What a valid object of a kind of others is, and who else looks after it, is not known.
    if api.elsewhere.is_none() {
        let test = format!("{module}_controller");
        pieces.push(Piece::module(
            TESTS,
            format!("mod {test};"),
            format!("tests/it/{test}.rs"),
            fill(CONTROLLER_TEST, &values),
        ));
    }
    pieces
}

/// Whether a kind has a controller, and it is about this version.
fn controls(draft: &mut Draft<'_>, api: &Api, version: &str) -> Result<bool, ScaffoldError> {
    let is_there = has_part(draft, api, "controller")?;
    let text = draft.read(&part_path(&api.module, "controller"))?.unwrap_or_default();
    let names = |module: &str| text.contains(&format!("{module}::{version}::"));
    Ok(is_there && (api.versions.len() == 1 || names("super") || names(&api.module)))
}

/// Whether a kind has a part of this name.
pub(super) fn has_part(
    draft: &mut Draft<'_>,
    api: &Api,
    part: &str,
) -> Result<bool, ScaffoldError> {
    Ok(declared(draft, &module_path(&api.module))?.iter().any(|module| module == part))
}
