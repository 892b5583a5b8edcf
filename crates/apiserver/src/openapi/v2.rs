//! OpenAPI v2: one document about everything.
//!
//! The same operations and schemas as of v3, in an older language: media types stand beside
//! operations, bodies among parameters, and defaults nowhere, since old readers choked on some.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::crd::Definition;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::custom::Form;
use super::model::{REFERENCE, Scope};
use super::operation::{self, Content, Operation, Parameter, Paths, Place};
use super::v3;

/// The document about everything that is served.
pub(super) fn document(definitions: &[Arc<Definition>]) -> Value {
    let mut operations = Paths::new();
    let subjects = v3::builtin_subjects().into_values();
    for subject in subjects.chain(v3::custom_subjects(definitions).into_values()) {
        operations.extend(v3::operations(&subject, definitions));
    }
    let custom = v3::custom_schemas(v3::served(definitions), Form::V2);
    let scope = Scope { group: "", version: "", everything: true };
    let mut schemas = v3::schemas(&operations, BTreeMap::new(), scope);
    schemas.values_mut().for_each(translate);
    for name in [QUANTITY, INT_OR_STRING] {
        if let Some(Value::Object(schema)) = schemas.get_mut(name) {
            // There is no way to say "either".
            schema.remove("oneOf");
            schema.insert("type".to_owned(), "string".into());
        }
    }
    schemas.extend(custom);

    let mut shared = Shared::default();
    let paths: Map<String, Value> =
        operations.into_iter().map(|(path, operations)| (path, shared.item(operations))).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "definitions": Map::from_iter(schemas),
        "parameters": Map::from_iter(shared.parameters),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Rewrites a schema of a built-in type. Properties may have the names of keywords, so they are
/// gone into one by one.
fn translate(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    fields.shift_remove("default");
    if let Some(Value::Array(mut all)) = fields.shift_remove("allOf")
        && let Some(Value::Object(reference)) = all.pop()
    {
        fields.extend(reference);
    }
    if let Some(Value::String(target)) = fields.get_mut("$ref") {
        *target = target.replace(REFERENCE, "#/definitions/");
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(name) {
            translate(inner);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(translate);
    }
}

/// Parameters that stand once and are referred to.
#[derive(Default)]
struct Shared {
    parameters: BTreeMap<String, Value>,
}

impl Shared {
    fn item(&mut self, mut operations: Vec<Operation>) -> Value {
        let common = operation::share(&mut operations);
        let mut item = Map::new();
        for operation in operations {
            item.insert(operation.method.as_str().to_owned(), self.method(operation));
        }
        if !common.is_empty() {
            let parameters = common.iter().map(|parameter| self.parameter(parameter));
            item.insert("parameters".to_owned(), parameters.collect());
        }
        Value::Object(item)
    }

    fn method(&mut self, operation: Operation) -> Value {
        let produces = sorted(operation.produces);
        let consumes = match &operation.body {
            Some(body) => sorted(body.types),
            None if matches!(operation.gives, Content::Text) && operation.action.is_none() => {
                Vec::new()
            }
            None if operation.action.is_none() => produces.clone(),
            // What has no body takes any.
            None if produces.contains(&PROTOBUF) || produces.contains(&"*/*") => vec!["*/*"],
            None => produces.clone(),
        };
        let mut parameters = Vec::new();
        if let Some(body) = &operation.body {
            let mut parameter = json!({"name": "body", "in": "body"});
            if body.required {
                parameter["required"] = true.into();
            }
            let general = matches!(&*body.model, operation::PATCH | operation::DELETE_OPTIONS);
            parameter["schema"] = json!({"$ref": format!("#/definitions/{}", body.model)});
            parameters.push(if general { self.refer("body", parameter) } else { parameter });
        }
        parameters.extend(operation.parameters.iter().map(|parameter| self.parameter(parameter)));

        let mut out = Map::new();
        let mut set = |name: &str, value: Value| out.insert(name.to_owned(), value);
        set("description", operation.description.into());
        if !consumes.is_empty() {
            set("consumes", json!(consumes));
        }
        set("produces", json!(produces));
        set("schemes", json!(["https"]));
        set("tags", json!([operation.tag]));
        set("operationId", operation.id.into());
        if !parameters.is_empty() {
            set("parameters", parameters.into());
        }
        let schema = match &operation.gives {
            Content::Model(model) => json!({"$ref": format!("#/definitions/{model}")}),
            Content::Text => json!({"type": "string"}),
        };
        let mut responses = Map::new();
        for code in operation.answers {
            let answer = json!({"description": operation::reason(code), "schema": schema});
            responses.insert(code.to_string(), answer);
        }
        responses.insert("401".to_owned(), json!({"description": operation::reason(401)}));
        set("responses", responses.into());
        if let Some(action) = operation.action {
            set("x-kubernetes-action", action.into());
        }
        if let Some((group, version, kind)) = operation.kind {
            let kind = json!({"group": group, "kind": kind, "version": version});
            set("x-kubernetes-group-version-kind", kind);
        }
        Value::Object(out)
    }

    fn parameter(&mut self, parameter: &Parameter) -> Value {
        let Parameter { name, place, ty, description } = parameter;
        let value = match place {
            Place::Query => json!({
                "uniqueItems": true,
                "type": ty,
                "description": description,
                "name": name,
                "in": "query",
            }),
            Place::Path => json!({
                "uniqueItems": true,
                "type": ty,
                "description": description,
                "name": name,
                "in": "path",
                "required": true,
            }),
        };
        // Names of objects are described kind by kind.
        if name == "name" { value } else { self.refer(name, value) }
    }

    /// A reference to a parameter, which is told from others of its name by a hash.
    fn refer(&mut self, name: &str, parameter: Value) -> Value {
        let digest = Sha256::digest(json::to_vec(&parameter));
        let key = format!("{name}-{}", URL_SAFE_NO_PAD.encode(&digest[..6]));
        let reference = json!({"$ref": format!("#/parameters/{key}")});
        self.parameters.insert(key, parameter);
        reference
    }
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Media types as upstream orders them here: what is common first.
fn sorted(types: &[&'static str]) -> Vec<&'static str> {
    const ORDER: [&str; 10] = [
        "text/plain",
        "application/json",
        "application/yaml",
        PROTOBUF,
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];
    let mut types = types.to_vec();
    types.sort_by_key(|name| ORDER.iter().position(|other| other == name));
    types
}
