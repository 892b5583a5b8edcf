//! ControllerRevisions: the history of a StatefulSet or DaemonSet.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Rules, check, typed};

pub(super) const RULES: Rules = Rules { validate, validate_update, ..Rules::PLAIN };

fn validate(object: &Value) -> Vec<Error> {
    let mut errors = check_revision(&typed(object));
    let path = Path::new("data");
    match &object["data"] {
        Value::Null => errors.push(Error::required(&path, "data is mandatory")),
        Value::Object(_) => {}
        _ => errors.push(Error::required(&path, "data must be a valid JSON object")),
    }
    errors
}

fn check_revision(revision: &ControllerRevision) -> Vec<Error> {
    check::non_negative(&Path::new("revision"), revision.revision).into_iter().collect()
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut errors = check_revision(&typed(object));
    if object["data"] != old["data"] {
        // Upstream shows the structure that it keeps data in, which has the bytes and no object.
        errors.push(Error::invalid(
            &Path::new("data"),
            object["data"].clone(),
            "field is immutable",
        ));
    }
    errors
}
