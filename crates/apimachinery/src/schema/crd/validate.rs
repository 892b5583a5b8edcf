//! Whether a definition may be stored.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::conversion::{self, Leniency};
use super::defaults::{self, Unknown};
use super::field_path::{self, Brackets};
use super::openapi::{self, Strictness};
use super::rules::Costs;
use super::{
    Definition, Names, PrinterColumn, Scale, Schema, SelectableField, Shared, Spec, Subresources,
    Version, internal, rules, structural,
};
use crate::field::{Error, Path};
use crate::json::{self, is_printable};
use crate::name::object_meta::{self, Scope};
use crate::name::{self, Rule};
use crate::schema::format::uri::Uri;
use crate::schema::{Structural, Type, default};

/// How many fields of a version can be selected by.
const SELECTABLE_FIELDS_MAX: usize = 8;

const APPROVED: &str = "api-approved.kubernetes.io";

/// What is wrong with a new definition, after [`prepare_create`](super::prepare_create).
pub fn validate_create(definition: &Definition) -> Vec<Error> {
    let at = Path::new("metadata");
    let mut errors =
        object_meta::validate(&definition.metadata, Scope::Cluster, Rule::Subdomain, &at);
    let expected = format!("{}.{}", definition.spec.names.plural, definition.spec.group);
    for field in ["generateName", "name"] {
        let name = definition.metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && name != expected {
            let detail = r#"must be spec.names.plural+"."+spec.group"#;
            errors.push(Error::invalid(&at.child(field), name, detail));
        }
    }
    validate_spec(&definition.spec, &Options::for_create(), &mut errors);
    errors.extend(validate_stored(definition));
    errors.extend(validate_approval(definition, None));
    errors.extend(preserving_unknown_fields(&definition.spec, None));
    errors
}

/// What is wrong with a definition that takes the place of `old`, after
/// [`prepare_update`](super::prepare_update). What was already wrong in the old one is not held
/// against it.
pub fn validate_update(definition: &Definition, old: &Definition) -> Vec<Error> {
    let at = Path::new("metadata");
    let mut errors = object_meta::validate_update(&definition.metadata, &old.metadata, &at);
    let (spec, old_spec) = (&definition.spec, &old.spec);
    validate_spec(spec, &Options::for_update(definition, old), &mut errors);
    let at = Path::new("spec");
    let names = at.child("names");
    let mut immutable = |new: &str, old: &str, at: &Path<'_>| {
        if new != old {
            errors.push(Error::invalid(at, new, "field is immutable"));
        }
    };
    if old.status.established {
        immutable(&spec.scope, &old_spec.scope, &at.child("scope"));
        immutable(&spec.names.kind, &old_spec.names.kind, &names.child("kind"));
    }
    immutable(&spec.group, &old_spec.group, &at.child("group"));
    immutable(&spec.names.plural, &old_spec.names.plural, &names.child("plural"));
    errors.extend(validate_stored(definition));
    errors.extend(validate_approval(definition, Some(old)));
    errors.extend(preserving_unknown_fields(spec, Some(old_spec)));
    errors
}

/// What is wrong with a write to the status of a definition.
pub fn validate_status_update(definition: &Definition, old: &Definition) -> Vec<Error> {
    let at = Path::new("metadata");
    let mut errors = object_meta::validate_update(&definition.metadata, &old.metadata, &at);
    let at = Path::new("status");
    validate_names(&definition.status.accepted_names, &at.child("acceptedNames"), &mut errors);
    errors
}

/// Formats that say nothing, as warnings; those that were there before are not repeated.
pub fn warnings(definition: &Definition, old: Option<&Definition>) -> Vec<String> {
    let known = old.map(|old| unrecognized_formats(&old.spec)).unwrap_or_default();
    let new = |name: &String| !known.contains(name);
    let formats = unrecognized_formats(&definition.spec).into_iter().filter(new);
    formats.map(|name| format!("unrecognized format {}", json::go_quote(&name))).collect()
}

fn unrecognized_formats(spec: &Spec) -> Vec<String> {
    let mut formats = Vec::new();
    // A schema that all versions share counts once.
    let schemas = spec.schemas().take(if Shared::of(spec).schema { 1 } else { usize::MAX });
    for schema in schemas {
        any_schema(schema, &mut |schema| {
            let constraints = schema.constraints.as_ref();
            if let Some(format) = constraints.and_then(|constraints| constraints.format.as_ref())
                && !format.is_recognized(schema.type_.as_ref())
            {
                formats.push(format.name.to_string());
            }
            false
        });
    }
    formats
}

/// What is asked of a definition.
struct Options {
    schemas: bool,
    structural: bool,
    unknown_in_defaults: Unknown,
    keywords: Strictness,
    conversion: Leniency,
    /// Versions whose schema is the old one.
    unchanged_schemas: HashSet<String>,
    /// Versions that keep more selectable fields than are allowed today.
    many_selectable_fields: HashSet<String>,
}

impl Options {
    fn for_create() -> Self {
        Options {
            schemas: true,
            structural: true,
            unknown_in_defaults: Unknown::Refused,
            keywords: Strictness { property_types: true, atomic_sets: true, list_map_keys: true },
            // Until a definition is established its bundle may still be injected.
            conversion: Leniency { unknown_review_versions: false, invalid_ca_bundle: true },
            unchanged_schemas: HashSet::new(),
            many_selectable_fields: HashSet::new(),
        }
    }

    fn for_update(definition: &Definition, old: &Definition) -> Self {
        let spec = &old.spec;
        let no_schema_has = |predicate: &mut dyn FnMut(&Structural) -> bool| {
            !spec.schemas().any(|schema| any_schema(schema, predicate))
        };
        let property_types =
            no_schema_has(&mut |schema| matches!(schema.type_, Some(Type::Other(_))));
        let atomic_sets = no_schema_has(&mut |schema| openapi::is_set_of_parts(schema));
        let list_map_keys =
            no_schema_has(&mut |schema| !openapi::list_map_keys(schema, &Path::ROOT).is_empty());
        Options {
            schemas: spec.versions().iter().all(|version| version.open_api_v3_schema().is_some()),
            structural: spec.schemas().all(is_structural),
            unknown_in_defaults: match spec.schemas().any(has_unknown_in_defaults) {
                true => Unknown::Allowed,
                false => Unknown::Refused,
            },
            keywords: Strictness { property_types, atomic_sets, list_map_keys },
            conversion: Leniency {
                unknown_review_versions: !conversion::has_known_review_version(
                    spec.conversion.as_ref(),
                ),
                invalid_ca_bundle: allows_invalid_ca_bundle(old),
            },
            unchanged_schemas: unchanged_schemas(definition, old),
            many_selectable_fields: keeps_many_selectable_fields(definition, old),
        }
    }

    /// What was once accepted stays so, should estimates ever change.
    fn rule_costs(&self, version: Option<&str>) -> Costs {
        match version.is_some_and(|version| self.unchanged_schemas.contains(version)) {
            true => Costs::Tolerated,
            false => Costs::Limited,
        }
    }
}

fn is_structural(schema: &Structural) -> bool {
    structural::validate(schema, &Path::ROOT).is_ok_and(|errors| errors.is_empty())
}

fn has_unknown_in_defaults(schema: &Structural) -> bool {
    let mut pruned = schema.clone();
    default::prune_defaults(&mut pruned);
    is_structural(schema) && pruned != *schema
}

fn allows_invalid_ca_bundle(old: &Definition) -> bool {
    let config = old.spec.conversion.as_ref().and_then(|old| old.client_config.as_ref());
    let bundle = config.map_or(&[][..], |config| &config.ca_bundle);
    !old.status.established
        || !bundle.is_empty() && conversion::ca_bundle(bundle, &Path::ROOT).is_some()
}

fn unchanged_schemas(definition: &Definition, old: &Definition) -> HashSet<String> {
    let is_unchanged = |version: &&Version| {
        old.versions().iter().any(|old| old.name == version.name && old.schema == version.schema)
    };
    definition.versions().iter().filter(is_unchanged).map(|version| version.name.clone()).collect()
}

fn keeps_many_selectable_fields(definition: &Definition, old: &Definition) -> HashSet<String> {
    let before: HashMap<&str, &Version> =
        old.versions().iter().map(|version| (version.name.as_str(), version)).collect();
    let unchanged = |version: &&Version| {
        before.get(version.name.as_str()).is_some_and(|old| {
            old.selectable_fields.len() > SELECTABLE_FIELDS_MAX
                && old.selectable_fields == version.selectable_fields
        })
    };
    definition.versions().iter().filter(unchanged).map(|version| version.name.clone()).collect()
}

/// Whether the predicate holds for a schema or anything below it.
fn any_schema(schema: &Structural, predicate: &mut dyn FnMut(&Structural) -> bool) -> bool {
    predicate(schema)
        || openapi::children(schema).into_iter().any(|child| any_schema(child, predicate))
}

fn validate_spec(spec: &Spec, options: &Options, errors: &mut Vec<Error>) {
    let at = Path::new("spec");
    validate_group(&spec.group, &at.child("group"), errors);
    let scope = at.child("scope");
    match spec.scope.as_str() {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(Error::required(&scope, "")),
        other => errors.push(Error::not_supported(&scope, other, &["Cluster", "Namespaced"])),
    }
    validate_versions(spec, options, &at, errors);
    for (name, value) in [
        ("plural", &spec.names.plural),
        ("singular", &spec.names.singular),
        ("kind", &spec.names.kind),
        ("listKind", &spec.names.list_kind),
    ] {
        if value.is_empty() {
            errors.push(Error::required(&at.child("names").child(name), ""));
        }
    }
    validate_names(&spec.names, &at.child("names"), errors);
    validate_shared(spec, options, &at, errors);
    if let Some(conversion) = &spec.conversion {
        let at = at.child("conversion");
        if conversion.strategy != "None" && spec.preserve_unknown_fields {
            let detail = "must be None if spec.preserveUnknownFields is true";
            errors.push(Error::invalid(&at.child("strategy"), &*conversion.strategy, detail));
        }
        errors.extend(conversion::validate(conversion, options.conversion, &at));
    }
}

fn validate_group(group: &str, at: &Path<'_>, errors: &mut Vec<Error>) {
    let wrong = name::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(Error::required(at, ""));
    } else if !wrong.is_empty() {
        errors.push(Error::invalid(at, group, wrong.join(",")));
    } else if !group.contains('.') {
        errors.push(Error::invalid(at, group, "should be a domain with at least one dot"));
    }
}

fn validate_versions(spec: &Spec, options: &Options, at: &Path<'_>, errors: &mut Vec<Error>) {
    let shared = Shared::of(spec);
    let versions_at = at.child("versions");
    for (index, version) in spec.versions().iter().enumerate() {
        let detail = match version.open_api_v3_schema() {
            Some(_) => continue,
            None if options.schemas => "",
            None if !spec.preserve_unknown_fields && version.served => {
                "because otherwise all fields are pruned"
            }
            None => continue,
        };
        let at = versions_at.index(index);
        errors.push(Error::required(&at.child("schema").child("openAPIV3Schema"), detail));
    }
    let mut has_default = |schema: &Structural| schema.default.is_some();
    if spec.preserve_unknown_fields
        && spec.schemas().any(|schema| any_schema(schema, &mut has_default))
    {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(Error::invalid(&at.child("preserveUnknownFields"), true, detail));
    }

    // Of versions with the same name, the first decides for all whether there is a status.
    let mut names = HashMap::new();
    for (index, version) in spec.versions().iter().enumerate() {
        let has_status = *names.entry(&version.name).or_insert_with(|| version.has_status());
        let at = versions_at.index(index);
        let wrong = name::dns1035_label(&version.name);
        if !wrong.is_empty() {
            errors.push(Error::invalid(&at.child("name"), &*version.name, wrong.join(",")));
        }
        validate_version(version, has_status, shared, spec, options, &at, errors);
    }
    let shown = || internal::versions(spec.versions.as_deref(), shared);
    if names.len() < spec.versions().len() {
        errors.push(Error::invalid(&versions_at, shown(), "must contain unique version names"));
    }
    if spec.versions().iter().filter(|version| version.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(Error::invalid(&versions_at, shown(), detail));
    }
    if let Some(first) = spec.versions().first().filter(|first| !first.name.is_empty()) {
        let wrong = name::dns1035_label(&first.name);
        if !wrong.is_empty() {
            errors.push(Error::invalid(&at.child("version"), &*first.name, wrong.join(",")));
        }
    }
}

fn validate_version(
    version: &Version,
    has_status: bool,
    shared: Shared,
    spec: &Spec,
    options: &Options,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    let warning = version.deprecation_warning.as_deref();
    for wrong in wrong_with_warning(version.deprecated, warning) {
        // Behind a pointer, a text is shown as JSON and not as Go quotes it.
        let shown = json::to_string(&json!(warning));
        let mut error = Error::invalid(&at.child("deprecationWarning"), Value::Null, "");
        error.bad_value = None;
        error.detail = format!("{shown}: {wrong}");
        errors.push(error);
    }
    if !shared.schema {
        let schema = version.schema.as_ref();
        let place = (at, "schema", Some(&*version.name));
        validate_schema(schema, has_status, spec, options, place, errors);
    }
    if !shared.subresources {
        let subresources = version.subresources.as_ref();
        validate_subresources(subresources, &at.child("subresources"), errors);
    }
    if !shared.printer_columns {
        validate_columns(&version.printer_columns, at, errors);
    }
    if !shared.selectable_fields && !version.selectable_fields.is_empty() {
        match version.open_api_v3_schema().filter(|_| !shared.schema) {
            None => {
                // It says the opposite of what it means, upstream too.
                let detail =
                    "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(Error::invalid(&at.child("selectableFields"), "", detail));
            }
            Some(schema) => validate_selectable(version, schema, options, at, errors),
        }
    }
}

/// What stands once beside the versions.
fn validate_shared(spec: &Spec, options: &Options, at: &Path<'_>, errors: &mut Vec<Error>) {
    let shared = Shared::of(spec);
    let Some(first) = spec.versions().first() else { return };
    if shared.schema {
        let has_status = spec.versions().iter().any(Version::has_status);
        let schema = first.schema.as_ref();
        let place = (at, "validation", Some(&*first.name));
        validate_schema(schema, has_status, spec, options, place, errors);
    }
    if shared.subresources {
        let subresources = first.subresources.as_ref();
        validate_subresources(subresources, &at.child("subresources"), errors);
    }
    if shared.printer_columns {
        validate_columns(&first.printer_columns, at, errors);
    }
    if shared.selectable_fields && !first.selectable_fields.is_empty() {
        match first.open_api_v3_schema().filter(|_| shared.schema) {
            None => {
                let detail = "may only be set when validations.schema is included";
                errors.push(Error::invalid(&at.child("selectableFields"), "", detail));
            }
            Some(schema) => validate_selectable(first, schema, options, at, errors),
        }
    }
}

fn wrong_with_warning(deprecated: bool, warning: Option<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(warning) = warning else { return wrong };
    if !deprecated {
        wrong.push("can only be set for deprecated versions".to_owned());
        return wrong;
    }
    if warning.len() > 256 {
        wrong.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        wrong.push("must not be an empty string".to_owned());
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        wrong.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {index}"
        ));
    }
    wrong
}

fn validate_schema(
    schema: Option<&Schema>,
    has_status: bool,
    spec: &Spec,
    options: &Options,
    (at, keyword, version): (&Path<'_>, &str, Option<&str>),
    errors: &mut Vec<Error>,
) {
    let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
        return;
    };
    let before = errors.len();
    let parent = at.child(keyword);
    if has_status {
        errors.extend(root_with_status(schema, &parent));
    }
    if schema.nullable {
        let at = parent.child("openAPIV3Schema.nullable");
        errors.push(Error::forbidden(&at, "nullable cannot be true at the root"));
    }
    let at = parent.child("openAPIV3Schema");
    let mut unreadable = None;
    let mut is_sound = false;
    if options.structural || !spec.preserve_unknown_fields || wants_structure(spec) {
        match structural::validate(schema, &at) {
            Err(why) => unreadable = Some(why),
            Ok(wrong) if !wrong.is_empty() => errors.extend(wrong),
            Ok(_) => {
                let wrong = defaults::validate(schema, options.unknown_in_defaults, &at);
                is_sound = wrong.is_empty();
                errors.extend(wrong);
            }
        }
    }
    let keywords = openapi::validate(schema, options.keywords, &at);
    let wrong_rules = match is_sound {
        true => rules::validate(schema, options.rule_costs(version), &keywords, &at),
        false => Vec::new(),
    };
    errors.extend(keywords);
    errors.extend(wrong_rules);
    if let Some(why) = unreadable.filter(|_| errors.len() == before) {
        errors.push(Error::invalid(&at, "", why));
    }
}

/// Defaults and Kubernetes' keywords are only possible with structure.
fn wants_structure(spec: &Spec) -> bool {
    let mut wants = |schema: &Structural| {
        let extensions = &schema.extensions;
        schema.default.is_some()
            || extensions.embedded_resource
            || extensions.preserve_unknown_fields.is_some()
            || extensions.int_or_string
            || extensions.list_type.is_some()
            || !extensions.list_map_keys.is_empty()
            || !extensions.validations.is_empty()
    };
    spec.schemas().any(|schema| any_schema(schema, &mut wants))
}

/// The schema of `status` is used on its own, so nothing at the root may add to it.
fn root_with_status(schema: &Structural, at: &Path<'_>) -> Option<Error> {
    const ALLOWED: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum \
                           ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems \
                           UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
                           XPreserveUnknownFields XValidations";
    let unsupported = schema.unsupported.as_deref();
    let refused_before_type = unsupported.is_some_and(|unsupported| {
        !unsupported.id.is_empty()
            || !unsupported.schema.is_empty()
            || unsupported.reference.is_some()
    });
    let constraints = schema.constraints.clone().unwrap_or_default();
    let extensions = &schema.extensions;
    let refused = refused_before_type
        || unsupported.is_some_and(|unsupported| {
            !unsupported.pattern_properties.is_empty()
                || unsupported.dependencies.is_some()
                || unsupported.additional_items.is_some()
                || !unsupported.definitions.is_empty()
        })
        || schema.nullable
        || schema.default.is_some()
        || !constraints.enumeration.is_empty()
        || constraints.max_properties.is_some()
        || constraints.min_properties.is_some()
        || !constraints.all_of.is_empty()
        || !constraints.one_of.is_empty()
        || !constraints.any_of.is_empty()
        || constraints.not.is_some()
        || schema.additional_properties.is_some()
        || extensions.embedded_resource
        || extensions.int_or_string
        || !extensions.list_map_keys.is_empty()
        || extensions.list_type.is_some()
        || extensions.map_type.is_some();
    match &schema.type_ {
        Some(type_) if *type_ != Type::Object && !refused_before_type => {
            let detail = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
            let at = at.child("openAPIV3Schema.type");
            Some(Error::invalid(&at, type_.as_str(), detail))
        }
        _ if refused => {
            let detail = format!(
                "only [{ALLOWED}] fields are allowed at the root of the schema if the status \
                 subresource is enabled"
            );
            let at = at.child("openAPIV3Schema");
            Some(Error::invalid(&at, internal::schema(schema), detail))
        }
        _ => None,
    }
}

fn validate_subresources(
    subresources: Option<&Subresources>,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    let Some(Scale { spec_replicas_path, status_replicas_path, label_selector_path }) =
        subresources.and_then(|subresources| subresources.scale.as_ref())
    else {
        return;
    };
    for (name, path, prefix) in [
        ("scale.specReplicasPath", spec_replicas_path, ".spec."),
        ("scale.statusReplicasPath", status_replicas_path, ".status."),
    ] {
        let at = at.child(name);
        if path.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !path.starts_with('.') {
            errors.push(not_simple(path, &at));
        } else if !path.starts_with(prefix) {
            let detail = format!("should be a json path under {}", prefix.trim_end_matches('.'));
            errors.push(Error::invalid(&at, path.as_str(), detail));
        }
    }
    let at = at.child("scale.labelSelectorPath");
    match label_selector_path.as_deref() {
        None | Some("") => {}
        Some(path) if !path.starts_with('.') => errors.push(not_simple(path, &at)),
        Some(path) if path.starts_with(".spec.") || path.starts_with(".status.") => {}
        Some(path) => {
            let detail = "should be a json path under either .spec or .status";
            errors.push(Error::invalid(&at, path, detail));
        }
    }
}

fn not_simple(path: &str, at: &Path<'_>) -> Error {
    Error::invalid(at, path, "must be a simple json path starting with .")
}

fn validate_columns(columns: &[PrinterColumn], at: &Path<'_>, errors: &mut Vec<Error>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let at = at.child("additionalPrinterColumns");
    for (index, column) in columns.iter().enumerate() {
        let at = at.index(index);
        if column.name.is_empty() {
            errors.push(Error::required(&at.child("name"), ""));
        }
        let types = format!("must be one of {}", TYPES.join(","));
        if column.type_.is_empty() {
            errors.push(Error::required(&at.child("type"), types));
        } else if !TYPES.contains(&column.type_.as_str()) {
            errors.push(Error::invalid(&at.child("type"), &*column.type_, types));
        }
        if !column.format.is_empty() && !FORMATS.contains(&column.format.as_str()) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(Error::invalid(&at.child("format"), &*column.format, detail));
        }
        let at = at.child("JSONPath");
        if column.json_path.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !column.json_path.starts_with('.') {
            errors.push(not_simple(&column.json_path, &at));
        }
    }
}

fn validate_selectable(
    version: &Version,
    schema: &Structural,
    options: &Options,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    let at = at.child("selectableFields");
    let mut unique = HashSet::new();
    for (index, SelectableField { json_path }) in version.selectable_fields.iter().enumerate() {
        let at = at.index(index);
        let at = at.child("jsonPath");
        let path = json_path.as_str();
        if path.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        let found = match field_path::resolve(path, schema, Brackets::Forbidden) {
            Ok(found) => found,
            Err(why) => {
                errors.push(Error::invalid(&at, path, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.push(Error::invalid(&at, path, "must not point to fields in metadata"));
        }
        let type_ = found.schema.and_then(|schema| schema.type_.as_ref());
        if !matches!(type_, Some(Type::String | Type::Boolean | Type::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(Error::invalid(&at, path, detail));
        }
        if !unique.insert(found.text) {
            errors.push(Error::duplicate(&at, path));
        }
    }
    let found = unique.len();
    if found > SELECTABLE_FIELDS_MAX && !options.many_selectable_fields.contains(&version.name) {
        errors.push(Error::too_many(&at, found, SELECTABLE_FIELDS_MAX));
    }
}

fn validate_names(names: &Names, at: &Path<'_>, errors: &mut Vec<Error>) {
    let mut check = |name: &str, at: &Path<'_>| {
        let wrong = name::dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(Error::invalid(at, name, wrong.join(",")));
        }
    };
    for (field, name) in [("plural", &names.plural), ("singular", &names.singular)] {
        if !name.is_empty() {
            check(name, &at.child(field));
        }
    }
    for (index, name) in names.short_names.iter().enumerate() {
        check(name, &at.child("shortNames").index(index));
    }
    for (index, name) in names.categories.iter().enumerate() {
        check(name, &at.child("categories").index(index));
    }
    for (field, kind) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let wrong = name::dns1035_label(&kind.to_lowercase());
        if !kind.is_empty() && !wrong.is_empty() {
            let wrong = wrong.join(",");
            let detail = format!("may have mixed case, but should otherwise match: {wrong}");
            errors.push(Error::invalid(&at.child(field), kind.as_str(), detail));
        }
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(Error::invalid(&at.child("listKind"), names.list_kind.as_str(), detail));
    }
}

/// The accepted names, and the versions that objects are or once were stored in.
fn validate_stored(definition: &Definition) -> Vec<Error> {
    let mut errors = Vec::new();
    let at = Path::new("status");
    validate_names(&definition.status.accepted_names, &at.child("acceptedNames"), &mut errors);
    let at = at.child("storedVersions");
    let stored = &definition.status.stored_versions;
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(Error::invalid(&at, Value::Null, detail));
        return errors;
    }
    // The last index of each name, and only the first version of a name finds it.
    let mut missing: HashMap<&str, usize> =
        stored.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    for version in definition.versions() {
        if missing.remove(version.name.as_str()).is_none() && version.storage {
            let detail = format!("must have the storage version {}", version.name);
            errors.push(Error::invalid(&at, json!(stored), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if missing.get(name.as_str()) == Some(&index) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(Error::invalid(&at.index(index), name.as_str(), detail));
        }
    }
    errors
}

/// Groups of the Kubernetes community are for APIs that were reviewed, or say that they were not.
fn validate_approval(definition: &Definition, old: Option<&Definition>) -> Option<Error> {
    if !is_protected(&definition.spec.group) {
        return None;
    }
    let found = annotation(definition);
    let approval = Approval::of(found);
    if old.is_some_and(|old| Approval::of(annotation(old)) == approval) {
        return None;
    }
    let at = Path::new("metadata");
    let at = at.child("annotations");
    let at = at.key(APPROVED);
    match approval {
        Approval::Given | Approval::Bypassed => None,
        Approval::Missing => Some(Error::required(&at, approval.reason(found))),
        Approval::Invalid => Some(Error::invalid(&at, found, approval.reason(found))),
    }
}

/// What the condition `KubernetesAPIApprovalPolicyConformant` of a definition says: its status,
/// reason and message. `None` for a group that needs nobody's approval.
pub fn approval_condition(
    group: &str,
    annotations: &Value,
) -> Option<(&'static str, &'static str, String)> {
    if !is_protected(group) {
        return None;
    }
    let found = annotations[APPROVED].as_str().unwrap_or_default();
    let approval = Approval::of(found);
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Given => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    Some((status, reason, approval.reason(found)))
}

/// Whether a group belongs to the Kubernetes community.
fn is_protected(group: &str) -> bool {
    let is_within = |domain: &str| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    is_within("k8s.io") || is_within("kubernetes.io")
}

/// What the owners of a group say of a definition in it.
#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Given,
    Bypassed,
    Invalid,
}

impl Approval {
    fn of(annotation: &str) -> Self {
        match annotation {
            "" => Approval::Missing,
            text if text.starts_with("unapproved") => Approval::Bypassed,
            text => match Uri::parse_request(text) {
                Ok(uri) if !uri.scheme.is_empty() && !uri.host.is_empty() => Approval::Given,
                _ => Approval::Invalid,
            },
        }
    }

    fn reason(&self, annotation: &str) -> String {
        let must = format!("protected groups must have approval annotation \"{APPROVED}\"");
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        match self {
            Approval::Missing => format!("{must}, {see}"),
            Approval::Given => format!("approved in {annotation}"),
            Approval::Bypassed => format!("not approved: {}", json::go_quote(annotation)),
            Approval::Invalid => {
                let either = "with either a URL or a reason starting with \"unapproved\"";
                format!("{must} {either}, {see}")
            }
        }
    }
}

fn annotation(definition: &Definition) -> &str {
    let annotations = definition.metadata.get("annotations");
    annotations.and_then(|all| all.get(APPROVED)).and_then(Value::as_str).unwrap_or_default()
}

fn preserving_unknown_fields(spec: &Spec, old: Option<&Spec>) -> Option<Error> {
    if !spec.preserve_unknown_fields || old.is_some_and(|old| old.preserve_unknown_fields) {
        return None;
    }
    let at = Path::new("spec");
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                  spec.versions[*].schema instead";
    Some(Error::invalid(&at.child("preserveUnknownFields"), true, detail))
}
