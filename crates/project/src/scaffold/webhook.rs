//! Webhooks of a kind.

use super::api::{allow, find, has_part, no_version, own, stored};
use super::piece::Piece;
use super::{ScaffoldError, attend, finished};
use crate::change::{Draft, Plan};
use crate::elsewhere;
use crate::name;
use crate::project::{Api, LIBRARY, Project, declared, module_path, part_path};
use crate::template::fill;

/// Webhooks of a kind, that are to be or to go.
#[derive(Debug, Clone)]
pub struct Hooks {
    /// Without the domain.
    pub group: String,
    /// In which they see objects; for conversion, the hub.
    pub version: String,
    pub kind: String,
    pub defaulting: bool,
    pub validation: bool,
    pub conversion: bool,
    /// The versions to be converted; if there are none, all but the hub.
    pub spokes: Vec<String>,
}

const DEFAULTING: &str = include_str!("../../templates/defaulting.rs.txt");
const VALIDATION: &str = include_str!("../../templates/validation.rs.txt");
const CONVERSION: &str = include_str!("../../templates/conversion.rs.txt");
const SPOKE: &str = include_str!("../../templates/spoke.rs.txt");

/// Plans webhooks.
///
/// # Errors
/// If there is no such kind or version, or a source cannot be edited.
pub fn create_webhook(project: &Project, wanted: &Hooks) -> Result<Plan, ScaffoldError> {
    let Hooks { group, version, kind, .. } = wanted;
    check_meant(wanted)?;
    if let Some(api) = attend::find_or_new(project, group, version, kind)? {
        let mut draft = Draft::of(&project.root);
        let pieces = [attend::kind_pieces(&api), attended_pieces(project, &api, wanted)?];
        pieces.iter().flatten().try_for_each(|piece| piece.create(&mut draft))?;
        return Ok(finished(draft));
    }
    check_names(project, wanted)?;
    let whole = name::whole_group(group, &project.domain);
    let apis = project.apis()?;
    let Some(api) = find(&apis, &whole, kind)?.cloned() else {
        return Err(ScaffoldError::Contradiction(format!(
            "{kind} of {whole} is no kind of this project, none of Kubernetes that is called \
             {}/{version}, and none that was imported into it: `kubewright create api --group \
             {group:?} --version {version} --kind {kind} --resource` first, or `kubewright import \
             --crd FILE --output src/imported` if others define it",
            elsewhere::group_name(group)
        )));
    };
    if !api.versions.contains(version) {
        return Err(no_version(&api, version));
    }
    let mut draft = Draft::of(&project.root);
    let pieces = pieces(&mut draft, &api, wanted)?;
    pieces.iter().try_for_each(|piece| piece.create(&mut draft))?;
    Ok(finished(draft))
}

/// Plans the end of webhooks; without spokes, of all that are converted. If there are no such
/// webhooks, there is nothing to be done.
///
/// # Errors
/// If they are of another version, or their author has changed them.
pub fn delete_webhook(
    project: &Project,
    unwanted: &Hooks,
    force: bool,
) -> Result<Plan, ScaffoldError> {
    check_meant(unwanted)?;
    let Hooks { group, version, kind, .. } = unwanted;
    let apis = project.apis()?;
    if let Some(api) = attend::find(project, &apis, group, kind) {
        let mut draft = Draft::of(&project.root);
        let mut going = Vec::new();
        for (part, is_meant) in
            [("defaulting", unwanted.defaulting), ("validation", unwanted.validation)]
        {
            if is_meant && api.versions.contains(version) && has_part(&mut draft, api, part)? {
                going.push(part);
            }
        }
        let going_hooks = Hooks {
            defaulting: going.contains(&"defaulting"),
            validation: going.contains(&"validation"),
            ..unwanted.clone()
        };
        let pieces = attended_pieces(project, api, &going_hooks)?;
        return attend::delete(draft, api, &going, &pieces, force);
    }
    check_names(project, unwanted)?;
    let whole = name::whole_group(group, &project.domain);
    let api = own(&apis, &whole, kind).filter(|api| api.versions.contains(version)).cloned();
    let Some(api) = api else { return Ok(Plan::default()) };
    let mut draft = Draft::of(&project.root);
    let mut there = |is_meant: bool, part: &str| {
        Ok::<_, ScaffoldError>(is_meant && has_part(&mut draft, &api, part)?)
    };
    let unwanted = Hooks {
        defaulting: there(unwanted.defaulting, "defaulting")?,
        validation: there(unwanted.validation, "validation")?,
        conversion: there(unwanted.conversion, "conversion")?,
        ..unwanted.clone()
    };
    let mut edited = Vec::new();
    for piece in pieces(&mut draft, &api, &unwanted)?.iter().rev() {
        piece.delete(&mut draft, &mut edited)?;
    }
    allow(edited, force)?;
    Ok(finished(draft))
}

/// Refuses what makes no sense of any kind.
fn check_meant(hooks: &Hooks) -> Result<(), ScaffoldError> {
    if !(hooks.defaulting || hooks.validation || hooks.conversion) {
        return Err(ScaffoldError::Contradiction(
            "say which webhooks: --defaulting, --programmatic-validation, --conversion".to_owned(),
        ));
    }
    if !hooks.spokes.is_empty() && !hooks.conversion {
        return Err(ScaffoldError::Contradiction("--spoke goes with --conversion".to_owned()));
    }
    Ok(())
}

/// Refuses what is the name of no kind of this project.
fn check_names(project: &Project, hooks: &Hooks) -> Result<(), ScaffoldError> {
    let Hooks { group, version, kind, .. } = hooks;
    name::group(group, &project.domain)?;
    name::version("version", version)?;
    hooks.spokes.iter().try_for_each(|spoke| name::version("spoke", spoke))?;
    Ok(name::kind(kind)?)
}

/// What the webhooks consist of.
fn pieces(draft: &mut Draft<'_>, api: &Api, hooks: &Hooks) -> Result<Vec<Piece>, ScaffoldError> {
    let Api { module, kind, .. } = api;
    let stored = stored(draft, api)?;
    if hooks.version != stored {
        return Err(ScaffoldError::Contradiction(format!(
            "--version {:?}: webhooks of {kind} are for {stored}, the version it is stored in: \
             requests in others are converted before they are asked about",
            hooks.version
        )));
    }
    let small = kind.to_lowercase();
    let words = module.replace('_', "-");
    let values = [
        ("kind", kind.as_str()),
        ("small", &small),
        ("words", &words),
        ("version", &hooks.version),
    ];
    let mut pieces = Vec::new();
    for (part, template, is_meant) in
        [("defaulting", DEFAULTING, hooks.defaulting), ("validation", VALIDATION, hooks.validation)]
    {
        if is_meant {
            pieces.extend(admission_pieces(module, part, fill(template, &values)));
        }
    }
    if hooks.conversion {
        pieces.extend(conversion_pieces(draft, api, hooks)?);
    }
    Ok(pieces)
}

/// The same of a kind of others.
fn attended_pieces(
    project: &Project,
    api: &Api,
    hooks: &Hooks,
) -> Result<Vec<Piece>, ScaffoldError> {
    let Api { module, kind, .. } = api;
    if hooks.conversion {
        return Err(ScaffoldError::Contradiction(format!(
            "--conversion: versions of {kind} are converted by whoever defines it: leave it out"
        )));
    }
    let label = format!("{}.{}/webhooks", project.name, project.domain);
    let words = module.replace('_', "-");
    // Selectors of namespaces say nothing about objects that are in none.
    let (subject, method) = match api.namespaced {
        true => ("objects of namespaces", "namespaces"),
        false => ("objects", "objects"),
    };
    let values = [
        ("kind", kind.as_str()),
        ("words", &words),
        ("label", &label),
        ("subject", subject),
        ("method", method),
    ];
    let mut pieces = Vec::new();
    for (part, template, is_meant) in [
        ("defaulting", attend::DEFAULTING, hooks.defaulting),
        ("validation", attend::VALIDATION, hooks.validation),
    ] {
        if is_meant {
            pieces.extend(admission_pieces(module, part, fill(template, &values)));
        }
    }
    Ok(pieces)
}

/// A webhook for admission, and its place in the program.
fn admission_pieces(module: &str, part: &str, text: String) -> [Piece; 2] {
    let about = format!("{module}::{part}::webhook()");
    [
        Piece::module(
            module_path(module),
            format!("pub mod {part};"),
            part_path(module, part),
            text,
        ),
        Piece::call(LIBRARY, "operator", "webhook", &about),
    ]
}

fn conversion_pieces(
    draft: &mut Draft<'_>,
    api: &Api,
    hooks: &Hooks,
) -> Result<Vec<Piece>, ScaffoldError> {
    let Api { module, kind, .. } = api;
    let hub = &hooks.version;
    let others: Vec<String> = api.versions.iter().filter(|it| *it != hub).cloned().collect();
    let spokes = if hooks.spokes.is_empty() { &others } else { &hooks.spokes };
    if spokes.is_empty() {
        return Err(ScaffoldError::Contradiction(format!(
            "--conversion: {kind} has only {hub}: `kubewright create api` adds a version to convert"
        )));
    }
    if let Some(unknown) = spokes.iter().find(|spoke| !others.contains(spoke)) {
        return Err(ScaffoldError::Contradiction(format!(
            "--spoke {unknown:?}: there is no such version beside the hub {hub}: {kind} has {}",
            api.versions.join(", ")
        )));
    }
    let path = part_path(module, "conversion");
    let there = declared(draft, &path)?;
    // As long as others are converted, the hub stays.
    let is_hub_meant = there.iter().all(|spoke| spokes.contains(spoke));
    let values = [("kind", kind.as_str()), ("module", module), ("hub", hub)];
    let mut pieces = Vec::new();
    if is_hub_meant {
        let text = fill(CONVERSION, &values);
        pieces.push(Piece::module(module_path(module), "pub mod conversion;", &path, text));
        let about = format!("{module}::conversion::new()");
        pieces.push(Piece::call(LIBRARY, "operator", "converting", &about));
    }
    for spoke in spokes {
        let values = [values[0], values[1], values[2], ("spoke", spoke.as_str())];
        let place = part_path(&format!("{module}/conversion"), spoke);
        pieces.push(Piece::module(&path, format!("mod {spoke};"), place, fill(SPOKE, &values)));
        let file = path.display().to_string();
        pieces.push(Piece::call(&file, "new", "spoke", &format!("super::{spoke}::{kind}")));
    }
    Ok(pieces)
}
