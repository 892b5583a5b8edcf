//! Which flow a request belongs to: the first FlowSchema that matches it, and its level.
//!
//! Every answer names both by their uids. The schemas are read when they change, never for a
//! request. Nothing queues by level: the edge has one limit for requests that read and one for
//! those that may write, and whoever is on an exempt level passes both.

#[cfg(test)]
mod tests;
pub(crate) mod upkeep;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration,
    ResourcePolicyRule, Subject,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::genesis::flow;
use crate::index::Store;
use crate::metrics::{Meter, Metrics};
use crate::target::{ResourceTarget, Target};
use crate::user::{self, User};

static SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
static LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Stands for everything, where it stands alone.
const ALL: &str = "*";

/// Tells of every request which flow it belongs to.
pub(crate) struct Flows {
    store: Store,
    metrics: Arc<Metrics>,
    /// In the order in which they are tried. One of them, `catch-all`, matches everybody.
    schemas: RwLock<Vec<Schema>>,
}

/// What a request belongs to.
#[derive(Debug)]
pub(crate) struct Flow {
    schema_uid: HeaderValue,
    level_uid: HeaderValue,
    /// Whether nothing limits its requests.
    pub(crate) is_exempt: bool,
    /// Where its requests are counted.
    pub(crate) meter: Arc<Meter>,
}

/// A FlowSchema that is in force.
#[derive(Debug)]
struct Schema {
    flow: Arc<Flow>,
    rules: Vec<PolicyRulesWithSubjects>,
}

impl Flows {
    pub(crate) fn new(store: Store, metrics: Arc<Metrics>) -> Self {
        let flows = Flows { store, metrics, schemas: RwLock::default() };
        flows.refresh();
        flows
    }

    /// Reads what is stored.
    pub(crate) fn refresh(&self) {
        let schemas = stored(&self.store, &Catalog::flow_schemas().prefix);
        let levels = stored(&self.store, &Catalog::priority_levels().prefix);
        let schemas = compile(schemas, levels, &self.metrics);
        *self.schemas.write().unwrap_or_else(PoisonError::into_inner) = schemas;
    }

    /// The flow of a request; `None` if it is a stream that is no watch, which has none.
    pub(crate) fn find(&self, user: &User, target: &Target) -> Option<Arc<Flow>> {
        if target.is_long_running() && !target.is_watch() {
            return None;
        }
        let schemas = self.schemas.read().unwrap_or_else(PoisonError::into_inner);
        let matching = schemas.iter().find(|schema| schema.matches(user, target));
        matching.map(|schema| Arc::clone(&schema.flow))
    }
}

impl Flow {
    /// Names it in an answer.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(&SCHEMA_UID, self.schema_uid.clone());
        headers.insert(&LEVEL_UID, self.level_uid.clone());
    }
}

fn stored<T: DeserializeOwned>(store: &Store, prefix: &str) -> Vec<T> {
    let range = store.snapshot().range(prefix, None, None);
    let read = range.iter().map(|rev| serde_json::from_slice(rev.extracted.json(&rev.value)));
    read.filter_map(Result::ok).collect()
}

/// The schemas in force: those whose level is there. Those that must be are, stored or not.
fn compile(
    mut schemas: Vec<FlowSchema>,
    mut levels: Vec<PriorityLevelConfiguration>,
    metrics: &Metrics,
) -> Vec<Schema> {
    for name in flow::MANDATORY {
        if !schemas.iter().any(|other| other.metadata.name.as_deref() == Some(name)) {
            schemas.extend(imagined(name, flow::mandatory_schema(name)));
        }
        if !levels.iter().any(|other| other.metadata.name.as_deref() == Some(name)) {
            levels.extend(imagined(name, flow::mandatory_level(name)));
        }
    }
    let levels: HashMap<_, _> =
        levels.iter().filter_map(|level| Some((level.metadata.name.as_deref()?, level))).collect();
    schemas.sort_by_cached_key(|schema| {
        let precedence = schema.spec.as_ref().and_then(|spec| spec.matching_precedence);
        (precedence, schema.metadata.name.clone())
    });
    let schema = |schema: FlowSchema| {
        let spec = schema.spec?;
        let level_name = spec.priority_level_configuration.name.as_str();
        let level = levels.get(level_name)?;
        let flow = Flow {
            schema_uid: uid(schema.metadata.uid.as_deref()),
            level_uid: uid(level.metadata.uid.as_deref()),
            meter: metrics.flow(schema.metadata.name.as_deref().unwrap_or_default(), level_name),
            is_exempt: level.spec.as_ref().is_some_and(|spec| spec.type_ == "Exempt"),
        };
        Some(Schema { flow: Arc::new(flow), rules: spec.rules.unwrap_or_default() })
    };
    schemas.into_iter().filter_map(schema).collect()
}

/// An object as it will be when somebody stores it.
fn imagined<T: DeserializeOwned>(name: &str, spec: Option<&Value>) -> Option<T> {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).ok()
}

fn uid(uid: Option<&str>) -> HeaderValue {
    let uid = uid.unwrap_or_default();
    HeaderValue::from_str(uid).unwrap_or_else(|_| HeaderValue::from_static(""))
}

impl Schema {
    fn matches(&self, user: &User, target: &Target) -> bool {
        self.rules.iter().any(|rule| {
            rule.subjects.iter().any(|subject| is(subject, user))
                && match target {
                    Target::Resource(target) => {
                        rule.resource_rules.iter().flatten().any(|rule| covers(rule, target))
                    }
                    Target::Path { path, verb } => {
                        let rules = rule.non_resource_rules.iter().flatten();
                        rules.into_iter().any(|rule| covers_path(rule, path, verb))
                    }
                }
        })
    }
}

fn is(subject: &Subject, user: &User) -> bool {
    match subject.kind.as_str() {
        "User" => subject
            .user
            .as_ref()
            .is_some_and(|subject| subject.name == ALL || subject.name == user.name),
        "Group" => subject
            .group
            .as_ref()
            .is_some_and(|subject| subject.name == ALL || user.is_in(&subject.name)),
        "ServiceAccount" => subject.service_account.as_ref().is_some_and(|subject| {
            let account = user.name.strip_prefix(user::SERVICE_ACCOUNT_PREFIX);
            account.and_then(|account| account.split_once(':')).is_some_and(|(namespace, name)| {
                namespace == subject.namespace && (subject.name == ALL || subject.name == name)
            })
        }),
        _ => false,
    }
}

fn covers(rule: &ResourcePolicyRule, target: &ResourceTarget) -> bool {
    let in_scope = match target.namespace.as_deref().unwrap_or_default() {
        "" => rule.cluster_scope.unwrap_or_default(),
        namespace => has(rule.namespaces.as_deref().unwrap_or_default(), |name| name == namespace),
    };
    let is_resource = |name: &str| match name.split_once('/') {
        Some((resource, part)) => resource == target.resource && part == target.subresource,
        None => name == target.resource && target.subresource.is_empty(),
    };
    in_scope
        && has(&rule.verbs, |verb| verb == target.verb.as_str())
        && has(&rule.resources, is_resource)
        && has(&rule.api_groups, |group| group == target.group)
}

fn covers_path(rule: &NonResourcePolicyRule, path: &str, verb: &str) -> bool {
    has(&rule.verbs, |other| other == verb)
        && rule.non_resource_urls.iter().any(|url| {
            // A URL also stands for all below it, with or without a star at its end.
            let stem = url.strip_suffix('*').unwrap_or(url);
            let stem = stem.strip_suffix('/').unwrap_or(stem);
            url == ALL
                || url == path
                || path.strip_prefix(stem).is_some_and(|below| below.starts_with('/'))
        })
}

fn has(list: &[String], is_meant: impl Fn(&str) -> bool) -> bool {
    list.iter().any(|item| is_meant(item)) || matches!(list, [all] if all == ALL)
}
