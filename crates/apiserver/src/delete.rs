//! Deletes: at once, after a while, or when everybody who asked for it has cleaned up.

#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::status::{Details, Status};
use kubewright_apimachinery::time::Time;
use kubewright_store::{Change, Durability, Updated};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::admission::{Admission, Attributes, Operation, Options};
use crate::conditions;
use crate::encode;
use crate::index::{self, Store, Stored};
use crate::meta;
use crate::options::DeleteOptions;
use crate::refusal::{self, Refusal};
use crate::resource::{Origin, Resource};
use crate::user::User;
use crate::warnings::Warnings;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// What keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Kinds whose deletion answers with the object rather than with a status.
const RETURNED: [(&str, &str); 17] = [
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

/// The longest that a pod is shown to have left, some 292 years: what Go's durations can hold.
const GRACE_SECONDS_MAX: i64 = i64::MAX / 1_000_000_000;

/// A delete under way.
pub(crate) struct Delete<'a> {
    pub(crate) store: &'a Store,
    pub(crate) admission: &'a Admission,
    pub(crate) user: &'a User,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) options: &'a DeleteOptions,
    pub(crate) now: Timestamp,
    pub(crate) warnings: &'a Warnings,
    pub(crate) whose: Whose,
    /// When the client stops waiting.
    pub(crate) deadline: Instant,
}

/// Who wants an object to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A client that names it.
    Client,
    /// A client that names only what it is among.
    Collection,
    /// The server itself, which asks nobody.
    Server,
}

/// What came of a delete.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is still there, and going.
    Marked(Stored),
    /// The object is gone, or would be; or it is still there and was going already.
    Object { object: Value, gone: bool },
    /// The object is gone.
    Status(Box<Status>),
}

/// What to do about the object that is there.
enum Verdict {
    /// Store it as it is now and let it wait.
    Mark(Value),
    /// Store it first, so that watchers see it going, then remove it.
    MarkThenRemove(Value),
    Remove,
    /// It is going already, and not sooner.
    Pending,
}

impl Delete<'_> {
    pub(crate) async fn run(&self, name: &str) -> Result<Deleted, Refusal> {
        let key = self.resource.key(self.namespace, name);
        let outcome = Mutex::new(None);
        // As it was marked, once it is.
        let mut marked: Option<Value> = None;
        loop {
            let uid = marked.as_ref().map(|object| meta::text(object, "uid"));
            let updated = self
                .store
                .update(&key, |current| {
                    let outcome = &outcome;
                    async move {
                        let (change, next) = self.step(name, current.as_ref(), uid).await?;
                        *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
                        Ok(change)
                    }
                })
                .await
                .map_err(refusal::of_update);
            let next = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
            let updated = match updated {
                // Somebody else finished what was marked first.
                Err(refusal) if refusal.code == 404 => {
                    return match (next, marked) {
                        (Some(Next::Removed(object)), Some(_)) | (_, Some(object)) => {
                            Ok(self.removed(object))
                        }
                        (_, None) => Err(refusal),
                    };
                }
                updated => updated?,
            };
            return Ok(match (updated, next.expect("a step was taken")) {
                (_, Next::Answer(deleted)) => deleted,
                (Updated::Put(stored), Next::MarkedForRemoval(mut object)) => {
                    index::set_resource_version(&mut object, stored.revision);
                    marked = Some(object);
                    continue;
                }
                (Updated::Put(stored), _) => Deleted::Marked(stored),
                (Updated::Deleted(deleted), Next::Removed(mut object)) => {
                    index::set_resource_version(&mut object, deleted.revision);
                    self.removed(object)
                }
                (Updated::Kept(_), Next::Removed(object)) => self.removed(object),
                (updated, _) => unreachable!("a delete ends in {updated:?}"),
            });
        }
    }

    /// Decides about what is there; `marked` is the uid of what was marked for removal, once it is.
    async fn step(
        &self,
        name: &str,
        current: Option<&Stored>,
        marked: Option<&str>,
    ) -> Result<(Change, Next), Refusal> {
        let resource = self.resource.group_resource();
        let Some(current) = current else {
            return Err(Box::new(Status::not_found(&resource, name)));
        };
        // Upstream reads what it is to delete from its storage, and so anew.
        let shown = self.resource.shown_anew(current).await?;
        let live = encode::live(self.resource, &shown)?;
        if let Some(uid) = marked {
            // What was marked is gone, and another one has its name.
            if meta::text(&live, "uid") != uid {
                return Err(Box::new(Status::not_found(&resource, name)));
            }
            // Upstream asks again about what is marked by now.
            if self.whose != Whose::Server {
                self.ask(name, &live).await?;
            }
            return Ok((Change::Delete, Next::Removed(live)));
        }
        self.check_preconditions(name, &live)?;
        let verdict = self.verdict(&live);
        let is_pending = matches!(verdict, Verdict::Pending);
        if self.whose != Whose::Server && !is_pending {
            self.ask(name, &live).await?;
        }
        let dry_run = self.options.is_dry_run();
        Ok(match verdict {
            Verdict::Pending => (Change::Keep, Next::Answer(self.pending(live))),
            Verdict::Remove if dry_run => (Change::Keep, Next::Removed(live)),
            Verdict::Remove => (Change::Delete, Next::Removed(live)),
            Verdict::Mark(object) if dry_run => {
                (Change::Keep, Next::Answer(Deleted::Object { object, gone: false }))
            }
            Verdict::MarkThenRemove(object) if dry_run => {
                (Change::Keep, Next::Answer(Deleted::Object { object, gone: true }))
            }
            Verdict::Mark(object) if object == live => {
                (Change::Keep, Next::Answer(Deleted::Object { object, gone: false }))
            }
            Verdict::Mark(mut object) => (self.put(&mut object).await?, Next::Marked),
            Verdict::MarkThenRemove(mut object) => {
                (self.put(&mut object).await?, Next::MarkedForRemoval(object))
            }
        })
    }

    /// Lets the plugins judge.
    async fn ask(&self, name: &str, live: &Value) -> Result<(), Refusal> {
        let attributes = Attributes {
            user: self.user,
            resource: self.resource,
            part: None,
            namespace: self.namespace,
            name: if self.whose == Whose::Collection { "" } else { name },
            operation: Operation::Delete,
            dry_run: self.options.is_dry_run(),
            old: Some(live),
            warnings: self.warnings,
            options: Options::Delete(self.options),
            deadline: self.deadline,
        };
        self.admission.judge_delete(&attributes).await
    }

    async fn put(&self, object: &mut Value) -> Result<Change, Refusal> {
        let value = self.resource.storage_bytes(object).await?;
        Ok(Change::Put { value, ttl: None, durability: Durability::Synced })
    }

    fn check_preconditions(&self, name: &str, live: &Value) -> Result<(), Refusal> {
        let Some(expected) = &self.options.preconditions else { return Ok(()) };
        if !self.is_special() {
            // Upstream names the kind where the resource should be.
            let gvk = &self.resource.gvk;
            return expected.check(&GroupResource::new(gvk.group.clone(), &gvk.kind), live);
        }
        let conflict = |what: &str, expected: &str, found: &str| {
            let why = format!(
                "Precondition failed: {what} in precondition: {expected}, {what} in object meta: \
                 {found}"
            );
            Err(Box::new(Status::conflict(&self.resource.group_resource(), name, why)))
        };
        let (uid, version) = (meta::text(live, "uid"), meta::text(live, "resourceVersion"));
        match (&expected.uid, &expected.resource_version) {
            (Some(expected), _) if expected != uid => conflict("UID", expected, uid),
            (_, Some(expected)) if expected != version => {
                conflict("ResourceVersion", expected, version)
            }
            _ => Ok(()),
        }
    }

    /// Namespaces and definitions are emptied before they go, by whoever sees that they are
    /// going.
    fn is_special(&self) -> bool {
        let gvr = &self.resource.gvr;
        matches!(
            (gvr.group.as_str(), gvr.resource.as_str()),
            ("", "namespaces") | ("apiextensions.k8s.io", "customresourcedefinitions")
        )
    }

    fn verdict(&self, live: &Value) -> Verdict {
        let gvr = &self.resource.gvr;
        let is_first = !meta::is_deleting(live);
        match (gvr.group.as_str(), gvr.resource.as_str()) {
            ("", "namespaces") if is_first => return Verdict::Mark(self.mark_namespace(live)),
            ("", "namespaces")
                if live["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()) =>
            {
                return Verdict::Pending;
            }
            ("apiextensions.k8s.io", "customresourcedefinitions") if is_first => {
                return Verdict::Mark(self.mark_definition(live));
            }
            _ => {}
        }
        let mut object = live.clone();
        let grace = match self.is_graceful() {
            true => match grace(&mut object, self.options, self.now) {
                Grace::Pending => return Verdict::Pending,
                Grace::None => None,
                Grace::Seconds(seconds) => Some(seconds),
            },
            false => None,
        };
        let finalizers = self.finalizers(live);
        if finalizers != meta::finalizers(live) {
            meta::set_finalizers(&mut object, &finalizers);
        }
        match (grace, finalizers.is_empty()) {
            (None, true) => Verdict::Remove,
            (None, false) => {
                mark(&mut object, self.now);
                Verdict::Mark(object)
            }
            (Some(0), true) => Verdict::MarkThenRemove(object),
            (Some(_), _) => Verdict::Mark(object),
        }
    }

    /// Only pods are told to stop before they go.
    fn is_graceful(&self) -> bool {
        self.resource.gvr.group.is_empty() && self.resource.gvr.resource == "pods"
    }

    /// The finalizers the object is to have, by which the garbage collector knows what to do
    /// with its dependents.
    fn finalizers(&self, live: &Value) -> Vec<String> {
        let found = meta::finalizers(live);
        let (gvk, is_builtin) =
            (&self.resource.gvk, matches!(self.resource.origin, Origin::Builtin(_)));
        if is_builtin && gvk.kind == "Event" {
            return found.into_iter().map(str::to_owned).collect();
        }
        let orphans_by_default = is_builtin
            && matches!(
                (gvk.group.as_str(), gvk.kind.as_str()),
                ("", "ReplicationController") | ("batch", "Job")
            );
        let policy = self.options.propagation_policy.as_deref();
        let (orphan, foreground) = match (self.options.orphan_dependents, policy) {
            (Some(orphan), _) => (orphan, false),
            (None, Some(policy)) => (policy == "Orphan", policy == "Foreground"),
            (None, None) => match found.iter().find(|name| [ORPHAN, FOREGROUND].contains(name)) {
                Some(name) => (*name == ORPHAN, *name == FOREGROUND),
                None => (orphans_by_default, false),
            },
        };
        let unchanged =
            orphan == found.contains(&ORPHAN) && foreground == found.contains(&FOREGROUND);
        if unchanged {
            return found.into_iter().map(str::to_owned).collect();
        }
        let others = found.into_iter().filter(|name| ![ORPHAN, FOREGROUND].contains(name));
        let mut finalizers: Vec<String> = others.map(str::to_owned).collect();
        if orphan {
            finalizers.push(ORPHAN.to_owned());
        }
        if foreground {
            finalizers.push(FOREGROUND.to_owned());
        }
        finalizers
    }

    fn mark_namespace(&self, live: &Value) -> Value {
        let mut object = live.clone();
        meta::of(&mut object).insert("deletionTimestamp".to_owned(), meta::time(self.now).into());
        object["status"]["phase"] = "Terminating".into();
        let policy = self.options.propagation_policy.as_deref();
        let mut finalizers: Vec<String> =
            meta::finalizers(live).into_iter().map(str::to_owned).collect();
        let mut ensure = |name: &str, wanted: Option<bool>| match wanted {
            Some(true) if !finalizers.iter().any(|other| other == name) => {
                finalizers.push(name.to_owned());
            }
            Some(false) => finalizers.retain(|other| other != name),
            _ => {}
        };
        let orphan = self.options.orphan_dependents;
        ensure(ORPHAN, orphan.or(policy.map(|policy| policy == "Orphan")));
        let foreground = orphan.map(|orphan| !orphan);
        ensure(FOREGROUND, foreground.or(policy.map(|policy| policy == "Foreground")));
        meta::set_finalizers(&mut object, &finalizers);
        object
    }

    fn mark_definition(&self, live: &Value) -> Value {
        let mut object = live.clone();
        let now = meta::time(self.now);
        meta::of(&mut object).insert("deletionTimestamp".to_owned(), now.clone().into());
        let mut finalizers: Vec<String> =
            meta::finalizers(live).into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|name| name == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        meta::set_finalizers(&mut object, &finalizers);
        let terminating = json!({
            "type": "Terminating", "status": "True", "lastTransitionTime": now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion \
                        will begin soon",
        });
        conditions::set(&mut object["status"], terminating);
        object
    }

    fn pending(&self, live: Value) -> Deleted {
        match self.returns_object() {
            true => Deleted::Object { object: live, gone: false },
            false => Deleted::Status(self.status(&live)),
        }
    }

    fn removed(&self, object: Value) -> Deleted {
        match self.returns_object() {
            true => Deleted::Object { object, gone: true },
            false => Deleted::Status(self.status(&object)),
        }
    }

    fn returns_object(&self) -> bool {
        let gvr = &self.resource.gvr;
        RETURNED.contains(&(gvr.group.as_str(), gvr.resource.as_str()))
    }

    fn status(&self, object: &Value) -> Box<Status> {
        let gvr = &self.resource.gvr;
        let mut status = Status::success();
        status.details = Some(Details {
            name: meta::text(object, "name").to_owned(),
            group: gvr.group.clone(),
            // Upstream puts the resource where the kind should be.
            kind: gvr.resource.clone(),
            uid: meta::text(object, "uid").to_owned(),
            ..Details::default()
        });
        Box::new(status)
    }
}

/// What a step leaves for after the write.
enum Next {
    Answer(Deleted),
    Marked,
    MarkedForRemoval(Value),
    Removed(Value),
}

/// How long a pod still has.
enum Grace {
    /// It goes at once.
    None,
    /// It is going already, and not sooner.
    Pending,
    Seconds(i64),
}

/// Sets when a pod goes; it can only become sooner.
fn grace(object: &mut Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if meta::is_deleting(object) {
        let given = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        let given = if given < 0 { 1 } else { given };
        return match asked {
            _ if given == 0 => Grace::None,
            Some(asked) if asked < given => Grace::Seconds(shorten(object, given, asked, now)),
            _ => Grace::Pending,
        };
    }
    let default = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or_default();
    let is_scheduled = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let is_over = matches!(object["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    let seconds = match is_scheduled && !is_over {
        true => asked.unwrap_or(if default < 0 { 1 } else { default }),
        false => 0,
    };
    let when = Time::from_unix(now.as_second() + seconds.min(GRACE_SECONDS_MAX));
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let metadata = meta::of(object);
    metadata.insert("deletionTimestamp".to_owned(), when.to_value());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
    if generation > 0 {
        metadata.insert("generation".to_owned(), (generation + 1).into());
    }
    Grace::Seconds(seconds)
}

/// Moves the end of a pod's time forward, but not into the past.
fn shorten(object: &mut Value, given: i64, asked: i64, now: Timestamp) -> i64 {
    let end = Time::parse(meta::text(object, "deletionTimestamp"));
    let end = end.map_or(now.as_second(), Time::unix_seconds) - given.min(GRACE_SECONDS_MAX)
        + asked.min(GRACE_SECONDS_MAX);
    let mut seconds = asked;
    let mut end = end;
    if end < now.as_second() {
        end = now.as_second();
        if asked != 0 {
            seconds = 1;
        }
    }
    let metadata = meta::of(object);
    metadata.insert("deletionTimestamp".to_owned(), Time::from_unix(end).to_value());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
    seconds
}

/// Marks an object that waits for its finalizers.
fn mark(object: &mut Value, now: Timestamp) {
    let is_first = !meta::is_deleting(object);
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let metadata = meta::of(object);
    if is_first {
        metadata.insert("deletionTimestamp".to_owned(), meta::time(now).into());
        if generation > 0 {
            metadata.insert("generation".to_owned(), (generation + 1).into());
        }
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
}
