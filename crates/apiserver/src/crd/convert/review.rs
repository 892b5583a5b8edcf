//! Asking a webhook: a ConversionReview with objects goes out, and comes back with as many.
//!
//! A webhook may change everything about an object but what it is: of metadata, only labels and
//! annotations are taken from it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::{Duration, Instant};

use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::gvk::{GroupVersion, GroupVersionKind};
use kubewright_apimachinery::json::{self, go};
use kubewright_apimachinery::name::object_meta;
use kubewright_apimachinery::status::aggregate;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Webhook;
use crate::meta;
use crate::metrics::{ConversionFailure, Converted};
use crate::outbound::review::{self, Reviewed};

/// The versions of ConversionReview that we speak.
pub(super) const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Objects in another version, as the webhook has them.
///
/// # Errors
/// In upstream's words.
pub(super) async fn convert(
    webhook: &Webhook,
    objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, String> {
    let wanted: Vec<&Value> = objects.iter().filter(|object| object["apiVersion"] != to).collect();
    let Some(first) = wanted.first() else { return Ok(objects) };
    let Some(version) = webhook.version else {
        return Err("no supported conversion review versions".to_owned());
    };
    let what = GroupVersionKind::interpret(first).unwrap_or_default();
    let begun = Instant::now();
    let converted = ask(webhook, version, &what, &wanted, to).await;
    webhook.metrics.converted(&Converted {
        definition: &webhook.definition,
        from: &what.version,
        to: &GroupVersion::parse(to).unwrap_or_default().version,
        elapsed: begun.elapsed(),
        failure: converted.as_ref().err().map(|unconverted| unconverted.failure),
    });
    let mut converted = converted.map_err(|unconverted| unconverted.why)?.into_iter();
    let in_place = objects.into_iter().map(|object| match object["apiVersion"] == to {
        true => object,
        false => converted.next().expect("they were counted"),
    });
    Ok(in_place.collect())
}

/// Why objects are not converted.
struct Unconverted {
    why: String,
    failure: ConversionFailure,
}

/// Asks for other versions of objects, of which the first is `what`.
async fn ask(
    webhook: &Webhook,
    version: &str,
    what: &GroupVersionKind,
    wanted: &[&Value],
    to: &str,
) -> Result<Vec<Value>, Unconverted> {
    let failed = |failure: ConversionFailure, why: &dyn fmt::Display| Unconverted {
        why: format!("conversion webhook for {what} failed: {why}"),
        failure,
    };
    let line = webhook.line.as_ref().map_err(|why| failed(ConversionFailure::Call, why))?;
    let uid = Uuid::new_v4().to_string();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": to, "objects": wanted},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    let reviewed = review::post(line, &review, TIMEOUT).await;
    let reviewed = reviewed.map_err(|unread| failed(ConversionFailure::Call, &unread))?;
    let converted =
        read(version, &uid, &reviewed).map_err(|why| failed(ConversionFailure::Malformed, &why))?;
    if converted.len() != wanted.len() {
        let (found, expected) = (converted.len(), wanted.len());
        return Err(Unconverted {
            why: format!(
                "conversion webhook for {what} returned {found} objects, expected {expected}"
            ),
            failure: ConversionFailure::Partial,
        });
    }
    let pairs = wanted.iter().zip(converted).enumerate();
    let accepted = pairs.map(|(at, (object, converted))| {
        accept(object, converted, to, at)
            .map_err(|why| Unconverted { why, failure: ConversionFailure::InvalidObject })
    });
    accepted.collect()
}

/// The converted objects, as they were written.
fn read<'a>(version: &str, uid: &str, reviewed: &'a Reviewed) -> Result<Vec<&'a RawValue>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Response<'a> {
        #[serde(borrow, default)]
        converted_objects: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    struct Review<'a> {
        #[serde(borrow, default)]
        response: Option<Response<'a>>,
    }

    let response = &reviewed.review["response"];
    // The older version never asked for these two.
    let is_strict = version == "v1";
    let expected = GroupVersionKind::new("apiextensions.k8s.io", "v1", "ConversionReview");
    if is_strict && reviewed.said != expected {
        return Err(format!("expected webhook response of {expected}, got {}", reviewed.said));
    }
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let answered = text(&response["uid"]);
    if is_strict && answered != uid {
        let (uid, answered) = (json::go_quote(uid), json::go_quote(answered));
        return Err(format!("expected response.uid={uid}, got {answered}"));
    }
    let result = &response["result"];
    match (text(&result["status"]), text(&result["message"])) {
        ("Success", _) => {}
        (status, "") => {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        (_, message) => return Err(message.to_owned()),
    }
    let review: Review<'_> =
        serde_json::from_slice(&reviewed.text).map_err(|error| error.to_string())?;
    Ok(review.response.and_then(|response| response.converted_objects).unwrap_or_default())
}

/// A converted object with the metadata of its original, if it is one.
fn accept(original: &Value, converted: &RawValue, to: &str, at: usize) -> Result<Value, String> {
    let object = json::decode(converted.get().as_bytes()).map_err(|error| error.to_string())?.value;
    if !object.is_object() {
        let found = go::word(&object);
        return Err(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        ));
    }
    let (kind, expected) = (text(&object["kind"]), text(&original["kind"]));
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", converted.get()));
    }
    let what = GroupVersionKind::interpret(original).unwrap_or_default();
    let unfit = |why: String| format!("conversion webhook for {what} returned invalid {why}");
    let version = GroupVersion::parse(text(&object["apiVersion"])).unwrap_or_default();
    if version.to_string() != to {
        return Err(unfit(format!(
            "object at index {at}: invalid groupVersion (expected {to}, received {version})"
        )));
    }
    if kind != expected {
        return Err(unfit(format!(
            "object at index {at}: invalid kind (expected {expected}, received {kind})"
        )));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, found) = (meta::text(original, field), meta::text(&object, field));
        if expected != found {
            return Err(unfit(format!("object: must have the same {name}: {expected} != {found}")));
        }
    }
    restore(original, object).map_err(|why| unfit(format!("metadata: {why}")))
}

/// The converted object with the metadata of its original, but for labels and annotations.
fn restore(original: &Value, mut converted: Value) -> Result<Value, String> {
    let answered = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            let found = go::type_name(other);
            return Err(format!("invalid metadata of type {found} in converted object"));
        }
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => {
                metadata.shift_remove(field);
            }
            Some(Value::Object(texts)) => {
                check_texts(field, texts, metadata.get(field))?;
                metadata.insert(field.to_owned(), Value::Object(texts.clone()));
            }
            Some(other) => {
                let found = go::type_name(other);
                return Err(format!(
                    "invalid metadata.{field} of type {found} in converted object"
                ));
            }
        }
    }
    converted["metadata"] = Value::Object(metadata);
    Ok(converted)
}

/// Fails unless the labels or annotations are those of the original, or valid.
fn check_texts(
    field: &str,
    texts: &Map<String, Value>,
    original: Option<&Value>,
) -> Result<(), String> {
    if let Some((key, other)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let found = go::type_name(other);
        return Err(format!(
            "metadata.{field}[{key}] must be a string, but is {found} in converted object"
        ));
    }
    let original = original.and_then(Value::as_object);
    if original.map_or(texts.is_empty(), |original| original == texts) {
        return Ok(());
    }
    let metadata = Path::new("metadata");
    let errors = match field {
        "labels" => object_meta::validate_labels(texts, &metadata.child("labels")),
        // So upstream calls it here.
        _ => object_meta::validate_annotations(texts, &metadata.child("annotation")),
    };
    match errors.is_empty() {
        true => Ok(()),
        false => Err(aggregate(&errors)),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
