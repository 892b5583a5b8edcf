//! The APIServices that this server looks after itself: those of custom resources come and go with
//! their definitions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::roster::{UPKEEP_LABEL, Upkeep};
use super::{CUSTOM, Roster};
use crate::catalog::Catalog;
use crate::conditions;
use crate::index;
use crate::kinds::local_condition;
use crate::options::{DeleteOptions, WriteOptions};
use crate::refusal::Refusal;
use crate::server::Inner;
use crate::write::Replace;

/// How the server signs what it writes itself.
pub(super) const MANAGER: &str = "kube-apiserver";

/// What is to be done about an APIService.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Create {
        group: String,
        version: String,
    },
    /// It says something else than it should.
    Correct {
        name: String,
    },
    Delete {
        name: String,
        uid: String,
    },
    /// It names no other server, and does not say so yet.
    SayLocal {
        name: String,
    },
}

/// Has the APIServices be as the definitions are.
pub(crate) async fn settle(server: &Inner) {
    let catalog = server.shelf.catalog();
    let changes = plan(catalog.defined(), &catalog.roster);
    if changes.is_empty() {
        return;
    }
    for change in changes {
        match carry_out(server, &change).await {
            // Somebody else was faster; whatever is there now is looked at again.
            Err(refusal) if matches!(refusal.code, 404 | 409) => {}
            Err(refusal) => tracing::warn!(?change, error = refusal.message, "not registered"),
            Ok(()) => {}
        }
    }
    server.shelf.refresh();
}

/// What is to be done, while these versions of groups are defined.
pub(super) fn plan(defined: BTreeSet<(&str, &str)>, roster: &Roster) -> Vec<Change> {
    let mut changes = Vec::new();
    for (group, version) in &defined {
        let name = format!("{version}.{group}");
        match roster.get(&name) {
            None => changes.push(Change::Create {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            }),
            Some(found) => {
                let is_right = found.remote.is_none() && found.rank == CUSTOM;
                if found.upkeep == Upkeep::Always && !is_right {
                    changes.push(Change::Correct { name });
                }
            }
        }
    }
    for found in roster.iter() {
        let version = (found.group.as_str(), found.version.as_str());
        if found.upkeep == Upkeep::Always && !defined.contains(&version) {
            let (name, uid) = (found.name.clone(), found.uid.clone());
            changes.push(Change::Delete { name, uid });
        } else if found.remote.is_none() && !found.says_local {
            changes.push(Change::SayLocal { name: found.name.clone() });
        }
    }
    changes
}

async fn carry_out(server: &Inner, change: &Change) -> Result<(), Refusal> {
    let resource = Catalog::api_services();
    let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
    let find = |name: &str| index::object(&*server.store.get(resource.key(None, name).as_str())?);
    match change {
        Change::Create { group, version } => {
            let object = api_service(group, version);
            server.create(resource, &options, object).await
        }
        Change::Correct { name } => {
            let Some(mut object) = find(name) else { return Ok(()) };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (group, version) =
                (text(&object["spec"]["group"]), text(&object["spec"]["version"]));
            object["spec"] = spec(&group, &version);
            server.update(resource, name, None, &options, &Replace(object)).await
        }
        Change::SayLocal { name } => {
            let Some(mut object) = find(name) else { return Ok(()) };
            conditions::set(&mut object["status"], local_condition(server.now().as_second()));
            server.update(resource, name, Some("status"), &options, &Replace(object)).await
        }
        Change::Delete { name, uid } => {
            let options = json!({"preconditions": {"uid": uid}});
            server.delete(resource, name, &DeleteOptions::of(&options)?).await
        }
    }
}

/// The APIService of a version of custom resources.
fn api_service(group: &str, version: &str) -> Value {
    json!({
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": { "name": format!("{version}.{group}"), "labels": { UPKEEP_LABEL: "true" } },
        "spec": spec(group, version),
        "status": {},
    })
}

fn spec(group: &str, version: &str) -> Value {
    json!({
        "group": group,
        "version": version,
        "groupPriorityMinimum": CUSTOM.group,
        "versionPriority": CUSTOM.version,
    })
}
