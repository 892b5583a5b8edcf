//! Keywords of a schema: which are refused, and which need others beside them.

use serde_json::{Value, json};

use super::field_path::{self, Brackets};
use super::structural;
use crate::field::{Error, Path};
use crate::schema::{AdditionalProperties, Rule, Structural, Type, is_meta_field};

/// What is asked of a schema. Old definitions keep what they were once allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strictness {
    pub(super) property_types: bool,
    pub(super) atomic_sets: bool,
    pub(super) list_map_keys: bool,
}

/// What is wrong with the keywords of a schema and of all below it.
pub(super) fn validate(schema: &Structural, strictness: Strictness, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let place = Place { is_root: true, inside_meta: false, no_default_because: None };
    node(schema, &place, strictness, at, &mut errors);
    errors
}

/// What the way to a node says about it.
#[derive(Clone)]
struct Place {
    is_root: bool,
    /// Within the `apiVersion`, `kind` or `metadata` of an object.
    inside_meta: bool,
    no_default_because: Option<String>,
}

fn node(
    schema: &Structural,
    place: &Place,
    strictness: Strictness,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    keywords(schema, place, strictness, at, errors);
    let below = Place { is_root: false, ..place.clone() };
    let visit = |schema: &Structural, at: &Path<'_>, errors: &mut Vec<Error>| {
        node(schema, &below, strictness, at, errors);
    };
    if let Some(additional) = &schema.additional_properties {
        let at = at.child("additionalProperties");
        if !schema.properties.is_empty()
            && !matches!(additional, AdditionalProperties::Allowed(true))
        {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(Error::forbidden(&at, detail));
        }
        if let AdditionalProperties::Schema(additional) = additional {
            let mut below = below.clone();
            if place.inside_meta {
                let why = "inside additionalProperties applying to object metadata";
                below.no_default_because = Some(why.to_owned());
            }
            node(additional, &below, strictness, &at, errors);
        }
    }
    for (name, property) in schema.properties.iter() {
        let mut below = below.clone();
        if schema.is_embedded(place.is_root) && is_meta_field(name) {
            below.inside_meta = true;
            if place.is_root {
                below.no_default_because = Some(format!("in top-level {name}"));
            }
        }
        node(property, &below, strictness, &at.child("properties").key(name), errors);
    }
    if let Some(constraints) = &schema.constraints {
        if let Some(not) = &constraints.not {
            visit(not, &at.child("not"), errors);
        }
        for (keyword, schemas) in [
            ("allOf", &constraints.all_of),
            ("oneOf", &constraints.one_of),
            ("anyOf", &constraints.any_of),
        ] {
            for (index, schema) in schemas.iter().enumerate() {
                visit(schema, &at.child(keyword).index(index), errors);
            }
        }
    }
    if let Some(items) = &schema.items {
        visit(items, &at.child("items"), errors);
    }
    if let Some(unsupported) = &schema.unsupported {
        for (name, definition) in unsupported.definitions.iter() {
            visit(definition, &at.child("definitions").key(name), errors);
        }
        for (index, item) in unsupported.item_list.iter().enumerate() {
            visit(item, &at.child("items").index(index), errors);
        }
        for (name, dependency) in unsupported.dependencies.iter().flatten() {
            if let Some(schema) = &dependency.schema {
                visit(schema, &at.child("dependencies").key(name), errors);
            }
        }
    }
    topology(schema, strictness, at, errors);
    if strictness.list_map_keys {
        errors.extend(list_map_keys(schema, at));
    }
    for (index, rule) in schema.extensions.validations.iter().enumerate() {
        self::rule(rule, schema, &at.child("x-kubernetes-validations").index(index), errors);
    }
}

/// Keywords that must not be there.
fn keywords(
    schema: &Structural,
    place: &Place,
    strictness: Strictness,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if let Some(Type::Other(type_)) = &schema.type_ {
        let at = at.child("type");
        if strictness.property_types {
            errors.push(Error::not_supported(&at, &**type_, &TYPES));
        }
        if &**type_ == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            errors.push(Error::forbidden(&at, detail));
        }
    }
    if let Some(why) = place.no_default_because.as_ref().filter(|_| schema.default.is_some()) {
        errors.push(Error::forbidden(&at.child("default"), format!("must not be set {why}")));
    }
    if let Some(unsupported) = &schema.unsupported {
        for (is_set, keyword) in [
            (!unsupported.id.is_empty(), "id"),
            (unsupported.additional_items.is_some(), "additionalItems"),
            (!unsupported.pattern_properties.is_empty(), "patternProperties"),
            (!unsupported.definitions.is_empty(), "definitions"),
            (unsupported.dependencies.is_some(), "dependencies"),
            (unsupported.reference.is_some(), "$ref"),
        ] {
            if is_set {
                let detail = format!("{keyword} is not supported");
                errors.push(Error::forbidden(&at.child(keyword), detail));
            }
        }
        if !unsupported.item_list.is_empty() {
            let detail = "items must be a schema object and not an array";
            errors.push(Error::forbidden(&at.child("items"), detail));
        }
    }
    if place.inside_meta && schema.extensions.embedded_resource {
        let at = at.child("x-kubernetes-embedded-resource");
        errors.push(Error::forbidden(&at, "must not be used inside of resource meta"));
    }
    if schema.constraints.as_ref().is_some_and(|constraints| constraints.unique_items) {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(Error::forbidden(&at.child("uniqueItems"), detail));
    }
    if schema.extensions.preserve_unknown_fields == Some(false) {
        let at = at.child("x-kubernetes-preserve-unknown-fields");
        errors.push(Error::invalid(&at, false, "must be true or undefined"));
    }
}

/// Kinds of lists and maps.
fn topology(schema: &Structural, strictness: Strictness, at: &Path<'_>, errors: &mut Vec<Error>) {
    let extensions = &schema.extensions;
    if let Some(map_type) = extensions.map_type.as_deref() {
        wants_type(schema, Type::Object, "x-kubernetes-map-type", at, errors);
        if !matches!(map_type, "atomic" | "granular") {
            let at = at.child("x-kubernetes-map-type");
            errors.push(Error::not_supported(&at, map_type, &["atomic", "granular"]));
        }
    }
    let list_type = extensions.list_type.as_deref();
    let list_type_at = at.child("x-kubernetes-list-type");
    if let Some(list_type) = list_type {
        if !wants_type(schema, Type::Array, "x-kubernetes-list-type", at, errors)
            && strictness.atomic_sets
        {
            errors.extend(set_of_parts(schema, at));
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let supported = ["atomic", "set", "map"];
            errors.push(Error::not_supported(&list_type_at, list_type, &supported));
        }
    }
    if !extensions.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            Some("map") => {}
            None => errors.push(Error::required(&list_type_at, detail)),
            Some(other) => errors.push(Error::invalid(&list_type_at, other, detail)),
        }
    }
    if list_type == Some("map") {
        list_map(schema, at, errors);
    }
}

/// Whether the type was wrong.
fn wants_type(
    schema: &Structural,
    type_: Type,
    keyword: &str,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) -> bool {
    if schema.is_type(&type_) {
        return false;
    }
    let detail = format!("must be {} if {keyword} is specified", type_.as_str());
    let at = at.child("type");
    errors.push(match &schema.type_ {
        None => Error::required(&at, detail),
        Some(found) => Error::invalid(&at, found.as_str(), detail),
    });
    true
}

/// Every schema directly below a schema, of whatever keyword.
pub(super) fn children(schema: &Structural) -> Vec<&Structural> {
    let mut children: Vec<&Structural> = Vec::new();
    children.extend(schema.items.as_deref());
    children.extend(schema.properties.iter().map(|(_, property)| property));
    children.extend(schema.additional_schema());
    if let Some(constraints) = &schema.constraints {
        children.extend(&constraints.all_of);
        children.extend(&constraints.any_of);
        children.extend(&constraints.one_of);
        children.extend(constraints.not.as_deref());
    }
    if let Some(unsupported) = &schema.unsupported {
        children.extend(&unsupported.item_list);
        children.extend(unsupported.pattern_properties.iter().map(|(_, schema)| schema));
        children.extend(unsupported.definitions.iter().map(|(_, schema)| schema));
        let dependencies = unsupported.dependencies.iter().flatten();
        children.extend(dependencies.filter_map(|(_, dependency)| dependency.schema.as_ref()));
        if let Some(AdditionalProperties::Schema(additional)) = &unsupported.additional_items {
            children.push(additional);
        }
    }
    children
}

pub(super) fn is_set_of_parts(schema: &Structural) -> bool {
    set_of_parts(schema, &Path::ROOT).is_some()
}

/// The items of a set are compared as wholes, so they must be owned as wholes.
fn set_of_parts(schema: &Structural, at: &Path<'_>) -> Option<Error> {
    if !schema.is_list_type("set") {
        return None;
    }
    let items = schema.items.as_ref()?;
    let list_type = items.extensions.list_type.as_deref();
    let keyword = match &items.type_ {
        Some(Type::Array) if list_type.is_some_and(|kind| kind != "atomic") => {
            "x-kubernetes-list-type"
        }
        Some(Type::Object) if items.extensions.map_type.as_deref() != Some("atomic") => {
            "x-kubernetes-map-type"
        }
        _ => return None,
    };
    let at = at.child("items");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    // Upstream shows the type of list in both cases.
    Some(Error::invalid(&at.child(keyword), json!(list_type), detail))
}

fn list_map(schema: &Structural, at: &Path<'_>, errors: &mut Vec<Error>) {
    let keys = &schema.extensions.list_map_keys;
    let keys_at = at.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(Error::required(&keys_at, detail));
    }
    let items_at = at.child("items");
    let Some(items) = &schema.items else {
        let listed = schema.unsupported.as_ref().is_some_and(|other| !other.item_list.is_empty());
        if !listed {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(Error::required(&items_at, detail));
        } else {
            let shown = super::internal::schema(schema)["Items"].take();
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            errors.push(Error::invalid(&items_at, shown, detail));
        }
        return;
    };
    if !items.is_type(&Type::Object) {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(Error::invalid(&items_at.child("type"), items.type_name(), detail));
        return;
    }
    let shown = || Value::from_iter(keys.iter().map(|key| &**key));
    let mut seen = std::collections::HashSet::new();
    for key in keys {
        match items.properties.get(key) {
            Some(property) if matches!(property.type_, Some(Type::Array | Type::Object)) => {
                let at = items_at.child("properties");
                let at = at.key(key);
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(&at.child("type"), items.type_name(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(Error::invalid(&keys_at, shown(), detail));
            }
        }
        if !seen.insert(key) {
            errors.push(Error::invalid(&keys_at, shown(), "must not contain duplicate entries"));
        }
    }
}

/// Items of sets and maps always have an identity.
pub(super) fn list_map_keys(schema: &Structural, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let (Some(items), Some(list_type @ ("set" | "map"))) =
        (&schema.items, schema.extensions.list_type.as_deref())
    else {
        return errors;
    };
    let at = at.child("items");
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Error::forbidden(&at.child("nullable"), detail));
    }
    if list_type == "set" {
        return errors;
    }
    let required = items.constraints.as_ref().map_or(&[][..], |constraints| &constraints.required);
    let required: std::collections::HashSet<&str> = required.iter().map(|name| &**name).collect();
    for key in &schema.extensions.list_map_keys {
        let Some(property) = items.properties.get(key) else { continue };
        let at = at.child("properties");
        let at = at.key(key);
        if !required.contains(&**key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(Error::required(&at.child("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(Error::forbidden(&at.child("nullable"), detail));
        }
    }
    errors
}

/// An expression's surroundings; the expression itself is another matter.
fn rule(rule: &Rule, schema: &Structural, at: &Path<'_>, errors: &mut Vec<Error>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let has_line_breaks = |text: &str| text.contains(['\n', '\r']);
    let message = rule.message.trim();
    let message_at = at.child("message");
    let shown = rule.message.as_str();
    if rule.rule.trim().is_empty() {
        errors.push(Error::required(&at.child("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.push(Error::invalid(&message_at, shown, "must be non-empty if specified"));
    } else if has_line_breaks(message) {
        errors.push(Error::invalid(&message_at, shown, "must not contain line breaks"));
    } else if has_line_breaks(rule.rule.trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(Error::required(&message_at, detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(Error::required(&at.child("messageExpression"), detail));
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
        errors.push(Error::not_supported(&at.child("reason"), reason, &REASONS));
    }
    if rule.field_path.is_empty() {
        return;
    }
    let at = at.child("fieldPath");
    let path = rule.field_path.as_str();
    if path.trim().is_empty() {
        errors.push(Error::invalid(&at, path, "must be non-empty if specified"));
    }
    if has_line_breaks(path) {
        errors.push(Error::invalid(&at, path, "must not contain line breaks"));
    }
    if structural::unreadable(schema).is_none()
        && field_path::resolve(path, schema, Brackets::Allowed).is_err()
    {
        errors.push(Error::invalid(&at, path, "must be a valid path"));
    }
}
