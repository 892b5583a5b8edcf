//! ServiceAccounts: identities for what runs in pods.

use serde_json::{Value, json};

use super::{Rules, edit};

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) const RULES: Rules = Rules {
    prepare_create: |object, _| keep_names(object),
    prepare_update: |object, _, _| keep_names(object),
    warnings,
    ..Rules::PLAIN
};

/// Of references to secrets only the names are kept.
fn keep_names(object: &mut Value) {
    for secret in edit::items(object, "/secrets") {
        *secret = match secret.get("name") {
            Some(name) => json!({ "name": name }),
            None => json!({}),
        };
    }
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let enforces =
        |object: &Value| object["metadata"]["annotations"].get(ENFORCE_MOUNTABLE_SECRETS).is_some();
    // Who keeps the annotation has been told before.
    if !enforces(object) || old.is_some_and(enforces) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate \
         namespaces to isolate access to mounted secrets"
    )]
}
