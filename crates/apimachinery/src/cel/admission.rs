//! The variables that expressions of admission see, and their types.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::Type;

/// All variables, in the order of their values.
pub const VARIABLES: [&str; 8] = [
    "object",
    "oldObject",
    "namespaceObject",
    "request",
    "params",
    "authorizer",
    "authorizer.requestResource",
    "variables",
];

/// Which variables an expression may refer to, and what is known of them.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Of `object` and `oldObject`.
    object: Type,
    /// Of `params`, where there are any.
    params: Option<Type>,
    authorizer: Authorizer,
    /// Of named expressions, where there may be any.
    variables: Option<Arc<BTreeMap<Box<str>, Type>>>,
}

/// Whom an expression may ask for permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authorizer {
    Nobody,
    /// About anything but the request itself.
    General,
    Full,
}

impl Environment {
    /// `params` where there are any, and the authorizer.
    pub fn new(has_params: bool) -> Self {
        let params = has_params.then_some(Type::Dyn);
        Environment { object: Type::Dyn, params, authorizer: Authorizer::Full, variables: None }
    }

    /// Where types are checked for their own sake: with the types that objects and parameters
    /// have. Upstream does not know the resource of the request there.
    pub fn typed(object: Type, params: Option<Type>) -> Self {
        let variables = Some(Arc::default());
        Environment { object, params, authorizer: Authorizer::General, variables }
    }

    /// The same without the authorizer.
    pub fn without_authorizer(&self) -> Self {
        Environment { authorizer: Authorizer::Nobody, ..self.clone() }
    }

    /// The same with named expressions, of which there are none yet.
    pub fn with_variables(self) -> Self {
        Environment { variables: Some(Arc::default()), ..self }
    }

    /// Makes a named expression known; nothing is known of one that does not compile.
    pub fn declare(&mut self, name: &str, type_: Option<&Type>) {
        let type_ = type_.map_or(Type::Dyn, remembered);
        let variables = self.variables.get_or_insert_default();
        Arc::make_mut(variables).insert(name.into(), type_);
    }

    /// What an expression is checked with.
    pub fn declared(&self) -> Vec<(&'static str, Type)> {
        let mut declared = vec![
            ("object", self.object.clone()),
            ("oldObject", self.object.clone()),
            ("namespaceObject", NAMESPACE.clone()),
            ("request", REQUEST.clone()),
        ];
        declared.extend(self.params.clone().map(|params| ("params", params)));
        let named = |name: &str| Type::named(&format!("kubernetes.authorization.{name}"));
        if self.authorizer != Authorizer::Nobody {
            declared.push(("authorizer", named("Authorizer")));
        }
        if self.authorizer == Authorizer::Full {
            declared.push(("authorizer.requestResource", named("ResourceCheck")));
        }
        if let Some(variables) = &self.variables {
            let fields = BTreeMap::clone(variables);
            declared.push(("variables", Type::object("kubernetes.variables", fields)));
        }
        declared
    }
}

/// What others know of the type of a named expression: of objects, nothing.
fn remembered(type_: &Type) -> Type {
    match type_ {
        Type::List(item) => Type::list(remembered(item)),
        Type::Map(key, value) => Type::map(remembered(key), remembered(value)),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Duration
        | Type::Timestamp => type_.clone(),
        _ => Type::Dyn,
    }
}

fn object<const N: usize>(name: &str, fields: [(&str, Type); N]) -> Type {
    let fields = fields.into_iter().map(|(name, type_)| (name.into(), type_));
    Type::object(format!("kubernetes.{name}"), fields.collect())
}

fn texts() -> Type {
    Type::list(Type::String)
}

/// An AdmissionRequest without what has variables of its own.
static REQUEST: LazyLock<Type> = LazyLock::new(|| {
    let text = || Type::String;
    let group_version = || [("group", text()), ("version", text())];
    let kind = {
        let [group, version] = group_version();
        object("GroupVersionKind", [group, version, ("kind", text())])
    };
    let resource = {
        let [group, version] = group_version();
        object("GroupVersionResource", [group, version, ("resource", text())])
    };
    let user = object(
        "UserInfo",
        [
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    object(
        "AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
});

/// A Namespace. That a uid is called `UID` here, under which none is found, is upstream's.
static NAMESPACE: LazyLock<Type> = LazyLock::new(|| {
    let condition = object(
        "NamespaceCondition",
        [
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let metadata = object(
        "NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", Type::map(Type::String, Type::String)),
            ("annotations", Type::map(Type::String, Type::String)),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", texts()),
        ],
    );
    let spec = object("NamespaceSpec", [("finalizers", texts())]);
    let status =
        object("NamespaceStatus", [("conditions", Type::list(condition)), ("phase", Type::String)]);
    object("Namespace", [("metadata", metadata), ("spec", spec), ("status", status)])
});
