//! Objects to try an operator with.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::{Map, Value, json};

use super::{Manifest, Package, Part};

/// Those of the package, and one for each kind that has none.
pub(super) fn samples(package: &Package) -> Vec<Manifest> {
    let is_of = |definition: &CustomResourceDefinition, sample: &Value| {
        let group = sample["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        sample["kind"] == definition.spec.names.kind
            && group.is_some_and(|(group, _)| group == definition.spec.group)
    };
    let lacks_one = |definition: &&CustomResourceDefinition| {
        !package.samples.iter().any(|sample| is_of(definition, sample))
    };
    let made = package.definitions.iter().filter(lacks_one).filter_map(sample);
    let samples = package.samples.iter().cloned().chain(made);
    samples.map(|sample| Manifest::new(Part::Samples, sample)).collect()
}

/// An object of a kind in the version it is stored in, with what its schema requires and nothing
/// else: defaults, first choices, least numbers. It is a beginning; rules and patterns may refuse
/// it. None if the definition has no such version, or no schema for it.
pub fn sample(definition: &CustomResourceDefinition) -> Option<Value> {
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.storage)?;
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    let mut object = json!({
        "apiVersion": format!("{}/{}", spec.group, version.name),
        "kind": spec.names.kind,
        "metadata": {"name": format!("{}-sample", spec.names.kind.to_lowercase())},
    });
    let fields = schema.properties.iter().flatten();
    for (name, field) in fields {
        let is_required = schema.required.iter().flatten().any(|required| required == name);
        let is_given = matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status");
        if !is_given && (is_required || name == "spec") {
            object[name] = value(field);
        }
    }
    Some(object)
}

fn value(schema: &JSONSchemaProps) -> Value {
    if let Some(default) = &schema.default {
        return default.0.clone();
    }
    if let Some(choice) = schema.enum_.iter().flatten().find(|choice| !choice.0.is_null()) {
        return choice.0.clone();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return json!(1);
    }
    match schema.type_.as_deref() {
        Some("boolean") => json!(false),
        Some("integer") => json!(least(schema) as i64),
        Some("number") => json!(least(schema)),
        Some("string") => text(schema),
        Some("array") => {
            let count = usize::try_from(schema.min_items.unwrap_or_default()).unwrap_or_default();
            let item = match &schema.items {
                Some(JSONSchemaPropsOrArray::Schema(item)) => value(item),
                Some(JSONSchemaPropsOrArray::Schemas(_)) | None => Value::Null,
            };
            Value::Array(vec![item; count])
        }
        _ => fields(schema),
    }
}

/// The required fields; of alternatives the first.
fn fields(schema: &JSONSchemaProps) -> Value {
    let mut object = Map::new();
    let alternative = |choices: &Option<Vec<JSONSchemaProps>>| {
        let first = choices.iter().flatten().next();
        first.and_then(|choice| choice.required.clone()).unwrap_or_default()
    };
    let required = schema.required.iter().flatten().cloned();
    let chosen = alternative(&schema.one_of).into_iter().chain(alternative(&schema.any_of));
    for name in required.chain(chosen) {
        if let Some(field) = schema.properties.as_ref().and_then(|fields| fields.get(&name)) {
            object.insert(name, value(field));
        }
    }
    Value::Object(object)
}

/// The least number that is not negative, or what bounds it.
fn least(schema: &JSONSchemaProps) -> f64 {
    let step = if schema.exclusive_minimum == Some(true) { 1.0 } else { 0.0 };
    let minimum = schema.minimum.map_or(0.0, |minimum| (minimum + step).max(0.0));
    schema.maximum.map_or(minimum, |maximum| minimum.min(maximum))
}

fn text(schema: &JSONSchemaProps) -> Value {
    let text = match schema.format.as_deref() {
        Some("date-time") => "2030-01-01T00:00:00Z",
        Some("date") => "2030-01-01",
        Some("duration") => "1h",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uri") => "https://example.com/",
        Some("email") => "somebody@example.com",
        Some("hostname") => "example.com",
        Some("byte") => "c2FtcGxl",
        _ => "sample",
    };
    json!(text)
}
