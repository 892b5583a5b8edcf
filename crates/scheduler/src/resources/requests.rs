//! What a pod asks for, all its containers together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_apimachinery::resources::{CPU, MEMORY, is_pod_level};

use super::{Resources, amount};

/// What a container that asks for nothing is taken to need when nodes are compared, so that they
/// do not all go to one.
const MILLI_CPU_ASSUMED: i64 = 100;
const MEMORY_ASSUMED: i64 = 200 * 1024 * 1024;

/// Processor and memory of a pod whose containers all need some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NonZero {
    pub(crate) milli_cpu: i64,
    pub(crate) memory: i64,
}

type Amounts<'a> = BTreeMap<&'a str, i64>;

/// What a pod asks for, and what it is taken to need.
pub(crate) fn of_pod(pod: &Pod) -> (Resources, NonZero) {
    let requests = sum(pod, &Amounts::new());
    let whole = whole_pod(pod);
    let mut assumed = Amounts::from([(CPU, MILLI_CPU_ASSUMED), (MEMORY, MEMORY_ASSUMED)]);
    // What is asked for the pod as a whole needs no guess.
    assumed.retain(|name, _| whole.is_none_or(|whole| !whole.contains_key(*name)));
    let needs = sum(pod, &assumed);
    let of = |name: &str| needs.get(name).copied().unwrap_or_default();
    let non_zero = NonZero { milli_cpu: of(CPU), memory: of(MEMORY) };
    let mut resources = Resources::default();
    for (name, amount) in requests {
        resources.add_to(name, amount);
    }
    (resources, non_zero)
}

fn sum<'a>(pod: &'a Pod, assumed: &Amounts<'a>) -> Amounts<'a> {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let statuses = |of: fn(&Pod) -> Option<&Vec<ContainerStatus>>| of(pod).into_iter().flatten();
    let status_of = |container: &Container| {
        statuses(|pod| pod.status.as_ref()?.container_statuses.as_ref())
            .chain(statuses(|pod| pod.status.as_ref()?.init_container_statuses.as_ref()))
            .find(|status| status.name == container.name)
    };
    let requests_of = |container: &'a Container| {
        let mut requests = container_requests(pod, container, status_of(container));
        for (name, amount) in assumed {
            requests.entry(name).or_insert(*amount);
        }
        requests
    };
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &requests_of(container));
    }
    // Init containers run one after another, but those that go on run beside all that follow.
    let (mut beside, mut peak) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let mut requests = requests_of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &requests);
            add(&mut beside, &requests);
            requests = beside.clone();
        } else {
            add(&mut requests, &beside);
        }
        raise(&mut peak, &requests);
    }
    raise(&mut total, &peak);
    for (name, quantity) in whole_pod(pod).into_iter().flatten() {
        if is_pod_level(name) {
            total.insert(name, amount(name, quantity));
        }
    }
    add(&mut total, &amounts(spec.overhead.as_ref()));
    total
}

/// While a container is resized, it may have more than it asks for.
fn container_requests<'a>(
    pod: &'a Pod,
    container: &'a Container,
    status: Option<&'a ContainerStatus>,
) -> Amounts<'a> {
    let resources = container.resources.as_ref();
    let mut requests = amounts(resources.and_then(|resources| resources.requests.as_ref()));
    let Some(status) = status else { return requests };
    let actual = status.resources.as_ref();
    if actual.is_some() && is_resize_infeasible(pod) {
        requests.clear();
    }
    raise(&mut requests, &amounts(actual.and_then(|actual| actual.requests.as_ref())));
    raise(&mut requests, &amounts(status.allocated_resources.as_ref()));
    requests
}

fn is_resize_infeasible(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .filter(|condition| condition.type_ == "PodResizePending")
        .any(|condition| condition.reason.as_deref() == Some("Infeasible"))
}

/// What is asked for the pod as a whole.
fn whole_pod(pod: &Pod) -> Option<&BTreeMap<String, Quantity>> {
    pod.spec.as_ref()?.resources.as_ref()?.requests.as_ref()
}

fn amounts(list: Option<&BTreeMap<String, Quantity>>) -> Amounts<'_> {
    let list = list.into_iter().flatten();
    list.map(|(name, quantity)| (name.as_str(), amount(name, quantity))).collect()
}

fn add<'a>(total: &mut Amounts<'a>, other: &Amounts<'a>) {
    for (name, amount) in other {
        *total.entry(name).or_default() += amount;
    }
}

fn raise<'a>(total: &mut Amounts<'a>, other: &Amounts<'a>) {
    for (name, amount) in other {
        let known = total.entry(name).or_insert(*amount);
        *known = (*known).max(*amount);
    }
}
