//! What extenders are asked and answer, as upstream's do, and how they are reached.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use http::{Request, Uri};
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1 as core;
use kube::client::Body;
use kube::{Client, Config};
use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, invalid};
use crate::node::Node;
use crate::plugin::{Assignment, Preemption};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Question<'a> {
    pub(super) pod: &'a core::Pod,
    pub(super) nodes: Option<NodeList<'a>>,
    pub(super) node_names: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
pub(super) struct NodeList<'a> {
    metadata: BTreeMap<(), ()>,
    items: Vec<&'a core::Node>,
}

impl<'a> NodeList<'a> {
    pub(super) fn of(nodes: &[&'a Node]) -> Self {
        let items = nodes.iter().map(|node| &*node.object).collect();
        NodeList { metadata: BTreeMap::new(), items }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct FilterResult {
    nodes: Option<Nodes>,
    node_names: Option<Vec<String>>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) failed_nodes: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) failed_and_unresolvable_nodes: BTreeMap<String, String>,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Nodes {
    #[serde(deserialize_with = "null_is_empty")]
    items: Vec<core::Node>,
}

impl FilterResult {
    pub(super) fn checked(self) -> Result<Self, String> {
        match self.error.is_empty() {
            true => Ok(self),
            false => Err(self.error),
        }
    }

    /// The nodes that are left.
    pub(super) fn names(&self, are_names_meant: bool) -> Vec<String> {
        match (&self.node_names, &self.nodes) {
            (Some(names), _) if are_names_meant => names.clone(),
            (_, Some(nodes)) => {
                nodes.items.iter().filter_map(|node| node.metadata.name.clone()).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HostPriority {
    pub(super) host: String,
    pub(super) score: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BindingArgs<'a> {
    pod_name: &'a str,
    pod_namespace: &'a str,
    #[serde(rename = "PodUID")]
    pod_uid: &'a str,
    node: &'a str,
}

impl<'a> BindingArgs<'a> {
    pub(super) fn of(assignment: &'a Assignment) -> Self {
        BindingArgs {
            pod_name: assignment.pod.key.name(),
            pod_namespace: assignment.pod.namespace(),
            pod_uid: &assignment.pod.uid,
            node: &assignment.node,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct BindingResult {
    pub(super) error: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PreemptionArgs<'a> {
    pub(super) pod: &'a core::Pod,
    #[serde(flatten)]
    pub(super) victims: Candidates<'a>,
}

#[derive(Serialize)]
pub(super) enum Candidates<'a> {
    #[serde(rename = "NodeNameToVictims")]
    Whole(BTreeMap<&'a str, Victims<'a>>),
    #[serde(rename = "NodeNameToMetaVictims")]
    Meta(BTreeMap<&'a str, MetaVictims>),
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Victims<'a> {
    pods: Vec<&'a core::Pod>,
    #[serde(rename = "NumPDBViolations")]
    num_pdb_violations: i64,
}

impl<'a> Victims<'a> {
    pub(super) fn of(preemption: &'a Preemption) -> Self {
        Victims {
            pods: preemption.victims.iter().map(|victim| &*victim.object).collect(),
            num_pdb_violations: preemption.violations as i64,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct MetaVictims {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) pods: Vec<MetaPod>,
    #[serde(default, rename = "NumPDBViolations")]
    pub(super) num_pdb_violations: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MetaPod {
    #[serde(rename = "UID")]
    pub(super) uid: String,
}

impl MetaVictims {
    pub(super) fn of(preemption: &Preemption) -> Self {
        let pods = preemption.victims.iter().map(|it| MetaPod { uid: it.uid.to_string() });
        MetaVictims { pods: pods.collect(), num_pdb_violations: preemption.violations as i64 }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct PreemptionResult {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) node_name_to_meta_victims: BTreeMap<String, MetaVictims>,
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A question as it is posted.
pub(super) fn request(path: &str, question: &impl Serialize) -> Result<Request<Body>, String> {
    let body = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    let request = Request::post(path).header("content-type", "application/json").body(body.into());
    request.map_err(|error| error.to_string())
}

/// A client of an extender, and the path below which it answers.
pub(super) fn client(config: &config::Extender) -> Result<(Client, String), ConfigError> {
    let wrong = |why: String| invalid("extenders.urlPrefix", why);
    let uri: Uri = config.url_prefix.parse().map_err(|error| wrong(format!("{error}")))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong(format!("{:?} is no URL", config.url_prefix)));
    };
    let root: Uri =
        format!("{scheme}://{authority}/").parse().map_err(|error| wrong(format!("{error}")))?;
    let mut kube = Config::new(root);
    kube.default_retry = false;
    let tls = config.tls_config.clone().unwrap_or_default();
    let authority = material(&tls.ca_file, &tls.ca_data)?;
    // As upstream has it: whoever wants TLS and says nothing of whom to trust, trusts everybody.
    kube.accept_invalid_certs = tls.insecure || (config.enable_https && authority.is_none());
    if let Some(pem) = authority {
        kube.root_cert = Some(certificates(&pem)?);
    }
    kube.tls_server_name = Some(tls.server_name.clone()).filter(|name| !name.is_empty());
    let encoded = |pem: Vec<u8>| {
        let text = serde_json::to_value(ByteString(pem)).ok()?;
        Some(text.as_str()?.to_owned())
    };
    kube.auth_info.client_certificate_data =
        material(&tls.cert_file, &tls.cert_data)?.and_then(encoded);
    kube.auth_info.client_key_data =
        material(&tls.key_file, &tls.key_data)?.and_then(|pem| encoded(pem).map(Into::into));
    let client = Client::try_from(kube)
        .map_err(|error| invalid("extenders.tlsConfig", error.to_string()))?;
    Ok((client, uri.path().trim_end_matches('/').to_owned()))
}

/// A duration as Go writes it.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(parsed).map_err(|_| format!("{text:?} is negative"))
}

/// PEM from a file, or else as it is given.
fn material(file: &str, data: &str) -> Result<Option<Vec<u8>>, ConfigError> {
    if !file.is_empty() {
        let read = fs::read(file)
            .map_err(|error| invalid("extenders.tlsConfig", format!("{file}: {error}")))?;
        return Ok(Some(read));
    }
    if data.is_empty() {
        return Ok(None);
    }
    let decoded: Result<ByteString, _> = serde_json::from_value(data.into());
    let decoded = decoded.map_err(|error| invalid("extenders.tlsConfig", error.to_string()))?;
    Ok(Some(decoded.0))
}

/// The certificates in a text of PEM, each in DER.
fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, ConfigError> {
    let wrong = || invalid("extenders.tlsConfig.caData", "there is no certificate in it");
    let text = std::str::from_utf8(pem).map_err(|_| wrong())?;
    let mut all = Vec::new();
    for block in text.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let body = block.split("-----END CERTIFICATE-----").next().unwrap_or_default();
        let body: String = body.split_whitespace().collect();
        let decoded: Result<ByteString, _> = serde_json::from_value(body.into());
        all.push(decoded.map_err(|_| wrong())?.0);
    }
    match all.is_empty() {
        true => Err(wrong()),
        false => Ok(all),
    }
}
