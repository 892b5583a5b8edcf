//! Values that another server stored, brought into our form.
//!
//! A stock kube-apiserver stores built-in kinds as protobuf, some of them in a version that is not
//! served, and fills in defaults whenever it reads: what it stored may lack fields that it would
//! show. Definitions of custom resources it stores as `v1beta1`, whose fields are in other places.

#[cfg(test)]
mod tests;

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::{builtin, json, proto};
use serde_json::{Map, Value};

use crate::catalog::Catalog;
use crate::kinds;
use crate::resource::{Origin, Resource};

/// What the values begin with that look like ours and are not.
const OLD_DEFINITION: &[u8] =
    br#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","#;

/// Whether the fields of a value in our form may be elsewhere than we look for them.
pub(crate) fn is_outdated(value: &[u8]) -> bool {
    value.starts_with(OLD_DEFINITION)
}

/// The object in its hub version, as upstream would show it, without `resourceVersion`. None if
/// the value is no object.
pub(crate) fn read(value: &[u8]) -> Option<Value> {
    let mut object = match value.first()? {
        b'{' => json::decode(value).ok()?.value,
        _ => proto::decode(value).ok()?,
    };
    if is_old_definition(&object) {
        modernize(&mut object);
    }
    let mut object = match resource_of(&object) {
        Some(resource) => complete(resource, object)?,
        None => object,
    };
    object.get_mut("metadata")?.as_object_mut()?.shift_remove("resourceVersion");
    Some(object)
}

/// The built-in resource whose objects are of this kind: in this version if that is served, else
/// in the one that we store.
fn resource_of(object: &Value) -> Option<&'static Resource> {
    let found = GroupVersionKind::interpret(object).ok()?;
    let alike: Vec<&Resource> = Catalog::builtin()
        .map(AsRef::as_ref)
        .filter(|row: &&Resource| row.gvk.group == found.group && row.gvk.kind == found.kind)
        .collect();
    let served = alike.iter().find(|row| row.gvk.version == found.version);
    served.or_else(|| alike.iter().find(|row| row.gvk == row.hub)).copied()
}

/// Fills in what upstream fills in when it reads.
fn complete(resource: &Resource, mut object: Value) -> Option<Value> {
    let Origin::Builtin(kind) = &resource.origin else { return Some(object) };
    // Versions that are stored but not served differ in name only.
    object["apiVersion"] = resource.gvk.api_version().into();
    // What fits no type has no defaults either.
    object = builtin::decode(kind.kind, object).ok()?.value;
    resource.default(&mut object);
    if resource.gvk.kind == "Job" {
        kinds::label_job(&mut object);
    }
    // Defaults come last in the tree, and a field may be given twice over in the old form.
    builtin::decode(kind.hub, resource.to_hub(object)).ok().map(|decoded| decoded.value)
}

fn is_old_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
        && object["apiVersion"] == "apiextensions.k8s.io/v1beta1"
}

/// Brings a definition from `v1beta1` to `v1`.
fn modernize(definition: &mut Value) {
    definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let only = spec.shift_remove("version");
    if let Some(name) = only
        && spec.get("versions").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        spec.insert(
            "versions".to_owned(),
            serde_json::json!([{"name": name, "served": true, "storage": true}]),
        );
    }
    // What all versions have in common is said once.
    for (common, own) in [
        ("subresources", "subresources"),
        ("validation", "schema"),
        ("additionalPrinterColumns", "additionalPrinterColumns"),
        ("selectableFields", "selectableFields"),
    ] {
        let Some(value) = spec.shift_remove(common).filter(|value| !value.is_null()) else {
            continue;
        };
        for version in versions(spec) {
            version.insert(own.to_owned(), value.clone());
        }
    }
    for version in versions(spec) {
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(path) = column.shift_remove("JSONPath") {
                column.insert("jsonPath".to_owned(), path);
            }
        }
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let client = conversion.shift_remove("webhookClientConfig");
        let reviews = conversion.shift_remove("conversionReviewVersions");
        let webhook: Map<String, Value> =
            [("clientConfig", client), ("conversionReviewVersions", reviews)]
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect();
        if !webhook.is_empty() {
            conversion.insert("webhook".to_owned(), webhook.into());
        }
    }
    // Once this was what went without saying.
    spec.entry("preserveUnknownFields").or_insert(Value::Bool(true));
    if spec["preserveUnknownFields"] == false {
        spec.shift_remove("preserveUnknownFields");
    }
    spec.entry("scope").or_insert_with(|| "Namespaced".into());
}

fn versions(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    versions.into_iter().flatten().filter_map(Value::as_object_mut)
}
