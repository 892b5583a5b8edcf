//! Definitions of `apiextensions.k8s.io/v1beta1`, which clusters stopped serving in 1.22, in `v1`.

use serde_json::{Map, Value, json};

const V1: &str = "apiextensions.k8s.io/v1";
const V1BETA1: &str = "apiextensions.k8s.io/v1beta1";

/// The definition in `v1`. What stood once beside `versions` stands in each of them; a version that
/// has no schema gets one that takes anything.
///
/// # Errors
/// It has no group, kind, plural or version, or it is of no version of this API; in words that
/// complete "the definition …".
pub fn upgrade(mut definition: Value) -> Result<Value, String> {
    match definition["apiVersion"].as_str() {
        Some(V1) => {}
        Some(V1BETA1) => upgrade_spec(&mut definition),
        other => {
            let other = other.unwrap_or("nothing");
            return Err(format!("is of apiVersion {other}; {V1} and {V1BETA1} are understood"));
        }
    }
    let spec = &definition["spec"];
    for path in ["/group", "/names/kind", "/names/plural", "/versions/0/name"] {
        if spec.pointer(path).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(format!("has no spec{}", path.replace("/0", "[0]").replace('/', ".")));
        }
    }
    Ok(definition)
}

fn upgrade_spec(definition: &mut Value) {
    definition["apiVersion"] = json!(V1);
    let Some(spec) = definition["spec"].as_object_mut() else { return };
    spec.entry("scope").or_insert_with(|| json!("Namespaced"));
    // Here nothing is dropped unless somebody says so; in `v1` everything is.
    let preserves = spec.get("preserveUnknownFields").is_none_or(|it| it != false);
    spec.insert("preserveUnknownFields".to_owned(), json!(preserves));
    // What all versions have in common, unless they have their own.
    let shared = [
        ("schema", spec.remove("validation")),
        ("subresources", spec.remove("subresources")),
        ("additionalPrinterColumns", spec.remove("additionalPrinterColumns")),
    ];
    let only = spec.remove("version");
    let versions = spec.entry("versions").or_insert_with(|| json!([]));
    if let (Some(versions), Some(name)) = (versions.as_array_mut(), only)
        && versions.is_empty()
    {
        versions.push(json!({"name": name, "served": true, "storage": true}));
    }
    for version in versions.as_array_mut().into_iter().flatten() {
        let Some(version) = version.as_object_mut() else { continue };
        for (key, value) in &shared {
            if let Some(value) = value {
                version.entry(*key).or_insert_with(|| value.clone());
            }
        }
        columns(version);
        version.entry("schema").or_insert_with(|| {
            json!({"openAPIV3Schema": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            }})
        });
    }
    conversion(spec);
}

fn columns(version: &mut Map<String, Value>) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove("JSONPath") {
            column.insert("jsonPath".to_owned(), path);
        }
    }
}

fn conversion(spec: &mut Map<String, Value>) {
    let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) else {
        return;
    };
    let config = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if conversion.get("strategy").is_some_and(|it| it == "Webhook") {
        let webhook = json!({
            "clientConfig": config.unwrap_or_default(),
            "conversionReviewVersions": versions.unwrap_or_else(|| json!(["v1beta1"])),
        });
        conversion.insert("webhook".to_owned(), webhook);
    }
}
