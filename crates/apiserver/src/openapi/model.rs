//! Built-in types as schemas, in the words of OpenAPI v3.
//!
//! Everything but the descriptions comes from the table of built-in types. The order of keys is
//! upstream's, which sorts properties by name and lists what is required in the order of the type.

use kubewright_apimachinery::builtin::{
    self, Field, Kind, Patch, SchemaOr, Topology, Ty, Type, type_named,
};
use serde_json::{Map, Value, json};

use super::describe;

/// Where schemas refer to each other.
pub(super) const REFERENCE: &str = "#/components/schemas/";

/// The group and version that a document is about; kinds of every version say which they are in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// The document speaks of all versions at once, or of a definition's, whose options upstream
    /// does not sort out.
    pub(super) everything: bool,
}

/// The name in OpenAPI of a type: `io.k8s.api.core.v1.Pod` for `k8s.io/api/core/v1.Pod`.
pub(super) fn name_of(go: &str) -> String {
    let (host, rest) = go.split_once('/').unwrap_or(("", go));
    let mut parts: Vec<&str> = host.split('.').rev().collect();
    parts.extend(rest.split('/'));
    parts.join(".")
}

/// The Go name of a type, from its name in OpenAPI.
fn go_name(model: &str) -> Option<String> {
    let rest = model.strip_prefix("io.k8s.")?;
    let (package, name) = rest.rsplit_once('.')?;
    Some(format!("k8s.io/{}.{name}", package.replace('.', "/")))
}

/// The name in OpenAPI of a built-in kind.
pub(super) fn of_kind(group: &str, version: &str, kind: &str) -> Option<String> {
    builtin::kind(group, version, kind).map(|kind| name_of(kind.ty().name))
}

/// The schema of a built-in type, and the names of those that it refers to.
pub(super) fn schema(model: &str, scope: Scope<'_>) -> Option<(Value, Vec<String>)> {
    let mut schema = Map::new();
    if let Some(text) = describe::of_type(model) {
        schema.insert("description".to_owned(), text.into());
    }
    if let Some(special) = special(model) {
        if let Value::Object(facts) = special {
            schema.extend(facts);
        }
        return Some((Value::Object(schema), Vec::new()));
    }
    let ty = type_named(&go_name(model)?)?;
    if schema.is_empty() && model.ends_with("List") {
        let text = format!(
            "{} is a list of {}.",
            ty.short_name(),
            ty.short_name().trim_end_matches("List")
        );
        schema.insert("description".to_owned(), text.into());
    }
    let mut references = Vec::new();
    fill(&mut schema, ty, model, scope, &mut references);
    Some((Value::Object(schema), references))
}

/// Types whose JSON is not what their fields say.
fn special(model: &str) -> Option<Value> {
    let name = model.strip_prefix("io.k8s.")?;
    Some(match name {
        "apimachinery.pkg.apis.meta.v1.Time" | "apimachinery.pkg.apis.meta.v1.MicroTime" => {
            json!({"type": "string", "format": "date-time"})
        }
        "apimachinery.pkg.apis.meta.v1.Duration" => json!({"type": "string"}),
        "apimachinery.pkg.apis.meta.v1.FieldsV1"
        | "apimachinery.pkg.apis.meta.v1.Patch"
        | "apimachinery.pkg.runtime.RawExtension" => json!({"type": "object"}),
        "apimachinery.pkg.api.resource.Quantity" => {
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]})
        }
        "apimachinery.pkg.util.intstr.IntOrString" => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        _ if name.starts_with("apiextensions-apiserver.") => {
            let name = name.rsplit_once('.')?.1;
            let any = matches!(
                name,
                "JSON"
                    | "JSONSchemaPropsOrArray"
                    | "JSONSchemaPropsOrBool"
                    | "JSONSchemaPropsOrStringArray"
            );
            any.then(|| json!({}))?
        }
        _ => return None,
    })
}

fn fill(
    schema: &mut Map<String, Value>,
    ty: &'static Type,
    model: &str,
    scope: Scope<'_>,
    references: &mut Vec<String>,
) {
    schema.insert("type".to_owned(), "object".into());
    let discovery = is_discovery(ty);
    let required: Vec<&str> = ty
        .members()
        .filter(|field| field.required || discovery && !field.omitempty)
        .map(|field| field.json)
        .collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    let mut members: Vec<&Field> = ty.members().collect();
    members.sort_by_key(|field| field.json);
    let properties: Map<String, Value> = members
        .into_iter()
        .map(|field| {
            let mut schema = property(field, text(model, field), references);
            if discovery && matches!(field.ty, Ty::List(_)) {
                schema["x-kubernetes-list-type"] = "atomic".into();
            }
            (field.json.to_owned(), schema)
        })
        .collect();
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), properties.into());
    }
    let kinds = kinds_of(ty, scope);
    if !kinds.is_empty() {
        schema.insert("x-kubernetes-group-version-kind".to_owned(), kinds.into());
    }
    if ty.atomic {
        schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    if let Some(union) = union(ty) {
        schema.insert("x-kubernetes-unions".to_owned(), json!([union]));
    }
}

/// The table has no facts of schema for these, since no resource leads to them.
fn is_discovery(ty: &Type) -> bool {
    matches!(
        ty.name.strip_prefix("k8s.io/apimachinery/pkg/apis/meta/v1."),
        Some(
            "APIGroup"
                | "APIGroupList"
                | "APIVersions"
                | "GroupVersionForDiscovery"
                | "ServerAddressByClientCIDR"
        )
    )
}

/// What a field is for, and what it may be.
fn text(model: &str, field: &Field) -> Option<String> {
    let mut text = match describe::of_field(model, field.json) {
        Some(text) => text.to_owned(),
        None if field.json == "items" => format!("List of {}", plural(listed(model)?)?),
        None => return None,
    };
    if !field.enum_values.is_empty() && !matches!(field.ty, Ty::List(_) | Ty::Map(_)) {
        text.push_str("\n\nPossible enum values:");
        for value in &field.enum_values {
            text.push_str(&format!("\n - `{}`", json!(value)));
        }
    }
    Some(text)
}

/// The kind that lists of this type hold: `Pod` for `io.k8s.api.core.v1.PodList`.
fn listed(model: &str) -> Option<&str> {
    model.rsplit('.').next()?.strip_suffix("List")
}

fn plural(kind: &str) -> Option<&'static str> {
    let mut resources = builtin::versions().iter().flat_map(|version| &version.resources);
    resources.find(|resource| resource.kind == kind).map(|resource| resource.name)
}

/// The kinds that a type is: itself, and for those that travel in every version, these too.
fn kinds_of(ty: &'static Type, scope: Scope<'_>) -> Vec<Value> {
    let own = builtin::kinds().iter().filter(|kind| std::ptr::eq(kind.ty(), ty));
    let mut kinds: Vec<Value> = own
        .map(|Kind { group, version, kind, .. }| group_version_kind(group, version, kind))
        .collect();
    if matches!(ty.short_name(), "DeleteOptions" | "WatchEvent") && !kinds.is_empty() {
        let mut add = |group: &str, version: &str| {
            if !group.is_empty() {
                kinds.push(group_version_kind(group, version, ty.short_name()));
            }
        };
        if scope.everything {
            let mut versions: Vec<(&str, &str)> = builtin::versions()
                .iter()
                .map(|version| (version.group, version.version))
                .collect();
            versions.sort_unstable();
            versions.into_iter().for_each(|(group, version)| add(group, version));
        } else {
            add(scope.group, scope.version);
        }
    }
    kinds
}

pub(super) fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}

/// Types of which one member is to be set, and which says so. The table does not have this.
fn union(ty: &Type) -> Option<Value> {
    let (discriminator, members): (&str, &[(&str, &str)]) = match ty.name {
        "k8s.io/api/core/v1.AppArmorProfile" | "k8s.io/api/core/v1.SeccompProfile" => {
            ("type", &[("localhostProfile", "LocalhostProfile")])
        }
        "k8s.io/api/core/v1.PodSchedulingGroup" => ("", &[("podGroupName", "PodGroupName")]),
        "k8s.io/api/flowcontrol/v1.LimitResponse" => ("type", &[("queuing", "Queuing")]),
        "k8s.io/api/flowcontrol/v1.PriorityLevelConfigurationSpec" => {
            ("type", &[("exempt", "Exempt"), ("limited", "Limited")])
        }
        "k8s.io/api/flowcontrol/v1.Subject" => {
            ("kind", &[("group", "Group"), ("serviceAccount", "ServiceAccount"), ("user", "User")])
        }
        _ => return None,
    };
    let members: Map<String, Value> =
        members.iter().map(|(field, name)| ((*field).to_owned(), (*name).into())).collect();
    let mut union = Map::new();
    if !discriminator.is_empty() {
        union.insert("discriminator".to_owned(), discriminator.into());
    }
    union.insert("fields-to-discriminateBy".to_owned(), members.into());
    Some(Value::Object(union))
}

fn property(field: &Field, text: Option<String>, references: &mut Vec<String>) -> Value {
    let mut schema = Map::new();
    if let Some(text) = text {
        schema.insert("description".to_owned(), text.into());
    }
    let default = field.default.clone().or_else(|| match field.ty {
        _ if field.pointer => None,
        Ty::Struct(_) => Some(json!({})),
        _ if field.omitempty || field.omitzero => None,
        _ => zero(&field.ty),
    });
    let holds = Holds { ty: &field.ty, default, enumeration: &field.enum_values };
    holds.fill(&mut schema, references);
    mark(&mut schema, field);
    Value::Object(schema)
}

/// What stands in a field, a list or a map.
struct Holds<'a> {
    ty: &'a Ty,
    default: Option<Value>,
    enumeration: &'a [&'static str],
}

impl Holds<'_> {
    fn fill(self, schema: &mut Map<String, Value>, references: &mut Vec<String>) {
        let mut set = |name: &str, value: Value| schema.insert(name.to_owned(), value);
        if let Some(model) = reference(self.ty) {
            let target = json!({"$ref": format!("{REFERENCE}{model}")});
            references.push(model);
            if let Some(default) = self.default {
                set("default", default);
            }
            // A reference overrides what stands beside it, so it stands alone.
            if schema.is_empty() {
                schema.insert("$ref".to_owned(), target["$ref"].clone());
            } else {
                schema.insert("allOf".to_owned(), json!([target]));
            }
            return;
        }
        let (name, format) = scalar(self.ty);
        set("type", name.into());
        if let Some(format) = format {
            set("format", format.into());
        }
        if let Some(default) = self.default {
            set("default", default);
        }
        match self.ty {
            Ty::List(of) => set("items", element(of, self.enumeration, references)),
            Ty::Map(of) => set("additionalProperties", element(of, self.enumeration, references)),
            _ if !self.enumeration.is_empty() => set("enum", json!(self.enumeration)),
            _ => None,
        };
    }
}

/// An element of a list or map. Scalars and structs have defaults there too.
fn element(ty: &Ty, enumeration: &[&'static str], references: &mut Vec<String>) -> Value {
    let default = match ty {
        Ty::Struct(_) => Some(json!({})),
        ty => zero(ty),
    };
    let mut schema = Map::new();
    Holds { ty, default, enumeration }.fill(&mut schema, references);
    Value::Object(schema)
}

fn zero(ty: &Ty) -> Option<Value> {
    Some(match ty {
        Ty::Bool => false.into(),
        Ty::Int32 | Ty::Int64 | Ty::Float64 => 0.into(),
        Ty::String => "".into(),
        _ => return None,
    })
}

fn scalar(ty: &Ty) -> (&'static str, Option<&'static str>) {
    match ty {
        Ty::Bool => ("boolean", None),
        Ty::Int32 => ("integer", Some("int32")),
        Ty::Int64 => ("integer", Some("int64")),
        Ty::Float64 => ("number", Some("double")),
        Ty::Bytes => ("string", Some("byte")),
        Ty::List(_) => ("array", None),
        Ty::Map(_) => ("object", None),
        _ => ("string", None),
    }
}

/// The model of a type that has one of its own.
fn reference(ty: &Ty) -> Option<String> {
    let schemas = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
    Some(match ty {
        Ty::Struct(id) => name_of(id.get().name),
        Ty::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time".to_owned(),
        Ty::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime".to_owned(),
        Ty::Duration => "io.k8s.apimachinery.pkg.apis.meta.v1.Duration".to_owned(),
        Ty::FieldsV1 => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1".to_owned(),
        Ty::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
        Ty::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
        Ty::RawExtension => "io.k8s.apimachinery.pkg.runtime.RawExtension".to_owned(),
        Ty::Json => format!("{schemas}JSON"),
        Ty::SchemaOr(SchemaOr::Schemas, _) => format!("{schemas}JSONSchemaPropsOrArray"),
        Ty::SchemaOr(SchemaOr::Bool, _) => format!("{schemas}JSONSchemaPropsOrBool"),
        Ty::SchemaOr(SchemaOr::Strings, _) => format!("{schemas}JSONSchemaPropsOrStringArray"),
        _ => return None,
    })
}

/// How patches and server-side apply treat a field.
fn mark(schema: &mut Map<String, Value>, field: &Field) {
    let mut set = |name: &str, value: Value| schema.insert(format!("x-kubernetes-{name}"), value);
    if let Topology::Map(keys) = &field.topology {
        set("list-map-keys", json!(keys));
    }
    let name = match field.ty {
        Ty::List(_) | Ty::Bytes => "list-type",
        _ => "map-type",
    };
    match &field.topology {
        Topology::Unmarked => None,
        Topology::Atomic => set(name, "atomic".into()),
        Topology::Granular => set(name, "granular".into()),
        Topology::Set => set(name, "set".into()),
        Topology::Map(_) => set(name, "map".into()),
    };
    let Patch { merge, replace, retain_keys, merge_key } = field.patch;
    if let Some(key) = merge_key {
        set("patch-merge-key", key.into());
    }
    let strategies: Vec<&str> =
        [(merge, "merge"), (replace, "replace"), (retain_keys, "retainKeys")]
            .into_iter()
            .filter_map(|(given, name)| given.then_some(name))
            .collect();
    if !strategies.is_empty() {
        set("patch-strategy", strategies.join(",").into());
    }
}
