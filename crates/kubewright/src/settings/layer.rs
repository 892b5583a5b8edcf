//! What one source says of the settings: the flags, the variables, or the file.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde::de::{Error as _, IgnoredAny, Unexpected};
use serde::{Deserialize, Deserializer};

use super::LogFormat;
use crate::serve::Bind;

/// What one source says; what it does not mention is left to the others. These are the flags of an
/// operator, too.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Layer {
    /// A file with settings: these flags in camel case, in YAML
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The file that says which cluster [default: $KUBECONFIG, the pod's cluster, ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The namespaces to look into [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[serde(deserialize_with = "one_or_many")]
    pub namespace: Option<Vec<String>>,
    /// Work only while no other replica does
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: Option<bool>,
    /// The Lease to agree by [default: the operator's name]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// The namespace of the Lease [default: where the operator runs]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_namespace: Option<String>,
    /// How long others wait for a leader that is not heard of [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[serde(deserialize_with = "duration_text")]
    pub leader_elect_lease_duration: Option<Duration>,
    /// After how long a leader that cannot renew gives up [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[serde(deserialize_with = "duration_text")]
    pub leader_elect_renew_deadline: Option<Duration>,
    /// How long to wait between attempts to lead [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[serde(deserialize_with = "duration_text")]
    pub leader_elect_retry_period: Option<Duration>,
    /// Work on a share of the objects, and let other replicas work on theirs
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub sharded: Option<bool>,
    /// Where to serve metrics, `0` for nowhere [default: :8443]
    #[arg(long, value_name = "ADDRESS")]
    #[serde(deserialize_with = "text")]
    pub metrics_bind_address: Option<Bind>,
    /// Serve metrics over TLS, and only to those who may read them [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub metrics_secure: Option<bool>,
    /// A folder with tls.crt and tls.key for metrics [default: made by itself]
    #[arg(long, value_name = "DIR")]
    pub metrics_cert_path: Option<PathBuf>,
    /// Where to serve probes, `0` for nowhere [default: :8081]
    #[arg(long, value_name = "ADDRESS")]
    #[serde(deserialize_with = "text")]
    pub health_probe_bind_address: Option<Bind>,
    /// Where to serve webhooks, `0` for nowhere [default: :9443]
    #[arg(long, value_name = "ADDRESS")]
    #[serde(deserialize_with = "text")]
    pub webhook_bind_address: Option<Bind>,
    /// At which host the cluster reaches this machine, if the operator is not in a pod of it
    #[arg(long, value_name = "HOST", value_parser = host)]
    #[serde(deserialize_with = "host_text")]
    pub webhook_url_host: Option<String>,
    /// A folder with tls.crt and tls.key for webhooks [default: made by itself]
    #[arg(long, value_name = "DIR")]
    pub webhook_cert_path: Option<PathBuf>,
    /// Serve metrics and webhooks over HTTP/2, too
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_http2: Option<bool>,
    /// Ask the server for built-in kinds in protobuf
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub protobuf: Option<bool>,
    /// How long stopping may take [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[serde(deserialize_with = "duration_text")]
    pub graceful_shutdown_timeout: Option<Duration>,
    /// How long caches may take to fill [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    #[serde(deserialize_with = "duration_text")]
    pub cache_sync_timeout: Option<Duration>,
    /// What to log: error, warn, info, debug or trace, also by module [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// What a line of the log looks like [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Where to send traces to, by OTLP
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// The author's own settings, which only a file has; see [`Settings::own`](super::Settings::own).
    #[arg(skip)]
    pub operator: Option<IgnoredAny>,
}

impl Layer {
    /// What this says, and of the rest what `under` says.
    pub fn over(self, under: Layer) -> Layer {
        macro_rules! first {
            ($($field:ident),* $(,)?) => {
                Layer { $($field: self.$field.or(under.$field)),* }
            };
        }
        first! {
            config,
            kubeconfig,
            namespace,
            leader_elect,
            leader_elect_resource_name,
            leader_elect_resource_namespace,
            leader_elect_lease_duration,
            leader_elect_renew_deadline,
            leader_elect_retry_period,
            sharded,
            metrics_bind_address,
            metrics_secure,
            metrics_cert_path,
            health_probe_bind_address,
            webhook_bind_address,
            webhook_url_host,
            webhook_cert_path,
            enable_http2,
            protobuf,
            graceful_shutdown_timeout,
            cache_sync_timeout,
            log_level,
            log_format,
            otlp_endpoint,
            operator,
        }
    }
}

/// A duration as Go writes it.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("{text:?} is no duration such as 30s, 1m30s or 500ms");
    let duration = kube::core::Duration::from_str(text).map_err(|_| expected())?;
    if duration.is_negative() {
        return Err(expected());
    }
    Ok(duration.into())
}

fn duration_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    duration(&text).map(Some).map_err(D::Error::custom)
}

/// A name or an address, as a certificate has it.
fn host(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let is_address = bare.parse::<IpAddr>().is_ok();
    match is_address || !bare.is_empty() && bare.chars().all(is_name) {
        true => Ok(bare.to_owned()),
        false => Err(format!("{text:?} is no host such as 192.168.1.5 or laptop.example.com")),
    }
}

fn host_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    host(&text).map(Some).map_err(D::Error::custom)
}

fn text<'de, D: Deserializer<'de>, T: FromStr>(from: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    let refused = |_| D::Error::invalid_value(Unexpected::Str(&text), &"an address such as :8443");
    text.parse().map(Some).map_err(refused)
}

/// One name, or a list of names.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Many(Vec<String>),
    }
    Ok(Some(match Names::deserialize(from)? {
        Names::One(name) => name.split(',').map(str::to_owned).collect(),
        Names::Many(names) => names,
    }))
}
