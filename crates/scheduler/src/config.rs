//! What a scheduler is told: upstream's `KubeSchedulerConfiguration`, read as strictly as upstream
//! reads it, and the legacy policy, translated.

mod args;
mod file;
pub mod policy;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::args::{Args, LoadError, Standing};
pub use self::file::{
    Config, Extender, ExtenderTls, LeaderElection, ManagedResource, Plugin, PluginConfig,
    PluginSelection, Plugins, Profile,
};
use crate::Scheduler;
use crate::plugin::Point;
use crate::pod::DEFAULT_SCHEDULER;

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";
const BACKOFF_INITIAL: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("read the configuration: {0}")]
    Syntax(String),
    #[error("no kind {kind:?} is registered for version {version:?}")]
    Kind { kind: String, version: String },
    #[error("{path}: {why}")]
    Invalid { path: String, why: String },
}

impl Config {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no configuration, says something unknown, or contradicts itself.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config: Config = read(text, API_VERSION, KIND)?;
        config.complete();
        config.validate()?;
        Ok(config)
    }

    /// Says what is wrong with it for a scheduler that knows the built-in plugins only.
    ///
    /// # Errors
    /// It makes no sense, or names plugins that there are not.
    pub fn check(&self) -> Result<(), ConfigError> {
        Scheduler::new(self.clone()).check()
    }

    pub(crate) fn backoff_initial(&self) -> Duration {
        self.pod_initial_backoff_seconds.map_or(BACKOFF_INITIAL, Duration::from_secs)
    }

    pub(crate) fn backoff_max(&self) -> Duration {
        self.pod_max_backoff_seconds.map_or(BACKOFF_MAX, Duration::from_secs)
    }

    /// One profile need not have a name.
    pub(crate) fn complete(&mut self) {
        if self.profiles.is_empty() {
            self.profiles.push(Profile::default());
        }
        if let [only] = &mut self.profiles[..] {
            only.scheduler_name.get_or_insert_with(|| DEFAULT_SCHEDULER.to_owned());
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        for (index, profile) in self.profiles.iter().enumerate() {
            let path = format!("profiles[{index}]");
            let name = profile.scheduler_name.as_deref().unwrap_or_default();
            if name.is_empty() {
                return Err(invalid(format!("{path}.schedulerName"), "Required value"));
            }
            if !names.insert(name) {
                let why = format!("Duplicate value: {name:?}");
                return Err(invalid(format!("{path}.schedulerName"), why));
            }
            percentage(&path, profile.percentage_of_nodes_to_score)?;
            unique_args(&path, &profile.plugin_config)?;
        }
        percentage("", self.percentage_of_nodes_to_score)?;
        if self.backoff_initial().is_zero() {
            return Err(invalid("podInitialBackoffSeconds", "must be greater than 0"));
        }
        if self.backoff_max() < self.backoff_initial() {
            let why = "must be greater than or equal to PodInitialBackoffSeconds";
            return Err(invalid("podMaxBackoffSeconds", why));
        }
        self.validate_extenders()
    }

    fn validate_extenders(&self) -> Result<(), ConfigError> {
        let binders = self.extenders.iter().filter(|it| !it.bind_verb.is_empty());
        if binders.count() > 1 {
            return Err(invalid("extenders", "only one extender can implement bind"));
        }
        let mut managed = BTreeSet::new();
        for (index, extender) in self.extenders.iter().enumerate() {
            let path = format!("extenders[{index}]");
            if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
                let why = "must have a positive weight applied to it";
                return Err(invalid(format!("{path}.weight"), why));
            }
            for resource in &extender.managed_resources {
                if !managed.insert(&resource.name) {
                    let why = format!("duplicate extender managed resource name {}", resource.name);
                    return Err(invalid(format!("{path}.managedResources"), why));
                }
            }
        }
        Ok(())
    }
}

impl Plugins {
    /// What is said of a point.
    pub(crate) fn at(&self, point: Point) -> &PluginSelection {
        match point {
            Point::PreEnqueue => &self.pre_enqueue,
            Point::QueueSort => &self.queue_sort,
            Point::PreFilter => &self.pre_filter,
            Point::Filter => &self.filter,
            Point::PostFilter => &self.post_filter,
            Point::PreScore => &self.pre_score,
            Point::Score => &self.score,
            Point::Reserve => &self.reserve,
            Point::Permit => &self.permit,
            Point::PreBind => &self.pre_bind,
            Point::Bind => &self.bind,
            Point::PostBind => &self.post_bind,
        }
    }
}

/// Reads YAML or JSON of a kind; nothing unknown may be in it, and nothing twice.
fn read<T: DeserializeOwned>(text: &str, version: &str, kind: &str) -> Result<T, ConfigError> {
    let decoded = yaml::decode(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
    if let Some(violation) = decoded.violations.first() {
        return Err(ConfigError::Syntax(violation.to_string()));
    }
    let text = |key: &str| decoded.value[key].as_str().unwrap_or_default().to_owned();
    let (found_version, found_kind) = (text("apiVersion"), text("kind"));
    if found_version != version || found_kind != kind {
        return Err(ConfigError::Kind { kind: found_kind, version: found_version });
    }
    serde_json::from_value(decoded.value).map_err(|error| ConfigError::Syntax(error.to_string()))
}

/// Reads the arguments of a plugin; those that are not given are as upstream has them.
pub(crate) fn arguments<T: DeserializeOwned>(name: &str, args: &Value) -> Result<T, ConfigError> {
    let mut args = match args {
        Value::Null => Value::Object(serde_json::Map::new()),
        given => given.clone(),
    };
    if let Some(fields) = args.as_object_mut() {
        let (version, kind) = (fields.remove("apiVersion"), fields.remove("kind"));
        let is = |found: Option<Value>, wanted: &str| found.is_none_or(|found| found == wanted);
        if !is(version, API_VERSION) || !is(kind, &format!("{name}Args")) {
            let why = format!("args for plugin {name} were not of type {name}Args");
            return Err(invalid("pluginConfig", why));
        }
    }
    serde_json::from_value(args).map_err(|error| {
        invalid("pluginConfig", format!("decoding args for plugin {name}: {error}"))
    })
}

pub(crate) fn invalid(path: impl Into<String>, why: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { path: path.into(), why: why.into() }
}

fn percentage(path: &str, percentage: Option<u32>) -> Result<(), ConfigError> {
    match percentage {
        Some(101..) => {
            let path = format!("{path}.percentageOfNodesToScore");
            Err(invalid(path.trim_start_matches('.'), "not in valid range [0-100]"))
        }
        _ => Ok(()),
    }
}

fn unique_args(path: &str, configs: &[PluginConfig]) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    match configs.iter().find(|config| !names.insert(&config.name)) {
        Some(twice) => {
            let why = format!("Duplicate value: {:?}", twice.name);
            Err(invalid(format!("{path}.pluginConfig"), why))
        }
        None => Ok(()),
    }
}
