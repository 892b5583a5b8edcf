//! The webhooks that are configured, read when their configuration changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kubewright_store::{Key, Rev, Revision};
use serde_json::Value;

use crate::admission::criteria::Criteria;
use crate::admission::expression::Environment;
use crate::admission::expression::conditions::{Conditions, Owner};
use crate::admission::{items, text};
use crate::index::{self, Index, Store};
use crate::meta;
use crate::outbound::{ConfigError, Line};

/// What webhooks are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// To change an object.
    Mutating,
    /// To judge it.
    Validating,
}

/// One webhook of a configuration.
pub(super) struct Hook {
    pub(super) configuration: String,
    pub(super) name: String,
    /// Tells webhooks apart, also those of one name.
    pub(super) id: String,
    /// What it wants to be asked about.
    pub(super) criteria: Criteria,
    /// What must be true of a request besides.
    pub(super) conditions: Conditions,
    /// What happens goes on when the webhook gives no verdict.
    pub(super) fails_open: bool,
    pub(super) timeout: Option<Duration>,
    /// Whether asking it changes nothing elsewhere, at least in dry runs.
    pub(super) is_harmless: bool,
    /// Asked again when a later one changed the object.
    pub(super) is_reinvocable: bool,
    /// None if it speaks no version of AdmissionReview that we know.
    pub(super) review: Option<ReviewVersion>,
    pub(super) line: Result<Line, ConfigError>,
}

/// A version of AdmissionReview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1beta1,
}

/// The webhooks of one role.
pub(super) struct Configurations {
    role: Role,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    configurations: Vec<Configuration>,
    hooks: Arc<[Arc<Hook>]>,
}

/// What was read of a configuration, while its revision is this.
struct Configuration {
    key: Key,
    revision: Revision,
    hooks: Vec<Arc<Hook>>,
}

impl Role {
    /// Where configurations are kept.
    fn prefix(self) -> &'static str {
        match self {
            Role::Mutating => "/registry/mutatingwebhookconfigurations/",
            Role::Validating => "/registry/validatingwebhookconfigurations/",
        }
    }

    /// As metrics have it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Role::Mutating => "admit",
            Role::Validating => "validating",
        }
    }
}

impl Configurations {
    pub(super) fn new(role: Role) -> Self {
        Configurations { role, read: Mutex::default() }
    }

    /// All webhooks, in the order of their configurations' names. Those of a configuration that has
    /// not changed stay as they are, with their connections.
    pub(super) fn hooks(&self, store: &Store) -> Arc<[Arc<Hook>]> {
        let stored = store.snapshot().range(self.role.prefix(), None, None);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = stored.len() == read.configurations.len()
            && stored.iter().zip(&read.configurations).all(|(rev, known)| known.is_of(rev));
        if !is_current {
            let mut known = std::mem::take(&mut read.configurations);
            let configuration = |rev: &Arc<Rev<Index>>| {
                let found = known.iter().position(|known| known.is_of(rev));
                match found {
                    Some(at) => known.swap_remove(at),
                    None => Configuration::read(store, self.role, rev),
                }
            };
            let configurations: Vec<Configuration> = stored.iter().map(configuration).collect();
            read.hooks = configurations.iter().flat_map(|known| known.hooks.clone()).collect();
            read.configurations = configurations;
        }
        Arc::clone(&read.hooks)
    }
}

impl Configuration {
    fn read(store: &Store, role: Role, rev: &Arc<Rev<Index>>) -> Self {
        let object = index::object(rev).unwrap_or_default();
        let name = meta::text(&object, "name");
        let mut names: Vec<&str> = Vec::new();
        let mut hooks = Vec::new();
        for webhook in items(&object["webhooks"]) {
            let hook = text(&webhook["name"]);
            let namesakes = names.iter().filter(|other| **other == hook).count();
            names.push(hook);
            let id = format!("{name}/{hook}/{namesakes}");
            hooks.push(Arc::new(Hook::read(store, role, name, id, webhook)));
        }
        Configuration { key: rev.key.clone(), revision: rev.revision, hooks }
    }

    fn is_of(&self, rev: &Rev<Index>) -> bool {
        self.revision == rev.revision && self.key == rev.key
    }
}

impl Hook {
    fn read(store: &Store, role: Role, configuration: &str, id: String, webhook: &Value) -> Self {
        let seconds = webhook["timeoutSeconds"].as_u64();
        let name = text(&webhook["name"]).to_owned();
        let owner = Owner { kind: "webhook", role: role.as_str(), name: name.clone() };
        let (conditions, environment) = (&webhook["matchConditions"], Environment::new(false));
        Hook {
            configuration: configuration.to_owned(),
            name,
            id,
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::compile(owner, conditions, &environment),
            fails_open: webhook["failurePolicy"] == "Ignore",
            timeout: seconds.map(Duration::from_secs),
            is_harmless: matches!(text(&webhook["sideEffects"]), "None" | "NoneOnDryRun"),
            is_reinvocable: webhook["reinvocationPolicy"] == "IfNeeded",
            review: items(&webhook["admissionReviewVersions"]).iter().find_map(ReviewVersion::read),
            line: Line::of_client_config(store.clone(), &webhook["clientConfig"]),
        }
    }
}

impl ReviewVersion {
    fn read(version: &Value) -> Option<Self> {
        match version.as_str()? {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }
}
