//! OpenAPI v3: a document for each version of a group, and for each path outside of groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_apimachinery::builtin;
use kubewright_apimachinery::schema::crd::{Definition, Version};
use serde_json::{Map, Value, json};

use super::Swagger;
use super::custom::{self, Form};
use super::model::{self, REFERENCE, Scope};
use super::operation::{self, Content, Custom, Operation, Parameter, Paths, Place};
use super::upgrade::upgrade;

/// What a document is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// A built-in version.
    Version(&'static str, &'static str),
    /// A built-in group.
    Group(&'static str),
    /// A path that is neither: `api`, `version`.
    Path(&'static str),
    /// A version of custom resources.
    Custom(String, String),
    /// What a server with v2 has told.
    Upgraded(Swagger),
}

/// The paths below `/openapi/v3/` that exist in every server.
pub(super) fn builtin_subjects() -> BTreeMap<String, Subject> {
    const PATHS: [&str; 5] =
        [".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version"];
    let mut subjects: BTreeMap<String, Subject> =
        PATHS.into_iter().map(|path| (path.to_owned(), Subject::Path(path))).collect();
    for version in builtin::versions() {
        let path = operation::base(version.group, version.version);
        let subject = Subject::Version(version.group, version.version);
        subjects.insert(path.trim_start_matches('/').to_owned(), subject);
        if !version.group.is_empty() {
            subjects.insert(format!("apis/{}", version.group), Subject::Group(version.group));
        }
    }
    subjects
}

/// The paths below `/openapi/v3/` of these definitions.
pub(super) fn custom_subjects(definitions: &[Arc<Definition>]) -> BTreeMap<String, Subject> {
    served(definitions)
        .map(|(definition, version)| {
            let (group, version) = (definition.spec.group.clone(), version.name.clone());
            (format!("apis/{group}/{version}"), Subject::Custom(group, version))
        })
        .collect()
}

/// Every served version of every established definition.
pub(super) fn served(
    definitions: &[Arc<Definition>],
) -> impl Iterator<Item = (&Definition, &Version)> {
    definitions.iter().filter(|definition| definition.status.established).flat_map(|definition| {
        let versions = definition.versions().iter().filter(|version| version.served);
        versions.map(|version| (&**definition, version))
    })
}

/// The operations that a document is about.
pub(super) fn operations(subject: &Subject, definitions: &[Arc<Definition>]) -> Paths {
    match subject {
        Subject::Version(group, version) => builtin::versions()
            .iter()
            .find(|other| other.group == *group && other.version == *version)
            .map(operation::of_version)
            .unwrap_or_default(),
        Subject::Group(group) => Paths::from_iter([(
            format!("/apis/{group}/"),
            vec![operation::document(
                format!("get{}APIGroup", operation::group_title(group)),
                "get information of a group",
                operation::tag(group, None),
                "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
            )],
        )]),
        Subject::Path(path) => Paths::from_iter([(format!("/{path}/"), vec![of_path(path)])]),
        Subject::Custom(group, version) => {
            let mut paths = Paths::new();
            for (definition, _) in of_group(definitions, group, version) {
                custom_operations(definition, version, &mut paths);
            }
            paths
        }
        // It has its own.
        Subject::Upgraded(_) => Paths::new(),
    }
}

fn of_group<'a>(
    definitions: &'a [Arc<Definition>],
    group: &str,
    version: &str,
) -> impl Iterator<Item = (&'a Definition, &'a Version)> {
    served(definitions).filter(move |(definition, served)| {
        definition.spec.group == group && served.name == version
    })
}

fn custom_operations(definition: &Definition, version: &str, paths: &mut Paths) {
    let spec = &definition.spec;
    let Some(served) = definition.versions().iter().find(|served| served.name == version) else {
        return;
    };
    let model = custom::name_of(&spec.group, version, &spec.names.kind);
    let list_model = custom::name_of(&spec.group, version, &spec.names.list_kind);
    let parts = served.subresources.as_ref();
    let custom = Custom {
        group: &spec.group,
        version,
        plural: &spec.names.plural,
        kind: &spec.names.kind,
        namespaced: spec.scope == "Namespaced",
        model: &model,
        list_model: &list_model,
        has_status: served.has_status(),
        has_scale: parts.is_some_and(|parts| parts.scale.is_some()),
    };
    operation::of_custom(custom, paths);
}

fn of_path(path: &str) -> Operation {
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
    match path {
        "api" => operation::document(
            "getCoreAPIVersions",
            "get available API versions",
            "core".to_owned(),
            &format!("{meta}APIVersions"),
        ),
        "apis" => operation::document(
            "getAPIVersions",
            "get available API versions",
            "apis".to_owned(),
            &format!("{meta}APIGroupList"),
        ),
        "version" => Operation {
            produces: &["application/json"],
            ..operation::document(
                "getCodeVersion",
                "get the version of this server",
                "version".to_owned(),
                VERSION_INFO,
            )
        },
        "openid/v1/jwks" => Operation {
            gives: Content::Text,
            produces: &["application/jwk-set+json"],
            ..operation::document(
                "getServiceAccountIssuerOpenIDKeyset",
                "get the public keys that service account tokens are verified with",
                "openid".to_owned(),
                "",
            )
        },
        _ => Operation {
            gives: Content::Text,
            produces: &["application/json"],
            ..operation::document(
                "getServiceAccountIssuerOpenIDConfiguration",
                "get the OpenID configuration of the issuer of service account tokens",
                "WellKnown".to_owned(),
                "",
            )
        },
    }
}

/// The document about a subject.
pub(super) fn document(subject: &Subject, definitions: &[Arc<Definition>]) -> Value {
    if let Subject::Upgraded(swagger) = subject {
        return upgrade(&swagger.0);
    }
    let operations = operations(subject, definitions);
    let (scope, own) = match subject {
        Subject::Version(group, version) => {
            (Scope { group, version, everything: false }, BTreeMap::new())
        }
        Subject::Custom(group, version) => {
            let scope = Scope { group, version, everything: true };
            (scope, custom_schemas(of_group(definitions, group, version), Form::V3))
        }
        Subject::Group(_) | Subject::Path(_) | Subject::Upgraded(_) => {
            (Scope { group: "", version: "", everything: false }, BTreeMap::new())
        }
    };
    let schemas = schemas(&operations, own, scope);
    let mut components = Map::new();
    if !schemas.is_empty() {
        components.insert("schemas".to_owned(), schemas.into_iter().collect());
    }
    let info = match subject {
        Subject::Custom(..) => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
        _ => {
            let token = json!({
                "type": "apiKey",
                "description": "Bearer Token authentication",
                "name": "authorization",
                "in": "header",
            });
            components.insert("securitySchemes".to_owned(), json!({"BearerToken": token}));
            json!({"title": "Kubernetes", "version": "1.36"})
        }
    };
    let paths: Map<String, Value> =
        operations.into_iter().map(|(path, operations)| (path, item(operations))).collect();
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": components})
}

/// The schemas of custom kinds and of their lists, by name.
pub(super) fn custom_schemas<'a>(
    served: impl Iterator<Item = (&'a Definition, &'a Version)>,
    form: Form,
) -> BTreeMap<String, Value> {
    let mut schemas = BTreeMap::new();
    for (definition, version) in served {
        let (group, names) = (&definition.spec.group, &definition.spec.names);
        let name = |kind: &str| custom::name_of(group, &version.name, kind);
        schemas.insert(name(&names.kind), custom::schema(definition, version, form));
        schemas.insert(name(&names.list_kind), custom::list_schema(definition, version, form));
    }
    schemas
}

/// Schemas of everything that operations or other schemas refer to, `own` among them.
pub(super) fn schemas(
    operations: &Paths,
    own: BTreeMap<String, Value>,
    scope: Scope<'_>,
) -> BTreeMap<String, Value> {
    let mut wanted: Vec<String> = Vec::new();
    for operation in operations.values().flatten() {
        if let Content::Model(model) = &operation.gives {
            wanted.push(model.clone());
        }
        wanted.extend(operation.body.iter().map(|body| body.model.clone()));
    }
    if !own.is_empty() {
        wanted.extend([custom::OBJECT_META.to_owned(), custom::LIST_META.to_owned()]);
    }
    let mut schemas = own;
    while let Some(name) = wanted.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let found = match name.as_str() {
            VERSION_INFO => Some((version_info(), Vec::new())),
            name => model::schema(name, scope),
        };
        if let Some((schema, references)) = found {
            schemas.insert(name, schema);
            wanted.extend(references);
        }
    }
    schemas
}

const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

fn version_info() -> Value {
    const REQUIRED: [&str; 9] = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    const OPTIONAL: [&str; 4] =
        ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
    let mut properties: Map<String, Value> = REQUIRED
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string", "default": ""})))
        .chain(OPTIONAL.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))))
        .collect();
    properties.sort_keys();
    json!({
        "description": "Info contains versioning information.",
        "type": "object",
        "required": REQUIRED,
        "properties": properties,
    })
}

/// A path: its methods, and the parameters that all of them have.
fn item(mut operations: Vec<Operation>) -> Value {
    let shared = operation::share(&mut operations);
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method.as_str().to_owned(), method(operation));
    }
    if !shared.is_empty() {
        item.insert("parameters".to_owned(), shared.iter().map(parameter).collect());
    }
    Value::Object(item)
}

fn method(operation: Operation) -> Value {
    let mut out = Map::new();
    out.insert("tags".to_owned(), json!([operation.tag]));
    out.insert("description".to_owned(), operation.description.into());
    out.insert("operationId".to_owned(), operation.id.into());
    if !operation.parameters.is_empty() {
        let parameters = operation.parameters.iter().map(parameter);
        out.insert("parameters".to_owned(), parameters.collect());
    }
    if let Some(body) = operation.body {
        let schema = json!({"$ref": format!("{REFERENCE}{}", body.model)});
        let mut value = json!({"content": content(body.types, &schema)});
        if body.required {
            value["required"] = true.into();
        }
        out.insert("requestBody".to_owned(), value);
    }
    let schema = match &operation.gives {
        Content::Model(model) => json!({"$ref": format!("{REFERENCE}{model}")}),
        Content::Text => json!({"type": "string"}),
    };
    let mut responses = Map::new();
    for code in operation.answers {
        let answer = json!({
            "description": operation::reason(code),
            "content": content(operation.produces, &schema),
        });
        responses.insert(code.to_string(), answer);
    }
    responses.insert("401".to_owned(), json!({"description": operation::reason(401)}));
    out.insert("responses".to_owned(), responses.into());
    if let Some(action) = operation.action {
        out.insert("x-kubernetes-action".to_owned(), action.into());
    }
    if let Some((group, version, kind)) = operation.kind {
        let kind = json!({"group": group, "version": version, "kind": kind});
        out.insert("x-kubernetes-group-version-kind".to_owned(), kind);
    }
    Value::Object(out)
}

fn content(types: &[&str], schema: &Value) -> Value {
    types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut out = Map::new();
    out.insert("name".to_owned(), (*parameter.name).into());
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    };
    out.insert("in".to_owned(), place.into());
    out.insert("description".to_owned(), (*parameter.description).into());
    if parameter.place == Place::Path {
        out.insert("required".to_owned(), true.into());
    }
    out.insert("schema".to_owned(), json!({"type": parameter.ty, "uniqueItems": true}));
    Value::Object(out)
}
