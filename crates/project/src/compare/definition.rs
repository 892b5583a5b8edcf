//! Changes of a definition outside its schemas: names, scope, versions, conversion, subresources.

use kubewright_apimachinery::schema::crd::{self, Conversion, Definition, Subresources, Version};

use super::Hurt::{Clients, Stored};
use super::{Findings, Place, schema};

pub(super) fn compare(old: &Definition, new: &Definition, findings: &mut Findings) {
    refusals(old, new, findings);
    identity(old, new, findings);
    versions(old, new, findings);
    conversion(old.spec.conversion.as_ref(), new.spec.conversion.as_ref(), findings);
    if old.spec.preserve_unknown_fields && !new.spec.preserve_unknown_fields {
        let message = "fields that no schema knows are dropped from now on";
        let at = Place::definition("spec.preserveUnknownFields");
        findings.breaking(&at, &[Stored, Clients], "pruning-began", message.to_owned());
    }
    for version in old.versions() {
        if let Some(twin) = new.versions().iter().find(|it| it.name == version.name) {
            one_version(version, twin, findings);
        }
    }
}

/// What the API server itself says of the change.
fn refusals(old: &Definition, new: &Definition, findings: &mut Findings) {
    let mut stored = old.clone();
    if stored.status.stored_versions.is_empty() {
        // A definition from a file has no status; a server would have noted what is stored.
        stored.status.stored_versions =
            stored.storage_version().map(|version| version.name.clone()).into_iter().collect();
    }
    stored.status.established = true;
    let mut updated = new.clone();
    crd::prepare_update(&mut updated, &stored);
    // What every stored definition has, and no file.
    for definition in [&mut stored, &mut updated] {
        definition.metadata.entry("resourceVersion").or_insert_with(|| "1".into());
    }
    let errors = crd::validate_update(&updated, &stored);
    for error in errors {
        let at = Place::definition("");
        let message = format!("kube-apiserver refuses the new definition: {error}");
        findings.breaking(&at, &[Clients], "refused", message);
    }
}

fn identity(old: &Definition, new: &Definition, findings: &mut Findings) {
    let (before, after) = (&old.spec, &new.spec);
    let names = [
        ("spec.group", &before.group, &after.group),
        ("spec.scope", &before.scope, &after.scope),
        ("spec.names.kind", &before.names.kind, &after.names.kind),
        ("spec.names.plural", &before.names.plural, &after.names.plural),
        ("spec.names.listKind", &before.names.list_kind, &after.names.list_kind),
    ];
    for (path, before, after) in names {
        if before != after {
            let message = format!("was {before:?}, is {after:?}: no client finds it again");
            let change = if path == "spec.scope" { "scope-changed" } else { "name-changed" };
            findings.breaking(&Place::definition(path), &[Stored, Clients], change, message);
        }
    }
    if before.names.singular != after.names.singular {
        let message = format!("was {:?}, is {:?}", before.names.singular, after.names.singular);
        let at = Place::definition("spec.names.singular");
        findings.warning(&at, &[Clients], "name-changed", message);
    }
    let lists = [
        ("spec.names.shortNames", &before.names.short_names, &after.names.short_names),
        ("spec.names.categories", &before.names.categories, &after.names.categories),
    ];
    for (path, before, after) in lists {
        for gone in before.iter().filter(|name| !after.contains(name)) {
            let message = format!("{gone:?} is gone; scripts may say it");
            findings.warning(&Place::definition(path), &[Clients], "name-removed", message);
        }
    }
}

fn versions(old: &Definition, new: &Definition, findings: &mut Findings) {
    let find = |definition: &Definition, name: &str| {
        definition.versions().iter().find(|it| it.name == name).cloned()
    };
    // Without a status nobody knows what is stored besides what is written now.
    let recorded = &old.status.stored_versions;
    let is_stored = |version: &Version| version.storage || recorded.contains(&version.name);
    for version in old.versions() {
        let at = Place::version(&version.name);
        let name = &version.name;
        let Some(twin) = find(new, name) else {
            let message = match (is_stored(version), version.served) {
                (true, _) => format!(
                    "{name} is gone, and objects are stored in it: write them all in another \
                     version and take it out of status.storedVersions first"
                ),
                (false, true) => format!("{name} is gone, and clients may ask for it"),
                (false, false) => {
                    let message = format!("{name} is gone, which was not served");
                    findings.compatible(&at, "version-removed", message);
                    continue;
                }
            };
            let hurts: &[_] = if is_stored(version) { &[Stored, Clients] } else { &[Clients] };
            findings.breaking(&at, hurts, "version-removed", message);
            continue;
        };
        if version.served && !twin.served {
            let message = format!("{name} is not served any more");
            findings.breaking(&at, &[Clients], "version-unserved", message);
        }
        if !version.served && twin.served {
            findings.compatible(&at, "version-served", format!("{name} is served"));
        }
        if !version.deprecated && twin.deprecated {
            let message = format!("{name} is deprecated: clients are warned");
            findings.compatible(&at, "version-deprecated", message);
        }
    }
    for version in new.versions() {
        if find(old, &version.name).is_none() {
            let message = format!("{} is new", version.name);
            findings.compatible(&Place::version(&version.name), "version-added", message);
        }
    }
    let stored = (old.storage_version(), new.storage_version());
    if let (Some(before), Some(after)) = stored
        && before.name != after.name
    {
        let message = format!(
            "objects are written in {} and no longer in {}: those that are there stay as they \
             are until they are written again, so {} must stay until then",
            after.name, before.name, before.name
        );
        let at = Place::definition("spec.versions");
        findings.warning(&at, &[Stored], "storage-version-changed", message);
    }
}

fn conversion(old: Option<&Conversion>, new: Option<&Conversion>, findings: &mut Findings) {
    let at = Place::definition("spec.conversion");
    let strategy = |it: Option<&Conversion>| {
        it.map_or("None", |it| if it.strategy.is_empty() { "None" } else { &it.strategy })
            .to_owned()
    };
    match (strategy(old).as_str(), strategy(new).as_str()) {
        ("Webhook", "None") => {
            let message = "objects are no longer converted: a client of another version than the \
                           stored one sees stored fields, and those that its schema does not know \
                           are dropped";
            findings.breaking(&at, &[Stored, Clients], "conversion-removed", message.to_owned());
        }
        ("None", "Webhook") => {
            let message = "objects are converted by a webhook: it must answer before the \
                           definition is applied, else reads and writes fail";
            findings.warning(&at, &[Clients], "conversion-added", message.to_owned());
        }
        ("Webhook", "Webhook") => {
            let (Some(old), Some(new)) = (old, new) else { return };
            for gone in old.review_versions.iter().filter(|it| !new.review_versions.contains(it)) {
                let message = format!("the webhook is no longer asked in {gone}");
                findings.warning(&at, &[Clients], "conversion-changed", message);
            }
            if old.client_config != new.client_config {
                let message = "the webhook is somewhere else: it must answer there before the \
                               definition is applied";
                findings.warning(&at, &[Clients], "conversion-changed", message.to_owned());
            }
        }
        _ => {}
    }
}

fn one_version(old: &Version, new: &Version, findings: &mut Findings) {
    let at = Place::version(&old.name);
    let schema_of = |version: &Version| version.schema.clone().and_then(|it| it.open_api_v3_schema);
    match (schema_of(old), schema_of(new)) {
        (Some(old), Some(new)) => schema::compare(&old, &new, &at, findings),
        (None, Some(_)) => {
            let message = "there is a schema now: objects must fit it".to_owned();
            findings.breaking(&at, &[Stored, Clients], "schema-added", message);
        }
        (Some(_), None) => {
            let message = "there is no schema any more: anything is taken".to_owned();
            findings.warning(&at, &[Clients], "schema-removed", message);
        }
        (None, None) => {}
    }
    subresources(old.subresources.as_ref(), new.subresources.as_ref(), &at, findings);
    for field in &old.selectable_fields {
        if !new.selectable_fields.contains(field) {
            let message = format!("objects cannot be selected by {} any more", field.json_path);
            findings.breaking(&at, &[Clients], "selectable-field-removed", message);
        }
    }
    if old.printer_columns != new.printer_columns {
        let message = "`kubectl get` has other columns".to_owned();
        findings.compatible(&at, "columns-changed", message);
    }
}

fn subresources(
    old: Option<&Subresources>,
    new: Option<&Subresources>,
    at: &Place,
    findings: &mut Findings,
) {
    let none = Subresources::default();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    let status = at.field("status");
    if old.status && !new.status {
        let message = "the subresource is gone: writes to /status fail, and writes to the object \
                       change its status";
        findings.breaking(&status, &[Clients], "subresource-removed", message.to_owned());
    }
    if !old.status && new.status {
        let message = "the subresource is new: writes to the object no longer change its status";
        findings.breaking(&status, &[Clients], "subresource-added", message.to_owned());
    }
    match (&old.scale, &new.scale) {
        (Some(_), None) => {
            let message = "the scale subresource is gone: `kubectl scale` and autoscalers fail";
            findings.breaking(at, &[Clients], "subresource-removed", message.to_owned());
        }
        (None, Some(_)) => {
            let message = "the scale subresource is new".to_owned();
            findings.compatible(at, "subresource-added", message);
        }
        (Some(old), Some(new)) if old != new => {
            let message = "the scale subresource reads and writes other fields".to_owned();
            findings.breaking(at, &[Clients], "subresource-changed", message);
        }
        _ => {}
    }
}
