//! The life of a definition: its names are accepted, it is established, and when it goes, its
//! objects go first.
//!
//! Whoever writes a definition waits until it is established, so that what a client has defined is
//! there for its next request. Definitions that other servers write are followed by a watch.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::crd;
use kubewright_store::{Range, Rev, Revision, Start, WatchError};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::DEFINITIONS;
use crate::admission;
use crate::catalog::Catalog;
use crate::conditions;
use crate::delete::{CLEANUP, Delete, Whose};
use crate::index::{self, Index, PREFIX};
use crate::meta;
use crate::options::{DeleteOptions, WriteOptions};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::server::Inner;
use crate::user::User;
use crate::warnings::Warnings;
use crate::write::Replace;

/// How the server signs what it writes itself.
const MANAGER: &str = "kube-apiserver";
/// Says whether a definition may be in a group of Kubernetes.
const APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";
/// How long to wait before trying again what the store refused.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes every stored definition as far as it can go at once.
pub(crate) async fn settle(server: &Inner) -> Result<(), Refusal> {
    // A step of one definition can free names for another. What others write meanwhile brings us
    // here again.
    let steps_max = 4 * (1 + server.store.count(DEFINITIONS));
    for _ in 0..steps_max {
        let Some((name, definition)) = next(server) else { break };
        update_status(server, &name, definition).await?;
    }
    server.shelf.refresh();
    Ok(())
}

/// Follows definitions until `shutdown`; returns when everything it started has ended.
pub(crate) async fn run(server: Arc<Inner>, shutdown: CancellationToken) {
    let mut leaving = JoinSet::new();
    let mut under_way = HashSet::new();
    let follow = async {
        loop {
            let Ok(mut watch) = server.store.watch(DEFINITIONS, Start::Now) else { return };
            loop {
                if let Err(refusal) = settle(&server).await {
                    tracing::warn!(error = refusal.message, "definitions are not settled");
                }
                for name in doomed(&server) {
                    if under_way.insert(name.clone()) {
                        leaving.spawn(clear_out(Arc::clone(&server), name));
                    }
                }
                tokio::select! {
                    events = watch.next() => match events {
                        Ok(_) => {}
                        Err(WatchError::Closed) => return,
                        // Read too late: what is stored tells everything.
                        Err(_) => break,
                    },
                    Some(done) = leaving.join_next() => {
                        if let Ok(name) = done {
                            under_way.remove(&name);
                        }
                    }
                }
            }
        }
    };
    tokio::select! {
        () = follow => {}
        () = shutdown.cancelled() => {}
    }
    leaving.shutdown().await;
}

/// What the life of stored definitions depends on, by their keys, while their revisions are these.
/// Every write of a definition has all of them looked at, and most of a definition are schemas,
/// which do not matter here.
#[derive(Default)]
pub(super) struct Outlines(Mutex<HashMap<String, (Revision, Arc<Value>)>>);

impl Outlines {
    /// The outline of each stored definition, beside what it is of.
    fn of<'s>(&self, stored: &'s Range<Index>) -> Vec<(&'s Arc<Rev<Index>>, Arc<Value>)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = HashMap::with_capacity(known.len());
        let mut outlines = Vec::with_capacity(stored.len());
        for rev in stored.iter() {
            let key = rev.key.as_str();
            let same = known.remove(key).filter(|(revision, _)| *revision == rev.revision);
            let same = same.map(|(_, outline)| outline);
            let Some(outline) = same.or_else(|| Some(Arc::new(outline(index::object(rev)?))))
            else {
                continue;
            };
            read.insert(key.to_owned(), (rev.revision, Arc::clone(&outline)));
            outlines.push((rev, outline));
        }
        *known = read;
        outlines
    }
}

/// A definition without what is large and decides nothing here.
fn outline(mut definition: Value) -> Value {
    for (part, field) in [("spec", "versions"), ("metadata", "managedFields")] {
        if let Some(fields) = definition[part].as_object_mut() {
            fields.shift_remove(field);
        }
    }
    definition
}

/// The next definition that is not where it could be, a step further.
fn next(server: &Inner) -> Option<(String, Value)> {
    let stored = server.store.snapshot().range(DEFINITIONS, None, None);
    let (revs, outlines): (Vec<_>, Vec<_>) = server.shelf.outlines.of(&stored).into_iter().unzip();
    let now = meta::time(server.now());
    revs.iter().zip(&outlines).find_map(|(rev, outline)| {
        let mut further = step(outline, &outlines, &now)?;
        let mut definition = index::object(rev)?;
        definition["status"] = further["status"].take();
        Some((meta::text(outline, "name").to_owned(), definition))
    })
}

/// Definitions that are going and wait for us.
fn doomed(server: &Inner) -> Vec<String> {
    let waits = |definition: &Value| {
        meta::is_deleting(definition) && meta::finalizers(definition).contains(&CLEANUP)
    };
    let stored = server.store.snapshot().range(DEFINITIONS, None, None);
    let outlines = server.shelf.outlines.of(&stored).into_iter();
    let doomed = outlines.filter(|(_, outline)| waits(outline));
    doomed.map(|(_, outline)| meta::text(&outline, "name").to_owned()).collect()
}

/// A definition a step further: first its names are settled, then it is established, then it says
/// whether it may be in its group. Only its status becomes another. `None` when there is nothing to
/// do.
fn step(definition: &Value, all: &[impl Borrow<Value>], now: &str) -> Option<Value> {
    if let Some(named) = name(definition, all, now) {
        return Some(named);
    }
    let is_true = |kind: &str| condition(definition, kind).is_some_and(|c| c["status"] == "True");
    if is_true("NamesAccepted") && !is_true("Established") {
        let mut established = definition.clone();
        let words = ("InitialNamesAccepted", "the initial names have been accepted");
        conditions::set(&mut established["status"], state("Established", "True", words, now));
        return Some(established);
    }
    approved(definition, now)
}

/// Says of a definition in a group of Kubernetes whether it was approved.
fn approved(definition: &Value, now: &str) -> Option<Value> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let annotations = &definition["metadata"]["annotations"];
    let (status, reason, message) = crd::approval_condition(group, annotations)?;
    let approval = state(APPROVAL, status, (reason, &message), now);
    if condition(definition, APPROVAL).is_some_and(|old| is_same(old, &approval)) {
        return None;
    }
    let mut approved = definition.clone();
    conditions::set(&mut approved["status"], approval);
    Some(approved)
}

/// Whether two conditions say the same, whenever it became true.
fn is_same(left: &Value, right: &Value) -> bool {
    ["status", "reason", "message"].iter().all(|field| left[*field] == right[*field])
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    definition["status"]["conditions"].as_array()?.iter().find(|other| other["type"] == kind)
}

fn state(kind: &str, status: &str, (reason, message): (&str, &str), now: &str) -> Value {
    json!({
        "type": kind, "status": status, "lastTransitionTime": now,
        "reason": reason, "message": message,
    })
}

/// Settles the names of a definition: each that nobody else in the group has is accepted.
fn name(definition: &Value, all: &[impl Borrow<Value>], now: &str) -> Option<Value> {
    let wanted = &definition["spec"]["names"];
    let accepted = &definition["status"]["acceptedNames"];
    if wanted == accepted {
        return None;
    }
    let (resources, kinds) = taken(definition, all);
    let text = |names: &Value, field: &str| names[field].as_str().unwrap_or_default().to_owned();
    let mut names = accepted.clone();
    let mut conflict = None;
    let fields = [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "ShortNamesConflict", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ];
    for (field, reason, used) in fields {
        let problem = match field {
            "shortNames" => short_names_in_use(&wanted[field], &accepted[field], used),
            _ => {
                let name = text(wanted, field);
                (name != text(accepted, field) && used.contains(&name)).then(|| in_use(&name))
            }
        };
        match problem {
            Some(message) => conflict = Some((reason, message)),
            None => copy(&mut names, wanted, field),
        }
    }
    copy(&mut names, wanted, "categories");

    let naming = match &conflict {
        Some((reason, message)) => state("NamesAccepted", "False", (reason, message), now),
        None => state("NamesAccepted", "True", ("NoConflicts", "no conflicts found"), now),
    };
    let is_named = condition(definition, "NamesAccepted").is_some_and(|old| is_same(old, &naming));
    if &names == accepted && is_named {
        return None;
    }
    let established = condition(definition, "Established").cloned();
    let established = match established {
        Some(old) if old["status"] == "True" => old,
        _ if conflict.is_none() => {
            let words = ("Installing", "the initial names have been accepted");
            state("Established", "False", words, now)
        }
        Some(old) => old,
        None => {
            let words = ("NotAccepted", "not all names are accepted");
            state("Established", "False", words, now)
        }
    };
    let mut named = definition.clone();
    named["status"]["acceptedNames"] = names;
    conditions::set(&mut named["status"], naming);
    conditions::set(&mut named["status"], established);
    Some(named)
}

/// The names of resources and kinds that definitions of the group have, this one's among them.
fn taken(definition: &Value, all: &[impl Borrow<Value>]) -> (HashSet<String>, HashSet<String>) {
    let (mut resources, mut kinds) = (HashSet::new(), HashSet::new());
    let group = &definition["spec"]["group"];
    let all = all.iter().map(Borrow::borrow);
    for other in all.filter(|other: &&Value| other["spec"]["group"] == *group) {
        let names = &other["status"]["acceptedNames"];
        let text = |field: &str| names[field].as_str().unwrap_or_default().to_owned();
        resources.extend([text("plural"), text("singular")]);
        let short = names["shortNames"].as_array().into_iter().flatten();
        resources.extend(short.filter_map(Value::as_str).map(str::to_owned));
        kinds.extend([text("kind"), text("listKind")]);
    }
    (resources, kinds)
}

fn short_names_in_use(wanted: &Value, accepted: &Value, used: &HashSet<String>) -> Option<String> {
    let list = |names: &Value| -> Vec<String> {
        let names = names.as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let ours = list(accepted);
    let conflicts: Vec<String> = list(wanted)
        .into_iter()
        .filter(|name| !ours.contains(name) && used.contains(name))
        .map(|name| in_use(&name))
        .collect();
    match conflicts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", json::go_quote(name))
}

fn copy(names: &mut Value, wanted: &Value, field: &str) {
    match wanted.get(field) {
        Some(value) => names[field] = value.clone(),
        None => {
            if let Some(names) = names.as_object_mut() {
                names.shift_remove(field);
            }
        }
    }
}

/// Deletes the objects of a definition that is going, waits until they are gone, and lets the
/// definition go.
async fn clear_out(server: Arc<Inner>, name: String) -> String {
    loop {
        match try_clear_out(&server, &name).await {
            Ok(()) => return name,
            Err(refusal) => {
                tracing::warn!(definition = name, error = refusal.message, "objects remain");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn try_clear_out(server: &Inner, name: &str) -> Result<(), Refusal> {
    let find = || index::object(&*server.store.get(&format!("{DEFINITIONS}{name}"))?);
    let Some(mut definition) = find() else { return Ok(()) };
    let terminating = |status: &str, words: (&str, &str)| {
        state("Terminating", status, words, &meta::time(server.now()))
    };
    let words = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
    conditions::set(&mut definition["status"], terminating("True", words));
    update_status(server, name, definition).await?;

    let Some(mut definition) = find() else { return Ok(()) };
    let established = condition(&definition, "Established");
    let was_established = established.is_some_and(|condition| condition["status"] == "True");
    let words = match was_established {
        true => {
            delete_objects(server, &definition).await?;
            ("InstanceDeletionCompleted", "removed all instances")
        }
        false => ("NeverEstablished", "resource was never established"),
    };
    conditions::set(&mut definition["status"], terminating("False", words));
    let finalizers = meta::finalizers(&definition).into_iter().filter(|other| *other != CLEANUP);
    let finalizers: Vec<String> = finalizers.map(str::to_owned).collect();
    meta::set_finalizers(&mut definition, &finalizers);
    update_status(server, name, definition).await?;
    settle(server).await
}

async fn delete_objects(server: &Inner, definition: &Value) -> Result<(), Refusal> {
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let prefix = format!("{PREFIX}{}/{}/", text("/spec/group"), text("/spec/names/plural"));
    // It is not in the catalog any more once another server let it go, but here it is.
    let Some(resource) = super::resource(&server.store, &server.metrics, definition) else {
        return Ok(());
    };
    let mut asked = HashMap::new();
    loop {
        let watch = server.store.watch(&prefix, Start::Now);
        let found = server.store.snapshot().range(&prefix, None, None);
        if found.is_empty() {
            return Ok(());
        }
        for rev in found.iter() {
            // Each object is asked once to go; what keeps it is its own affair.
            let created = rev.created;
            if asked.insert(rev.key.as_str().to_owned(), created) != Some(created) {
                delete_object(server, &resource, rev.key.as_str(), &prefix).await?;
            }
        }
        match watch {
            Ok(mut watch) => match watch.next().await {
                Ok(_) | Err(WatchError::Compacted { .. } | WatchError::Future { .. }) => {}
                Err(WatchError::Closed) => return Ok(()),
            },
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn delete_object(
    server: &Inner,
    resource: &Resource,
    key: &str,
    prefix: &str,
) -> Result<(), Refusal> {
    let rest = key.strip_prefix(prefix).unwrap_or_default();
    let (namespace, name) = match rest.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, rest),
    };
    let (options, warnings) = (DeleteOptions::default(), Warnings::default());
    let delete = Delete {
        store: &server.store,
        admission: &server.admission,
        user: &User::apiserver(),
        resource,
        namespace,
        options: &options,
        now: server.now(),
        warnings: &warnings,
        whose: Whose::Server,
        deadline: admission::deadline(None),
    };
    match Box::pin(delete.run(name)).await {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.code == 404 => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

/// Writes the status of a definition; a definition that changed meanwhile is looked at again.
async fn update_status(server: &Inner, name: &str, definition: Value) -> Result<(), Refusal> {
    let resource = Catalog::definitions();
    let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
    match server.write_status(resource, name, &options, &Replace(definition)).await {
        Err(refusal) if matches!(refusal.code, 404 | 409) => Ok(()),
        done => done,
    }
}
