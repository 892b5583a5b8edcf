//! What metrics APIs tell: `metrics.k8s.io` of what pods use, `custom.metrics.k8s.io` of pods and
//! other objects, `external.metrics.k8s.io` of anything else.
//!
//! Errors are texts, upstream's, since a person reads them in a condition and nobody else.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use http::Request;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use kube::Client;
use kube::api::GroupVersionKind;
use kube::discovery;
use kubewright_apimachinery::quantity::Quantity;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What a pod uses, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) value: i64,
    pub(super) at: Timestamp,
    pub(super) window: SignedDuration,
}

/// What pods use, by name.
pub(super) type Samples = BTreeMap<String, Sample>;

/// Over how long a custom metric was measured that does not say so.
const WINDOW: SignedDuration = SignedDuration::from_mins(1);

const CUSTOM: &str = "custom.metrics.k8s.io";
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
const EXTERNAL: &str = "external.metrics.k8s.io";

#[derive(Debug, Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Debug, Deserialize)]
struct PodMetrics {
    metadata: Named,
    timestamp: Timestamp,
    #[serde(default)]
    window: String,
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    usage: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomMetric {
    described_object: Named,
    timestamp: Timestamp,
    /// The older version has a shorter name for it.
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: String,
}

#[derive(Debug, Deserialize)]
struct ExternalMetric {
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Option<Version>,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
}

/// What pods, or one container of each, use of a resource.
pub(super) async fn of_resource(
    client: &Client,
    namespace: &str,
    selector: &str,
    resource: &str,
    container: Option<&str>,
) -> Result<Samples, String> {
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods");
    let query = [("labelSelector", selector)];
    let list: List<PodMetrics> = get(client, &path, &query, "pods.metrics.k8s.io")
        .await
        .map_err(|why| format!("unable to fetch metrics from resource metrics API: {why}"))?;
    if list.items.is_empty() {
        return Err("no metrics returned from resource metrics API".to_owned());
    }
    Ok(samples(list, resource, container))
}

/// A custom metric of each pod.
pub(super) async fn of_pods(
    client: &Client,
    namespace: &str,
    selector: &str,
    metric: &str,
    metric_selector: &str,
) -> Result<Samples, String> {
    let place = format!("namespaces/{namespace}/pods/*/{metric}");
    let query = [("labelSelector", selector), ("metricLabelSelector", metric_selector)];
    let list = custom(client, &place, &query, "pods").await?;
    if list.items.is_empty() {
        return Err("no metrics returned from custom metrics API".to_owned());
    }
    let sample = |it: CustomMetric| {
        let window = it.window_seconds.map_or(WINDOW, SignedDuration::from_secs);
        let value = milli(&it.value);
        (it.described_object.name, Sample { value, at: it.timestamp, window })
    };
    Ok(list.items.into_iter().map(sample).collect())
}

/// A custom metric of an object, in thousandths.
pub(super) async fn of_object(
    client: &Client,
    namespace: &str,
    object: &CrossVersionObjectReference,
    metric: &str,
    metric_selector: &str,
) -> Result<i64, String> {
    let api_version = object.api_version.as_deref().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (place, resource) = match (group, object.kind.as_str()) {
        // Whatever name it has: nobody looks out of his own namespace.
        ("", "Namespace") => {
            (format!("namespaces/{namespace}/metrics/{metric}"), "metrics".to_owned())
        }
        (group, kind) => {
            let wanted = GroupVersionKind::gvk(group, version, kind);
            let found = discovery::pinned_kind(client, &wanted).await;
            let (found, _) = found.map_err(|_| {
                let name = [kind, group].join(".");
                let name = name.trim_end_matches('.');
                unfetched(format!("unable to map kind {name} to resource: no matches for {name}"))
            })?;
            let resource = [found.plural.as_str(), group].join(".");
            let resource = resource.trim_end_matches('.').to_owned();
            let name = &object.name;
            (format!("namespaces/{namespace}/{resource}/{name}/{metric}"), resource)
        }
    };
    let list =
        custom(client, &place, &[("metricLabelSelector", metric_selector)], &resource).await?;
    match list.items.as_slice() {
        [it] => Ok(milli(&it.value)),
        items => Err(unfetched(format!(
            "the custom metrics API server returned {} results when we asked for exactly one",
            items.len()
        ))),
    }
}

/// The values of an external metric, in thousandths.
pub(super) async fn external(
    client: &Client,
    namespace: &str,
    metric: &str,
    metric_selector: &str,
) -> Result<Vec<i64>, String> {
    let path = format!("/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/{metric}");
    let query = [("labelSelector", metric_selector)];
    let list: List<ExternalMetric> = get(client, &path, &query, &format!("{metric}.{EXTERNAL}"))
        .await
        .map_err(|why| format!("unable to fetch metrics from external metrics API: {why}"))?;
    if list.items.is_empty() {
        return Err("no metrics returned from external metrics API".to_owned());
    }
    Ok(list.items.iter().map(|it| milli(&it.value)).collect())
}

async fn custom(
    client: &Client,
    place: &str,
    query: &[(&str, &str)],
    resource: &str,
) -> Result<List<CustomMetric>, String> {
    let group: Group = get(client, &format!("/apis/{CUSTOM}"), &[], CUSTOM)
        .await
        .map_err(|_| unfetched(format!("no custom metrics API ({CUSTOM}) registered")))?;
    let mut versions = group.preferred_version.iter().chain(&group.versions);
    let version = versions
        .find(|it| CUSTOM_VERSIONS.contains(&it.version.as_str()))
        .ok_or_else(|| unfetched("no known available metric versions found".to_owned()))?;
    let path = format!("/apis/{CUSTOM}/{}/{place}", version.version);
    get(client, &path, query, &format!("{resource}.{CUSTOM}")).await.map_err(unfetched)
}

fn unfetched(why: String) -> String {
    format!("unable to fetch metrics from custom metrics API: {why}")
}

/// `what` is how upstream's client calls what it has asked for.
async fn get<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &[(&str, &str)],
    what: &str,
) -> Result<T, String> {
    let given = query.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", percent_encoding(value))).collect();
    let uri = format!("{path}?{}", query.join("&"));
    let uri = uri.trim_end_matches('?');
    let request = Request::get(uri).body(Vec::new()).map_err(|error| error.to_string())?;
    client.request(request).await.map_err(|error| match &error {
        // What is no answer of the API is told in the client's own words.
        kube::Error::Api(status) if status.reason.is_empty() || status.details.is_none() => {
            match status.code {
                404 => format!("the server could not find the requested resource (get {what})"),
                503 => format!("the server is currently unable to handle the request (get {what})"),
                _ => status.message.clone(),
            }
        }
        error => super::said(error),
    })
}

fn samples(list: List<PodMetrics>, resource: &str, container: Option<&str>) -> Samples {
    let mut samples = Samples::new();
    for pod in list.items {
        let is_meant = |it: &&Container| container.is_none_or(|container| container == it.name);
        let usages = pod
            .containers
            .iter()
            .filter(is_meant)
            .map(|it| it.usage.get(resource).and_then(|usage| Quantity::parse(usage).ok()));
        // A pod of whose containers not all are known is as good as unknown.
        let usages: Option<Vec<Quantity>> = usages.collect();
        let Some(usages) = usages.filter(|usages| !usages.is_empty()) else { continue };
        let value = usages.iter().map(Quantity::milli_value).sum();
        let window: SignedDuration = pod.window.parse().unwrap_or(SignedDuration::ZERO);
        samples.insert(pod.metadata.name, Sample { value, at: pod.timestamp, window });
    }
    samples
}

fn milli(quantity: &str) -> i64 {
    Quantity::parse(quantity).map_or(0, |quantity| quantity.milli_value())
}

/// A text as a part of a query.
fn percent_encoding(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            (byte as char).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
