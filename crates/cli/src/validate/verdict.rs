//! What would become of one object.
//!
//! Custom resources are judged by all that their definition says, objects of built-in kinds by the
//! rules that the server has for them.

use std::collections::HashMap;

use kubewright_apimachinery::builtin;
use kubewright_apimachinery::field::{self, Path};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json::Decoded;
use kubewright_apimachinery::json::strict::{self, Violation};
use kubewright_apimachinery::name::Rule;
use kubewright_apimachinery::name::object_meta::{self, Scope};
use kubewright_apimachinery::schema::crd::{self, Definition};
use kubewright_apimachinery::schema::{self, Malformed, Rules, Structural};
use kubewright_apiserver::foresight::{self, Foresight};
use serde_json::Value;

pub(super) enum Verdict {
    Accepted {
        warnings: Vec<String>,
    },
    Refused(Vec<String>),
    /// Nobody knows the kind.
    Unknown,
}

/// The custom kinds that the manifests define.
pub(super) struct Definitions(HashMap<GroupVersionKind, Custom>);

struct Custom {
    scope: Scope,
    schema: Structural,
    rules: Option<Rules>,
}

const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

impl Definitions {
    /// Those that would be accepted.
    pub(super) fn of<'a>(objects: impl Iterator<Item = &'a Decoded>) -> Self {
        let mut known = HashMap::new();
        for object in objects {
            let Ok(kind) = GroupVersionKind::interpret(&object.value) else { continue };
            if (kind.group.as_str(), kind.kind.as_str()) != DEFINITION {
                continue;
            }
            let Ok(definition) = definition(&object.value) else { continue };
            if !crd::validate_create(&definition).is_empty() {
                continue;
            }
            let scope = match definition.spec.scope.as_str() {
                "Cluster" => Scope::Cluster,
                _ => Scope::Namespaced,
            };
            for version in definition.versions().iter().filter(|version| version.served) {
                let group = definition.spec.group.clone();
                let name = definition.spec.names.kind.clone();
                let kind = GroupVersionKind::new(group, version.name.clone(), name);
                let mut schema = version.open_api_v3_schema().cloned().unwrap_or_default();
                schema::prune_defaults(&mut schema);
                let rules = Rules::new(&schema);
                known.insert(kind, Custom { scope, schema, rules });
            }
        }
        Definitions(known)
    }
}

/// `Kind "namespace/name"`, as far as the object says.
pub(super) fn name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} \"{namespace}/{name}\""),
        None => format!("{kind} \"{name}\""),
    }
}

pub(super) fn judge(object: &Decoded, definitions: &Definitions) -> Verdict {
    let kind = match GroupVersionKind::interpret(&object.value) {
        Ok(kind) if !kind.kind.is_empty() && !kind.version.is_empty() => kind,
        Ok(_) => return Verdict::Refused(vec!["apiVersion and kind must be set".to_owned()]),
        Err(error) => return Verdict::Refused(vec![error.to_string()]),
    };
    if let Some(custom) = definitions.0.get(&kind) {
        return judge_custom(object, custom);
    }
    match builtin::kind(&kind.group, &kind.version, &kind.kind) {
        Some(known) => judge_builtin(object, known, &kind),
        None => Verdict::Unknown,
    }
}

fn judge_builtin(
    object: &Decoded,
    known: &'static builtin::Kind,
    kind: &GroupVersionKind,
) -> Verdict {
    let decoded = match builtin::decode(known, object.value.clone()) {
        Ok(decoded) => decoded,
        Err(error) => return Verdict::Refused(vec![error.to_string()]),
    };
    let violations = [object.violations.clone(), decoded.violations].concat();
    if !violations.is_empty() {
        return Verdict::Refused(vec![strict::error(&violations)]);
    }
    let mut object = decoded.value;
    if (kind.group.as_str(), kind.kind.as_str()) == DEFINITION {
        return judge_definition(&object);
    }
    let scope = builtin_scope(kind);
    fill_in_namespace(&mut object, scope);
    match foresight::of_new(known, object) {
        Some(Foresight { errors, warnings }) => verdict(errors, warnings),
        // It is asked for and answered, and never stored.
        None => verdict(Vec::new(), Vec::new()),
    }
}

fn judge_definition(object: &Value) -> Verdict {
    match definition(object) {
        Ok(definition) => {
            let warnings = crd::warnings(&definition, None);
            verdict(crd::validate_create(&definition), warnings)
        }
        Err(problem) => Verdict::Refused(vec![problem]),
    }
}

fn definition(object: &Value) -> Result<Definition, String> {
    let mut object = object.clone();
    crd::default(&mut object);
    let mut definition = Definition::parse(&object).map_err(|error| error.to_string())?;
    crd::prepare_create(&mut definition);
    Ok(definition)
}

fn judge_custom(object: &Decoded, custom: &Custom) -> Verdict {
    let mut value = object.value.clone();
    let metadata = match schema::normalize_object_meta(&value["metadata"], Malformed::Refuse) {
        Ok(normalized) => normalized,
        Err(problem) => return Verdict::Refused(vec![problem]),
    };
    let in_metadata = metadata.unknown.iter().map(|field| format!("metadata.{field}"));
    let mut unknown: Vec<String> = in_metadata.collect();
    value["metadata"] = Value::Object(metadata.metadata);
    unknown.extend(schema::prune(&mut value, &custom.schema));
    schema::drop_nulls(&mut value, &custom.schema);
    match schema::coerce(&mut value, &custom.schema, Malformed::Refuse) {
        Ok(dropped) => unknown.extend(dropped),
        Err(error) => return Verdict::Refused(vec![error.to_string()]),
    }
    let mut violations = object.violations.clone();
    violations.extend(unknown.into_iter().map(Violation::UnspecifiedField));
    if !violations.is_empty() {
        return Verdict::Refused(vec![strict::error(&violations)]);
    }
    schema::default(&mut value, &custom.schema);
    fill_in_namespace(&mut value, custom.scope);
    let mut errors = metadata_errors(&value, custom.scope, Rule::Subdomain);
    errors.extend(schema::validate(&value, None, &custom.schema));
    if let Some(rules) = &custom.rules {
        let findings = rules.validate(&value, None, &custom.schema, &errors);
        errors.extend(findings.errors);
    }
    verdict(errors, Vec::new())
}

fn verdict(errors: Vec<field::Error>, warnings: Vec<String>) -> Verdict {
    match errors.is_empty() {
        true => Verdict::Accepted { warnings },
        false => Verdict::Refused(errors.iter().map(ToString::to_string).collect()),
    }
}

fn builtin_scope(kind: &GroupVersionKind) -> Scope {
    let versions = builtin::versions().iter();
    let mut resources = versions
        .filter(|version| version.group == kind.group && version.version == kind.version)
        .flat_map(|version| &version.resources);
    match resources.find(|resource| resource.kind == kind.kind) {
        Some(resource) if !resource.namespaced => Scope::Cluster,
        _ => Scope::Namespaced,
    }
}

/// As kubectl does with a context that names no namespace.
fn fill_in_namespace(object: &mut Value, scope: Scope) {
    if scope == Scope::Namespaced && object["metadata"]["namespace"].as_str().is_none() {
        object["metadata"]["namespace"] = "default".into();
    }
}

fn metadata_errors(object: &Value, scope: Scope, rule: Rule) -> Vec<field::Error> {
    match &object["metadata"] {
        Value::Object(metadata) => {
            let mut metadata = metadata.clone();
            // The server makes a name of it before it looks.
            if let (None, Some(base)) = (metadata.get("name"), metadata.get("generateName")) {
                metadata
                    .insert("name".to_owned(), format!("{}x", base.as_str().unwrap_or("")).into());
            }
            object_meta::validate(&metadata, scope, rule, &Path::new("metadata"))
        }
        _ => vec![field::Error::required(
            &Path::new("metadata").child("name"),
            "name or generateName is required",
        )],
    }
}
