//! Patches: what a client wants changed in an object, in four languages.

use kubewright_apimachinery::builtin::{self, DecodeError};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::GroupKind;
use kubewright_apimachinery::json::go;
use kubewright_apimachinery::json::strict::{self, Violation};
use kubewright_apimachinery::patch::{json as json_patch, merge, strategic};
use kubewright_apimachinery::schema::Malformed;
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_apimachinery::{json, yaml};
use serde_json::{Map, Value};

use super::{Revise, Write};
use crate::draft::decode_yaml;
use crate::draft::identity::{self, Mismatch};
use crate::meta;
use crate::options::FieldValidation;
use crate::refusal::Refusal;
use crate::resource::{Origin, Resource};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The language of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// From the media type of the body. Custom resources have no types to merge strategically by.
    pub(crate) fn of(content_type: &str, resource: &Resource) -> Result<Self, Refusal> {
        let is_builtin = matches!(resource.origin, Origin::Builtin(_));
        // Upstream cuts at the first semicolon and compares as it is.
        Ok(match content_type.split(';').next().unwrap_or_default() {
            JSON => PatchKind::Json,
            MERGE => PatchKind::Merge,
            STRATEGIC if is_builtin => PatchKind::Strategic,
            APPLY => PatchKind::Apply,
            // Upstream's router does not let others through to built-in kinds.
            _ if is_builtin => {
                return Err(Box::new(Status::generic(415, "", "415: Unsupported Media Type")));
            }
            _ => return Err(Box::new(Status::unsupported_media_type(&[JSON, MERGE, APPLY]))),
        })
    }
}

/// A patch, read once and tried as often as needed. One that cannot be read is refused when it is
/// tried: upstream looks for the object first.
pub(crate) struct Patch {
    kind: PatchKind,
    steps: Result<Steps, Refusal>,
}

/// What a patch says.
struct Steps {
    how: How,
    /// What strictness finds in the patch itself.
    violations: Vec<String>,
}

enum How {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
    /// With what is wrong with how it was written.
    Apply(Value, Vec<Violation>),
}

impl Patch {
    pub(crate) fn read(kind: PatchKind, body: &[u8]) -> Self {
        Patch { kind, steps: Steps::read(kind, body) }
    }
}

impl Steps {
    fn read(kind: PatchKind, body: &[u8]) -> Result<Self, Refusal> {
        if kind == PatchKind::Apply {
            return Self::read_apply(body);
        }
        let bad = |why: String| Box::new(Status::bad_request(why));
        let decoded = json::decode(body).map_err(|error| match kind {
            PatchKind::Strategic => bad(error.to_string()),
            _ => bad(format!("error decoding patch: {error}")),
        })?;
        let mut violations: Vec<String> =
            decoded.violations.iter().map(Violation::to_string).collect();
        let how = match kind {
            PatchKind::Json => {
                let patch = json_patch::Patch::decode(decoded.value)
                    .map_err(|error| Box::new(Status::from(&error)))?;
                let unknown = patch.unknown_fields().iter();
                violations
                    .extend(unknown.map(|at| format!("unknown field {}", json::go_quote(at))));
                violations = violations.iter().map(|text| format!("json patch {text}")).collect();
                How::Json(patch)
            }
            PatchKind::Merge => How::Merge(decoded.value),
            PatchKind::Strategic | PatchKind::Apply => How::Strategic(decoded.value),
        };
        Ok(Steps { how, violations })
    }

    /// Reads what is to be applied. Upstream reads JSON as YAML too.
    fn read_apply(body: &[u8]) -> Result<Self, Refusal> {
        let bad =
            |why: String| Box::new(Status::bad_request(format!("error decoding YAML: {why}")));
        let decoded = match yaml::is_json(body).then(|| json::decode(body)) {
            Some(Ok(decoded)) if decoded.violations.is_empty() => Ok(decoded),
            _ => decode_yaml(body),
        };
        let decoded =
            decoded.map_err(|why| bad(format!("error converting YAML to JSON: {why}")))?;
        let found = match &decoded.value {
            Value::Object(_) | Value::Null => {
                return Ok(Steps {
                    how: How::Apply(decoded.value, decoded.violations),
                    violations: Vec::new(),
                });
            }
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        };
        Err(bad(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go \
             value of type map[string]interface {{}}"
        )))
    }

    /// The object with the patch in it, as a tree.
    fn patched(&self, write: &Write<'_>, live: &Value) -> Result<Value, Refusal> {
        match &self.how {
            How::Json(patch) => patch.apply(live).map_err(|error| Box::new(Status::from(&error))),
            How::Merge(patch) => merge::apply(live.clone(), patch.clone())
                .map_err(|error| Box::new(Status::from(&error))),
            How::Strategic(patch) => {
                let Origin::Builtin(builtin) = &write.resource.origin else {
                    unreachable!("custom resources take no strategic merge patch");
                };
                let schema = strategic::Schema::of(builtin.kind.ty());
                strategic::apply(live.clone(), patch.clone(), schema)
                    .map_err(|error| Box::new(Status::from(&error)))
            }
            How::Apply(..) => unreachable!("an apply is no patch of the object"),
        }
    }

    /// A patched object as upstream reads it again: complaints come in the order of its members.
    fn reread(&self, patched: Value) -> Value {
        match &self.how {
            How::Merge(patch) => sorted_along(patched, patch),
            How::Json(patch) => sorted_along(patched, &trodden(patch)),
            _ => patched,
        }
    }

    /// The object with the patch in it, in the form of its kind again.
    fn decode(&self, write: &Write<'_>, live: &Value) -> Result<Value, Refusal> {
        let patched = self.patched(write, live)?;
        // Only complaints show the object as it was before it was read: it is patched again for them.
        let shown = || match (&self.how, self.patched(write, live)) {
            (How::Strategic(patch), _) => go::plain(&merged_remainder(patch)),
            // Upstream has custom resources as trees, whose members it sorts.
            (_, Ok(mut patched)) if !write.resource.takes_protobuf() => {
                json::sort_keys(&mut patched);
                json::to_string(&patched)
            }
            (_, Ok(patched)) => json::to_string(&self.reread(patched)),
            (_, Err(_)) => String::new(),
        };
        let invalid = |why: String| {
            let error = Error::invalid(&Path::new("patch"), shown(), why);
            Box::new(Status::invalid(&GroupKind::new("", ""), "", &[error]))
        };
        // A strategic merge goes into an object that has its type: what the patch says of it is lost.
        if !matches!(self.how, How::Strategic(_)) {
            self.check_identity(write, &patched, &shown, &invalid)?;
        }
        let mut violations = self.violations.clone();
        let (mut object, unknown) = match &write.resource.origin {
            Origin::Builtin(builtin) => {
                let decoded = builtin::decode(builtin.kind, self.reread(patched)).map_err(
                    |error| match &self.how {
                        How::Strategic(_) => invalid(conversion_complaint(&error)),
                        _ => invalid(error.to_string()),
                    },
                )?;
                (decoded.value, decoded.violations)
            }
            Origin::Custom(custom) => {
                let (object, unknown) =
                    custom.admit_tree(patched, Malformed::Refuse).map_err(&invalid)?;
                (object, unknown.into_iter().map(Violation::UnspecifiedField).collect())
            }
        };
        identity::label(&mut object, &write.resource.gvk);
        if let Some(why) = write.resource.unreadable(&object) {
            return Err(match &self.how {
                How::Strategic(_) => Box::new(Status::failure(500, Reason::Unknown, why)),
                _ => invalid(why),
            });
        }
        violations.extend(unknown.iter().map(Violation::to_string));
        if !violations.is_empty() {
            match write.options.validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => write.warnings.extend(violations),
                FieldValidation::Strict => {
                    let why = format!("strict decoding error: {}", violations.join(", "));
                    return Err(invalid(why));
                }
            }
        }
        write.resource.default(&mut object);
        Ok(object)
    }

    /// Refuses an object that a patch has made into something else.
    fn check_identity(
        &self,
        write: &Write<'_>,
        patched: &Value,
        shown: &dyn Fn() -> String,
        invalid: &dyn Fn(String) -> Refusal,
    ) -> Result<(), Refusal> {
        let expected = write.resource.expected();
        let is_builtin = write.resource.takes_protobuf();
        let outcome = identity::identify(patched, expected, shown);
        let has_version = patched["apiVersion"].as_str().is_some_and(|text| !text.is_empty());
        match outcome {
            Err(Mismatch::Unreadable(why) | Mismatch::Kind { why, .. }) => Err(invalid(why)),
            // Upstream reads it as a type of its own, whose fields have other names, and so finds
            // no name in it.
            Ok(_) if is_builtin && !has_version => write.check_name(&Value::Null),
            Err(Mismatch::Version(_)) if !is_builtin && !has_version => {
                let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
                Err(Box::new(Status::internal_error(why)))
            }
            // All versions of a built-in kind are one kind.
            Err(Mismatch::Version(_)) if is_builtin => Ok(()),
            // A status is patched by itself; nothing else of the object is taken over.
            Err(Mismatch::Version(_) | Mismatch::Name(_)) if write.part.is_some() => Ok(()),
            Err(Mismatch::Version(found) | Mismatch::Name(found)) => {
                Err(identity::misnamed(patched, &found, &write.resource.gvk))
            }
            Ok(_) => Ok(()),
        }
    }

    fn apply(
        &self,
        write: &Write<'_>,
        live: Option<&Value>,
        config: &Value,
        violations: &[Violation],
    ) -> Result<Value, Refusal> {
        let options = write.options;
        let applied = write.with_manager(|manager| {
            manager.apply(live, config, &options.manager, options.force, write.now)
        });
        let object = applied.map_err(|error| Box::new(Status::from(error)))?;
        let mut object = converted(write.resource, config, object)?;
        if let Some(why) = write.resource.unreadable(&object) {
            let (namespace, name) = (meta::text(config, "namespace"), meta::text(config, "name"));
            let gvk = &write.resource.gvk;
            let why =
                format!("failed to convert to unversioned ({namespace}/{name}; {gvk}): {why}");
            return Err(Box::new(Status::failure(500, Reason::Unknown, why)));
        }
        // Upstream applies first, and then looks how it was written.
        match options.validation {
            _ if violations.is_empty() => {}
            FieldValidation::Ignore => {}
            FieldValidation::Warn => write.warnings.extend(strict::warnings(violations)),
            FieldValidation::Strict => {
                let texts: Vec<String> = violations.iter().map(Violation::to_string).collect();
                let why = format!("{STRICT}: {}", texts.join(", "));
                return Err(Box::new(Status::bad_request(why)));
            }
        }
        // What was given up is filled in again.
        write.resource.default(&mut object);
        Ok(object)
    }
}

const STRICT: &str = "error strict decoding YAML: error converting YAML to JSON";

/// What an apply has merged, in normal form: the schema that it was merged by lets more through
/// than the type has room for.
fn converted(resource: &Resource, config: &Value, merged: Value) -> Result<Value, Refusal> {
    let mut object = match &resource.origin {
        Origin::Builtin(builtin) => match builtin::decode(builtin.kind, merged) {
            Ok(decoded) => decoded.value,
            Err(error) => {
                let (namespace, name) =
                    (meta::text(config, "namespace"), meta::text(config, "name"));
                let (gvk, why) = (&resource.gvk, conversion_complaint(&error));
                let why = format!(
                    "failed to convert new object ({namespace}/{name}; {gvk}) to proper version: \
                     unable to convert unstructured object to {gvk}: {why}"
                );
                return Err(Box::new(Status::failure(500, Reason::Unknown, why)));
            }
        },
        // Its metadata is read as if it came from the store.
        Origin::Custom(custom) => match custom.admit_tree(merged, Malformed::Drop) {
            Ok((object, _)) => object,
            Err(why) => return Err(Box::new(Status::internal_error(why))),
        },
    };
    identity::label(&mut object, &resource.gvk);
    Ok(object)
}

/// What is left of a strategic merge patch when it has been merged, which is what upstream shows of
/// it: lists that came with their order are used up, and so are directives.
fn merged_remainder(patch: &Value) -> Value {
    const ORDER: &str = "$setElementOrder/";
    let Value::Object(members) = patch else { return patch.clone() };
    let used_up = |key: &str| {
        key.starts_with(ORDER)
            || key == "$patch"
            || key == "$retainKeys"
            || members.contains_key(&format!("{ORDER}{key}"))
    };
    let left = members.iter().filter(|(key, _)| !used_up(key));
    left.map(|(key, value)| (key.clone(), merged_remainder(value))).collect::<Map<_, _>>().into()
}

/// The object with the members sorted of each object that a merge patch went into: upstream reads
/// only those.
fn sorted_along(mut object: Value, patch: &Value) -> Value {
    sort_along(&mut object, patch);
    object
}

fn sort_along(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else { return };
    match object {
        Value::Object(members) => {
            members.sort_keys();
            for (key, change) in changes {
                if let Some(value) = members.get_mut(key) {
                    sort_along(value, change);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(change) = changes.get(&at.to_string()) {
                    sort_along(item, change);
                }
            }
        }
        _ => {}
    }
}

/// The objects and lists that a JSON patch goes through, as a tree.
fn trodden(patch: &json_patch::Patch) -> Value {
    let mut tree = Value::Object(Map::new());
    for pointer in patch.pointers() {
        let mut steps: Vec<&str> = pointer.split('/').skip(1).collect();
        // What it comes to in the end is taken as it is.
        steps.pop();
        let mut at = &mut tree;
        for step in steps {
            let name = step.replace("~1", "/").replace("~0", "~");
            let members = at.as_object_mut().expect("the tree has only objects");
            at = members.entry(name).or_insert_with(|| Value::Object(Map::new()));
        }
    }
    tree
}

/// What is wrong with a value as upstream says it of the result of a strategic merge, which it does
/// not write as JSON and read again, but converts.
fn conversion_complaint(error: &DecodeError) -> String {
    let (found, expected) = match error {
        DecodeError::Type { found, expected, .. } => (found, expected),
        // Bytes are the one thing that it writes and reads again.
        DecodeError::Value { message } if message.starts_with("illegal base64 data") => {
            return format!("error decoding from json: {message}");
        }
        DecodeError::Value { message } => return message.clone(),
    };
    let found = match found.split(' ').next().unwrap_or_default() {
        "number" if found.contains('.') => "float64",
        "number" => "int64",
        "object" => "map",
        "array" => "slice",
        other => other,
    };
    let is_number = matches!(expected.as_str(), "int32" | "int64" | "float64");
    match expected.as_str() {
        // Go turns an integer into a character.
        "string" if found == "int64" => "cannot convert int64 to string".to_owned(),
        _ if is_number && found == "float64" => format!("cannot convert float64 to {expected}"),
        "string" | "bool" => format!("unrecognized type: {expected}"),
        _ if is_number => format!("unrecognized type: {expected}"),
        list if list.starts_with("[]") => format!("cannot restore slice from {found}"),
        map if map.starts_with("map[") => format!("cannot restore map from {found}"),
        _ => format!("cannot restore struct from: {found}"),
    }
}

impl Revise for Patch {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        if live.is_none() && !self.creates() {
            return Err(write.not_found());
        }
        let steps = self.steps.as_ref().map_err(Clone::clone)?;
        match (&steps.how, live) {
            (How::Apply(config, violations), live) => steps.apply(write, live, config, violations),
            (_, Some(live)) => {
                let object = steps.decode(write, live)?;
                Ok(write.track(Some(live), object))
            }
            (_, None) => Err(write.not_found()),
        }
    }

    fn creates(&self) -> bool {
        self.kind == PatchKind::Apply
    }
}
