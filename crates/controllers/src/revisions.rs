//! What templates a DaemonSet or StatefulSet has had: each is kept in a ControllerRevision, as the
//! patch that would bring it back.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

/// The label by which pods say which revision they are of.
pub(crate) const HASH: &str = "controller-revision-hash";

/// The patch that makes a template of an object's spec this one.
pub(crate) fn patch(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    template["$patch"] = "replace".into();
    json!({ "spec": { "template": template } })
}

/// The template that a revision brings back.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let RawExtension(patch) = revision.data.as_ref()?;
    let mut template = patch["spec"]["template"].clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

pub(crate) fn is_of(revision: &ControllerRevision, patch: &Value) -> bool {
    revision.data.as_ref().is_some_and(|RawExtension(data)| data == patch)
}

/// The number of the revision that comes after these.
pub(crate) fn next_number<'r>(
    revisions: impl IntoIterator<Item = &'r Arc<ControllerRevision>>,
) -> i64 {
    revisions.into_iter().map(|revision| revision.revision).max().unwrap_or_default().max(0) + 1
}

/// The value of a revision's own hash, under a label of this name.
pub(crate) fn label<'r>(revision: &'r ControllerRevision, key: &str) -> &'r str {
    let label = revision.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    label.map(String::as_str).unwrap_or_default()
}

/// JSON as Go writes it: keys in order, and what HTML might take for its own written otherwise.
pub(crate) fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (position, (key, value)) in fields.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                text(out, key);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::String(value) => text(out, value),
        other => out.push_str(&other.to_string()),
    }
}

fn text(out: &mut String, value: &str) {
    for c in Value::from(value).to_string().chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
}
