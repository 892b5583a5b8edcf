//! What one metric of an autoscaler asks for, and how that is told.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus, MetricIdentifier,
    MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource,
    ObjectMetricStatus, PodsMetricSource, PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use kube::core::Selector;
use kubewright_apimachinery::quantity::{Format, Quantity};

use super::metrics;
use super::usage::{self, Question, Target};

/// How many replicas a metric asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// How people call the metric.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// A metric that tells nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) why: String,
    /// The same, with what was tried.
    pub(super) whole: String,
}

/// What there is to scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) namespace: &'a str,
    /// Selects the pods.
    pub(super) selector: &'a str,
    pub(super) question: Question<'a>,
    /// How many replicas status tells of, which may be others than are wanted.
    pub(super) reported: i32,
}

/// Asks one metric.
pub(super) async fn propose(
    client: &Client,
    spec: &MetricSpec,
    scene: &Scene<'_>,
) -> Result<Proposal, Failure> {
    if let Some(source) = &spec.resource {
        let asked = of_resource(client, scene, &source.name, None, &source.target).await;
        let (replicas, name, current) = asked.map_err(|why| Failure {
            reason: "FailedGetResourceMetric",
            whole: format!("failed to get {} resource metric value: {why}", source.name),
            why,
        })?;
        let told = ResourceMetricStatus { name: source.name.clone(), current };
        let status = MetricStatus { resource: Some(told), ..status("Resource") };
        return Ok(Proposal { replicas, name, status });
    }
    if let Some(source) = &spec.container_resource {
        let container = Some(source.container.as_str());
        let asked = of_resource(client, scene, &source.name, container, &source.target).await;
        let (replicas, name, current) = asked.map_err(|why| Failure {
            reason: "FailedGetContainerResourceMetric",
            whole: format!("failed to get {} container metric value: {why}", source.container),
            why,
        })?;
        let (name_of, container) = (source.name.clone(), source.container.clone());
        let told = ContainerResourceMetricStatus { name: name_of, container, current };
        let status = MetricStatus { container_resource: Some(told), ..status("ContainerResource") };
        return Ok(Proposal { replicas, name, status });
    }
    if let Some(source) = &spec.pods {
        return of_pods(client, scene, source).await;
    }
    if let Some(source) = &spec.object {
        return of_object(client, scene, source).await;
    }
    if let Some(source) = &spec.external {
        return external(client, scene, source).await;
    }
    let why = format!("unknown metric source type {:?}", spec.type_);
    Err(Failure { reason: "InvalidMetricSourceType", whole: why.clone(), why })
}

async fn of_resource(
    client: &Client,
    scene: &Scene<'_>,
    resource: &str,
    container: Option<&str>,
    target: &MetricTarget,
) -> Result<(i32, String, MetricValueStatus), String> {
    let target = Target::of(target)?;
    let what = target.noun();
    let failed = |why: String| format!("failed to get {resource} {what}: {why}");
    let Scene { namespace, selector, question, .. } = *scene;
    let samples = metrics::of_resource(client, namespace, selector, resource, container)
        .await
        .map_err(|why| failed(format!("unable to get metrics for resource {resource}: {why}")))?;
    let question = Question { resource, container, ..question };
    let answer = question.answer(samples, target).map_err(failed)?;
    Ok((answer.replicas, target.metric_name(resource, container.is_some()), answer.value))
}

async fn of_pods(
    client: &Client,
    scene: &Scene<'_>,
    source: &PodsMetricSource,
) -> Result<Proposal, Failure> {
    let metric = &source.metric.name;
    let failed = |why: String| Failure {
        reason: "FailedGetPodsMetric",
        whole: format!("failed to get pods metric value: {why}"),
        why,
    };
    let wanted = milli(source.target.average_value.as_ref()).unwrap_or_default();
    let narrowed = query(source.metric.selector.as_ref()).map_err(failed)?;
    let Scene { namespace, selector, question, .. } = *scene;
    let samples = metrics::of_pods(client, namespace, selector, metric, &narrowed)
        .await
        .map_err(|why| failed(format!("unable to get metric {metric}: {why}")))?;
    let answer = question.answer(samples, Target::Value(wanted)).map_err(failed)?;
    let told = PodsMetricStatus { metric: source.metric.clone(), current: answer.value };
    Ok(Proposal {
        replicas: answer.replicas,
        name: format!("pods metric {metric}"),
        status: MetricStatus { pods: Some(told), ..status("Pods") },
    })
}

async fn of_object(
    client: &Client,
    scene: &Scene<'_>,
    source: &ObjectMetricSource,
) -> Result<Proposal, Failure> {
    let (metric, object) = (&source.metric.name, &source.described_object);
    let (kind, name) = (&object.kind, &object.name);
    let failed = |why: String, whole: String| Failure {
        reason: "FailedGetObjectMetric",
        why,
        whole: format!("failed to get object metric value: {whole}"),
    };
    let plain = |why: String| failed(why.clone(), why);
    let Scene { namespace, question, .. } = *scene;
    let narrowed = query(source.metric.selector.as_ref()).map_err(plain)?;
    let read = async || {
        metrics::of_object(client, namespace, object, metric, &narrowed).await.map_err(|why| {
            format!("unable to get metric {metric}: {kind} on {namespace} {name}/{why}")
        })
    };
    let target = &source.target;
    let value = milli(target.value.as_ref()).filter(|_| target.type_ == "Value");
    let average = milli(target.average_value.as_ref()).filter(|_| target.type_ == "AverageValue");
    let (replicas, called, current) = if let Some(wanted) = value {
        let used = read().await.map_err(plain)?;
        let replicas = question.by_total(used, wanted).map_err(plain)?;
        (replicas, format!("{kind} metric {metric}"), total(used))
    } else if let Some(wanted) = average {
        let used = read().await.map_err(|why| {
            let whole = format!("failed to get {metric} object metric: {why}");
            failed(why, whole)
        })?;
        let (replicas, each) = usage::per_pod(used, wanted, scene.reported, question.tolerance);
        (replicas, called(&source.metric), self::average(each))
    } else {
        let why = "invalid object metric source: neither a value target nor an average value \
                   target was set";
        return Err(plain(why.to_owned()));
    };
    let told = ObjectMetricStatus {
        described_object: object.clone(),
        metric: source.metric.clone(),
        current,
    };
    let status = MetricStatus { object: Some(told), ..status("Object") };
    Ok(Proposal { replicas, name: called, status })
}

async fn external(
    client: &Client,
    scene: &Scene<'_>,
    source: &ExternalMetricSource,
) -> Result<Proposal, Failure> {
    let metric = &source.metric.name;
    let failed = |why: String, whole: String| Failure {
        reason: "FailedGetExternalMetric",
        why,
        whole: format!("failed to get {metric} external metric value: {whole}"),
    };
    let Scene { namespace, question, .. } = *scene;
    let narrower = source.metric.selector.as_ref();
    let read = async || {
        let narrowed = query(narrower)?;
        let values = metrics::external(client, namespace, metric, &narrowed).await;
        let values = values.map_err(|why| {
            let narrower = printed(narrower);
            format!("unable to get external metric {namespace}/{metric}/{narrower}: {why}")
        })?;
        Ok(values.into_iter().fold(0, i64::saturating_add))
    };
    let target = &source.target;
    let (replicas, current) = if let Some(wanted) = milli(target.average_value.as_ref()) {
        let used = read().await.map_err(|why: String| {
            let whole = format!("failed to get {metric} external metric: {why}");
            failed(why, whole)
        })?;
        let (replicas, each) = usage::per_pod(used, wanted, scene.reported, question.tolerance);
        (replicas, average(each))
    } else if let Some(wanted) = milli(target.value.as_ref()) {
        let told = |why: String| {
            let whole = format!("failed to get external metric {metric}: {why}");
            failed(why, whole)
        };
        let used = read().await.map_err(told)?;
        let replicas = question.by_total(used, wanted).map_err(told)?;
        (replicas, total(used))
    } else {
        let why = "invalid external metric source: neither a value target nor an average value \
                   target was set";
        return Err(failed(why.to_owned(), why.to_owned()));
    };
    let told = ExternalMetricStatus { metric: source.metric.clone(), current };
    let status = MetricStatus { external: Some(told), ..status("External") };
    Ok(Proposal { replicas, name: called(&source.metric), status })
}

fn status(kind: &str) -> MetricStatus {
    MetricStatus { type_: kind.to_owned(), ..MetricStatus::default() }
}

fn total(milli: i64) -> MetricValueStatus {
    MetricValueStatus { value: Some(wire(milli)), ..MetricValueStatus::default() }
}

fn average(milli: i64) -> MetricValueStatus {
    MetricValueStatus { average_value: Some(wire(milli)), ..MetricValueStatus::default() }
}

fn wire(milli: i64) -> Wire {
    Wire(Quantity::new(milli, -3, Format::DecimalSi).to_string())
}

fn milli(quantity: Option<&Wire>) -> Option<i64> {
    Quantity::parse(&quantity?.0).ok().map(|quantity| quantity.milli_value())
}

/// How upstream calls a metric that is of no pod.
fn called(metric: &MetricIdentifier) -> String {
    format!("external metric {}({})", metric.name, printed(metric.selector.as_ref()))
}

/// A selector as a part of a query; empty for none.
fn query(selector: Option<&LabelSelector>) -> Result<String, String> {
    let Some(selector) = selector else { return Ok(String::new()) };
    let selector = Selector::try_from(selector.clone()).map_err(|error| error.to_string())?;
    Ok(selector.to_string())
}

/// A selector as Go prints it.
fn printed(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let none = BTreeMap::new();
    let labels = selector.match_labels.as_ref().unwrap_or(&none).iter();
    let labels: String = labels.map(|(name, value)| format!("{name}: {value},")).collect();
    let rules = selector.match_expressions.iter().flatten().map(|rule| {
        let values = rule.values.as_deref().unwrap_or_default().join(" ");
        let (key, operator) = (&rule.key, &rule.operator);
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    });
    let rules: String = rules.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
}
