//! All plugins that there are, by name, and what makes them.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{NodeAffinity as AddedAffinity, TopologySpreadConstraint};
use kube::Client;
use kubewright_apimachinery::resources::{CPU, MEMORY};
use serde::Deserialize;
use serde_json::Value;

use crate::config::{ConfigError, arguments, invalid};
use crate::plugin::{Plugin, SCORE_MAX};
use crate::plugins::{
    BalancedAllocation, DefaultBinder, DefaultPreemption, DynamicResources, ImageLocality,
    InterPodAffinity, NodeAffinity, NodeDeclaredFeatures, NodeLabel, NodeName, NodePorts,
    NodeResourcesFit, NodeUnschedulable, PodTopologySpread, PrioritySort, SchedulingGates,
    Strategy, TaintToleration, VolumeApi, VolumeBinding, VolumeLimits, VolumeRestrictions,
    VolumeZone, Weight,
};

/// The highest score that people give in configuration.
const CUSTOM_SCORE_MAX: i64 = 10;

/// What a plugin can be made with.
#[derive(Clone, Default)]
pub struct Around {
    /// None where nothing is written, as in tests of decisions.
    pub client: Option<Client>,
    pub(crate) volumes: Option<VolumeApi>,
    /// Resources that extenders look after.
    pub(crate) ignored_resources: BTreeSet<String>,
}

/// Makes a plugin of its arguments.
pub type Factory =
    Box<dyn Fn(&Value, &Around) -> Result<Arc<dyn Plugin>, ConfigError> + Send + Sync>;

/// What plugins there are.
pub struct Registry(HashMap<String, Factory>);

impl Registry {
    /// The built-in plugins.
    pub fn builtin() -> Self {
        let mut registry = Registry(HashMap::new());
        registry.add_plain(SchedulingGates::NAME, || Arc::new(SchedulingGates));
        registry.add_plain(PrioritySort::NAME, || Arc::new(PrioritySort));
        registry.add_plain(NodeUnschedulable::NAME, || Arc::new(NodeUnschedulable));
        registry.add_plain(NodeDeclaredFeatures::NAME, || Arc::new(NodeDeclaredFeatures));
        registry.add_plain(NodeName::NAME, || Arc::new(NodeName));
        registry.add_plain(TaintToleration::NAME, || Arc::new(TaintToleration));
        registry.add_plain(NodePorts::NAME, || Arc::new(NodePorts));
        registry.add_plain(VolumeRestrictions::NAME, || Arc::new(VolumeRestrictions));
        registry.add_plain(VolumeLimits::NAME, || Arc::new(VolumeLimits));
        registry.add_plain(VolumeZone::NAME, || Arc::new(VolumeZone));
        registry.add_plain(DynamicResources::NAME, || Arc::new(DynamicResources));
        registry.add_plain(ImageLocality::NAME, || Arc::new(ImageLocality));
        registry.add(NodeAffinity::NAME, node_affinity);
        registry.add(NodeResourcesFit::NAME, resources_fit);
        registry.add(BalancedAllocation::NAME, balanced_allocation);
        registry.add(VolumeBinding::NAME, volume_binding);
        registry.add(PodTopologySpread::NAME, topology_spread);
        registry.add(InterPodAffinity::NAME, inter_pod_affinity);
        registry.add(DefaultPreemption::NAME, default_preemption);
        registry.add(NodeLabel::NAME, node_label);
        registry.add(DefaultBinder::NAME, |_, around| {
            Ok(Arc::new(DefaultBinder { client: around.client.clone() }))
        });
        registry
    }

    /// With one more plugin. One of the same name is no more.
    pub fn add(
        &mut self,
        name: &str,
        make: impl Fn(&Value, &Around) -> Result<Arc<dyn Plugin>, ConfigError> + Send + Sync + 'static,
    ) {
        self.0.insert(name.to_owned(), Box::new(make));
    }

    pub(crate) fn make(
        &self,
        name: &str,
        args: &Value,
        around: &Around,
    ) -> Result<Arc<dyn Plugin>, ConfigError> {
        match self.0.get(name) {
            Some(make) => make(args, around),
            None => Err(invalid("plugins", format!("{name:?} does not exist"))),
        }
    }

    fn add_plain(&mut self, name: &str, make: fn() -> Arc<dyn Plugin>) {
        self.add(name, move |_, _| Ok(make()));
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.0.keys().collect::<BTreeSet<_>>()).finish()
    }
}

type Made = Result<Arc<dyn Plugin>, ConfigError>;

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[derive(Default)]
struct NodeAffinityArgs {
    added_affinity: Option<AddedAffinity>,
}

fn node_affinity(args: &Value, _: &Around) -> Made {
    let args: NodeAffinityArgs = arguments(NodeAffinity::NAME, args)?;
    Ok(Arc::new(NodeAffinity::new(args.added_affinity.as_ref())))
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct NodeResourcesFitArgs {
    ignored_resources: BTreeSet<String>,
    ignored_resource_groups: BTreeSet<String>,
    scoring_strategy: ScoringStrategy,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ScoringStrategy {
    r#type: String,
    resources: Vec<ResourceSpec>,
    requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ResourceSpec {
    name: String,
    weight: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct RequestedToCapacityRatio {
    shape: Vec<ShapePoint>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ShapePoint {
    utilization: i64,
    score: i64,
}

fn resources_fit(args: &Value, around: &Around) -> Made {
    let args: NodeResourcesFitArgs = arguments(NodeResourcesFit::NAME, args)?;
    let mut ignored = args.ignored_resources;
    ignored.extend(around.ignored_resources.iter().cloned());
    Ok(Arc::new(NodeResourcesFit {
        ignored,
        ignored_groups: args.ignored_resource_groups,
        resources: weights(&args.scoring_strategy.resources)?,
        strategy: strategy(&args.scoring_strategy)?,
    }))
}

fn strategy(strategy: &ScoringStrategy) -> Result<Strategy, ConfigError> {
    match strategy.r#type.as_str() {
        "" | "LeastAllocated" => Ok(Strategy::LeastAllocated),
        "MostAllocated" => Ok(Strategy::MostAllocated),
        "RequestedToCapacityRatio" => {
            let ratio = strategy.requested_to_capacity_ratio.as_ref();
            let shape = ratio.map_or(&[][..], |ratio| &ratio.shape);
            shape_points(shape).map(Strategy::RequestedToCapacityRatio)
        }
        other => {
            let why = format!("Unsupported value: {other:?}");
            Err(invalid("scoringStrategy.type", why))
        }
    }
}

fn shape_points(shape: &[ShapePoint]) -> Result<Vec<(i64, i64)>, ConfigError> {
    let path = "scoringStrategy.requestedToCapacityRatio.shape";
    if shape.is_empty() {
        return Err(invalid(path, "at least one point must be specified"));
    }
    let is_sorted = shape.is_sorted_by(|one, next| one.utilization < next.utilization);
    let is_in_range = |point: &ShapePoint| {
        (0..=100).contains(&point.utilization) && (0..=CUSTOM_SCORE_MAX).contains(&point.score)
    };
    if !is_sorted || !shape.iter().all(is_in_range) {
        let why = "utilization must increase from point to point within 0-100, scores be 0-10";
        return Err(invalid(path, why));
    }
    let scale = SCORE_MAX / CUSTOM_SCORE_MAX;
    Ok(shape.iter().map(|point| (point.utilization, point.score * scale)).collect())
}

/// Processors and memory count the same, if nothing is said.
fn weights(specs: &[ResourceSpec]) -> Result<Vec<Weight>, ConfigError> {
    if specs.is_empty() {
        let one = |name: &str| Weight { name: name.to_owned(), weight: 1 };
        return Ok(vec![one(CPU), one(MEMORY)]);
    }
    let weight = |spec: &ResourceSpec| match spec.weight {
        0..=100 => Ok(Weight { name: spec.name.clone(), weight: spec.weight.max(1) }),
        other => {
            let why =
                format!("resource weight of {} not in valid range (0, 100]: {other}", spec.name);
            Err(invalid("resources", why))
        }
    };
    specs.iter().map(weight).collect()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct BalancedAllocationArgs {
    resources: Vec<ResourceSpec>,
}

fn balanced_allocation(args: &Value, _: &Around) -> Made {
    let args: BalancedAllocationArgs = arguments(BalancedAllocation::NAME, args)?;
    Ok(Arc::new(BalancedAllocation { resources: weights(&args.resources)? }))
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct VolumeBindingArgs {
    bind_timeout_seconds: u64,
}

impl Default for VolumeBindingArgs {
    fn default() -> Self {
        VolumeBindingArgs { bind_timeout_seconds: 600 }
    }
}

fn volume_binding(args: &Value, around: &Around) -> Made {
    let args: VolumeBindingArgs = arguments(VolumeBinding::NAME, args)?;
    let timeout = Duration::from_secs(args.bind_timeout_seconds);
    Ok(Arc::new(VolumeBinding::new(around.volumes.clone(), timeout)))
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct PodTopologySpreadArgs {
    default_constraints: Vec<TopologySpreadConstraint>,
    defaulting_type: String,
}

fn topology_spread(args: &Value, _: &Around) -> Made {
    let args: PodTopologySpreadArgs = arguments(PodTopologySpread::NAME, args)?;
    let constraints = args.default_constraints;
    if constraints.iter().any(|constraint| constraint.label_selector.is_some()) {
        let why = "constraint must not define a selector, as they deduced for each pod";
        return Err(invalid("defaultConstraints.labelSelector", why));
    }
    match args.defaulting_type.as_str() {
        "List" => Ok(Arc::new(PodTopologySpread::with_defaults(constraints))),
        "" | "System" if constraints.is_empty() => {
            Ok(Arc::new(PodTopologySpread::system_defaulted()))
        }
        "" | "System" => {
            let why = "when .defaultingType is System, .defaultConstraints must be empty";
            Err(invalid("defaultingType", why))
        }
        other => Err(invalid("defaultingType", format!("Unsupported value: {other:?}"))),
    }
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct InterPodAffinityArgs {
    hard_pod_affinity_weight: i64,
    ignore_preferred_terms_of_existing_pods: bool,
}

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        let ignored = false;
        let hard_pod_affinity_weight = 1;
        Self { hard_pod_affinity_weight, ignore_preferred_terms_of_existing_pods: ignored }
    }
}

fn inter_pod_affinity(args: &Value, _: &Around) -> Made {
    let args: InterPodAffinityArgs = arguments(InterPodAffinity::NAME, args)?;
    if !(0..=100).contains(&args.hard_pod_affinity_weight) {
        return Err(invalid("hardPodAffinityWeight", "not in valid range [0-100]"));
    }
    Ok(Arc::new(InterPodAffinity {
        hard_weight: args.hard_pod_affinity_weight,
        ignores_wishes_of_others: args.ignore_preferred_terms_of_existing_pods,
    }))
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct DefaultPreemptionArgs {
    min_candidate_nodes_percentage: usize,
    min_candidate_nodes_absolute: usize,
}

impl Default for DefaultPreemptionArgs {
    fn default() -> Self {
        Self { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

fn default_preemption(args: &Value, _: &Around) -> Made {
    let args: DefaultPreemptionArgs = arguments(DefaultPreemption::NAME, args)?;
    let (percentage_min, nodes_min) =
        (args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute);
    if percentage_min > 100 {
        return Err(invalid("minCandidateNodesPercentage", "not in valid range [0, 100]"));
    }
    if percentage_min == 0 && nodes_min == 0 {
        let why = "cannot be zero at the same time as minCandidateNodesAbsolute";
        return Err(invalid("minCandidateNodesPercentage", why));
    }
    Ok(Arc::new(DefaultPreemption { percentage_min, nodes_min }))
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct NodeLabelArgs {
    present_labels: Vec<String>,
    absent_labels: Vec<String>,
    present_labels_preference: Vec<String>,
    absent_labels_preference: Vec<String>,
}

fn node_label(args: &Value, _: &Around) -> Made {
    let args: NodeLabelArgs = arguments(NodeLabel::NAME, args)?;
    Ok(Arc::new(NodeLabel {
        present: args.present_labels,
        absent: args.absent_labels,
        present_preferred: args.present_labels_preference,
        absent_preferred: args.absent_labels_preference,
    }))
}
