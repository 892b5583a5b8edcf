//! `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`, field by field.

use serde::Deserialize;
use serde_json::Value;

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    pub api_version: String,
    pub kind: String,
    /// How many tasks upstream may use; here a pod needs one.
    pub parallelism: Option<i32>,
    pub leader_election: LeaderElection,
    /// How upstream talks to the server; here that is the client's.
    pub client_connection: Value,
    pub health_z_bind_address: Option<String>,
    pub metrics_bind_address: Option<String>,
    pub enable_profiling: Option<bool>,
    pub enable_contention_profiling: Option<bool>,
    pub percentage_of_nodes_to_score: Option<u32>,
    pub pod_initial_backoff_seconds: Option<u64>,
    pub pod_max_backoff_seconds: Option<u64>,
    pub profiles: Vec<Profile>,
    pub extenders: Vec<Extender>,
    pub delay_cache_until_active: bool,
}

/// Whether one of several replicas is to be active. For whoever runs the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderElection {
    pub leader_elect: Option<bool>,
    pub lease_duration: Option<String>,
    pub renew_deadline: Option<String>,
    pub retry_period: Option<String>,
    pub resource_lock: Option<String>,
    pub resource_name: Option<String>,
    pub resource_namespace: Option<String>,
}

/// How pods are scheduled that name it as their scheduler.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    pub scheduler_name: Option<String>,
    pub percentage_of_nodes_to_score: Option<u32>,
    pub plugins: Plugins,
    pub plugin_config: Vec<PluginConfig>,
}

/// What is different from the default plugins, by point.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Plugins {
    pub pre_enqueue: PluginSelection,
    pub queue_sort: PluginSelection,
    pub pre_filter: PluginSelection,
    pub filter: PluginSelection,
    pub post_filter: PluginSelection,
    pub pre_score: PluginSelection,
    pub score: PluginSelection,
    pub reserve: PluginSelection,
    pub permit: PluginSelection,
    pub pre_bind: PluginSelection,
    pub bind: PluginSelection,
    pub post_bind: PluginSelection,
    /// At all points where they have a say.
    pub multi_point: PluginSelection,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginSelection {
    pub enabled: Vec<Plugin>,
    /// `*` for all that are there by default.
    pub disabled: Vec<Plugin>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Plugin {
    pub name: String,
    /// How much its score counts.
    pub weight: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginConfig {
    pub name: String,
    pub args: Value,
}

/// Somebody else who is asked, by HTTP.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Extender {
    pub url_prefix: String,
    pub filter_verb: String,
    pub preempt_verb: String,
    pub prioritize_verb: String,
    pub weight: i64,
    pub bind_verb: String,
    #[serde(rename = "enableHTTPS")]
    pub enable_https: bool,
    pub tls_config: Option<ExtenderTls>,
    /// As `30s`.
    pub http_timeout: Option<String>,
    pub node_cache_capable: bool,
    pub managed_resources: Vec<ManagedResource>,
    pub ignorable: bool,
}

/// How an extender is known, and to whom.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtenderTls {
    pub insecure: bool,
    pub server_name: String,
    pub cert_file: String,
    pub key_file: String,
    pub ca_file: String,
    /// In base64, as the others.
    pub cert_data: String,
    pub key_data: String,
    pub ca_data: String,
}

/// A resource that an extender looks after.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ManagedResource {
    pub name: String,
    pub ignored_by_scheduler: bool,
}
