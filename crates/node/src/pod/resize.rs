//! Other resources for a pod that is here already: whose turn it is to have them, and what is told
//! of it. Decides only, in the words of upstream's kubelet.
//!
//! A specification says what is wanted; what the node has set aside for it is its [`Allocation`];
//! what a container runs with is known to its `Member`. Left out: resources of pods as a whole, which
//! nobody may change on a node that does not declare that it can. Nothing here is `Infeasible`: so
//! kubelet calls what managers of processors, of memory and of swap cannot do, and there are none.
//! What is more than the node has is refused by API servers, and else waits as all that does not fit.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodCondition, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::Event;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::{CPU, MEMORY};
use serde::Serialize;

use super::admit::{Needs, Rejection};

pub(crate) const PENDING: &str = "PodResizePending";
pub(crate) const IN_PROGRESS: &str = "PodResizeInProgress";
const DEFERRED: &str = "Deferred";
const ERROR: &str = "Error";

/// What a node has set aside for the containers of a pod, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Allocation(BTreeMap<String, ResourceRequirements>);

/// How the resizes of a pod stand with its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The generation of the last resize that there was room for.
    pub(crate) allocated: Option<i64>,
    pub(crate) pending: Option<Pending>,
}

/// There is no room for a resize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    reason: String,
    message: String,
    /// Of the pod that asks for it.
    generation: i64,
    /// Since when it is pending for this reason.
    since: Timestamp,
    at: Timestamp,
}

/// There is room for a resize, and containers are being given what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) generation: i64,
    /// Why it was not done. It is tried again.
    error: Option<String>,
    since: Timestamp,
}

/// Which of several pending resizes is tried first: the least.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    /// What asks for no more fits wherever it is.
    is_growing: bool,
    priority: Reverse<i32>,
    has_no_guarantee: bool,
    has_just_come: bool,
    since: Option<Timestamp>,
}

impl Allocation {
    /// All that a pod wants.
    pub(crate) fn wanted(pod: &Pod) -> Self {
        let all = containers(pod).map(|container| {
            (container.name.clone(), container.resources.clone().unwrap_or_default())
        });
        Allocation(all.collect())
    }

    /// What was set aside for a pod that an agent before this one has taken, as its status tells.
    pub(crate) fn recalled(pod: &Pod) -> Self {
        let mut allocation = Allocation::wanted(pod);
        let Some(status) = &pod.status else { return allocation };
        let has = |type_: &str| condition(status, type_).is_some();
        let is_under_way = has(IN_PROGRESS) && !has(PENDING);
        for known in statuses(status) {
            let (Some(own), Some(shown)) = (allocation.0.get_mut(&known.name), &known.resources)
            else {
                continue;
            };
            let requests = known.allocated_resources.clone();
            // Limits that are set aside and not given yet are shown nowhere.
            if is_under_way && same(own.requests.as_ref(), requests.as_ref()) {
                continue;
            }
            *own = ResourceRequirements { requests, ..shown.clone() };
        }
        allocation
    }

    /// Whether it is what a pod wants.
    pub(crate) fn is_wanted(&self, pod: &Pod) -> bool {
        containers(pod).all(|container| {
            let own = self.0.get(&container.name);
            own.is_none_or(|own| is_same(Some(own), container.resources.as_ref()))
        })
    }

    /// Whether status shows that containers ask for this and nothing else.
    pub(crate) fn is_given(&self, status: Option<&PodStatus>) -> bool {
        status.into_iter().flat_map(statuses).all(|known| {
            let shown = known.resources.as_ref().map(|shown| shown.requests.as_ref());
            let own = self.0.get(&known.name).map(|own| own.requests.as_ref());
            shown.zip(own).is_none_or(|(shown, own)| same(shown, own))
        })
    }

    /// The pod, as if it wanted this and no more.
    pub(crate) fn applied(&self, pod: &Pod) -> Pod {
        let mut pod = pod.clone();
        if let Some(spec) = &mut pod.spec {
            let init = spec.init_containers.iter_mut().flatten();
            for container in spec.containers.iter_mut().chain(init) {
                if let Some(own) = self.0.get(&container.name) {
                    container.resources = Some(own.clone());
                }
            }
        }
        pod
    }
}

impl Standing {
    /// As an agent before this one has told it.
    pub(crate) fn recalled(pod: &Pod, now: Timestamp) -> Self {
        let told = pod.status.as_ref().and_then(|status| condition(status, PENDING));
        let pending = told.map(|told| Pending {
            reason: told.reason.clone().unwrap_or_default(),
            message: told.message.clone().unwrap_or_default(),
            generation: told.observed_generation.unwrap_or_default(),
            since: told.last_transition_time.as_ref().map_or(now, |time| time.0),
            at: told.last_probe_time.as_ref().map_or(now, |time| time.0),
        });
        Standing { allocated: None, pending }
    }
}

impl Pending {
    /// There is no room, as there may have been none before.
    pub(crate) fn deferred(
        why: &Rejection,
        generation: i64,
        before: Option<&Pending>,
        now: Timestamp,
    ) -> Self {
        let since = before.filter(|before| before.reason == DEFERRED).map(|before| before.since);
        let pending = Pending {
            reason: DEFERRED.to_owned(),
            message: why.message.clone(),
            generation,
            since: since.unwrap_or(now),
            at: now,
        };
        match before {
            // When it was looked at is no news by itself.
            Some(before) if *before == (Pending { at: before.at, ..pending.clone() }) => {
                before.clone()
            }
            _ => pending,
        }
    }

    /// Whether people are told of it who know of the one before.
    pub(crate) fn is_news(&self, before: Option<&Pending>) -> bool {
        before.is_none_or(|before| {
            (&before.reason, before.generation) != (&self.reason, self.generation)
        })
    }

    pub(crate) fn condition(&self) -> PodCondition {
        PodCondition {
            reason: Some(self.reason.clone()),
            message: Some(self.message.clone()),
            ..shown(PENDING, self.generation, self.since, self.at)
        }
    }
}

impl Progress {
    pub(crate) fn begun(generation: i64, now: Timestamp) -> Self {
        Progress { generation, error: None, since: now }
    }

    /// As an agent before this one has told it.
    pub(crate) fn recalled(status: &PodStatus, now: Timestamp) -> Option<Self> {
        let told = condition(status, IN_PROGRESS)?;
        Some(Progress {
            generation: told.observed_generation.unwrap_or_default(),
            error: told.message.clone().filter(|_| told.reason.as_deref() == Some(ERROR)),
            since: told.last_transition_time.as_ref().map_or(now, |time| time.0),
        })
    }

    /// It could not be done. Says whether that is news.
    pub(crate) fn fail(&mut self, why: &str, now: Timestamp) -> bool {
        if self.error.as_deref() == Some(why) {
            return false;
        }
        if self.error.replace(why.to_owned()).is_none() {
            self.since = now;
        }
        true
    }

    pub(crate) fn condition(&self) -> PodCondition {
        PodCondition {
            reason: self.error.as_ref().map(|_| ERROR.to_owned()),
            message: self.error.clone(),
            ..shown(IN_PROGRESS, self.generation, self.since, self.since)
        }
    }
}

impl Turn {
    pub(crate) fn of(pod: &Pod, allocation: &Allocation, standing: &Standing) -> Self {
        let spec = pod.spec.as_ref();
        let class = pod.status.as_ref().and_then(|status| status.qos_class.as_deref());
        let since = standing.pending.as_ref().map(|pending| pending.since);
        let (before, after) = (Needs::of(&allocation.applied(pod)), Needs::of(pod));
        Turn {
            is_growing: [CPU, MEMORY].iter().any(|it| after.request(it) > before.request(it)),
            priority: Reverse(spec.and_then(|spec| spec.priority).unwrap_or_default()),
            has_no_guarantee: class != Some("Guaranteed"),
            has_just_come: since.is_none(),
            since,
        }
    }
}

/// Whether two are the same, however they are written.
pub(crate) fn is_same(a: Option<&ResourceRequirements>, b: Option<&ResourceRequirements>) -> bool {
    let requests = [a, b].map(|it| it.and_then(|it| it.requests.as_ref()));
    let limits = [a, b].map(|it| it.and_then(|it| it.limits.as_ref()));
    same(requests[0], requests[1]) && same(limits[0], limits[1])
}

/// Whether a container must be started anew for what it is to be given, by its policy.
pub(crate) fn needs_restart(
    container: &Container,
    before: Option<&ResourceRequirements>,
    after: Option<&ResourceRequirements>,
) -> bool {
    let amounts = |it: Option<&ResourceRequirements>, name: &str| {
        let of = |list: &Option<BTreeMap<String, Text>>| list.as_ref()?.get(name).map(read);
        it.map(|it| (of(&it.requests), of(&it.limits))).unwrap_or_default()
    };
    let mut policies = container.resize_policy.iter().flatten();
    policies.any(|policy| {
        let name = policy.resource_name.as_str();
        policy.restart_policy == "RestartContainer" && amounts(before, name) != amounts(after, name)
    })
}

pub(crate) fn started(pod: &Pod) -> Event {
    let note = summary("Pod resize started", pod, generation(pod), None);
    Event::normal("ResizeStarted", note)
}

pub(crate) fn deferred(pod: &Pod, why: &Rejection) -> Event {
    let title = format!("Pod resize {}", why.reason);
    Event::warning("ResizeDeferred", summary(&title, pod, generation(pod), Some(&why.message)))
}

pub(crate) fn completed(pod: &Pod, generation: i64) -> Event {
    Event::normal("ResizeCompleted", summary("Pod resize completed", pod, generation, None))
}

pub(crate) fn failed(pod: &Pod, generation: i64, why: &str) -> Event {
    Event::warning("ResizeError", summary("Pod resize error", pod, generation, Some(why)))
}

pub(crate) fn generation(pod: &Pod) -> i64 {
    pod.metadata.generation.unwrap_or_default()
}

/// What a resize is about, as events have it behind a title.
fn summary(title: &str, pod: &Pod, generation: i64, error: Option<&str>) -> String {
    #[derive(Serialize)]
    struct One<'a> {
        name: &'a str,
        resources: ResourceRequirements,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Summary<'a> {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        init_containers: Vec<One<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        containers: Vec<One<'a>>,
        generation: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    fn one(container: &Container) -> One<'_> {
        One { name: &container.name, resources: container.resources.clone().unwrap_or_default() }
    }
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    let main = spec.into_iter().flat_map(|spec| &spec.containers);
    let summary = Summary {
        init_containers: init.map(one).collect(),
        containers: main.map(one).collect(),
        generation,
        error,
    };
    let summary = serde_json::to_string(&summary).expect("texts and numbers can be written");
    format!("{title}: {summary}")
}

fn shown(type_: &str, generation: i64, since: Timestamp, at: Timestamp) -> PodCondition {
    PodCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        observed_generation: Some(generation),
        last_probe_time: Some(Time(at)),
        last_transition_time: Some(Time(since)),
        ..PodCondition::default()
    }
}

fn condition<'a>(status: &'a PodStatus, type_: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|it| it.type_ == type_ && it.status == "True")
}

/// All that can be resized.
fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    spec.into_iter().flat_map(|spec| &spec.containers).chain(init)
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    status.container_statuses.iter().flatten().chain(init)
}

fn same(a: Option<&BTreeMap<String, Text>>, b: Option<&BTreeMap<String, Text>>) -> bool {
    let count = |list: Option<&BTreeMap<String, Text>>| list.map_or(0, BTreeMap::len);
    let mut pairs = a.into_iter().flatten().zip(b.into_iter().flatten());
    count(a) == count(b)
        && pairs.all(|((name, a), (other, b))| name == other && (a == b || read(a) == read(b)))
}

fn read(text: &Text) -> Quantity {
    Quantity::parse(&text.0).unwrap_or_default()
}
