//! What pods and volumes refer to by name: all that a kubelet must read to run a pod.

use serde_json::Value;

/// The lists of a pod's containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Where a volume of a pod names a secret.
const VOLUME_SECRETS: [&str; 10] = [
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/csi/nodePublishSecretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/secret/secretName",
    "/storageos/secretRef/name",
];

/// Where the spec of a persistent volume refers to a secret that a kubelet needs. What only
/// controllers of a CSI driver need is none of its business.
const PERSISTENT_VOLUME_SECRETS: [(&str, Home); 10] = [
    ("/cephfs/secretRef", Home::Claim),
    ("/cinder/secretRef", Home::Said),
    ("/csi/nodeExpandSecretRef", Home::Said),
    ("/csi/nodePublishSecretRef", Home::Said),
    ("/csi/nodeStageSecretRef", Home::Said),
    ("/flexVolume/secretRef", Home::Claim),
    ("/iscsi/secretRef", Home::Claim),
    ("/rbd/secretRef", Home::Claim),
    ("/scaleIO/secretRef", Home::Claim),
    ("/storageos/secretRef", Home::Said),
];

/// Where a secret is whose reference names no namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// Beside the claim.
    Claim,
    /// Nowhere: the reference must say it.
    Said,
}

/// The secrets that a pod refers to by itself.
pub(crate) fn secrets(pod: &Value) -> impl Iterator<Item = &str> {
    let spec = &pod["spec"];
    let pulled = items(&spec["imagePullSecrets"]).map(|secret| &secret["name"]);
    let read = variables(spec, "secretRef", "secretKeyRef");
    let mounted = items(&spec["volumes"]).flat_map(|volume| {
        let direct = VOLUME_SECRETS.iter().filter_map(|at| volume.pointer(at));
        direct.chain(projected(volume, "secret"))
    });
    names(pulled.chain(read).chain(mounted))
}

/// The config maps that a pod refers to.
pub(crate) fn config_maps(pod: &Value) -> impl Iterator<Item = &str> {
    let spec = &pod["spec"];
    let read = variables(spec, "configMapRef", "configMapKeyRef");
    let mounted = items(&spec["volumes"]).flat_map(|volume| {
        let direct = volume.pointer("/configMap/name");
        direct.into_iter().chain(projected(volume, "configMap"))
    });
    names(read.chain(mounted))
}

/// The claims of a pod's volumes.
pub(crate) fn claims(pod: &Value) -> impl Iterator<Item = String> {
    items(&pod["spec"]["volumes"]).filter_map(|volume| claim(pod, volume))
}

/// The claim of one of a pod's volumes.
pub(crate) fn claim(pod: &Value, volume: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(named) = volume.pointer("/persistentVolumeClaim/claimName") {
        return Some(text(named)).filter(|name| !name.is_empty());
    }
    let is_made = volume["ephemeral"].is_object();
    is_made.then(|| text(&pod["metadata"]["name"]) + "-" + &text(&volume["name"]))
}

/// The claims on devices that a pod refers to, or that were made for it.
pub(crate) fn resource_claims(pod: &Value) -> impl Iterator<Item = &str> {
    let status = &pod["status"];
    let made = |claim: &Value| {
        let of_it = |status: &&Value| status["name"] == claim["name"];
        let found = items(&status["resourceClaimStatuses"]).find(of_it);
        found.map(|status| &status["resourceClaimName"])
    };
    let stated = items(&pod["spec"]["resourceClaims"]).filter_map(move |claim| {
        match claim.get("resourceClaimName") {
            Some(name) => Some(name),
            None => claim.get("resourceClaimTemplateName").and_then(|_| made(claim)),
        }
    });
    names(stated.chain(status.pointer("/extendedResourceClaimStatus/resourceClaimName")))
}

/// The secrets that a kubelet needs for a persistent volume, each with its namespace.
pub(crate) fn persistent_volume_secrets(volume: &Value) -> impl Iterator<Item = (&str, &str)> {
    let spec = &volume["spec"];
    let claimed = text(&spec["claimRef"]["namespace"]);
    let referred = PERSISTENT_VOLUME_SECRETS.iter().filter_map(move |(at, home)| {
        let reference = spec.pointer(at)?;
        let namespace = match text(&reference["namespace"]) {
            "" if *home == Home::Claim => claimed,
            said => said,
        };
        Some((namespace, text(&reference["name"])))
    });
    let azure = &spec["azureFile"];
    let azure = match text(&azure["secretNamespace"]) {
        "" => (claimed, text(&azure["secretName"])),
        said => (said, text(&azure["secretName"])),
    };
    referred.chain([azure]).filter(|(_, name)| !name.is_empty())
}

/// What the variables of all containers of a pod are taken from: whole objects, and keys of them.
fn variables<'a>(
    spec: &'a Value,
    whole: &'static str,
    key: &'static str,
) -> impl Iterator<Item = &'a Value> {
    let containers = CONTAINERS.iter().flat_map(|list| items(&spec[*list]));
    containers.flat_map(move |container| {
        let wholes = items(&container["envFrom"]).map(move |from| &from[whole]["name"]);
        let keys = items(&container["env"]).map(move |env| &env["valueFrom"][key]["name"]);
        wholes.chain(keys)
    })
}

/// What a projected volume takes from objects of one kind.
fn projected<'a>(volume: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    items(&volume["projected"]["sources"]).map(move |source| &source[kind]["name"])
}

fn names<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = &'a str> {
    values.filter_map(Value::as_str).filter(|name| !name.is_empty())
}

fn items(list: &Value) -> std::slice::Iter<'_, Value> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
