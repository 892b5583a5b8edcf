//! The parameters of operations.

use std::borrow::Cow;

use kubewright_apimachinery::builtin::{self, Ty};

/// A parameter; ordered by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parameter {
    pub(crate) name: Cow<'static, str>,
    pub(crate) place: Place,
    pub(crate) ty: &'static str,
    pub(crate) description: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Path,
    Query,
}

/// A parameter of a query that many operations have: name, type and what it does.
pub(super) type Known = (&'static str, &'static str, &'static str);

const DRY_RUN: Known =
    ("dryRun", "string", "With 'All', everything is done but nothing is stored.");
const FIELD_MANAGER: Known = (
    "fieldManager",
    "string",
    "Who makes the change, in managed fields; at most 128 printable characters.",
);
const FIELD_VALIDATION: Known = (
    "fieldValidation",
    "string",
    "What becomes of unknown and duplicate fields: 'Ignore' drops them, 'Warn' (the default) drops \
     them with a warning, 'Strict' refuses the request.",
);
const GRACE_PERIOD: Known = (
    "gracePeriodSeconds",
    "integer",
    "How long the object may take to end; zero deletes it at once.",
);
const IGNORE_STORE_READ_ERROR: Known = (
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "Deletes an object that can no longer be read from storage, without regard to finalizers and \
     preconditions. What depends on it may break.",
);
const ORPHAN_DEPENDENTS: Known =
    ("orphanDependents", "boolean", "Deprecated, see propagationPolicy.");
const PROPAGATION_POLICY: Known = (
    "propagationPolicy",
    "string",
    "What becomes of dependents: 'Orphan', 'Background' or 'Foreground'.",
);
const CONTINUE: Known =
    ("continue", "string", "The token of an earlier, limited list, to get what comes next.");
const FIELD_SELECTOR: Known = (
    "fieldSelector",
    "string",
    "Restricts the list of returned objects by their fields. Defaults to everything.",
);
const LABEL_SELECTOR: Known = (
    "labelSelector",
    "string",
    "Restricts the list of returned objects by their labels. Defaults to everything.",
);
const LIMIT: Known = (
    "limit",
    "integer",
    "How many objects to return at most; when there are more, the list has a token to continue.",
);
const RESOURCE_VERSION: Known =
    ("resourceVersion", "string", "Which versions of the data may be served. Defaults to unset.");
const RESOURCE_VERSION_MATCH: Known = (
    "resourceVersionMatch",
    "string",
    "How resourceVersion is meant: 'Exact' or 'NotOlderThan'. Defaults to unset.",
);
const SEND_INITIAL_EVENTS: Known = (
    "sendInitialEvents",
    "boolean",
    "A watch begins with the objects that exist, then a bookmark; resourceVersionMatch must be \
     'NotOlderThan'.",
);
const SHARD_SELECTOR: Known = (
    "shardSelector",
    "string",
    "Only objects in these ranges of hashes. An alpha feature that is not enabled.",
);
const TIMEOUT_SECONDS: Known = ("timeoutSeconds", "integer", "How long a list or watch may last.");
const ALLOW_WATCH_BOOKMARKS: Known = (
    "allowWatchBookmarks",
    "boolean",
    "A watch may send bookmarks, which say how far it has come.",
);
const WATCH: Known =
    ("watch", "boolean", "Watch for changes to the described resources, instead of a list.");
const FORCE: Known =
    ("force", "boolean", "Apply takes over fields that others own, instead of a conflict.");

pub(super) const LIST: &[Known] = &[
    ALLOW_WATCH_BOOKMARKS,
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
    WATCH,
];

pub(super) const DELETE_COLLECTION: &[Known] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE_PERIOD,
    IGNORE_STORE_READ_ERROR,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN_DEPENDENTS,
    PROPAGATION_POLICY,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
];

pub(super) const WRITE: &[Known] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

pub(super) const PATCH: &[Known] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];

pub(super) const DELETE: &[Known] =
    &[DRY_RUN, GRACE_PERIOD, IGNORE_STORE_READ_ERROR, ORPHAN_DEPENDENTS, PROPAGATION_POLICY];

pub(super) const READ: &[Known] = &[RESOURCE_VERSION];

impl Parameter {
    pub(super) fn known(&(name, ty, description): &Known) -> Self {
        Parameter { name: name.into(), place: Place::Query, ty, description: description.into() }
    }

    pub(super) fn pretty() -> Self {
        Parameter::known(&(
            "pretty",
            "string",
            "With 'true', the output is indented. Browsers and command-line tools get that anyway.",
        ))
    }

    pub(super) fn namespace() -> Self {
        Parameter::in_path("namespace", "the namespace of the object")
    }

    pub(super) fn name(kind: &str) -> Self {
        Parameter::in_path("name", format!("name of the {kind}"))
    }

    pub(super) fn path() -> Self {
        Parameter::in_path("path", "path to the resource")
    }

    fn in_path(name: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        Parameter {
            name: name.into(),
            place: Place::Path,
            ty: "string",
            description: description.into(),
        }
    }

    /// The fields of a kind of options, which travel in the query.
    pub(super) fn of_options(kind: &str) -> Vec<Self> {
        let Some(options) = builtin::kind("", "v1", kind) else { return Vec::new() };
        let fields = options.ty().members();
        fields
            .filter(|field| !matches!(field.json, "kind" | "apiVersion"))
            .filter_map(|field| {
                let ty = match &field.ty {
                    Ty::List(of) => of,
                    ty => ty,
                };
                let ty = match ty {
                    Ty::Bool => "boolean",
                    Ty::Int32 | Ty::Int64 => "integer",
                    Ty::String => "string",
                    // Queries have no times, in upstream's eyes.
                    _ => return None,
                };
                let description = format!("{} of {kind}", field.json);
                let place = Place::Query;
                Some(Parameter {
                    name: field.json.into(),
                    place,
                    ty,
                    description: description.into(),
                })
            })
            .collect()
    }
}
