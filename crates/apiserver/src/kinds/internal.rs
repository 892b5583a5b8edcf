//! Structs as upstream prints them in messages: those that it works on, which are of no version.
//!
//! Their fields have Go's names and are all there, whether they say anything or not. Most structs
//! have the fields of the hub version in its order, so the table of types says nearly everything;
//! here is what differs.

mod diff;

use kubewright_apimachinery::builtin::{self, Field, Ty, Type};
use kubewright_apimachinery::json;
use serde_json::{Map, Value, json};

/// A struct of this type, as in `k8s.io/api/core/v1.PodSpec`; nothing is null.
pub(super) fn shown(type_name: &str, value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        value => {
            let ty = builtin::type_named(type_name).expect("rules name types that there are");
            shown_struct(ty, value)
        }
    }
}

/// What changed between two structs of this type, line by line.
pub(crate) fn diff(type_name: &str, old: &Value, new: &Value) -> String {
    diff::unified(&pretty(&shown(type_name, old)), &pretty(&shown(type_name, new)))
}

/// Upstream indents by one space only.
fn pretty(value: &Value) -> String {
    const INDENT: usize = 2;
    let pretty = json::to_string_pretty(value);
    let lines = pretty.lines().map(|line| {
        let content = line.trim_start_matches(' ');
        format!("{}{content}", " ".repeat((line.len() - content.len()) / INDENT))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Fields that stand elsewhere than in the hub version: each comes after the one that is named
/// first.
const MOVED: [(&str, &[(&str, &str)]); 5] = [
    ("PersistentVolumeSource", &[("rbd", "quobyte"), ("iscsi", "flexVolume")]),
    ("PersistentVolumeSpec", &[("rbd", "quobyte"), ("iscsi", "flexVolume")]),
    (
        "PodSpec",
        &[
            ("subdomain", "setHostnameAsFQDN"),
            ("priority", "preemptionPolicy"),
            ("runtimeClassName", "overhead"),
        ],
    ),
    ("PodSecurityContext", &[("fsGroup", "fsGroupChangePolicy")]),
    ("Volume", &[("rbd", "quobyte")]),
];

/// Fields that are pointers in the hub version only: what is absent has a value.
const PRESENT: [(&str, &str); 6] = [
    ("RollingUpdateDaemonSet", "maxSurge"),
    ("RollingUpdateDaemonSet", "maxUnavailable"),
    ("RollingUpdateDeployment", "maxSurge"),
    ("RollingUpdateDeployment", "maxUnavailable"),
    ("RollingUpdateStatefulSetStrategy", "partition"),
    ("ServiceAccountTokenProjection", "expirationSeconds"),
];

/// What belongs to the security context there, first of all.
const HOST: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
/// What is another name of `serviceAccountName`.
const DEPRECATED: &str = "serviceAccount";

fn shown_struct(ty: &'static Type, value: &Value) -> Value {
    let name = ty.short_name();
    // What all groups share is printed as in any version.
    if ty.name.starts_with("k8s.io/apimachinery/") {
        let mut shown = value.clone();
        builtin::arrange(ty, &mut shown);
        return shown;
    }
    let mut shown = Map::new();
    for field in ordered(ty) {
        let given = value.get(field.json).unwrap_or(&Value::Null);
        match field.json {
            // It is embedded there, and has names in JSON.
            "metadata" => shown.extend(given.as_object().cloned().unwrap_or_default()),
            "securityContext" if name == "PodSpec" => {
                shown.insert("SecurityContext".to_owned(), shown_security(field, given, value));
            }
            json if name == "PodSpec" && (HOST.contains(&json) || json == DEPRECATED) => {}
            json => {
                let is_pointer = field.pointer && !PRESENT.contains(&(name, json));
                shown.insert(go_name(name, json), shown_field(field, given, is_pointer));
            }
        }
    }
    Value::Object(shown)
}

fn ordered(ty: &'static Type) -> Vec<&'static Field> {
    let mut fields: Vec<&Field> = ty.members().collect();
    let moves = MOVED.iter().filter(|(name, _)| *name == ty.short_name());
    for (after, moved) in moves.flat_map(|(_, moves)| *moves) {
        let position = |fields: &[&Field], name: &str| {
            fields.iter().position(|field| field.json == name).expect("the field is there")
        };
        let field = fields.remove(position(&fields, moved));
        fields.insert(position(&fields, after) + 1, field);
    }
    fields
}

/// The security context of a pod, with what a spec says of the host.
fn shown_security(field: &Field, given: &Value, spec: &Value) -> Value {
    let mut shown = Map::new();
    for host in HOST {
        let is_flag = host.starts_with("hostN") || host.ends_with("PID") || host.ends_with("IPC");
        let nothing = if is_flag { json!(false) } else { Value::Null };
        shown.insert(go_name("", host), spec.get(host).cloned().unwrap_or(nothing));
    }
    if let Value::Object(rest) = shown_field(field, given, false) {
        shown.extend(rest);
    }
    Value::Object(shown)
}

fn shown_field(field: &Field, value: &Value, is_pointer: bool) -> Value {
    match value {
        Value::Null if is_pointer => Value::Null,
        value => shown_value(&field.ty, value),
    }
}

fn shown_value(ty: &Ty, value: &Value) -> Value {
    match (ty, value) {
        (Ty::Struct(id), value) => shown_struct(id.get(), value),
        (Ty::List(of), Value::Array(items)) => {
            items.iter().map(|item| shown_value(of, item)).collect()
        }
        (Ty::Map(of), Value::Object(entries)) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), shown_value(of, value)));
            let mut shown: Map<String, Value> = entries.collect();
            shown.sort_keys();
            Value::Object(shown)
        }
        (Ty::Bool, Value::Null) => false.into(),
        (Ty::Int32 | Ty::Int64 | Ty::Float64 | Ty::IntOrString, Value::Null) => 0.into(),
        (Ty::String, Value::Null) => "".into(),
        (Ty::Quantity, Value::Null) => "0".into(),
        (_, value) => value.clone(),
    }
}

/// What a field is called in Go: mostly its name in JSON with a capital letter.
fn go_name(ty: &str, json: &str) -> String {
    let in_struct = match (ty, json) {
        (_, "chapAuthDiscovery") => "DiscoveryCHAPAuth",
        (_, "chapAuthSession") => "SessionCHAPAuth",
        (_, "cephfs") => "CephFS",
        (_, "storageos") => "StorageOS",
        ("AzureDiskVolumeSource", "diskURI") => "DataDiskURI",
        ("PhotonPersistentDiskVolumeSource", "pdID") => "PdID",
        ("FCVolumeSource", "wwids") => "WWIDs",
        ("GlusterfsVolumeSource" | "GlusterfsPersistentVolumeSource", "endpoints") => {
            "EndpointsName"
        }
        ("RBDVolumeSource" | "RBDPersistentVolumeSource", "image") => "RBDImage",
        ("RBDVolumeSource" | "RBDPersistentVolumeSource", "monitors") => "CephMonitors",
        ("RBDVolumeSource" | "RBDPersistentVolumeSource", "pool") => "RBDPool",
        ("RBDVolumeSource" | "RBDPersistentVolumeSource", "user") => "RadosUser",
        _ => "",
    };
    if !in_struct.is_empty() {
        return in_struct.to_owned();
    }
    // Abbreviations are in capitals throughout.
    let abbreviations = [
        "api", "aws", "cel", "csi", "dns", "fc", "fs", "gce", "gmsa", "grpc", "http", "ip", "iqn",
        "iscsi", "nfs", "os", "pd", "rbd", "seL", "ssl", "tcp", "tty", "uid",
    ];
    for short in abbreviations {
        let Some(rest) = json.strip_prefix(short) else { continue };
        if rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_uppercase()) || short == "seL" {
            return format!("{}{rest}", short.to_uppercase());
        }
    }
    let mut letters = json.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
