//! What a document says it is, and whether it may be that here.
//!
//! A document of a built-in kind need not say it: upstream reads it as what is expected, and one
//! that says something else as that, to fail where it should become what is expected. A custom
//! resource has no type to be read by, and must say what it is.

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{builtin, json};
use serde_json::Value;

use super::{Expected, Shape};
use crate::meta;
use crate::refusal::Refusal;

/// What upstream looks kinds up in, by the place where it is made.
const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

/// Why a document cannot be what is expected.
pub(crate) enum Mismatch {
    /// It does not say what it is, in a form that can be read.
    Unreadable(String),
    /// It says that it is of the same kind, in another version.
    Version(GroupVersionKind),
    /// It says that it is something that cannot become what is expected.
    Kind { found: GroupVersionKind, why: String },
    /// It is a custom resource that goes by another name.
    Name(GroupVersionKind),
}

/// What a document is, if that is what is expected. `text` is how a refusal shows the document.
pub(crate) fn identify(
    value: &Value,
    expected: Expected<'_>,
    text: impl FnOnce() -> String,
) -> Result<GroupVersionKind, Mismatch> {
    let found = GroupVersionKind::interpret(value)
        .map_err(|error| Mismatch::Unreadable(error.to_string()))?;
    match expected.shape {
        Shape::Builtin(_) => identify_builtin(found, expected.gvk),
        Shape::Custom(_) => {
            // Other than types, trees do not take `Kind` for `kind`.
            if value["kind"].as_str().unwrap_or_default().is_empty() {
                let why = format!("Object 'Kind' is missing in '{}'", text());
                return Err(Mismatch::Unreadable(why));
            }
            if found.group_version() != expected.gvk.group_version() {
                return Err(Mismatch::Version(found));
            }
            if found.kind != expected.gvk.kind {
                return Err(Mismatch::Name(found));
            }
            Ok(found)
        }
    }
}

fn identify_builtin(
    mut found: GroupVersionKind,
    expected: &GroupVersionKind,
) -> Result<GroupVersionKind, Mismatch> {
    if found.kind.is_empty() {
        found.kind.clone_from(&expected.kind);
    }
    if found.version.is_empty() {
        found.group.clone_from(&expected.group);
        found.version.clone_from(&expected.version);
    }
    if found == *expected || is_older_eviction(&found, expected) {
        return Ok(found);
    }
    let is_known = builtin::kind(&found.group, &found.version, &found.kind).is_some();
    if found.kind == expected.kind && is_known {
        return Err(Mismatch::Version(found));
    }
    let why = match is_known {
        true => format!(
            "converting ({}.{}) to ({}.{}): unknown conversion",
            found.version,
            found.kind,
            package(&expected.group),
            expected.kind
        ),
        false => unregistered(&found),
    };
    Err(Mismatch::Kind { found, why })
}

/// Whether it is an eviction of the version that had no other kind left, and is still taken: some
/// clients know no newer one. Both versions have the same fields.
pub(crate) fn is_older_eviction(found: &GroupVersionKind, expected: &GroupVersionKind) -> bool {
    let is = |gvk: &GroupVersionKind, version| {
        (gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str())
            == ("policy", version, "Eviction")
    };
    is(found, "v1beta1") && is(expected, "v1")
}

pub(crate) fn unregistered(found: &GroupVersionKind) -> String {
    unregistered_in(found, SCHEME)
}

pub(crate) fn unregistered_in(found: &GroupVersionKind, scheme: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme {}",
        json::go_quote(&found.kind),
        json::go_quote(&found.api_version()),
        json::go_quote(scheme),
    )
}

/// Where upstream has the types of a group that all its versions are converted to.
pub(crate) fn package(group: &str) -> &str {
    match group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    }
}

/// The refusal of a custom resource that says it is of another kind or version.
pub(crate) fn misnamed(
    object: &Value,
    found: &GroupVersionKind,
    expected: &GroupVersionKind,
) -> Refusal {
    let must_be = |field: &str, found: &str, expected: &str| {
        (found != expected)
            .then(|| Error::invalid(&Path::new(field), found, format!("must be {expected}")))
    };
    let errors = [
        must_be("kind", &found.kind, &expected.kind),
        must_be("apiVersion", &found.api_version(), &expected.api_version()),
    ];
    let errors: Vec<Error> = errors.into_iter().flatten().collect();
    Box::new(Status::invalid(&found.group_kind(), meta::text(object, "name"), &errors))
}

/// Says in an object what it is.
pub(crate) fn label(object: &mut Value, gvk: &GroupVersionKind) {
    if let Some(object) = object.as_object_mut() {
        object.shift_insert(0, "kind".to_owned(), gvk.kind.clone().into());
        object.shift_insert(1, "apiVersion".to_owned(), gvk.api_version().into());
    }
}
