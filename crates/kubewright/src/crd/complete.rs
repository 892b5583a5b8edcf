//! Puts what Rust says in a schema into Kubernetes' words.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Completes the schemas of a definition:
///
/// - Numbers that only Rust knows (`uint32`, `int8`, …) get a format that Kubernetes knows, and the
///   bounds that they have in Rust; else every `kubectl apply` warns of them.
/// - A list of conditions is a map by their type, so that several controllers can each apply their
///   own.
/// - Where `kube` has made up what the kind is (`Auto-generated derived type …`, which is about Rust),
///   it is what its spec is: that is where authors say it, and what `kubectl explain` shows first.
///
/// What says otherwise itself stays as it is.
pub fn complete(definition: &mut CustomResourceDefinition) {
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|it| it.open_api_v3_schema.as_mut());
        if let Some(schema) = schema {
            describe(schema);
            complete_schema(schema);
        }
    }
}

/// Says of a kind what is said of its spec, unless its author has said it.
fn describe(schema: &mut JSONSchemaProps) {
    let is_made_up = |text: &String| text.starts_with("Auto-generated derived type for ");
    if schema.description.as_ref().is_some_and(is_made_up) {
        let spec = schema.properties.as_ref().and_then(|properties| properties.get("spec"));
        schema.description = spec.and_then(|spec| spec.description.clone());
    }
}

fn complete_schema(schema: &mut JSONSchemaProps) {
    bound(schema);
    for (name, field) in schema.properties.iter_mut().flatten() {
        if name == "conditions" && has_conditions(field) && field.x_kubernetes_list_type.is_none() {
            field.x_kubernetes_list_type = Some("map".to_owned());
            field.x_kubernetes_list_map_keys = Some(vec!["type".to_owned()]);
        }
        complete_schema(field);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => complete_schema(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(complete_schema),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        complete_schema(values);
    }
}

/// Gives a number of Rust's a format that Kubernetes knows, which takes all of its values.
fn bound(schema: &mut JSONSchemaProps) {
    let (format, minimum, maximum) = match schema.format.as_deref() {
        Some("int8") => ("int32", Some(f64::from(i8::MIN)), Some(f64::from(i8::MAX))),
        Some("int16") => ("int32", Some(f64::from(i16::MIN)), Some(f64::from(i16::MAX))),
        Some("int") => ("int64", None, None),
        Some("uint8") => ("int32", Some(0.0), Some(f64::from(u8::MAX))),
        Some("uint16") => ("int32", Some(0.0), Some(f64::from(u16::MAX))),
        Some("uint32") => ("int64", Some(0.0), Some(f64::from(u32::MAX))),
        // Numbers beyond 64 bits with a sign are none in Kubernetes.
        Some("uint64" | "uint") => ("int64", Some(0.0), None),
        _ => return,
    };
    schema.format = Some(format.to_owned());
    schema.minimum = schema.minimum.or(minimum);
    schema.maximum = schema.maximum.or(maximum);
}

/// Whether a field is a list of what Kubernetes calls conditions.
fn has_conditions(field: &JSONSchemaProps) -> bool {
    let Some(JSONSchemaPropsOrArray::Schema(item)) = &field.items else { return false };
    let is_required = |name: &str| item.required.iter().flatten().any(|it| it == name);
    is_required("type") && is_required("status")
}
