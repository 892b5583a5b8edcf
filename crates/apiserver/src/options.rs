//! The options of requests that write, and what is wrong with them.

use kubewright_apimachinery::builtin;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind};
use kubewright_apimachinery::name::object_meta;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{apply, json, proto};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::draft::{Media, decode_yaml, identity, is_json};
use crate::meta;
use crate::query::Query;
use crate::refusal::Refusal;

/// The options of a create, update or patch.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    /// Who writes, as managed fields name it.
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
    /// Apply only: take fields from their owners.
    pub(crate) force: bool,
    /// What webhooks are shown.
    pub(crate) stated: Stated,
}

/// The options as the client stated them.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stated {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dry_run: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    field_manager: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field_validation: String,
}

/// What to do about fields that are unknown or given twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Which options a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Create,
    Update,
    Patch,
    Apply,
}

impl WriteOptions {
    /// Reads the options off a query; without a manager, the client's name is one.
    pub(crate) fn parse(query: &Query, kind: WriteKind, user_agent: &str) -> Result<Self, Refusal> {
        let mut errors = Vec::new();
        let manager = query.get("fieldManager").unwrap_or_default();
        let force = query.flag("force");
        if kind == WriteKind::Apply && manager.is_empty() {
            let path = Path::new("fieldManager");
            errors.push(Error::required(&path, "is required for apply patch"));
        }
        if kind == WriteKind::Patch && force.is_some() {
            let path = Path::new("force");
            errors.push(Error::forbidden(&path, "may not be specified for non-apply patch"));
        }
        errors.extend(object_meta::validate_field_manager(manager, &Path::new("fieldManager")));
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        errors.extend(check_dry_run(&dry_run));
        let directive = query.get("fieldValidation").unwrap_or_default();
        let validation = match directive {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            "" | "Warn" => FieldValidation::Warn,
            unknown => {
                let path = Path::new("fieldValidation");
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(Error::not_supported(&path, unknown, &known));
                FieldValidation::Warn
            }
        };
        let name = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        };
        check(name, &errors)?;
        let stated = Stated {
            dry_run: dry_run.iter().map(|&value| value.to_owned()).collect(),
            field_manager: manager.to_owned(),
            field_validation: directive.to_owned(),
        };
        let manager = match manager {
            "" => apply::manager_from_user_agent(user_agent),
            manager => manager.to_owned(),
        };
        let force = force.unwrap_or_default();
        Ok(WriteOptions { dry_run: !dry_run.is_empty(), manager, validation, force, stated })
    }
}

/// What upstream looks kinds of options up in, by the place where it is made.
const OPTIONS_SCHEME: &str = "pkg/runtime/scheme.go:111";

/// What the options of a delete are called.
const KIND: &str = "DeleteOptions";

/// The options of a delete.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grace_period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preconditions: Option<Preconditions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) orphan_dependents: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) propagation_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dry_run: Option<Vec<String>>,
}

/// What must be true of the object for it to be deleted.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_version: Option<String>,
}

impl Preconditions {
    /// Refuses an object that is not the one that was meant.
    pub(crate) fn check(&self, kind: &GroupResource, live: &Value) -> Result<(), Refusal> {
        let conflict =
            |why: String| Err(Box::new(Status::conflict(kind, meta::text(live, "name"), why)));
        let (uid, version) = (meta::text(live, "uid"), meta::text(live, "resourceVersion"));
        match (&self.uid, &self.resource_version) {
            (Some(expected), _) if expected != uid => conflict(format!(
                "the UID in the precondition ({expected}) does not match the UID in record \
                 ({uid}). The object might have been deleted and then recreated"
            )),
            (_, Some(expected)) if expected != version => conflict(format!(
                "the ResourceVersion in the precondition ({expected}) does not match the \
                 ResourceVersion in record ({version}). The object might have been modified"
            )),
            _ => Ok(()),
        }
    }
}

impl DeleteOptions {
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|values| !values.is_empty())
    }

    /// Reads the options off the query, which counts when there is no body.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Refusal> {
        let grace = match query.get("gracePeriodSeconds") {
            Some(text) => Some(text.parse().map_err(|_| {
                let text = json::go_quote(text);
                let why = format!("strconv.ParseInt: parsing {text}: invalid syntax");
                Box::new(Status::bad_request(why))
            })?),
            None => None,
        };
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        let options = DeleteOptions {
            grace_period_seconds: grace,
            preconditions: None,
            orphan_dependents: query.flag("orphanDependents"),
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            dry_run: (!dry_run.is_empty()).then_some(dry_run),
        };
        options.check()?;
        Ok(options)
    }

    /// Reads options off a tree in normal form.
    pub(crate) fn of(options: &Value) -> Result<Self, Refusal> {
        let options = DeleteOptions::deserialize(options)
            .map_err(|error| Box::new(Status::bad_request(error.to_string())))?;
        options.check()?;
        Ok(options)
    }

    /// Brings a body into normal form.
    pub(crate) fn tree(media: Media, body: &[u8]) -> Result<Value, Refusal> {
        let bad = |why: String| Box::new(Status::bad_request(why));
        let tree = match media {
            Media::Protobuf => of_any_version(body).map_err(bad)?,
            Media::Yaml if !is_json(body) => decode_yaml(body).map_err(bad)?.value,
            // Upstream looks for the kind first, and fails there.
            _ => {
                let unread = "couldn't get version/kind; json parse error";
                json::decode(body).map_err(|error| bad(format!("{unread}: {error}")))?.value
            }
        };
        if !tree.is_null() {
            let found = GroupVersionKind::interpret(&tree);
            let mut found = found.map_err(|error| bad(error.to_string()))?;
            if found.version.is_empty() {
                (found.group, found.version) = ("meta.k8s.io".to_owned(), "v1".to_owned());
            }
            if !matches!(found.kind.as_str(), "" | KIND) {
                return Err(bad(identity::unregistered_in(&found, OPTIONS_SCHEME)));
            }
        }
        let kind = builtin::kind("", "v1", KIND).expect("it is in the table");
        Ok(builtin::decode(kind, tree).map_err(|error| bad(error.to_string()))?.value)
    }

    fn check(&self) -> Result<(), Refusal> {
        let mut errors = Vec::new();
        let path = Path::new("propagationPolicy");
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(Error::invalid(&path, policy.as_str(), why));
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(Error::not_supported(&path, policy.as_str(), &known));
            }
        }
        let dry_run: Vec<&str> = self.dry_run.iter().flatten().map(String::as_str).collect();
        errors.extend(check_dry_run(&dry_run));
        check(KIND, &errors)
    }
}

/// Options in protobuf. They are part of every group, of groups too that are nobody's.
fn of_any_version(body: &[u8]) -> Result<Value, String> {
    let Some((api_version, kind)) = proto::type_of(body) else {
        return proto::decode(body).map_err(|error| error.to_string());
    };
    if kind != KIND {
        let version = GroupVersion::parse(&api_version).map_err(|error| error.to_string())?;
        return Err(identity::unregistered_in(&version.with_kind(&kind), OPTIONS_SCHEME));
    }
    let message = proto::open(body).map_err(|error| error.to_string())?.raw;
    let kind = builtin::kind("", "v1", KIND).expect("it is in the table");
    proto::decode_message(kind.ty(), message).map_err(|error| error.to_string())
}

fn check_dry_run(values: &[&str]) -> Option<Error> {
    let path = Path::new("dryRun");
    let known = values.iter().all(|value| *value == "All");
    (!known).then(|| Error::not_supported(&path, json!(values), &["All"]))
}

fn check(kind: &str, errors: &[Error]) -> Result<(), Refusal> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Box::new(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", errors))),
    }
}
