//! A request as expressions see it, which is an AdmissionRequest without its objects.

use kubewright_apimachinery::gvk::{GroupVersionKind, GroupVersionResource};
use serde_json::{Map, Value, json};

use crate::admission::{Attributes, Operation};

/// Describes a request to somebody who looks at it as one for this resource, of which objects have
/// this kind. What is empty is left out, as JSON of upstream's types does.
pub(crate) fn describe(
    attributes: &Attributes<'_>,
    resource: &GroupVersionResource,
    kind: &GroupVersionKind,
    options: Option<&Value>,
) -> Value {
    let mut request = Map::new();
    let text = |request: &mut Map<String, Value>, field: &str, text: &str| {
        if !text.is_empty() {
            request.insert(field.to_owned(), text.into());
        }
    };
    let part = attributes.part.unwrap_or_default();
    request.insert("uid".to_owned(), "".into());
    request.insert("kind".to_owned(), kind_of(kind));
    request.insert("resource".to_owned(), resource_of(resource));
    text(&mut request, "subResource", part);
    request.insert("requestKind".to_owned(), kind_of(&attributes.resource.gvk));
    request.insert("requestResource".to_owned(), resource_of(&attributes.resource.gvr));
    text(&mut request, "requestSubResource", part);
    text(&mut request, "name", attributes.name);
    text(&mut request, "namespace", attributes.namespace_or_own());
    request.insert("operation".to_owned(), attributes.operation.as_str().into());
    let mut user = Map::new();
    text(&mut user, "username", &attributes.user.name);
    text(&mut user, "uid", &attributes.user.uid);
    if !attributes.user.groups.is_empty() {
        user.insert("groups".to_owned(), json!(attributes.user.groups));
    }
    if !attributes.user.extra.is_empty() {
        user.insert("extra".to_owned(), json!(attributes.user.extra));
    }
    request.insert("userInfo".to_owned(), user.into());
    request.insert("object".to_owned(), Value::Null);
    request.insert("oldObject".to_owned(), Value::Null);
    request.insert("dryRun".to_owned(), attributes.dry_run.into());
    request.insert("options".to_owned(), options.cloned().unwrap_or_default());
    Value::Object(request)
}

fn kind_of(kind: &GroupVersionKind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

fn resource_of(resource: &GroupVersionResource) -> Value {
    json!({
        "group": resource.group,
        "version": resource.version,
        "resource": resource.resource,
    })
}

impl Operation {
    /// As rules and requests name it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}
