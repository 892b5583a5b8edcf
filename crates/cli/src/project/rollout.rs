//! Waits for what a cluster does after it has taken objects: until a Deployment is available, and
//! until the objects of a definition are gone.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// How often a cluster is asked.
const INTERVAL: Duration = Duration::from_millis(500);
/// Whoever waits longer is told what for.
const UNTOLD_MAX: Duration = Duration::from_secs(1);
/// So many objects are named; there may be thousands.
const NAMED_MAX: usize = 5;

/// How long to wait.
#[derive(clap::Args)]
pub(super) struct Patience {
    /// How long to wait, such as `90s` or `5m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(super) timeout: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<kube::core::Duration>().ok().filter(|it| !it.is_negative());
    parsed.map(Duration::from).ok_or_else(|| format!("{text:?} is no duration such as 90s or 5m"))
}

/// How far a Deployment is.
#[derive(Debug, PartialEq, Eq)]
enum Rollout {
    Done,
    /// In some words.
    Going(String),
    /// It will not get further by itself.
    Stuck(String),
}

/// Waits until a Deployment is available as it was applied last, and tells how far it is.
pub(super) async fn available(client: &Client, object: &Value, patience: &Patience) -> Result<()> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let mut teller = Teller::new();
    loop {
        let deployment = deployments.get(name).await;
        let deployment = deployment.with_context(|| format!("read Deployment {name}"))?;
        let (why, is_stuck) = match rollout(&deployment) {
            Rollout::Done => return Ok(()),
            Rollout::Going(why) => (why, false),
            Rollout::Stuck(why) => (why, true),
        };
        if is_stuck || teller.has_waited(patience.timeout) {
            let waited = patience.timeout.as_secs();
            let pods = troubles(client, namespace, &deployment).await;
            let after = if is_stuck { String::new() } else { format!(" after {waited} seconds") };
            bail!(
                "Deployment {name} is not available{after}: {why}{pods}; \
                 `kubectl --namespace {namespace} logs deployment/{name}` may say more"
            );
        }
        teller.tell(&format!("waiting for Deployment {name}: {why}"));
        sleep(INTERVAL).await;
    }
}

/// Waits until a definition is gone, and with it all of its objects.
pub(super) async fn gone(client: &Client, definition: &Value, patience: &Patience) -> Result<()> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut teller = Teller::new();
    loop {
        let there = definitions.get_opt(name).await;
        let Some(there) = there.with_context(|| format!("read the definition {name}"))? else {
            return Ok(());
        };
        let left = objects(client, &there).await;
        if teller.has_waited(patience.timeout) {
            bail!(
                "objects of {name} are still there after {} seconds{}: whoever has given them \
                 finalizers has to take these away, as the operator does while it runs; it is left \
                 alone, so look at its log and try again",
                patience.timeout.as_secs(),
                named(&left)
            );
        }
        teller.tell(&format!(
            "waiting for the operator to let go of the objects of {name}{}",
            named(&left)
        ));
        sleep(INTERVAL).await;
    }
}

/// Tells what is waited for: not at once, and each state once.
struct Teller {
    begun: Instant,
    told: String,
}

impl Teller {
    fn new() -> Self {
        Teller { begun: Instant::now(), told: String::new() }
    }

    fn has_waited(&self, time: Duration) -> bool {
        self.begun.elapsed() >= time
    }

    fn tell(&mut self, text: &str) {
        if self.has_waited(UNTOLD_MAX) && text != self.told {
            eprintln!("{text}");
            text.clone_into(&mut self.told);
        }
    }
}

fn rollout(deployment: &Deployment) -> Rollout {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return Rollout::Going("nobody has looked at it yet".to_owned());
    }
    let conditions = status.conditions.unwrap_or_default();
    let held_up = conditions.iter().find(|it| it.type_ == "Progressing" && it.status == "False");
    if let Some(held_up) = held_up {
        let reason = held_up.reason.as_deref().unwrap_or("no reason");
        let why = format!("{reason}: {}", held_up.message.as_deref().unwrap_or_default());
        // Its controller tries again whatever else there is, such as a quota.
        return match reason {
            "ProgressDeadlineExceeded" => Rollout::Stuck(why),
            _ => Rollout::Going(why),
        };
    }
    let count = |count: Option<i32>| count.unwrap_or_default();
    let (updated, all) = (count(status.updated_replicas), count(status.replicas));
    let available = count(status.available_replicas);
    if updated < wanted {
        return Rollout::Going(format!("{updated} of {wanted} pods are new"));
    }
    if all > updated {
        return Rollout::Going(format!("{} former pods are still there", all - updated));
    }
    if available < wanted {
        return Rollout::Going(format!("{available} of {wanted} pods are available"));
    }
    Rollout::Done
}

/// What keeps pods of a Deployment from running, as far as they say; it helps people, so nothing
/// comes of it if they cannot be read.
async fn troubles(client: &Client, namespace: &str, deployment: &Deployment) -> String {
    let selector = deployment.spec.as_ref().and_then(|it| it.selector.match_labels.clone());
    let labels = selector.unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default().labels(&labels.join(","))).await;
    let told: Vec<String> = pods.into_iter().flat_map(|it| it.items).filter_map(trouble).collect();
    told.iter().take(NAMED_MAX).map(|it| format!("; {it}")).collect()
}

fn trouble(pod: Pod) -> Option<String> {
    let (name, status) = (pod.metadata.name?, pod.status?);
    let waiting = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        Some((waiting.reason.clone()?, waiting.message.clone().unwrap_or_default()))
    });
    let unscheduled = status.conditions.iter().flatten().find_map(|condition| {
        let is_it = condition.type_ == "PodScheduled" && condition.status == "False";
        let told = || condition.message.clone().unwrap_or_default();
        is_it.then(|| (condition.reason.clone().unwrap_or_default(), told()))
    });
    let (reason, message) = waiting.or(unscheduled)?;
    Some(format!("pod {name}: {reason}: {message}"))
}

/// Names of objects of a kind that is going, as far as they can be read.
async fn objects(client: &Client, definition: &CustomResourceDefinition) -> Vec<String> {
    let spec = &definition.spec;
    let Some(version) = spec.versions.iter().find(|it| it.served) else { return Vec::new() };
    let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let listed = objects.list_metadata(&ListParams::default().limit(100)).await;
    let name = |metadata: kube::core::ObjectMeta| {
        let name = metadata.name.unwrap_or_default();
        metadata.namespace.map_or(name.clone(), |namespace| format!("{namespace}/{name}"))
    };
    listed.into_iter().flat_map(|it| it.items).map(|it| name(it.metadata)).collect()
}

fn named(objects: &[String]) -> String {
    let more = objects.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let objects = &objects[..objects.len().min(NAMED_MAX)];
    if objects.is_empty() { String::new() } else { format!(": {}{more}", objects.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_is_done_when_all_its_pods_are_new_and_available() {
        let check = |status: Value, expected: Rollout| {
            let deployment = json!({
                "metadata": {"generation": 2},
                "spec": {"replicas": 2, "selector": {}, "template": {}},
                "status": status,
            });
            let deployment = serde_json::from_value(deployment).expect("a deployment");
            assert_eq!(rollout(&deployment), expected);
        };
        let going = |why: &str| Rollout::Going(why.to_owned());
        check(json!(null), going("nobody has looked at it yet"));
        check(
            json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
                   "availableReplicas": 2}),
            going("nobody has looked at it yet"),
        );
        check(json!({"observedGeneration": 2}), going("0 of 2 pods are new"));
        let status = |all: i32, available: i32| {
            json!({"observedGeneration": 2, "replicas": all, "updatedReplicas": 2,
                   "availableReplicas": available})
        };
        check(status(3, 3), going("1 former pods are still there"));
        check(status(2, 1), going("1 of 2 pods are available"));
        check(status(2, 2), Rollout::Done);
        let mut stuck = status(2, 1);
        stuck["conditions"] = json!([{
            "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            "message": "it has timed out",
        }]);
        check(stuck, Rollout::Stuck("ProgressDeadlineExceeded: it has timed out".to_owned()));
    }

    #[test]
    fn a_few_objects_are_named_and_the_others_counted() {
        let some = |n: usize| (0..n).map(|n| format!("default/{n}")).collect::<Vec<_>>();
        assert_eq!(named(&some(0)), "");
        assert_eq!(named(&some(2)), ": default/0, default/1");
        assert!(named(&some(7)).ends_with("default/4 and 2 more"));
    }
}
