//! ServiceAccount: a pod runs as somebody. It gets the account of its namespace if it names none,
//! a token of that account in every container, and what the account has to pull images with.

use std::time::Duration;

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::status::Status;
use kubewright_store::Start;
use serde_json::{Value, json};

use super::{Attributes, Operation, Scene, items, list_of, text};
use crate::meta;
use crate::refusal::Refusal;

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour, and some seconds by which the token is known to be one that only warns when it is used
/// for longer.
const TOKEN_SECONDS: u32 = 60 * 60 + 7;
/// Nine rests of at most 200 milliseconds between upstream's ten looks.
const DEFAULT_WAIT: Duration = Duration::from_millis(1_800);

/// The account of a new namespace may be a moment late: a controller makes it. Pods that want it
/// wait for it, no longer than upstream lets them.
pub(super) async fn wait_for_default(scene: &Scene<'_>, attributes: &Attributes<'_>, pod: &Value) {
    let gvr = &attributes.resource.gvr;
    let is_pod = gvr.group.is_empty() && gvr.resource == "pods";
    if !is_pod || !attributes.creates() || is_mirror(pod) {
        return;
    }
    if !matches!(text(&pod["spec"]["serviceAccountName"]), "" | DEFAULT) {
        return;
    }
    let key = key(attributes.namespace.unwrap_or_default(), DEFAULT);
    let Ok(mut changes) = scene.store.watch(&key, Start::Now) else { return };
    let appears =
        async { while scene.store.get(&key).is_none() && changes.next().await.is_ok() {} };
    // Whether it came in time is asked again by whoever needs it.
    let _ = tokio::time::timeout(DEFAULT_WAIT, appears).await;
}

pub(super) fn admit(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Refusal> {
    if !attributes.creates() {
        return Ok(());
    }
    // The kubelet takes a mirror pod that is not as it wrote it for another one.
    if is_mirror(pod) {
        return judge(scene, attributes, pod);
    }
    let spec = &mut pod["spec"];
    if text(&spec["serviceAccountName"]).is_empty() {
        spec["serviceAccountName"] = DEFAULT.into();
    }
    // The old name of the field always says the same.
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
    let account = account(scene, attributes, pod)?;
    let automount = [&pod["spec"], &account]
        .into_iter()
        .find_map(|wish| wish["automountServiceAccountToken"].as_bool());
    if automount.unwrap_or(true) {
        mount_token(&mut pod["spec"]);
    }
    let secrets = items(&account["imagePullSecrets"]);
    if items(&pod["spec"]["imagePullSecrets"]).is_empty() && !secrets.is_empty() {
        let names = secrets.iter().map(|secret| match secret.get("name") {
            Some(name) => json!({"name": name}),
            None => json!({}),
        });
        pod["spec"]["imagePullSecrets"] = names.collect();
    }
    judge(scene, attributes, pod)
}

pub(super) fn judge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), Refusal> {
    let ephemeral = match (attributes.operation, attributes.part) {
        (Operation::Create, None) => false,
        (Operation::Update, Some("ephemeralcontainers")) => true,
        _ => return Ok(()),
    };
    if !ephemeral && is_mirror(pod) {
        return judge_mirror(pod).map_err(|why| attributes.forbid(Some(pod), why));
    }
    if text(&pod["spec"]["serviceAccountName"]).is_empty() {
        let namespace = attributes.namespace.unwrap_or_default();
        let name = meta::text(pod, "name");
        let why = format!("no service account specified for pod {namespace}/{name}");
        return Err(attributes.forbid(Some(pod), why));
    }
    let account = account(scene, attributes, pod)?;
    if !enforces_secrets(&account) {
        return Ok(());
    }
    match ephemeral {
        true => Secrets::of(&account)
            .check_containers(&pod["spec"]["ephemeralContainers"], "ephemeral container")
            // Upstream forgets to say that this is forbidden.
            .map_err(|why| Box::new(Status::internal_error(why))),
        false => {
            Secrets::of(&account).check_pod(pod).map_err(|why| attributes.forbid(Some(pod), why))
        }
    }
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// A mirror pod stands for one that runs without the API, so it may not refer to it.
fn judge_mirror(pod: &Value) -> Result<(), &'static str> {
    let spec = &pod["spec"];
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if references_secrets(spec) {
        return Err("a mirror pod may not reference secrets");
    }
    let mut sources =
        items(&spec["volumes"]).iter().flat_map(|volume| items(&volume["projected"]["sources"]));
    match sources.any(|source| source["serviceAccountToken"].is_object()) {
        true => Err("a mirror pod may not use ServiceAccountToken volume projections"),
        false => Ok(()),
    }
}

/// Whether anything in a pod names a secret.
fn references_secrets(spec: &Value) -> bool {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let by_container = lists.iter().flat_map(|list| items(&spec[*list])).any(|container| {
        items(&container["env"]).iter().any(|env| env["valueFrom"]["secretKeyRef"].is_object())
            || items(&container["envFrom"]).iter().any(|from| from["secretRef"].is_object())
    });
    let by_volume = items(&spec["volumes"]).iter().any(|volume| {
        let direct =
            volume["secret"].is_object() || !text(&volume["azureFile"]["secretName"]).is_empty();
        let kinds = ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];
        let referred = kinds.iter().any(|kind| volume[*kind]["secretRef"].is_object())
            || volume["csi"]["nodePublishSecretRef"].is_object();
        let projected =
            items(&volume["projected"]["sources"]).iter().any(|from| from["secret"].is_object());
        direct || referred || projected
    });
    by_container || by_volume || !items(&spec["imagePullSecrets"]).is_empty()
}

/// The account that a pod names.
fn account(scene: &Scene<'_>, attributes: &Attributes<'_>, pod: &Value) -> Result<Value, Refusal> {
    let namespace = attributes.namespace.unwrap_or_default();
    let name = text(&pod["spec"]["serviceAccountName"]);
    scene.get(&key(namespace, name)).ok_or_else(|| {
        let missing = Status::not_found(&GroupResource::new("", "serviceaccount"), name).message;
        let why = format!("error looking up service account {namespace}/{name}: {missing}");
        attributes.forbid(Some(pod), why)
    })
}

fn key(namespace: &str, name: &str) -> String {
    format!("/registry/serviceaccounts/{namespace}/{name}")
}

/// Lets every container see a token, unless something else is where it would be.
fn mount_token(spec: &mut Value) {
    let mut volumes = items(&spec["volumes"]).iter().map(|volume| text(&volume["name"]));
    let found = volumes.find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let name = match &found {
        Some(name) => name.clone(),
        None => meta::generate_name(VOLUME_PREFIX),
    };
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = list_of(container, "volumeMounts");
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
            is_needed = true;
        }
    }
    if found.is_none() && is_needed {
        list_of(spec, "volumes").push(json!({"name": name, "projected": token_source()}));
    }
}

fn token_source() -> Value {
    json!({
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }},
            {"downwardAPI": {"items": [{
                "path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
            }]}},
        ],
        "defaultMode": 0o644,
    })
}

/// Whether the pods of an account may only use the secrets that it lists.
fn enforces_secrets(account: &Value) -> bool {
    let wish = text(&account["metadata"]["annotations"][ENFORCE_SECRETS]);
    matches!(wish, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// The secrets that an account lists.
struct Secrets<'a> {
    account: &'a str,
    mountable: Vec<&'a str>,
    pullable: Vec<&'a str>,
}

impl<'a> Secrets<'a> {
    fn of(account: &'a Value) -> Self {
        let names = |list: &'a str| {
            items(&account[list]).iter().map(|secret| text(&secret["name"])).collect()
        };
        Secrets {
            account: meta::text(account, "name"),
            mountable: names("secrets"),
            pullable: names("imagePullSecrets"),
        }
    }

    fn check_pod(&self, pod: &Value) -> Result<(), String> {
        let spec = &pod["spec"];
        for volume in items(&spec["volumes"]) {
            if volume["secret"].is_object() {
                let secret = text(&volume["secret"]["secretName"]);
                self.check(secret, || format!("volume with secret.secretName=\"{secret}\""))?;
            }
        }
        self.check_containers(&spec["initContainers"], "init container")?;
        self.check_containers(&spec["containers"], "container")?;
        for (at, secret) in items(&spec["imagePullSecrets"]).iter().enumerate() {
            let name = text(&secret["name"]);
            if !self.pullable.contains(&name) {
                return Err(format!(
                    "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service \
                     account {} does not reference that imagePullSecret",
                    self.account
                ));
            }
        }
        Ok(())
    }

    fn check_containers(&self, containers: &Value, called: &str) -> Result<(), String> {
        for container in items(containers) {
            let who = format!("{called} {}", text(&container["name"]));
            for env in items(&container["env"]) {
                let key = &env["valueFrom"]["secretKeyRef"];
                if key.is_object() {
                    let (secret, variable) = (text(&key["name"]), text(&env["name"]));
                    self.check(secret, || {
                        format!(
                            "{who} with envVar {variable} referencing \
                             secret.secretName=\"{secret}\""
                        )
                    })?;
                }
            }
            for from in items(&container["envFrom"]) {
                if from["secretRef"].is_object() {
                    let secret = text(&from["secretRef"]["name"]);
                    self.check(secret, || {
                        format!("{who} with envFrom referencing secret.secretName=\"{secret}\"")
                    })?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, secret: &str, what: impl FnOnce() -> String) -> Result<(), String> {
        match self.mountable.contains(&secret) {
            true => Ok(()),
            false => Err(format!(
                "{} is not allowed because service account {} does not reference that secret",
                what(),
                self.account
            )),
        }
    }
}
