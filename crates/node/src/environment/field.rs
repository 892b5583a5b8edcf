//! Values of a pod's own fields, for its environment and its volumes.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::quantity::Quantity;

use super::{Missing, Sources};

/// The value at a path of the downward API.
pub(crate) fn pod_field(pod: &Pod, path: &str, sources: &Sources) -> Result<String, Missing> {
    let metadata = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let addresses = || {
        let all: Vec<String> = sources.addresses.iter().map(ToString::to_string).collect();
        all
    };
    let host = || sources.host.map(|host| host.to_string()).unwrap_or_default();
    if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match map {
            "metadata.labels" => &metadata.labels,
            "metadata.annotations" => &metadata.annotations,
            _ => return Err(Missing::Field(path.to_owned())),
        };
        let value = map.as_ref().and_then(|map| map.get(key));
        return Ok(value.cloned().unwrap_or_default());
    }
    let value = match path {
        "metadata.name" => text(&metadata.name),
        "metadata.namespace" => text(&metadata.namespace),
        "metadata.uid" => text(&metadata.uid),
        "metadata.labels" => map_text(metadata.labels.as_ref()),
        "metadata.annotations" => map_text(metadata.annotations.as_ref()),
        "spec.nodeName" => spec.map(|spec| text(&spec.node_name)).unwrap_or_default(),
        "spec.serviceAccountName" => {
            spec.map(|spec| text(&spec.service_account_name)).unwrap_or_default()
        }
        "status.podIP" => addresses().into_iter().next().unwrap_or_default(),
        "status.podIPs" => addresses().join(","),
        "status.hostIP" | "status.hostIPs" => host(),
        _ => return Err(Missing::Field(path.to_owned())),
    };
    Ok(value)
}

/// A line for each entry, as files of the downward API have it.
fn map_text(map: Option<&std::collections::BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", go_quote(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a container asks for or may use of a resource, in units of the divisor, rounded up. One
/// without a limit may use what its pod may, or else all that the node has.
pub(crate) fn resource_field(
    pod: &Pod,
    container: &Container,
    field: &ResourceFieldSelector,
    sources: &Sources,
) -> String {
    let spec = pod.spec.as_ref();
    let named = field.container_name.as_ref().and_then(|name| {
        let all = spec?.containers.iter().chain(spec?.init_containers.iter().flatten());
        all.clone().find(|container| container.name == *name)
    });
    let resources = named.unwrap_or(container).resources.as_ref();
    let Some((list, name)) = field.resource.split_once('.') else { return String::new() };
    let amounts = resources.and_then(|resources| match list {
        "limits" => resources.limits.as_ref(),
        _ => resources.requests.as_ref(),
    });
    let amount = amounts.and_then(|amounts| amounts.get(name));
    let parse = |text: &str| Quantity::parse(text).ok();
    let amount = amount.and_then(|amount| parse(&amount.0));
    let is_of_pods = matches!(field.resource.as_str(), "limits.cpu" | "limits.memory");
    let amount = amount.filter(|amount| !amount.is_zero()).or_else(|| {
        if !is_of_pods && field.resource != "limits.ephemeral-storage" {
            return None;
        }
        let shared = spec.and_then(|spec| spec.resources.as_ref()?.limits.as_ref()?.get(name));
        let shared = shared.filter(|_| is_of_pods).and_then(|shared| parse(&shared.0));
        let shared = shared.filter(|shared| !shared.is_zero());
        shared.or_else(|| parse(&sources.capacity.get(name)?.0))
    });
    let divisor = field.divisor.as_ref().and_then(|divisor| parse(&divisor.0));
    let divisor = divisor.filter(|divisor| !divisor.is_zero());
    let value = |quantity: &Quantity| match name {
        "cpu" => quantity.milli_value(),
        _ => quantity.value(),
    };
    let unit = divisor.as_ref().map_or(if name == "cpu" { 1000 } else { 1 }, value).max(1);
    let amount = amount.as_ref().map_or(0, value);
    (amount / unit + i64::from(amount % unit > 0)).to_string()
}
