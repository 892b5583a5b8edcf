//! The legacy policy: predicates and priorities, translated into plugins.
//!
//! Upstream took it until 1.22, from a file or from a ConfigMap. What it says is kept; what it does
//! not say is off, as it was then, except for what no policy could turn off.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Config, ConfigError, Extender, Plugin, PluginConfig, Profile, invalid, read};
use crate::plugins::{
    BalancedAllocation, DefaultBinder, DefaultPreemption, ImageLocality, InterPodAffinity,
    NodeAffinity, NodeLabel, NodeName, NodePorts, NodeResourcesFit, NodeUnschedulable,
    PodTopologySpread, PrioritySort, SchedulingGates, TaintToleration, VolumeBinding, VolumeLimits,
    VolumeRestrictions, VolumeZone,
};

/// Where a policy is kept in a cluster, unless another place is named.
pub const CONFIG_MAP_NAMESPACE: &str = "kube-system";
pub const CONFIG_MAP: &str = "scheduler-policy-config";
pub const CONFIG_MAP_KEY: &str = "policy.cfg";
/// What whoever uses one should be told.
pub const WARNING: &str = "a scheduler policy is used, which is deprecated: write a \
                           KubeSchedulerConfiguration (--config) that enables the same plugins";

const PRIORITY_WEIGHT_MAX: i64 = 10;

/// What a policy says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Policy {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    /// None for those that are there by default.
    predicates: Option<Vec<Predicate>>,
    priorities: Option<Vec<Priority>>,
    extenders: Vec<LegacyExtender>,
    hard_pod_affinity_symmetric_weight: Option<i64>,
    /// All reasons of a node, not the first alone; nobody could tell the difference.
    #[serde(rename = "alwaysCheckAllPredicates")]
    _always_check_all_predicates: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Predicate {
    name: String,
    argument: Option<PredicateArgument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct PredicateArgument {
    labels_presence: Option<LabelsPresence>,
    #[serde(rename = "serviceAffinity")]
    _service_affinity: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct LabelsPresence {
    labels: Vec<String>,
    presence: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Priority {
    name: String,
    weight: i64,
    argument: Option<PriorityArgument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct PriorityArgument {
    label_preference: Option<LabelPreference>,
    requested_to_capacity_ratio_arguments: Option<RatioArguments>,
    #[serde(rename = "serviceAntiAffinity")]
    _service_anti_affinity: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct LabelPreference {
    label: String,
    presence: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct RatioArguments {
    shape: Value,
    resources: Value,
}

/// As extenders are now, but for a timeout in nanoseconds and two names.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct LegacyExtender {
    url_prefix: String,
    filter_verb: String,
    preempt_verb: String,
    prioritize_verb: String,
    weight: i64,
    bind_verb: String,
    #[serde(alias = "enableHTTPS")]
    enable_https: bool,
    tls_config: Option<super::ExtenderTls>,
    http_timeout: u64,
    node_cache_capable: bool,
    managed_resources: Vec<super::ManagedResource>,
    ignorable: bool,
}

impl Config {
    /// Translates a policy, in JSON or YAML.
    ///
    /// # Errors
    /// It is none, or asks for what there is not any more.
    pub fn from_policy(text: &str) -> Result<Self, ConfigError> {
        let policy: Policy = read(text, "v1", "Policy")?;
        let mut translation = Translation::default();
        translation.predicates(policy.predicates)?;
        translation.priorities(policy.priorities)?;
        if let Some(weight) = policy.hard_pod_affinity_symmetric_weight {
            let args = json!({"hardPodAffinityWeight": weight});
            translation.args.push((InterPodAffinity::NAME, args));
        }
        let mut config = Config {
            profiles: vec![translation.profile()],
            extenders: policy.extenders.into_iter().map(Extender::from).collect(),
            ..Config::default()
        };
        config.complete();
        config.validate()?;
        Ok(config)
    }
}

/// Plugins that say the same as a policy.
#[derive(Default)]
struct Translation {
    filters: Vec<&'static str>,
    scores: Vec<(&'static str, i64)>,
    args: Vec<(&'static str, Value)>,
    labels: NodeLabel,
}

impl Translation {
    fn predicates(&mut self, predicates: Option<Vec<Predicate>>) -> Result<(), ConfigError> {
        // No policy could do without these.
        self.filter(NodeUnschedulable::NAME);
        self.filter(TaintToleration::NAME);
        let Some(predicates) = predicates else {
            for name in ["GeneralPredicates", "NoDiskConflict", "MaxCSIVolumeCountPred"] {
                self.predicate(name)?;
            }
            for name in ["CheckVolumeBinding", "NoVolumeZoneConflict", "EvenPodsSpread"] {
                self.predicate(name)?;
            }
            return self.predicate("MatchInterPodAffinity");
        };
        for predicate in predicates {
            match predicate.argument {
                None => self.predicate(&predicate.name)?,
                Some(PredicateArgument { labels_presence: Some(labels), .. }) => {
                    let list = match labels.presence {
                        true => &mut self.labels.present,
                        false => &mut self.labels.absent,
                    };
                    list.extend(labels.labels);
                    self.filter(NodeLabel::NAME);
                }
                Some(_) => return Err(gone("predicates", &predicate.name)),
            }
        }
        Ok(())
    }

    fn predicate(&mut self, name: &str) -> Result<(), ConfigError> {
        let plugins: &[&'static str] = match name {
            "GeneralPredicates" => {
                &[NodeName::NAME, NodeAffinity::NAME, NodePorts::NAME, NodeResourcesFit::NAME]
            }
            "HostName" => &[NodeName::NAME],
            "MatchNodeSelector" | "PodMatchNodeSelector" => &[NodeAffinity::NAME],
            "PodFitsHostPorts" | "PodFitsPorts" => &[NodePorts::NAME],
            "PodFitsResources" => &[NodeResourcesFit::NAME],
            "NoDiskConflict" => &[VolumeRestrictions::NAME],
            "MaxCSIVolumeCountPred"
            | "MaxEBSVolumeCount"
            | "MaxGCEPDVolumeCount"
            | "MaxAzureDiskVolumeCount"
            | "MaxCinderVolumeCount" => &[VolumeLimits::NAME],
            "CheckVolumeBinding" => &[VolumeBinding::NAME],
            "NoVolumeZoneConflict" => &[VolumeZone::NAME],
            "EvenPodsSpread" => &[PodTopologySpread::NAME],
            "MatchInterPodAffinity" => &[InterPodAffinity::NAME],
            // They are there in any case, or what they looked at has become taints.
            "PodToleratesNodeTaints"
            | "CheckNodeUnschedulable"
            | "CheckNodeCondition"
            | "CheckNodeMemoryPressure"
            | "CheckNodeDiskPressure"
            | "CheckNodePIDPressure" => &[],
            _ => return Err(gone("predicates", name)),
        };
        plugins.iter().for_each(|plugin| self.filter(plugin));
        Ok(())
    }

    fn priorities(&mut self, priorities: Option<Vec<Priority>>) -> Result<(), ConfigError> {
        let Some(priorities) = priorities else {
            self.score(PodTopologySpread::NAME, 2);
            self.score(InterPodAffinity::NAME, 1);
            self.score(NodeResourcesFit::NAME, 1);
            self.score(BalancedAllocation::NAME, 1);
            self.score(NodeAffinity::NAME, 1);
            self.score(TaintToleration::NAME, 1);
            self.score(ImageLocality::NAME, 1);
            return Ok(());
        };
        for Priority { name, weight, argument } in priorities {
            if weight <= 0 || weight > i64::from(i32::MAX) / PRIORITY_WEIGHT_MAX {
                let why = format!("Priority {name} should have a positive weight applied to it");
                return Err(invalid("priorities", why));
            }
            match argument {
                None => self.priority(&name, weight)?,
                Some(PriorityArgument { label_preference: Some(label), .. }) => {
                    let list = match label.presence {
                        true => &mut self.labels.present_preferred,
                        false => &mut self.labels.absent_preferred,
                    };
                    list.push(label.label);
                    self.score(NodeLabel::NAME, weight);
                }
                Some(PriorityArgument {
                    requested_to_capacity_ratio_arguments: Some(ratio),
                    ..
                }) => {
                    let strategy = json!({
                        "type": "RequestedToCapacityRatio",
                        "requestedToCapacityRatio": {"shape": ratio.shape},
                        "resources": if ratio.resources.is_null() { json!([]) } else { ratio.resources },
                    });
                    self.args.push((NodeResourcesFit::NAME, json!({"scoringStrategy": strategy})));
                    self.score(NodeResourcesFit::NAME, weight);
                }
                Some(_) => return Err(gone("priorities", &name)),
            }
        }
        Ok(())
    }

    fn priority(&mut self, name: &str, weight: i64) -> Result<(), ConfigError> {
        let plugin = match name {
            "LeastRequestedPriority" => NodeResourcesFit::NAME,
            "MostRequestedPriority" => {
                let args = json!({"scoringStrategy": {"type": "MostAllocated"}});
                self.args.push((NodeResourcesFit::NAME, args));
                NodeResourcesFit::NAME
            }
            "BalancedResourceAllocation" => BalancedAllocation::NAME,
            "SelectorSpreadPriority" | "ServiceSpreadingPriority" | "EvenPodsSpreadPriority" => {
                PodTopologySpread::NAME
            }
            "InterPodAffinityPriority" => InterPodAffinity::NAME,
            "NodeAffinityPriority" => NodeAffinity::NAME,
            "TaintTolerationPriority" => TaintToleration::NAME,
            "ImageLocalityPriority" => ImageLocality::NAME,
            // All nodes are the same, or there is nothing left to avoid.
            "EqualPriority" | "NodePreferAvoidPodsPriority" => return Ok(()),
            _ => return Err(gone("priorities", name)),
        };
        self.score(plugin, weight);
        Ok(())
    }

    fn filter(&mut self, name: &'static str) {
        if !self.filters.contains(&name) {
            self.filters.push(name);
        }
    }

    /// What two priorities have become one plugin of, counts as both.
    fn score(&mut self, name: &'static str, weight: i64) {
        match self.scores.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known += weight,
            None => self.scores.push((name, weight)),
        }
    }

    fn profile(mut self) -> Profile {
        if self.labels != NodeLabel::default() {
            let labels = &self.labels;
            self.args.push((
                NodeLabel::NAME,
                json!({
                    "presentLabels": labels.present,
                    "absentLabels": labels.absent,
                    "presentLabelsPreference": labels.present_preferred,
                    "absentLabelsPreference": labels.absent_preferred,
                }),
            ));
        }
        let plugin = |name: &str, weight| Plugin { name: name.to_owned(), weight };
        let mut profile = Profile::default();
        let plugins = &mut profile.plugins;
        plugins.multi_point.disabled.push(plugin("*", None));
        let always = [
            SchedulingGates::NAME,
            PrioritySort::NAME,
            DefaultPreemption::NAME,
            DefaultBinder::NAME,
        ];
        plugins.multi_point.enabled.extend(always.map(|name| plugin(name, None)));
        plugins.filter.enabled.extend(self.filters.iter().map(|name| plugin(name, None)));
        if self.filters.contains(&VolumeBinding::NAME) {
            plugins.reserve.enabled.push(plugin(VolumeBinding::NAME, None));
            plugins.pre_bind.enabled.push(plugin(VolumeBinding::NAME, None));
        }
        let scores = self.scores.iter().map(|(name, weight)| plugin(name, Some(*weight)));
        plugins.score.enabled.extend(scores);
        let configs = self.args.into_iter();
        profile.plugin_config =
            configs.map(|(name, args)| PluginConfig { name: name.to_owned(), args }).collect();
        profile
    }
}

impl From<LegacyExtender> for Extender {
    fn from(legacy: LegacyExtender) -> Self {
        Extender {
            url_prefix: legacy.url_prefix,
            filter_verb: legacy.filter_verb,
            preempt_verb: legacy.preempt_verb,
            prioritize_verb: legacy.prioritize_verb,
            weight: legacy.weight,
            bind_verb: legacy.bind_verb,
            enable_https: legacy.enable_https,
            tls_config: legacy.tls_config,
            http_timeout: (legacy.http_timeout > 0).then(|| format!("{}ns", legacy.http_timeout)),
            node_cache_capable: legacy.node_cache_capable,
            managed_resources: legacy.managed_resources,
            ignorable: legacy.ignorable,
        }
    }
}

fn gone(path: &str, name: &str) -> ConfigError {
    invalid(path, format!("{name:?} is not known, or needs an argument that it has not"))
}
