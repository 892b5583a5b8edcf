//! Evictions: a pod is asked to leave its node, which its budget must allow.

use std::cmp::Ordering;

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupResource};
use kubewright_apimachinery::selector::label::LabelSelector;
use kubewright_apimachinery::status::{Cause, Reason, Status};
use kubewright_store::Updated;
use serde_json::{Map, Value, json};

use crate::catalog::Catalog;
use crate::conditions;
use crate::delete::{Delete, Whose};
use crate::encode;
use crate::index::{self, Store};
use crate::meta;
use crate::options::{DeleteOptions, Preconditions, WriteOptions};
use crate::refusal::Refusal;
use crate::write::{Revise, Write};

/// How many pods a budget remembers as leaving.
const DISRUPTED_PODS_MAX: usize = 2000;
/// How often a pod that somebody else changes meanwhile is looked at again.
const ATTEMPTS: usize = 20;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// Who changes budgets.
const MANAGER: &str = "kube-apiserver";

/// Asks the pod to leave.
pub(crate) async fn evict(write: &Write<'_>, eviction: Value) -> Result<(), Refusal> {
    let admitted = write.admit_action(eviction, |eviction| check(eviction, write.name)).await?;
    let mut options = match admitted.object().get("deleteOptions") {
        Some(options) => DeleteOptions::of(options)?,
        None => DeleteOptions::default(),
    };
    if write.options.dry_run && !options.is_dry_run() {
        options.dry_run = Some(vec!["All".to_owned()]);
    }
    let eviction = Eviction { write, options };
    let mut conflict = None;
    for _ in 0..ATTEMPTS {
        match eviction.attempt().await {
            Err(Failed::Conflict(refusal)) => conflict = Some(refusal),
            Err(Failed::Refused(refusal)) => return Err(refusal),
            Ok(()) => return Ok(()),
        }
    }
    Err(conflict.expect("there was an attempt"))
}

fn check(eviction: &Value, name: &str) -> Result<(), Refusal> {
    const IGNORED: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if meta::text(eviction, "name") != name {
        let why = "name in URL does not match name in Eviction object";
        return Err(Box::new(Status::bad_request(why)));
    }
    if eviction["deleteOptions"][IGNORED] != true {
        return Ok(());
    }
    let why = "can not be set for pod eviction, try after removing the option";
    let error = Error::invalid(&Path::new("deleteOptions").child(IGNORED), true, why);
    Err(Box::new(Status::invalid(&GroupKind::new("policy", "Eviction"), name, &[error])))
}

struct Eviction<'a> {
    write: &'a Write<'a>,
    options: DeleteOptions,
}

/// Why an attempt did not do.
enum Failed {
    /// The pod was changed meanwhile: look at it again.
    Conflict(Refusal),
    /// Tell the client.
    Refused(Refusal),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Failed::Refused(refusal)
    }
}

impl Eviction<'_> {
    async fn attempt(&self) -> Result<(), Failed> {
        let write = self.write;
        let key = write.resource.key(write.namespace, write.name);
        let stored = write.store.get(key.as_str()).ok_or_else(|| write.not_found())?;
        let pod = encode::live(write.resource, &stored)?;
        let version = meta::text(&pod, "resourceVersion");
        if may_leave(&pod) {
            // A pod that does not run yet may start to, and then its budget has a say.
            let is_over = meta::is_deleting(&pod) || pod["status"]["phase"] != "Pending";
            let only_if = Some(version).filter(|_| !is_over);
            return self.remove(only_if).await.map_err(|refusal| match refusal.code {
                409 if self.version().is_none() => Failed::Conflict(refusal),
                _ => Failed::Refused(refusal),
            });
        }
        let budgets = budgets(write.store, write.namespace.unwrap_or_default(), &pod);
        match budgets.as_slice() {
            [] => Ok(self.remove(None).await?),
            [budget] if is_unhealthy_and_may_leave(&pod, budget) => {
                let removed = self.remove(Some(version)).await;
                Ok(removed.map_err(|refusal| match refusal.code {
                    409 if self.version().is_none() => in_progress(meta::text(budget, "name")),
                    _ => refusal,
                })?)
            }
            [budget] => {
                self.charge(meta::text(budget, "name")).await?;
                Ok(self.remove(None).await?)
            }
            _ => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                           subresource does not support.";
                Err(Failed::Refused(Box::new(Status::failure(500, Reason::Unknown, why))))
            }
        }
    }

    /// The version that the client wants to see gone.
    fn version(&self) -> Option<&str> {
        self.options.preconditions.as_ref()?.resource_version.as_deref()
    }

    /// Counts the eviction against a budget.
    async fn charge(&self, budget: &str) -> Result<(), Refusal> {
        let dry_run = self.options.is_dry_run();
        let options = WriteOptions { dry_run, manager: MANAGER.to_owned(), ..Default::default() };
        let disrupt = Disrupt { pod: self.write.name, now: meta::time(self.write.now) };
        let write = Write {
            resource: Catalog::budgets(),
            name: budget,
            part: Some("status"),
            options: &options,
            ..*self.write
        };
        write.amend(&disrupt).await.map(|_| ())
    }

    /// Says in the pod's status why it leaves, and deletes it, if it is still of this version.
    async fn remove(&self, version: Option<&str>) -> Result<(), Refusal> {
        let write = self.write;
        let mut options = self.options.clone();
        if self.version().is_none()
            && let Some(version) = version
        {
            let preconditions = options.preconditions.get_or_insert_default();
            preconditions.resource_version = Some(version.to_owned());
        }
        if !options.is_dry_run() {
            let pod = Write { part: None, ..*write };
            let expected = options.preconditions.clone().unwrap_or_default();
            let marked = pod.amend(&Mark { expected, now: meta::time(write.now) }).await?;
            if let Some(Preconditions { resource_version: Some(version), .. }) =
                &mut options.preconditions
                && let Updated::Put(stored) | Updated::Kept(Some(stored)) = marked
            {
                *version = stored.revision.to_string();
            }
        }
        let deletion = Delete {
            store: write.store,
            admission: write.admission,
            user: write.user,
            resource: write.resource,
            namespace: write.namespace,
            options: &options,
            now: write.now,
            warnings: write.warnings,
            // The eviction was admitted, and that will do.
            whose: Whose::Server,
            deadline: write.deadline,
        };
        deletion.run(write.name).await.map(|_| ())
    }
}

/// Says in a pod's status that it is evicted.
struct Mark {
    expected: Preconditions,
    now: String,
}

impl Revise for Mark {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        self.expected.check(&GroupResource::new("", "Pod"), live)?;
        let mut pod = live.clone();
        let target = json!({
            "type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": self.now, "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        });
        conditions::set(&mut pod["status"], target);
        Ok(pod)
    }
}

/// Counts an eviction in a budget's status.
struct Disrupt<'a> {
    pod: &'a str,
    now: String,
}

impl Revise for Disrupt<'_> {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        let number = |path: &str| live.pointer(path).and_then(Value::as_i64).unwrap_or_default();
        if number("/status/observedGeneration") < number("/metadata/generation") {
            return Err(in_progress(write.name));
        }
        let forbid = |why: &str| {
            let budgets = GroupResource::new("policy", "poddisruptionbudget");
            Err(Box::new(Status::forbidden(&budgets, write.name, why)))
        };
        let allowed = number("/status/disruptionsAllowed");
        let disrupted = live["status"].get("disruptedPods").and_then(Value::as_object);
        if allowed < 0 {
            return forbid("pdb disruptions allowed is negative");
        }
        if disrupted.map_or(0, Map::len) > DISRUPTED_PODS_MAX {
            return forbid(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            );
        }
        if allowed == 0 {
            return Err(too_many(0, exhausted(write.name, &live["status"])));
        }
        let mut budget = live.clone();
        let status = &mut budget["status"];
        status["disruptionsAllowed"] = (allowed - 1).into();
        status["disruptedPods"][self.pod] = self.now.as_str().into();
        if allowed == 1 {
            let generation = status["observedGeneration"].clone();
            let condition = json!({
                "type": "DisruptionAllowed", "status": "False", "observedGeneration": generation,
                "lastTransitionTime": self.now, "reason": "InsufficientPods", "message": "",
            });
            conditions::set(status, condition);
        }
        Ok(write.track(Some(live), budget))
    }
}

/// Why a budget allows nothing more.
fn exhausted(name: &str, status: &Value) -> String {
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    let (current, desired) = (number("currentHealthy"), number("desiredHealthy"));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions
        .filter(|condition| condition["type"] == "DisruptionAllowed")
        .find(|condition| condition["status"] == "False" && condition["message"] != "");
    let said = condition.map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        (text("reason"), text("message"))
    });
    let why = match (said, current.cmp(&desired)) {
        // What is not counted is not worth telling.
        (Some(("SyncFailed", message)), _) => {
            format!("does not allow evicting pods currently because it failed sync: {message}")
        }
        (_, Ordering::Less | Ordering::Equal) => {
            format!("needs {desired} healthy pods and has {current} currently")
        }
        (Some((reason, message)), _) => {
            format!("does not allow evicting pods currently ({reason}): {message}")
        }
        (None, _) => "does not allow evicting pods currently".to_owned(),
    };
    format!("The disruption budget {name} {why}")
}

fn in_progress(budget: &str) -> Refusal {
    too_many(10, format!("The disruption budget {budget} is still being processed by the server."))
}

fn too_many(retry_after_seconds: i32, message: String) -> Refusal {
    let mut status = Status::too_many_requests(REFUSED, retry_after_seconds);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "DisruptionBudget".to_owned(),
        message,
        field: String::new(),
    });
    Box::new(status)
}

/// Whether a pod may leave without asking a budget: it does not run, or is leaving already.
fn may_leave(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(pod)
}

/// The budgets that a pod counts against.
fn budgets(store: &Store, namespace: &str, pod: &Value) -> Vec<Value> {
    let none = Map::new();
    let labels = pod["metadata"].get("labels").and_then(Value::as_object).unwrap_or(&none);
    let prefix = format!("/registry/poddisruptionbudgets/{namespace}/");
    let range = store.snapshot().range(&prefix, None, None);
    let budgets = range.iter().filter_map(|rev| index::object(rev));
    budgets.filter(|budget| selects(budget, labels)).collect()
}

fn selects(budget: &Value, labels: &Map<String, Value>) -> bool {
    // Nothing is selected by no selector, and everything by an empty one.
    let Some(selector) = budget["spec"].get("selector") else { return false };
    let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap_or_default();
    selector.to_selector().is_ok_and(|selector| selector.matches(labels))
}

/// Whether a pod that is not ready may leave although its budget allows nothing.
fn is_unhealthy_and_may_leave(pod: &Value, budget: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    if ready.any(|condition| condition["status"] == "True") {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    match budget["spec"]["unhealthyPodEvictionPolicy"].as_str() {
        Some("AlwaysAllow") => true,
        _ => number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy"),
    }
}
