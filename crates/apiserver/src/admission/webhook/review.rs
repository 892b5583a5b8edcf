//! AdmissionReview: the question that webhooks are asked, and their answer.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::Status;
use serde_json::{Value, json};

use super::configuration::{ReviewVersion, Role};
use crate::admission::Attributes;
use crate::admission::criteria::Aspect;
use crate::admission::expression::request::describe;
use crate::admission::shown::Shown;
use crate::outbound;
use crate::outbound::review::Reviewed;

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

/// What a webhook has to say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(super) is_allowed: bool,
    /// What the client is told of a denial.
    pub(super) status: Option<Box<Status>>,
    pub(super) patch: Option<Patch>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// A change that a webhook wants.
#[derive(Debug, PartialEq)]
pub(super) struct Patch {
    pub(super) bytes: Vec<u8>,
    /// Never empty.
    pub(super) language: String,
}

/// The question about a request.
pub(super) fn question(
    version: ReviewVersion,
    uid: &str,
    aspect: &Aspect,
    attributes: &Attributes<'_>,
    shown: &Shown,
) -> Value {
    let options = attributes.options.tree(attributes.operation);
    let mut request = describe(attributes, &aspect.gvr, &aspect.gvk, Some(&options));
    request["uid"] = uid.into();
    request["object"] = shown.object().clone();
    request["oldObject"] = shown.old().clone();
    let api_version = gvk(version).api_version();
    json!({ "kind": KIND, "apiVersion": api_version, "request": request })
}

fn gvk(version: ReviewVersion) -> GroupVersionKind {
    GroupVersionKind::new(GROUP, version.as_str(), KIND)
}

/// Reads what a webhook answered.
///
/// # Errors
/// Say what is wrong with the answer, as upstream's decoder does.
pub(super) fn read(body: &[u8], version: ReviewVersion) -> Result<Reviewed, String> {
    outbound::review::decode(&gvk(version), body)
}

/// Checks that an answer is one to the question, and takes out what it says.
///
/// # Errors
/// Say what is wrong with the answer.
pub(crate) fn verify(
    reviewed: &Reviewed,
    version: ReviewVersion,
    role: Role,
    uid: &str,
) -> Result<Verdict, String> {
    let response = &reviewed.review["response"];
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    if version == ReviewVersion::V1 {
        let echo = response["uid"].as_str().unwrap_or_default();
        if echo != uid {
            let (uid, echo) = (go_quote(uid), go_quote(echo));
            return Err(format!("expected response.uid={uid}, got {echo}"));
        }
        let expected = gvk(version);
        if reviewed.said != expected {
            let said = &reviewed.said;
            return Err(format!("expected webhook response of {expected}, got {said}"));
        }
    }
    let texts = |field: &str| {
        let entries = response[field].as_object().into_iter().flatten();
        entries.map(|(key, text)| (key.clone(), text.as_str().unwrap_or_default().to_owned()))
    };
    let warnings = response["warnings"].as_array().into_iter().flatten();
    Ok(Verdict {
        is_allowed: response["allowed"] == true,
        status: serde_json::from_value(response["status"].clone()).ok().map(Box::new),
        patch: patch(response, version, role)?,
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        annotations: texts("auditAnnotations").collect(),
    })
}

fn patch(response: &Value, version: ReviewVersion, role: Role) -> Result<Option<Patch>, String> {
    let bytes = response["patch"].as_str().unwrap_or_default();
    let bytes = BASE64_STANDARD.decode(bytes).map_err(|error| error.to_string())?;
    let language = response["patchType"].as_str();
    let why = match (version, role) {
        // Nobody looked then at what else is said.
        (ReviewVersion::V1beta1, Role::Validating) => return Ok(None),
        (ReviewVersion::V1beta1, Role::Mutating) if bytes.is_empty() => return Ok(None),
        (ReviewVersion::V1beta1, Role::Mutating) => {
            return Ok(Some(Patch { bytes, language: JSON_PATCH.to_owned() }));
        }
        (ReviewVersion::V1, Role::Mutating) => match language {
            None if bytes.is_empty() => return Ok(None),
            None => "webhook returned response.patch but not response.patchType",
            Some(_) if bytes.is_empty() => {
                "webhook returned response.patchType but not response.patch"
            }
            Some("") => "webhook returned invalid response.patchType of \"\"",
            Some(language) => return Ok(Some(Patch { bytes, language: language.to_owned() })),
        },
        (ReviewVersion::V1, Role::Validating) => match language {
            _ if !bytes.is_empty() => "validating webhook may not return response.patch",
            Some(_) => "validating webhook may not return response.patchType",
            None => return Ok(None),
        },
    };
    Err(why.to_owned())
}

/// The one language of patches there is.
pub(super) const JSON_PATCH: &str = "JSONPatch";
