//! Secrets: bytes by key, of a type that may ask for certain keys, which may be frozen.

mod key_pair;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::api::core::v1::Secret;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::{json, name};
use serde_json::{Map, Value};

use super::{Context, Field, Rules, check, edit, typed};

/// What fits into etcd with room to spare.
const DATA_BYTES_MAX: usize = 1 << 20;
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const TLS: &str = "kubernetes.io/tls";
const TLS_CERTIFICATE: &str = "tls.crt";
const TLS_KEY: &str = "tls.key";

pub(super) const RULES: Rules = Rules {
    default,
    prepare_update,
    validate,
    validate_update,
    warnings,
    fields: &[Field::At("type")],
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    edit::fill_text(object, "type", "Opaque");
    encode_texts(object);
}

/// `stringData` is how a client writes texts; what is kept is `data`.
fn encode_texts(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = fields.shift_remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = fields.entry("data").or_insert_with(|| Map::new().into());
    if data.is_null() {
        *data = Map::new().into();
    }
    if let Some(data) = data.as_object_mut() {
        for (key, text) in texts {
            let bytes = text.as_str().unwrap_or_default().as_bytes();
            data.insert(key, BASE64.encode(bytes).into());
        }
        data.sort_keys();
    }
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    if edit::text(object, "/type").is_empty() {
        edit::restore(object, old, "type");
    }
}

fn validate(object: &Value) -> Vec<Error> {
    check(&typed(object))
}

fn check(secret: &Secret) -> Vec<Error> {
    let at = Path::new("data");
    let mut errors = Vec::new();
    let mut total = 0;
    for (key, value) in secret.data.iter().flatten() {
        errors.extend(check::invalid(&at.key(key), key, name::config_map_key(key)));
        total += value.0.len();
    }
    if total > DATA_BYTES_MAX {
        errors.push(Error::too_long(&at, DATA_BYTES_MAX));
    }
    errors.extend(check_type(secret, &at));
    errors
}

/// What each type that upstream knows asks for.
fn check_type(secret: &Secret, at: &Path<'_>) -> Vec<Error> {
    let get = |key: &str| secret.data.as_ref()?.get(key).map(|bytes| bytes.0.as_slice());
    let missing = |key: &str| Error::required(&at.key(key), "");
    let lacking = |keys: &[&str]| {
        keys.iter().filter(|key| get(key).is_none()).map(|key| missing(key)).collect()
    };
    match secret.type_.as_deref().unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let annotations = secret.metadata.annotations.as_ref();
            let account = annotations.and_then(|all| all.get(SERVICE_ACCOUNT_NAME));
            if account.is_some_and(|name| !name.is_empty()) {
                return Vec::new();
            }
            let metadata = Path::new("metadata");
            let at = metadata.child("annotations");
            vec![Error::required(&at.key(SERVICE_ACCOUNT_NAME), "")]
        }
        "kubernetes.io/dockercfg" => check_json(get(".dockercfg"), &at.key(".dockercfg")),
        "kubernetes.io/dockerconfigjson" => {
            check_json(get(".dockerconfigjson"), &at.key(".dockerconfigjson"))
        }
        "kubernetes.io/basic-auth" => {
            let either = ["username", "password"];
            if either.iter().any(|key| get(key).is_some()) { Vec::new() } else { lacking(&either) }
        }
        "kubernetes.io/ssh-auth" => match get("ssh-privatekey") {
            None | Some([]) => vec![missing("ssh-privatekey")],
            Some(_) => Vec::new(),
        },
        TLS => lacking(&[TLS_CERTIFICATE, TLS_KEY]),
        _ => Vec::new(),
    }
}

fn check_json(bytes: Option<&[u8]>, at: &Path<'_>) -> Vec<Error> {
    let Some(bytes) = bytes else { return vec![Error::required(at, "")] };
    match go_json_object(bytes) {
        Ok(()) => Vec::new(),
        // What a secret holds is not for messages.
        Err(problem) => vec![Error::invalid(at, "<secret contents redacted>", problem)],
    }
}

/// What Go's decoder says about bytes that must hold a JSON object.
fn go_json_object(bytes: &[u8]) -> Result<(), String> {
    match json::decode(bytes).map_err(|error| error.to_string())?.value {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json::go::word(&other)
        )),
    }
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (Secret, Secret) = (typed(object), typed(old));
    let mut errors = Vec::new();
    if new.type_ != old.type_ {
        let value = new.type_.clone().unwrap_or_default();
        errors.push(Error::invalid(&Path::new("type"), value, "field is immutable"));
    }
    if old.immutable == Some(true) {
        let frozen =
            |name| Error::forbidden(&Path::new(name), "field is immutable when `immutable` is set");
        if new.immutable != Some(true) {
            errors.push(frozen("immutable"));
        }
        if new.data != old.data {
            errors.push(frozen("data"));
        }
    }
    errors.extend(check(&new));
    errors
}

fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let secret: Secret = typed(object);
    if secret.type_.as_deref() != Some(TLS) {
        return Vec::new();
    }
    let get = |key| secret.data.as_ref().and_then(|data| data.get(key)).map_or(&[][..], |b| &b.0);
    key_pair::problem(get(TLS_CERTIFICATE), get(TLS_KEY)).into_iter().collect()
}
