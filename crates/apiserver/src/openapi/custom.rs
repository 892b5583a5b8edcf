//! The schemas of custom resources, as they are published.
//!
//! A definition's schema is published as it was written, with what every object has added to it.
//! OpenAPI v2 cannot say everything, and its old readers stumble over some of what it can say;
//! [`Form::V2`] leaves that out.

use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::schema::crd::{self, Definition, Version};
use kubewright_apimachinery::schema::{
    AdditionalProperties, Constraints, Properties, Rule, Structural, Type,
};
use serde_json::{Map, Value, json};

use super::describe;
use super::model::group_version_kind;

/// Which version of OpenAPI a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    V2,
    V3,
}

impl Form {
    /// A reference to a model, with a description.
    fn reference(self, model: &str, text: Option<&str>) -> Value {
        let mut schema = Map::new();
        if let Some(text) = text {
            schema.insert("description".to_owned(), text.into());
        }
        match self {
            Form::V2 => {
                schema.insert("$ref".to_owned(), format!("#/definitions/{model}").into());
            }
            Form::V3 => {
                let target = format!("#/components/schemas/{model}");
                schema.insert("allOf".to_owned(), json!([{"$ref": target}]));
            }
        }
        Value::Object(schema)
    }

    fn prefix(self) -> &'static str {
        match self {
            Form::V2 => "#/definitions/",
            Form::V3 => "#/components/schemas/",
        }
    }
}

/// The name of a custom kind: `test.example.v1.Widget` for `Widget` of `example.test/v1`.
pub(super) fn name_of(group: &str, version: &str, kind: &str) -> String {
    let group: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", group.join("."))
}

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The schema of a custom kind.
pub(super) fn schema(definition: &Definition, version: &Version, form: Form) -> Value {
    let written = version.open_api_v3_schema().filter(|schema| is_structural(schema));
    let hidden = |schema: &&Structural| {
        form == Form::V2
            && (schema.preserves_unknown_fields() || definition.spec.preserve_unknown_fields)
    };
    let mut schema = match written.filter(|schema| !hidden(schema)) {
        // Readers would take what is listed for all there may be, so nothing is.
        None => Map::from_iter([("type".to_owned(), "object".into())]),
        Some(written) => {
            let mut written = written.clone();
            unfold(&mut written);
            if form == Form::V2 {
                simplify(&mut written);
            }
            let mut schema = Writer { form }.write(&written);
            let mut metadata = Map::new();
            type_meta(&mut metadata);
            metadata.insert("metadata".to_owned(), object_meta(form));
            set_properties(&mut schema, metadata);
            schema
        }
    };
    let names = &definition.spec.names;
    mark(&mut schema, definition, version, &names.kind);
    order(schema)
}

/// Old definitions may have schemas that are not; nothing is said of those.
fn is_structural(schema: &Structural) -> bool {
    let errors = crd::validate_structural(schema, &Path::new("openAPIV3Schema"));
    errors.is_ok_and(|errors| errors.is_empty())
}

/// The schema of the list of a custom kind.
pub(super) fn list_schema(definition: &Definition, version: &Version, form: Form) -> Value {
    let names = &definition.spec.names;
    let model = name_of(&definition.spec.group, &version.name, &names.kind);
    let mut properties = Map::new();
    type_meta(&mut properties);
    let items = json!({
        "description": format!("List of {}.", names.plural),
        "type": "array",
        "items": {"$ref": format!("{}{model}", form.prefix())},
    });
    properties.insert("items".to_owned(), items);
    let text = describe::of_field("io.k8s.api.core.v1.PodList", "metadata");
    properties.insert("metadata".to_owned(), form.reference(LIST_META, text));
    properties.sort_keys();
    let mut schema = Map::new();
    let text = format!("{} is a list of {}", names.list_kind, names.kind);
    schema.insert("description".to_owned(), text.into());
    schema.insert("type".to_owned(), "object".into());
    schema.insert("required".to_owned(), json!(["items"]));
    schema.insert("properties".to_owned(), properties.into());
    mark(&mut schema, definition, version, &names.list_kind);
    Value::Object(schema)
}

fn mark(schema: &mut Map<String, Value>, definition: &Definition, version: &Version, kind: &str) {
    let kind = group_version_kind(&definition.spec.group, &version.name, kind);
    schema.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
    if !version.selectable_fields.is_empty() {
        let fields = version.selectable_fields.iter().map(|field| {
            let path = &field.json_path;
            json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)})
        });
        schema.insert("x-kubernetes-selectable-fields".to_owned(), fields.collect());
    }
}

fn type_meta(properties: &mut Map<String, Value>) {
    for name in ["apiVersion", "kind"] {
        let text = describe::of_field("io.k8s.api.core.v1.Pod", name);
        properties.insert(name.to_owned(), json!({"description": text, "type": "string"}));
    }
}

fn object_meta(form: Form) -> Value {
    form.reference(OBJECT_META, describe::of_field("io.k8s.api.core.v1.Pod", "metadata"))
}

/// Adds properties, in place of any of the same names, and puts all in the order of names.
fn set_properties(schema: &mut Map<String, Value>, added: Map<String, Value>) {
    let mut properties = match schema.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    properties.extend(added);
    properties.sort_keys();
    schema.insert("properties".to_owned(), properties.into());
}

/// Says of whatever is an integer or a string that it is, unless the schema does so itself.
fn unfold(schema: &mut Structural) {
    for_each_child(schema, unfold);
    if !schema.extensions.int_or_string {
        return;
    }
    let mut constraints = schema.constraints.take().unwrap_or_default();
    let spelled_out = is_either(&constraints.any_of)
        || constraints.all_of.first().is_some_and(|first| {
            first.constraints.as_ref().is_some_and(|inner| is_either(&inner.any_of))
        });
    if !spelled_out {
        let either = [Type::Integer, Type::String]
            .map(|type_| Structural { type_: Some(type_), ..Structural::default() })
            .to_vec();
        if constraints.any_of.is_empty() {
            constraints.any_of = either;
        } else {
            let any_of = Constraints { any_of: either, ..Constraints::default() };
            let first = Structural { constraints: Some(Box::new(any_of)), ..Structural::default() };
            constraints.all_of.insert(0, first);
        }
    }
    schema.constraints = Some(constraints);
}

fn is_either(schemas: &[Structural]) -> bool {
    matches!(schemas, [a, b] if a.is_type(&Type::Integer) && b.is_type(&Type::String))
}

/// Leaves out what OpenAPI v2 cannot say, or its readers do not understand.
fn simplify(schema: &mut Structural) {
    schema.default = None;
    if let Some(constraints) = &mut schema.constraints {
        constraints.all_of.clear();
        constraints.any_of.clear();
        constraints.one_of.clear();
        constraints.not = None;
    }
    if schema.nullable {
        schema.type_ = None;
        schema.nullable = false;
        drop_inside(schema);
    }
    if schema.preserves_unknown_fields() {
        drop_inside(schema);
    }
    let bare_list = schema.items.is_none() && schema.is_type(&Type::Array);
    if bare_list || schema.preserves_unknown_fields() && schema.is_type(&Type::Object) {
        schema.type_ = None;
    }
    if let Some(constraints) = &mut schema.constraints {
        let nullable = |name: &str| schema.properties.get(name).is_some_and(|field| field.nullable);
        constraints.required.retain(|name| !nullable(name));
        if let Some(AdditionalProperties::Schema(of)) = &schema.additional_properties
            && of.nullable
        {
            constraints.required.clear();
        }
    }
    for_each_child(schema, simplify);
}

fn drop_inside(schema: &mut Structural) {
    schema.items = None;
    schema.properties = Properties::default();
}

fn for_each_child(schema: &mut Structural, visit: fn(&mut Structural)) {
    if let Some(items) = &mut schema.items {
        visit(items);
    }
    schema.properties.iter_mut().for_each(|(_, property)| visit(property));
    if let Some(AdditionalProperties::Schema(of)) = &mut schema.additional_properties {
        visit(of);
    }
}

/// Writes a schema down. Embedded resources get what every object has.
#[derive(Clone, Copy)]
struct Writer {
    form: Form,
}

impl Writer {
    fn write(self, schema: &Structural) -> Map<String, Value> {
        let mut out = Map::new();
        let mut set = |name: &str, value: Value| {
            out.insert(name.to_owned(), value);
        };
        if let Some(documentation) = &schema.documentation {
            let texts =
                [("description", &documentation.description), ("title", &documentation.title)];
            for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
                set(name, text.as_str().into());
            }
            if let Some(docs) = &documentation.external_docs {
                let mut value = Map::new();
                let texts = [("description", &docs.description), ("url", &docs.url)];
                for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
                    value.insert(name.to_owned(), text.as_str().into());
                }
                set("externalDocs", value.into());
            }
            if let Some(example) = &documentation.example {
                set("example", example.clone());
            }
        }
        if let Some(type_) = &schema.type_ {
            set("type", type_.as_str().into());
        }
        if schema.nullable {
            set("nullable", true.into());
        }
        if let Some(default) = &schema.default {
            set("default", default.clone());
        }
        if let Some(items) = &schema.items {
            set("items", order(self.write(items)));
        }
        if !schema.properties.is_empty() {
            let properties = schema.properties.iter();
            let properties: Map<String, Value> = properties
                .map(|(name, property)| (name.to_owned(), order(self.write(property))))
                .collect();
            set("properties", properties.into());
        }
        match &schema.additional_properties {
            Some(AdditionalProperties::Allowed(allowed)) => {
                set("additionalProperties", (*allowed).into());
            }
            Some(AdditionalProperties::Schema(of)) => {
                set("additionalProperties", order(self.write(of)));
            }
            None => {}
        }
        if let Some(constraints) = &schema.constraints {
            self.constrain(constraints, &mut out);
        }
        extend(schema, &mut out);
        let preserves = schema.preserves_unknown_fields() && self.form == Form::V2;
        if schema.extensions.embedded_resource && !preserves {
            self.embed(&mut out);
        }
        out
    }

    fn constrain(self, constraints: &Constraints, out: &mut Map<String, Value>) {
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(name.to_owned(), value);
            }
        };
        let flag = |given: bool| given.then_some(Value::Bool(true));
        set("format", constraints.format.as_ref().map(|format| (*format.name).into()));
        set("maximum", constraints.maximum.map(Into::into));
        set("exclusiveMaximum", flag(constraints.exclusive_maximum));
        set("minimum", constraints.minimum.map(Into::into));
        set("exclusiveMinimum", flag(constraints.exclusive_minimum));
        set("maxLength", constraints.max_length.map(Into::into));
        set("minLength", constraints.min_length.map(Into::into));
        set("pattern", constraints.pattern.as_ref().map(|pattern| (*pattern.text).into()));
        set("maxItems", constraints.max_items.map(Into::into));
        set("minItems", constraints.min_items.map(Into::into));
        set("uniqueItems", flag(constraints.unique_items));
        set("multipleOf", constraints.multiple_of.map(Into::into));
        let values = &constraints.enumeration;
        set("enum", (!values.is_empty()).then(|| Value::Array(values.clone())));
        set("maxProperties", constraints.max_properties.map(Into::into));
        set("minProperties", constraints.min_properties.map(Into::into));
        let required = &constraints.required;
        set("required", (!required.is_empty()).then(|| json!(required)));
        let all = |schemas: &[Structural]| -> Option<Value> {
            let written = schemas.iter().map(|schema| order(self.write(schema)));
            (!schemas.is_empty()).then(|| written.collect())
        };
        set("allOf", all(&constraints.all_of));
        set("oneOf", all(&constraints.one_of));
        set("anyOf", all(&constraints.any_of));
        set("not", constraints.not.as_ref().map(|schema| order(self.write(schema))));
    }

    fn embed(self, schema: &mut Map<String, Value>) {
        let mut properties = Map::new();
        type_meta(&mut properties);
        properties.insert("metadata".to_owned(), object_meta(self.form));
        set_properties(schema, properties);
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|given| given == name) {
                    required.push(name.into());
                }
            }
        }
    }
}

fn extend(schema: &Structural, out: &mut Map<String, Value>) {
    let extensions = &schema.extensions;
    let mut set = |name: &str, value: Value| {
        out.insert(format!("x-kubernetes-{name}"), value);
    };
    if extensions.embedded_resource {
        set("embedded-resource", true.into());
    }
    if extensions.int_or_string {
        set("int-or-string", true.into());
    }
    if !extensions.list_map_keys.is_empty() {
        set("list-map-keys", json!(extensions.list_map_keys));
    }
    if let Some(list_type) = &extensions.list_type {
        set("list-type", (**list_type).into());
    }
    if let Some(map_type) = &extensions.map_type {
        set("map-type", (**map_type).into());
    }
    if extensions.preserve_unknown_fields == Some(true) {
        set("preserve-unknown-fields", true.into());
    }
    if !extensions.validations.is_empty() {
        set("validations", extensions.validations.iter().map(rule).collect());
    }
}

fn rule(rule: &Rule) -> Value {
    let mut out = Map::new();
    out.insert("rule".to_owned(), rule.rule.as_str().into());
    let texts = [
        ("message", rule.message.as_str()),
        ("messageExpression", rule.message_expression.as_str()),
        ("reason", rule.reason.as_deref().unwrap_or_default()),
        ("fieldPath", rule.field_path.as_str()),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.insert(name.to_owned(), text.into());
    }
    if let Some(optional) = rule.optional_old_self {
        out.insert("optionalOldSelf".to_owned(), optional.into());
    }
    Value::Object(out)
}

/// Puts keywords in the order in which upstream writes them.
fn order(mut schema: Map<String, Value>) -> Value {
    const ORDER: [&str; 29] = [
        "description",
        "type",
        "nullable",
        "format",
        "title",
        "default",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "enum",
        "maxProperties",
        "minProperties",
        "required",
        "items",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "properties",
        "additionalProperties",
        "externalDocs",
    ];
    let rank = |name: &str| {
        let place = ORDER.iter().position(|keyword| *keyword == name);
        place.unwrap_or(if name == "example" { ORDER.len() } else { ORDER.len() + 1 })
    };
    let mut sorted: Vec<(String, Value)> = std::mem::take(&mut schema).into_iter().collect();
    sorted.sort_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
    Value::Object(sorted.into_iter().collect())
}
