//! The policies that are stored, compiled when they change.

use std::sync::{Arc, Mutex, PoisonError};

use kubewright_apimachinery::cel::Named;
use kubewright_apimachinery::gvk::{GroupVersion, GroupVersionKind};
use kubewright_store::{Key, Range, Revision};
use serde_json::Value;

use super::params::Wanted;
use crate::admission::criteria::Criteria;
use crate::admission::expression::conditions::Owner;
use crate::admission::expression::{Environment, compile_named};
use crate::admission::{items, text};
use crate::index::{self, Index, Store};
use crate::meta;

/// A policy and its bindings.
pub(super) struct Hook<E> {
    pub(super) policy: Arc<Policy<E>>,
    pub(super) bindings: Vec<Binding>,
}

/// A policy, with what judges or changes objects.
pub(super) struct Policy<E> {
    pub(super) name: String,
    pub(super) criteria: Criteria,
    /// Requests go on when the policy fails.
    pub(super) fails_open: bool,
    pub(super) param_kind: Option<GroupVersionKind>,
    pub(super) evaluator: E,
}

pub(super) struct Binding {
    pub(super) name: String,
    policy: String,
    /// What the binding leaves of what the policy is about.
    pub(super) criteria: Option<Criteria>,
    pub(super) params: Option<Wanted>,
    pub(super) actions: Vec<String>,
}

/// The policies of one kind.
pub(super) struct Source<E> {
    policies: String,
    bindings: String,
    compile: fn(&str, &Value) -> E,
    read: Mutex<Read<E>>,
}

/// What was read, by key and revision.
type Versions = Vec<(Key, Revision)>;

struct Read<E> {
    bindings: Versions,
    policies: Versions,
    compiled: Vec<Arc<Policy<E>>>,
    hooks: Arc<[Hook<E>]>,
}

impl<E> Source<E> {
    /// Of the kind whose name begins so.
    pub(super) fn new(kind: &str, compile: fn(&str, &Value) -> E) -> Self {
        let hooks = Arc::from(Vec::new());
        Source {
            policies: format!("/registry/{kind}admissionpolicies/"),
            bindings: format!("/registry/{kind}admissionpolicybindings/"),
            compile,
            read: Mutex::new(Read {
                bindings: Vec::new(),
                policies: Vec::new(),
                compiled: Vec::new(),
                hooks,
            }),
        }
    }

    /// The policies that have bindings, in the order of their names. One that has not changed is
    /// not compiled again.
    pub(super) fn hooks(&self, store: &Store) -> Arc<[Hook<E>]> {
        let snapshot = store.snapshot();
        let bindings = snapshot.range(&self.bindings, None, None);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if bindings.is_empty() && read.bindings.is_empty() {
            return Arc::clone(&read.hooks);
        }
        let policies = snapshot.range(&self.policies, None, None);
        let is_current = |known: &[(Key, Revision)], stored: &Range<Index>| {
            known.len() == stored.len()
                && known
                    .iter()
                    .zip(stored.iter())
                    .all(|((key, revision), rev)| *revision == rev.revision && *key == rev.key)
        };
        if is_current(&read.bindings, &bindings) && is_current(&read.policies, &policies) {
            return Arc::clone(&read.hooks);
        }
        let compiled: Vec<Arc<Policy<E>>> = policies
            .iter()
            .map(|rev| {
                let mut known = read.policies.iter().zip(&read.compiled);
                let known = known.find(|((key, at), _)| *at == rev.revision && *key == rev.key);
                match known {
                    Some((_, policy)) => Arc::clone(policy),
                    None => Arc::new(self.policy(&index::object(rev).unwrap_or_default())),
                }
            })
            .collect();
        let mut read_bindings: Vec<Binding> = bindings
            .iter()
            .map(|rev| Binding::read(&index::object(rev).unwrap_or_default()))
            .collect();
        let hooks = compiled.iter().filter_map(|policy| {
            let own = read_bindings.extract_if(.., |binding| binding.policy == policy.name);
            let bindings: Vec<Binding> = own.collect();
            (!bindings.is_empty()).then(|| Hook { policy: Arc::clone(policy), bindings })
        });
        read.hooks = hooks.collect();
        let versions = |stored: &Range<Index>| {
            stored.iter().map(|rev| (rev.key.clone(), rev.revision)).collect()
        };
        (read.bindings, read.policies) = (versions(&bindings), versions(&policies));
        read.compiled = compiled;
        Arc::clone(&read.hooks)
    }

    fn policy(&self, object: &Value) -> Policy<E> {
        let spec = &object["spec"];
        let param_kind = spec["paramKind"].as_object().map(|kind| {
            let part = |field: &str| kind.get(field).and_then(Value::as_str).unwrap_or_default();
            let version = GroupVersion::parse(part("apiVersion")).unwrap_or_default();
            GroupVersionKind::new(version.group, version.version, part("kind"))
        });
        let name = meta::text(object, "name");
        Policy {
            name: name.to_owned(),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            fails_open: spec["failurePolicy"] == "Ignore",
            param_kind,
            evaluator: (self.compile)(name, spec),
        }
    }
}

impl Binding {
    fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let matches = &spec["matchResources"];
        let params = &spec["paramRef"];
        Binding {
            name: meta::text(object, "name").to_owned(),
            policy: text(&spec["policyName"]).to_owned(),
            criteria: matches.is_object().then(|| Criteria::of_policy(matches)),
            params: params.is_object().then(|| Wanted::read(params)),
            actions: items(&spec["validationActions"])
                .iter()
                .map(|action| text(action).to_owned())
                .collect(),
        }
    }
}

/// The variables of a policy, each compiled with those before it.
pub(super) fn variables(spec: &Value, environment: &mut Environment) -> Vec<Named> {
    let named: Vec<(&str, &str)> = items(&spec["variables"])
        .iter()
        .map(|variable| (text(&variable["name"]), text(&variable["expression"])))
        .collect();
    compile_named(&named, environment)
}

/// Whose conditions those of a policy are. Upstream counts all as those of policies that judge.
pub(super) fn owner(name: &str) -> Owner {
    Owner { kind: "policy", role: "validate", name: name.to_owned() }
}
