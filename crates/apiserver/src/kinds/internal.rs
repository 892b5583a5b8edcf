//! Structures as upstream prints them in messages: those that it works on, which are of no version.
//!
//! Their fields have Go's names and are all there, whether they say anything or not. Most structs
//! have the fields of `v1` in its order, so the table of types says nearly everything; here is what
//! differs.

use kubewright_apimachinery::builtin::{self, Field, Ty, Type};
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

/// Fields that stand elsewhere than in `v1`: each comes after the one that is named first.
const MOVED: [(&str, &[(&str, &str)]); 3] = [
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

/// What belongs to the security context there, first of all.
const HOST: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
/// What is another name of `serviceAccountName`.
const DEPRECATED: &str = "serviceAccount";

fn shown_struct(ty: &'static Type, value: &Value) -> Value {
    let name = ty.short_name();
    // What all groups share is printed as in any version.
    if ty.name.starts_with("k8s.io/apimachinery/") {
        return value.clone();
    }
    let mut fields: Vec<&Field> = ty.members().collect();
    for (after, moved) in MOVED.iter().filter(|(ty, _)| *ty == name).flat_map(|(_, moves)| *moves) {
        let from = fields.iter().position(|field| field.json == *moved);
        let field = fields.remove(from.expect("the field is there"));
        let to = fields.iter().position(|field| field.json == *after);
        fields.insert(to.expect("the field is there") + 1, field);
    }
    let mut shown = Map::new();
    for field in fields {
        let given = value.get(field.json).unwrap_or(&Value::Null);
        match field.json {
            // It is embedded there, and has names in JSON.
            "metadata" => shown.extend(given.as_object().into_iter().flatten().map(owned)),
            "securityContext" if name == "PodSpec" => {
                shown.insert("SecurityContext".to_owned(), shown_security(field, given, value));
            }
            json if name == "PodSpec" && (HOST.contains(&json) || json == DEPRECATED) => {}
            json => {
                shown.insert(go_name(name, json), shown_field(field, given));
            }
        }
    }
    Value::Object(shown)
}

/// The security context of a pod, with what a spec says of the host.
fn shown_security(field: &Field, given: &Value, spec: &Value) -> Value {
    let mut shown = Map::new();
    for host in HOST {
        let is_flag = host.starts_with("hostN") || host.ends_with("PID") || host.ends_with("IPC");
        let nothing = if is_flag { json!(false) } else { Value::Null };
        shown.insert(go_name("", host), spec.get(host).cloned().unwrap_or(nothing));
    }
    let given = if given.is_null() { json!({}) } else { given.clone() };
    if let Value::Object(rest) = shown_field(field, &given) {
        shown.extend(rest);
    }
    Value::Object(shown)
}

fn shown_field(field: &Field, value: &Value) -> Value {
    match value {
        Value::Null if field.pointer => Value::Null,
        value => shown_value(&field.ty, value),
    }
}

fn shown_value(ty: &Ty, value: &Value) -> Value {
    match (ty, value) {
        (Ty::Struct(id), value) => {
            let nothing = json!({});
            shown_struct(id.get(), if value.is_null() { &nothing } else { value })
        }
        (Ty::List(of), Value::Array(items)) => {
            items.iter().map(|item| shown_value(of, item)).collect()
        }
        (Ty::Map(of), Value::Object(entries)) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), shown_value(of, value)));
            Value::Object(entries.collect())
        }
        (Ty::Bool, Value::Null) => false.into(),
        (Ty::Int32 | Ty::Int64 | Ty::Float64 | Ty::IntOrString, Value::Null) => 0.into(),
        (Ty::String, Value::Null) => "".into(),
        (Ty::Quantity, Value::Null) => "0".into(),
        (_, value) => value.clone(),
    }
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
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
        ("GlusterfsVolumeSource", "endpoints") => "EndpointsName",
        ("RBDVolumeSource", "image") => "RBDImage",
        ("RBDVolumeSource", "monitors") => "CephMonitors",
        ("RBDVolumeSource", "pool") => "RBDPool",
        ("RBDVolumeSource", "user") => "RadosUser",
        _ => "",
    };
    if !in_struct.is_empty() {
        return in_struct.to_owned();
    }
    // Abbreviations are in capitals throughout.
    let abbreviations = [
        "api", "aws", "csi", "dns", "fc", "fs", "gce", "gmsa", "grpc", "http", "ip", "iqn",
        "iscsi", "nfs", "os", "pd", "rbd", "seL", "ssl", "tcp", "tty", "uid",
    ];
    for short in abbreviations {
        let Some(rest) = json.strip_prefix(short) else { continue };
        if rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_uppercase()) || short == "seL" {
            return format!("{}{rest}", short.to_uppercase());
        }
    }
    let mut letters = json.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}
