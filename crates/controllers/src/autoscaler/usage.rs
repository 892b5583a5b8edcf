//! How many replicas the use of a resource makes.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{MetricTarget, MetricValueStatus};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Wire;
use kubewright_apimachinery::quantity::{Format, Quantity};

use super::metrics::Samples;
use crate::part::text;

/// How long after its start the processor use of a pod may not be what it will be.
const STARTUP: SignedDuration = SignedDuration::from_mins(5);
/// How long after its start a pod that was never ready counts as one that starts.
const FIRST_READY: SignedDuration = SignedDuration::from_secs(30);

/// What the use should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// On average, in thousandths.
    Value(i64),
    /// On average, in hundredths of what is requested.
    Utilization(i32),
}

/// How far from its target a metric may be: below, and above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance {
    pub(super) down: f64,
    pub(super) up: f64,
}

/// How many replicas there should be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) replicas: i32,
    pub(super) value: MetricValueStatus,
}

/// What is to be answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) pods: &'a [&'a Pod],
    /// Empty for what is no resource.
    pub(super) resource: &'a str,
    pub(super) container: Option<&'a str>,
    pub(super) current: i32,
    pub(super) tolerance: Tolerance,
    pub(super) now: Timestamp,
}

impl Target {
    pub(super) fn of(target: &MetricTarget) -> Result<Self, &'static str> {
        let value = target.average_value.as_ref().and_then(|it| Quantity::parse(&it.0).ok());
        let utilization = target.average_utilization.map(Target::Utilization);
        value.map(|it| Target::Value(it.milli_value())).or(utilization).ok_or(
            "invalid resource metric source: neither an average utilization target nor an average \
             value (usage) target was set",
        )
    }

    /// What is measured.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Target::Value(_) => "usage",
            Target::Utilization(_) => "utilization",
        }
    }

    /// How people call the metric.
    pub(super) fn metric_name(self, resource: &str, is_of_container: bool) -> String {
        match (self, is_of_container) {
            (Target::Value(_), _) => format!("{resource} resource"),
            (Target::Utilization(_), false) => {
                format!("{resource} resource utilization (percentage of request)")
            }
            (Target::Utilization(_), true) => {
                format!("{resource} container resource utilization (percentage of request)")
            }
        }
    }
}

impl Tolerance {
    fn holds(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

/// Pods by what is known of them.
#[derive(Debug, Default)]
struct Groups {
    ready: usize,
    /// They start, and use more or less than they will.
    unready: Vec<String>,
    /// Nobody knows what they use.
    missing: Vec<String>,
    /// They are over, or about to be.
    ignored: Vec<String>,
}

impl Question<'_> {
    /// # Errors
    /// Why it cannot be answered.
    pub(super) fn answer(&self, mut samples: Samples, target: Target) -> Result<Answer, String> {
        if self.pods.is_empty() {
            return Err("no pods returned by selector while calculating replica count".to_owned());
        }
        let groups = self.group(&samples);
        samples.retain(|name, _| !groups.ignored.contains(name) && !groups.unready.contains(name));
        let mut values: BTreeMap<String, i64> =
            samples.into_iter().map(|(name, sample)| (name, sample.value)).collect();
        if values.is_empty() {
            let why = "did not receive metrics for targeted pods (pods might be unready)";
            return Err(why.to_owned());
        }
        let requests = match target {
            Target::Utilization(_) => self.requests()?,
            Target::Value(_) => BTreeMap::new(),
        };
        let (ratio, value) = self.ratio(&values, &requests, target)?;
        let answer = |replicas| Ok(Answer { replicas, value: value.clone() });
        let rises_unready = !groups.unready.is_empty() && ratio > 1.0;
        if !rises_unready && groups.missing.is_empty() {
            return match self.tolerance.holds(ratio) {
                true => answer(self.current),
                false => answer(ceil(ratio * groups.ready as f64)),
            };
        }
        // Of pods that are not known the best is assumed for not changing anything: that they use
        // what they may when there seem to be too many, and nothing when there seem to be too few.
        for name in &groups.missing {
            let assumed = match target {
                _ if ratio > 1.0 => 0,
                Target::Value(value) => value,
                Target::Utilization(percent) => {
                    requests.get(name).copied().unwrap_or_default() * i64::from(percent.max(100))
                        / 100
                }
            };
            if ratio != 1.0 {
                values.insert(name.clone(), assumed);
            }
        }
        if rises_unready {
            values.extend(groups.unready.iter().map(|name| (name.clone(), 0)));
        }
        let (assumed, _) = self.ratio(&values, &requests, target)?;
        let turns = (ratio < 1.0 && assumed > 1.0) || (ratio > 1.0 && assumed < 1.0);
        let replicas = ceil(assumed * values.len() as f64);
        let is_contrary = (assumed < 1.0 && replicas > self.current)
            || (assumed > 1.0 && replicas < self.current);
        match self.tolerance.holds(assumed) || turns || is_contrary {
            true => answer(self.current),
            false => answer(replicas),
        }
    }

    /// By what all pods together have to do.
    ///
    /// # Errors
    /// Why it cannot be answered.
    pub(super) fn by_total(&self, used: i64, target: i64) -> Result<i32, String> {
        let ratio = used as f64 / target as f64;
        if self.tolerance.holds(ratio) {
            return Ok(self.current);
        }
        if self.pods.is_empty() {
            let why = "unable to calculate ready pods: no pods returned by selector while \
                       calculating replica count";
            return Err(why.to_owned());
        }
        let is_ready = |pod: &&&Pod| {
            let status = pod.status.as_ref();
            let mut conditions = status.iter().flat_map(|it| it.conditions.iter().flatten());
            status.is_some_and(|status| text(&status.phase) == "Running")
                && conditions.any(|it| it.type_ == "Ready" && it.status == "True")
        };
        let ready = self.pods.iter().filter(is_ready).count();
        Ok(ceil(ratio * ready as f64))
    }

    fn ratio(
        &self,
        values: &BTreeMap<String, i64>,
        requests: &BTreeMap<String, i64>,
        target: Target,
    ) -> Result<(f64, MetricValueStatus), String> {
        let (total, count): (i64, usize) = match target {
            Target::Value(_) => (values.values().sum(), values.len()),
            Target::Utilization(_) => {
                let known = values.iter().filter(|(name, _)| requests.contains_key(*name));
                known.fold((0, 0), |(total, count), (_, value)| (total + value, count + 1))
            }
        };
        let average = total / i64::try_from(count.max(1)).unwrap_or(i64::MAX);
        let format = if self.resource == "memory" { Format::BinarySi } else { Format::DecimalSi };
        let quantity = Wire(Quantity::new(average, -3, format).to_string());
        let mut status =
            MetricValueStatus { average_value: Some(quantity), ..MetricValueStatus::default() };
        match target {
            Target::Value(wanted) => Ok((average as f64 / wanted as f64, status)),
            Target::Utilization(wanted) => {
                let requested: i64 = values.keys().filter_map(|name| requests.get(name)).sum();
                if requested == 0 {
                    return Err("no metrics returned matched known pods".to_owned());
                }
                let percent = i32::try_from(total * 100 / requested).unwrap_or(i32::MAX);
                status.average_utilization = Some(percent);
                Ok((f64::from(percent) / f64::from(wanted), status))
            }
        }
    }

    fn group(&self, samples: &Samples) -> Groups {
        let mut groups = Groups::default();
        for pod in self.pods {
            let name = text(&pod.metadata.name).to_owned();
            let phase = pod.status.as_ref().map_or("", |status| text(&status.phase));
            if pod.metadata.deletion_timestamp.is_some() || phase == "Failed" {
                groups.ignored.push(name);
            } else if phase == "Pending" {
                groups.unready.push(name);
            } else if let Some(sample) = samples.get(&name) {
                let since = sample.at.saturating_sub(sample.window).unwrap_or(sample.at);
                match self.resource == "cpu" && self.starts(pod, since) {
                    true => groups.unready.push(name),
                    false => groups.ready += 1,
                }
            } else {
                groups.missing.push(name);
            }
        }
        groups
    }

    /// Whether a pod starts, given since when its use was measured.
    fn starts(&self, pod: &Pod, measured_since: Timestamp) -> bool {
        let Some(status) = &pod.status else { return true };
        let ready = status.conditions.iter().flatten().find(|it| it.type_ == "Ready");
        let (Some(ready), Some(started)) = (ready, &status.start_time) else { return true };
        let changed = ready.last_transition_time.as_ref().map_or(started.0, |time| time.0);
        let is_unready = ready.status == "False";
        match self.now.duration_since(started.0) < STARTUP {
            true => is_unready || measured_since < changed,
            false => is_unready && changed.duration_since(started.0) < FIRST_READY,
        }
    }

    /// What pods request, in thousandths.
    fn requests(&self) -> Result<BTreeMap<String, i64>, String> {
        let mut requests = BTreeMap::new();
        for pod in self.pods {
            let name = text(&pod.metadata.name);
            requests.insert(name.to_owned(), self.request(pod, name)?);
        }
        Ok(requests)
    }

    fn request(&self, pod: &Pod, name: &str) -> Result<i64, String> {
        let Some(spec) = &pod.spec else { return Ok(0) };
        let parse = |quantity: &Wire| Quantity::parse(&quantity.0).map_or(0, |it| it.milli_value());
        let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        if let Some(request) =
            whole.and_then(|it| it.get(self.resource)).filter(|_| self.container.is_none())
        {
            return Ok(parse(request));
        }
        let is_sidecar = |it: &&Container| it.restart_policy.as_deref() == Some("Always");
        let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
        let is_meant =
            |it: &&Container| self.container.is_none_or(|container| container == it.name);
        let meant: Vec<&Container> =
            spec.containers.iter().chain(sidecars).filter(is_meant).collect();
        if let Some(container) = self.container.filter(|_| meant.is_empty()) {
            return Err(format!("container {container} not found in Pod {name}"));
        }
        let mut total = 0;
        for container in meant {
            let requests = container.resources.as_ref().and_then(|it| it.requests.as_ref());
            let request = requests.and_then(|it| it.get(self.resource)).ok_or_else(|| {
                let (resource, container) = (self.resource, &container.name);
                format!("missing request for {resource} in container {container} of Pod {name}")
            })?;
            total += parse(request);
        }
        Ok(total)
    }
}

/// How many replicas it takes for each to do no more than `target` of what is to be done, and what
/// each of those that there are does.
pub(super) fn per_pod(used: i64, target: i64, replicas: i32, tolerance: Tolerance) -> (i32, i64) {
    let ratio = used as f64 / (target as f64 * f64::from(replicas));
    let wanted = match tolerance.holds(ratio) {
        true => replicas,
        false => ceil(used as f64 / target as f64),
    };
    let each = match used {
        i64::MAX => used,
        used => (used as f64 / f64::from(replicas)).ceil() as i64,
    };
    (wanted, each)
}

fn ceil(replicas: f64) -> i32 {
    // A number of replicas that does not fit is too large whatever it is.
    replicas.ceil().min(f64::from(i32::MAX)) as i32
}
