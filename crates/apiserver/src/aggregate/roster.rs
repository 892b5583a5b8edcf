//! Who answers for which version, as of one moment.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kubewright_apimachinery::builtin::Priority;
use serde_json::Value;

use crate::index::Store;
use crate::meta;
use crate::openapi::{Swagger, Told};
use crate::outbound::{Identity, Line, Place, Trust};

/// A version of a group, as an APIService registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The name of the APIService.
    pub name: String,
    pub uid: String,
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub rank: Priority,
    /// The server that answers for it, if it is not this one.
    pub remote: Option<Remote>,
    pub(crate) upkeep: Upkeep,
    /// Whether its condition says that this server answers for it.
    pub(crate) says_local: bool,
}

/// A server behind this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Where its Service is, and what it is called.
    pub namespace: String,
    pub service: String,
    pub port: u16,
    /// Who vouches for its certificate, in PEM; the system's authorities if nobody is named.
    pub authorities: Vec<u8>,
    /// Whether its certificate is not looked at.
    pub insecure: bool,
    /// Whether it answered when it was last asked.
    pub is_available: bool,
}

/// Who looks after an APIService.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// Its users.
    Theirs,
    /// This server, whenever it starts.
    OnStart,
    /// This server.
    Always,
}

/// Says who looks after an APIService.
pub(crate) const UPKEEP_LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

/// What a server has told of a version that it answers for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lesson {
    /// The version's resources, as `apidiscovery.k8s.io/v2` has them.
    pub resources: Vec<Value>,
    pub freshness: Freshness,
    /// Which documents of OpenAPI v3 it has, by their paths, with their addresses.
    pub documents: BTreeMap<String, Value>,
    /// Its OpenAPI v2, as far as it concerns the version.
    pub swagger: Option<Swagger>,
    /// All of its OpenAPI v2, if it has no v3.
    pub only_swagger: Option<Swagger>,
}

/// Whether what was told can be relied on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Freshness {
    Current,
    /// The server did not answer when it was last asked.
    #[default]
    Stale,
}

/// All registrations.
#[derive(Debug, Default)]
pub struct Roster {
    /// By the names of APIServices.
    entries: BTreeMap<String, Entry>,
    /// The names of those that other servers answer for, by `group/version`.
    remote: HashMap<String, String>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) registration: Arc<Registration>,
    /// The way to the server that answers, if it is another one.
    pub(super) line: Option<Arc<Line>>,
    pub(super) lesson: Option<Arc<Lesson>>,
}

impl Registration {
    /// Reads an APIService; `None` if it is none.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let number = |field: &str| spec[field].as_u64().and_then(|n| u32::try_from(n).ok());
        let conditions = object["status"]["conditions"].as_array();
        let available =
            conditions.into_iter().flatten().find(|condition| condition["type"] == "Available");
        let is = |field: &str, value: &str| available.is_some_and(|found| found[field] == value);
        let remote = || {
            let service = &spec["service"];
            Some(Remote {
                namespace: text(&service["namespace"]),
                service: text(&service["name"]),
                port: service["port"].as_u64().map_or(Some(443), |port| port.try_into().ok())?,
                authorities: BASE64
                    .decode(spec["caBundle"].as_str().unwrap_or_default())
                    .unwrap_or_default(),
                insecure: spec["insecureSkipTLSVerify"] == true,
                is_available: is("status", "True"),
            })
        };
        Some(Registration {
            name: meta::text(object, "name").to_owned(),
            uid: meta::text(object, "uid").to_owned(),
            group: text(&spec["group"]),
            version: spec["version"].as_str()?.to_owned(),
            rank: Priority {
                group: number("groupPriorityMinimum").unwrap_or_default(),
                version: number("versionPriority").unwrap_or_default(),
            },
            remote: if spec["service"].is_object() { Some(remote()?) } else { None },
            upkeep: match object["metadata"]["labels"][UPKEEP_LABEL].as_str() {
                Some("onstart") => Upkeep::OnStart,
                Some("true") => Upkeep::Always,
                _ => Upkeep::Theirs,
            },
            says_local: is("status", "True") && is("reason", "Local"),
        })
    }

    /// `group/version`, or the version alone in the core group.
    fn group_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl Remote {
    /// The way to it.
    pub(super) fn line(&self, store: Store, identity: Option<&Identity>) -> Line {
        let place = Place::Service {
            namespace: self.namespace.clone(),
            name: self.service.clone(),
            port: self.port,
        };
        let trust = match &self.authorities {
            _ if self.insecure => Trust::Anyone,
            authorities if authorities.is_empty() => Trust::System,
            authorities => Trust::Bundle(authorities.clone()),
        };
        Line::new(store, place, &trust, identity)
    }
}

impl Roster {
    pub(super) fn new(entries: impl Iterator<Item = Entry>) -> Self {
        let mut roster = Roster::default();
        for entry in entries {
            let registration = &entry.registration;
            if registration.remote.is_some() {
                roster.remote.insert(registration.group_version(), registration.name.clone());
            }
            roster.entries.insert(registration.name.clone(), entry);
        }
        roster
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Registration>> {
        self.entries.get(name).map(|entry| &entry.registration)
    }

    /// What the server of a version has told; `None` if it was not asked yet.
    pub fn lesson(&self, name: &str) -> Option<&Arc<Lesson>> {
        self.entries.get(name)?.lesson.as_ref()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.entries.values().map(|entry| &entry.registration)
    }

    /// What another server answers for: the registration of the version that a path, without
    /// escapes, is below.
    pub fn behind(&self, path: &str) -> Option<&Arc<Registration>> {
        if self.remote.is_empty() {
            return None;
        }
        let version = match path.strip_prefix("/apis/") {
            Some(rest) => {
                let group = rest.find('/')?;
                let version = rest[group + 1..].find('/');
                version.map_or(rest, |length| &rest[..group + 1 + length])
            }
            // Whoever answers for the core group answers for all of it.
            None if path == "/api" || path.starts_with("/api/") => "v1",
            None => return None,
        };
        self.get(self.remote.get(version)?)
    }

    /// The way to the server that answers for a version, if it is another one.
    pub(crate) fn remote(&self, name: &str) -> Option<(&Arc<Registration>, &Arc<Line>)> {
        let entry = self.entries.get(name)?;
        Some((&entry.registration, entry.line.as_ref()?))
    }

    /// What the servers behind have told of OpenAPI, best first.
    pub(crate) fn told(&self) -> Vec<Told> {
        let remote = self.entries.values().filter(|entry| entry.line.is_some());
        let mut entries: Vec<(&Registration, &Lesson)> = remote
            .filter_map(|entry| Some((&*entry.registration, entry.lesson.as_deref()?)))
            .collect();
        let mut groups: HashMap<&str, u32> = HashMap::new();
        for (registration, _) in &entries {
            let rank = groups.entry(&registration.group).or_default();
            *rank = (*rank).max(registration.rank.group);
        }
        // Upstream means to compare the ranks of versions too, and compares one with itself.
        entries.sort_by_key(|(registration, _)| {
            (Reverse(groups[registration.group.as_str()]), registration.name.as_str())
        });
        let told = entries.into_iter().map(|(registration, lesson)| Told {
            name: registration.name.clone(),
            version: format!("apis/{}", registration.group_version()),
            documents: lesson.documents.clone(),
            swagger: lesson.swagger.clone(),
            only_swagger: lesson.only_swagger.clone(),
        });
        told.collect()
    }
}
