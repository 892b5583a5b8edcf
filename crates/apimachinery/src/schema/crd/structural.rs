//! What makes a schema structural.
//!
//! Every field has a type that can be found without following `allOf`, `anyOf`, `oneOf` or `not`,
//! and below those only values are restricted. Then pruning, defaulting and merging know at every
//! place of an object what may stand there.

use crate::field::{Error, Path};
use crate::schema::{AdditionalProperties, Constraints, Structural, Type};

/// Everything that keeps a schema from being structural, in the order of the messages; an error
/// when it has keywords that no structural schema can be made from.
pub fn validate(schema: &Structural, at: &Path<'_>) -> Result<Vec<Error>, String> {
    if let Some(why) = unreadable(schema) {
        return Err(why);
    }
    let mut errors = Vec::new();
    node(schema, Level::Root, at, &mut errors);
    if let Some(constraints) = &schema.constraints {
        complete_constraints(constraints, Some(schema), at, at, &mut errors);
    }
    errors.sort_by_cached_key(ToString::to_string);
    Ok(errors)
}

/// Why a schema cannot be read as a structural one at all; the first reason only.
pub(super) fn unreadable(schema: &Structural) -> Option<String> {
    if let Some(unsupported) = &schema.unsupported {
        let keyword = match &**unsupported {
            other if !other.id.is_empty() => Some("id"),
            other if !other.schema.is_empty() => Some("schema"),
            other if other.reference.as_ref().is_some_and(|to| !to.is_empty()) => Some("$ref"),
            other if !other.pattern_properties.is_empty() => Some("patternProperties"),
            other if other.dependencies.as_ref().is_some_and(|all| !all.is_empty()) => {
                Some("dependencies")
            }
            other if other.additional_items.is_some() => Some("additionalItems"),
            other if !other.definitions.is_empty() => Some("definitions"),
            _ => None,
        };
        if let Some(keyword) = keyword {
            return Some(format!("OpenAPIV3Schema '{keyword}' is not supported"));
        }
        if !unsupported.item_list.is_empty() {
            return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
    }
    if schema.extensions.preserve_unknown_fields == Some(false) {
        let keyword = "'x-kubernetes-preserve-unknown-fields'";
        return Some(format!("internal error: {keyword} must be true or undefined"));
    }
    children(schema).find_map(unreadable)
}

/// The schemas directly below a schema, of all keywords that a structural one may have.
fn children(schema: &Structural) -> impl Iterator<Item = &Structural> {
    let constraints = schema.constraints.as_deref();
    let junctions = constraints.into_iter().flat_map(|constraints| {
        let Constraints { all_of, any_of, one_of, not, .. } = constraints;
        not.as_deref().into_iter().chain(all_of).chain(any_of).chain(one_of)
    });
    junctions
        .chain(schema.items.as_deref())
        .chain(schema.properties.iter().map(|(_, property)| property))
        .chain(schema.additional_schema())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn node(schema: &Structural, level: Level, at: &Path<'_>, errors: &mut Vec<Error>) {
    match &schema.items {
        Some(items) => node(items, Level::Item, &at.child("items"), errors),
        None if schema.is_type(&Type::Array) => {
            errors.push(Error::required(&at.child("items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in schema.properties.iter() {
        node(property, Level::Field, &at.child("properties").key(name), errors);
    }
    if schema.additional_properties.is_some() {
        let at = at.child("additionalProperties");
        if level == Level::Root {
            errors.push(Error::forbidden(&at, "must not be used at the root"));
        }
        if let Some(additional) = schema.additional_schema() {
            node(additional, Level::Field, &at, errors);
        }
        if schema.extensions.embedded_resource {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(Error::forbidden(&at, detail));
        }
    }
    extensions(schema, at, errors);
    if let Some(constraints) = &schema.constraints {
        restrictions(constraints, Exceptions::of(constraints), at, errors);
    }
    type_(schema, level, at, errors);
    metadata(schema, level, at, errors);
}

fn extensions(schema: &Structural, at: &Path<'_>, errors: &mut Vec<Error>) {
    if schema.extensions.int_or_string {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        if schema.preserves_unknown_fields() {
            let at = at.child("x-kubernetes-preserve-unknown-fields");
            errors.push(Error::invalid(&at, true, detail));
        }
        if schema.extensions.embedded_resource {
            let at = at.child("x-kubernetes-embedded-resource");
            errors.push(Error::invalid(&at, true, detail));
        }
    }
    let has_fields = schema.preserves_unknown_fields() || !schema.properties.is_empty();
    if schema.extensions.embedded_resource && !has_fields {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(&at.child("properties"), detail));
    }
}

fn type_(schema: &Structural, level: Level, at: &Path<'_>, errors: &mut Vec<Error>) {
    let at = at.child("type");
    let is_object = schema.is_type(&Type::Object);
    match &schema.type_ {
        type_ if schema.extensions.embedded_resource && !is_object => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(match type_ {
                None => Error::required(&at, detail),
                Some(type_) => Error::invalid(&at, type_.as_str(), detail),
            });
        }
        None if !schema.extensions.int_or_string && !schema.preserves_unknown_fields() => {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            errors.push(Error::required(&at, detail));
        }
        _ => {}
    }
    if let Some(type_) = schema.type_.as_ref().filter(|_| level == Level::Root && !is_object) {
        errors.push(Error::invalid(&at, type_.as_str(), "must be object at the root"));
    }
}

/// `apiVersion`, `kind` and `metadata` have types of their own, which a schema may repeat but not
/// change. Of metadata, only names may be restricted.
fn metadata(schema: &Structural, level: Level, at: &Path<'_>, errors: &mut Vec<Error>) {
    let at = at.child("properties");
    let is_object = level == Level::Root || schema.extensions.embedded_resource;
    for name in ["apiVersion", "kind"] {
        if let Some(property) = schema.properties.get(name)
            && is_object
            && !property.is_type(&Type::String)
        {
            let at = at.key(name);
            errors.push(Error::invalid(&at.child("type"), property.type_name(), "must be string"));
        }
    }
    let Some(metadata) = schema.properties.get("metadata") else { return };
    let at = at.key("metadata");
    if is_object && !metadata.is_type(&Type::Object) {
        errors.push(Error::invalid(&at.child("type"), metadata.type_name(), "must be object"));
    }
    if level == Level::Root {
        let mut rest = metadata.clone();
        let is_name = |name: &str| matches!(name, "name" | "generateName");
        if rest.properties.iter().all(|(name, _)| is_name(name)) {
            rest.properties = Default::default();
        }
        rest.type_ = None;
        rest.default = None;
        if rest != Structural::default() {
            let detail = "must not specify anything other than name and generateName, but \
                          metadata is implicitly specified";
            errors.push(Error::forbidden(&at, detail));
        }
    }
}

/// The two places below junctions where a type may be restricted after all, to say that a value is
/// an integer or a string.
#[derive(Clone, Copy, Default)]
struct Exceptions {
    /// `anyOf: [{type: integer}, {type: string}]`
    any_of: bool,
    /// The same within the first of `allOf`.
    first_all_of: bool,
}

impl Exceptions {
    fn of(constraints: &Constraints) -> Self {
        let bare = |type_| Structural { type_: Some(type_), ..Structural::default() };
        let is_pattern = |any_of: &[Structural]| {
            any_of.len() == 2 && any_of == [bare(Type::Integer), bare(Type::String)]
        };
        let first = constraints.all_of.first().and_then(|first| first.constraints.as_deref());
        Exceptions {
            any_of: is_pattern(&constraints.any_of),
            first_all_of: first.is_some_and(|first| is_pattern(&first.any_of)),
        }
    }
}

fn restrictions(
    constraints: &Constraints,
    exceptions: Exceptions,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    let none = Exceptions::default();
    if !exceptions.any_of {
        for (index, schema) in constraints.any_of.iter().enumerate() {
            nested(schema, none, &at.child("anyOf").index(index), errors);
        }
    }
    for (index, schema) in constraints.all_of.iter().enumerate() {
        let any_of = exceptions.first_all_of && index == 0;
        let exceptions = Exceptions { any_of, first_all_of: false };
        nested(schema, exceptions, &at.child("allOf").index(index), errors);
    }
    for (index, schema) in constraints.one_of.iter().enumerate() {
        nested(schema, none, &at.child("oneOf").index(index), errors);
    }
    if let Some(schema) = &constraints.not {
        nested(schema, none, &at.child("not"), errors);
    }
    if let Some(pattern) = &constraints.pattern
        && let Err(error) = &pattern.compiled
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(Error::invalid(&at.child("pattern"), &*pattern.text, detail));
    }
}

/// A schema below a junction restricts values and nothing else.
fn nested(schema: &Structural, exceptions: Exceptions, at: &Path<'_>, errors: &mut Vec<Error>) {
    if let Some(constraints) = &schema.constraints {
        restrictions(constraints, exceptions, at, errors);
    }
    if let Some(items) = &schema.items {
        nested(items, Exceptions::default(), &at.child("items"), errors);
    }
    for (name, property) in schema.properties.iter() {
        nested(property, Exceptions::default(), &at.child("properties").key(name), errors);
    }
    let documentation = schema.documentation.clone().unwrap_or_default();
    let extensions = &schema.extensions;
    let additional =
        !matches!(schema.additional_properties, None | Some(AdditionalProperties::Allowed(false)));
    const UNDEFINED: &str = "must be undefined to be structural";
    const EMPTY: &str = "must be empty to be structural";
    const FALSE: &str = "must be false to be structural";
    for (is_set, keyword, detail) in [
        (schema.type_.is_some(), "type", EMPTY),
        (additional, "additionalProperties", UNDEFINED),
        (schema.default.is_some(), "default", UNDEFINED),
        (!documentation.title.is_empty(), "title", EMPTY),
        (!documentation.description.is_empty(), "description", EMPTY),
        (schema.nullable, "nullable", FALSE),
        (schema.preserves_unknown_fields(), "x-kubernetes-preserve-unknown-fields", FALSE),
        (extensions.embedded_resource, "x-kubernetes-embedded-resource", FALSE),
        (extensions.int_or_string, "x-kubernetes-int-or-string", FALSE),
        (!extensions.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", EMPTY),
        (extensions.list_type.is_some(), "x-kubernetes-list-type", UNDEFINED),
        (extensions.map_type.is_some(), "x-kubernetes-map-type", UNDEFINED),
        (!extensions.validations.is_empty(), "x-kubernetes-validations", EMPTY),
    ] {
        if is_set {
            errors.push(Error::forbidden(&at.child(keyword), detail));
        }
    }
    if schema.properties.get("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(Error::forbidden(&at.child("properties").key("metadata"), detail));
    }
}

/// Whatever is restricted below a junction is also specified outside of it.
///
/// `main` is the specified schema at the same place, found at `main_at`.
fn complete_constraints(
    constraints: &Constraints,
    main: Option<&Structural>,
    main_at: &Path<'_>,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    if let Some(schema) = &constraints.not {
        complete(schema, main, main_at, &at.child("not"), errors);
    }
    for (keyword, schemas) in [
        ("allOf", &constraints.all_of),
        ("anyOf", &constraints.any_of),
        ("oneOf", &constraints.one_of),
    ] {
        for (index, schema) in schemas.iter().enumerate() {
            complete(schema, main, main_at, &at.child(keyword).index(index), errors);
        }
    }
}

fn complete(
    schema: &Structural,
    main: Option<&Structural>,
    main_at: &Path<'_>,
    at: &Path<'_>,
    errors: &mut Vec<Error>,
) {
    let Some(main) = main else {
        errors.push(Error::required(main_at, format!("because it is defined in {at}")));
        return;
    };
    if let Some(constraints) = &schema.constraints {
        complete_constraints(constraints, Some(main), main_at, at, errors);
    }
    if let Some(items) = &schema.items {
        let main_at = main_at.child("items");
        complete(items, main.items.as_deref(), &main_at, &at.child("items"), errors);
    }
    for (name, property) in schema.properties.iter() {
        let (main_at, at) = (main_at.child("properties"), at.child("properties"));
        complete(property, main.properties.get(name), &main_at.key(name), &at.key(name), errors);
    }
}
