//! `metrics.k8s.io`, for `kubectl top` and for autoscalers: what metrics-server does, for the nodes
//! of one agent.
//!
//! It is an API server, which the cluster's passes requests on to (`registration`). That one has
//! judged by then who may ask what, so nobody else is heard. Nothing is counted while nobody asks:
//! an answer compares two moments (`sample`, pure), and who asks first waits for the second.

mod registration;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};
use kubewright_apimachinery::selector::{field, label};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::pod::worker::lock;
use crate::server::{self, Answers, Body, Server, ServerConfig, Upgrades, User, stats};

pub use self::registration::withdraw;

use self::registration::{Proxies, Registration};
use self::sample::{Measure, Rate, Sample, rates};

/// How old an answer may be.
const RESOLUTION: SignedDuration = SignedDuration::from_secs(15);
/// What is longer ago says little of now.
const WINDOW_MAX: SignedDuration = SignedDuration::from_secs(120);
/// How long the first who asks waits.
const WINDOW_FIRST: Duration = Duration::from_secs(1);
const VERSION: &str = "metrics.k8s.io/v1beta1";

/// Serves until `shutdown`, at any port of an address, and then takes itself off the API.
pub(crate) async fn run(
    state: server::State,
    nodes: Vec<String>,
    address: IpAddr,
    client: Client,
    shutdown: CancellationToken,
) {
    let Some(started) = shutdown.run_until_cancelled(start(&client, address, &state)).await else {
        return;
    };
    let (server, allowed) = match started {
        Ok(Some(started)) => started,
        Ok(None) => return info!("somebody else serves metrics.k8s.io"),
        Err(error) => return warn!(%error, "metrics.k8s.io is not served"),
    };
    let metrics = Metrics { state, nodes, client: client.clone(), allowed, kept: Mutex::default() };
    server.run(metrics, shutdown).await;
    if let Err(error) = withdraw(&client).await {
        warn!(%error, "metrics.k8s.io stays in the API, though nobody serves it");
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Takes a place and registers it. None if there is another such server.
async fn start(
    client: &Client,
    address: IpAddr,
    state: &server::State,
) -> Result<Option<(Server, Vec<String>)>, Failure> {
    let Proxies { authorities, allowed } = Proxies::published(client).await?;
    let registration = Registration::new(state.clock.now())?;
    let config = ServerConfig {
        address: SocketAddr::new(address, 0),
        certificate: registration.certificate.clone(),
        client_authorities: authorities,
    };
    let server = Server::bind(config).await?;
    let is_ours = registration.apply(client, server.address()).await?;
    Ok(is_ours.then_some((server, allowed)))
}

struct Metrics {
    state: server::State,
    nodes: Vec<String>,
    client: Client,
    /// What those are called that pass requests on; empty for all whom the authorities know.
    allowed: Vec<String>,
    /// The two moments of the last answer. It is held while something is counted, so that all who
    /// ask meanwhile wait for the same.
    kept: Mutex<Option<(Arc<Sample>, Arc<Sample>)>>,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked<'a> {
    Resources,
    Nodes { name: Option<&'a str> },
    Pods { namespace: Option<&'a str>, name: Option<&'a str> },
    Health,
}

impl<'a> Asked<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts[..] {
            ["healthz" | "livez" | "readyz"] => Asked::Health,
            ["apis", "metrics.k8s.io", "v1beta1", ref rest @ ..] => match *rest {
                [] => Asked::Resources,
                ["nodes"] => Asked::Nodes { name: None },
                ["nodes", name] => Asked::Nodes { name: Some(name) },
                ["pods"] => Asked::Pods { namespace: None, name: None },
                ["namespaces", namespace, "pods"] => {
                    Asked::Pods { namespace: Some(namespace), name: None }
                }
                ["namespaces", namespace, "pods", name] => {
                    Asked::Pods { namespace: Some(namespace), name: Some(name) }
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// A question that gets no answer.
#[derive(Debug)]
struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
}

impl Answers for Metrics {
    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
        user: Option<&'a User>,
        _: Upgrades,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let answered = self.try_answer(&request, user).await;
            answered.unwrap_or_else(|Refusal { code, reason, message }| {
                let mut response = server::json(&json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": message, "reason": reason, "code": code.as_u16(),
                }));
                *response.status_mut() = code;
                response
            })
        })
    }
}

impl Metrics {
    async fn try_answer<B>(
        &self,
        request: &Request<B>,
        user: Option<&User>,
    ) -> Result<Response<Body>, Refusal> {
        let may = |user: &User| self.allowed.is_empty() || self.allowed.contains(&user.name);
        if !user.is_some_and(may) {
            return Err(refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"));
        }
        let asked = Asked::of(request.uri().path());
        let Some(asked) = asked.filter(|_| *request.method() == Method::GET) else {
            let message = "the server could not find the requested resource";
            return Err(refusal(StatusCode::NOT_FOUND, "NotFound", message));
        };
        let selection = Selection::parse(request.uri().query().unwrap_or_default())?;
        let answer = match asked {
            Asked::Health => json!("ok"),
            Asked::Resources => resources(),
            Asked::Nodes { name } => {
                let items = self.node_metrics(name, &selection).await?;
                one_or_list("NodeMetrics", "nodes", name, items)?
            }
            Asked::Pods { namespace, name } => {
                let items = self.pod_metrics(namespace, name, &selection).await;
                one_or_list("PodMetrics", "pods", name, items)?
            }
        };
        Ok(server::json(&answer))
    }

    async fn node_metrics(
        &self,
        name: Option<&str>,
        selection: &Selection,
    ) -> Result<Vec<Value>, Refusal> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        // Nodes and their labels are the API's to know.
        let params = ListParams::default().labels(&selection.labels_text);
        let listed = nodes.list_metadata(&params).await.map_err(|error| {
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", error.to_string())
        })?;
        let measured = self.measure().await;
        let node_of: HashMap<String, String> = self.nodes_by_pod();
        let mut items = Vec::new();
        for node in listed.items {
            let found = node.metadata.name.clone().unwrap_or_default();
            let is_wanted = name.is_none_or(|name| name == found)
                && self.nodes.contains(&found)
                && selection.takes_fields("", &found);
            if !is_wanted {
                continue;
            }
            let of_pods = || {
                let pods = measured.rates.iter();
                let own = pods.filter(|it| node_of.get(&it.used.uid) == Some(&found));
                own.fold(Rate::default(), |sum, it| sum + it.rate)
            };
            let rate = measured.machine.unwrap_or_else(of_pods);
            let labels = node.metadata.labels.unwrap_or_default();
            let mut item = object("NodeMetrics", "", &found, &labels, &measured);
            item["usage"] = usage(rate);
            items.push(item);
        }
        Ok(items)
    }

    async fn pod_metrics(
        &self,
        namespace: Option<&str>,
        name: Option<&str>,
        selection: &Selection,
    ) -> Vec<Value> {
        let measured = self.measure().await;
        let labels: HashMap<String, BTreeMap<String, String>> = self.labels_by_pod();
        let mut items = Vec::new();
        for pod in measured.rates.chunk_by(|left, right| left.used.uid == right.used.uid) {
            let used = &pod[0].used;
            let Some(labels) = labels.get(&used.uid) else { continue };
            let is_wanted = namespace.is_none_or(|namespace| namespace == used.namespace)
                && name.is_none_or(|name| name == used.pod)
                && selection.labels.matches(labels)
                && selection.takes_fields(&used.namespace, &used.pod);
            if is_wanted {
                let mut item = object("PodMetrics", &used.namespace, &used.pod, labels, &measured);
                let containers = pod
                    .iter()
                    .map(|it| json!({"name": it.used.container, "usage": usage(it.rate)}));
                item["containers"] = containers.collect();
                items.push(item);
            }
        }
        items
    }

    /// What is used now, or was a moment ago.
    async fn measure(&self) -> Measure {
        let mut kept = self.kept.lock().await;
        let now = self.state.clock.now();
        let (earlier, latest) = match kept.take() {
            Some((earlier, latest)) if now.duration_since(latest.at) < RESOLUTION => {
                (earlier, latest)
            }
            Some((_, before)) if now.duration_since(before.at) < WINDOW_MAX => {
                (before, self.sample().await)
            }
            _ => {
                let first = self.sample().await;
                tokio::time::sleep(WINDOW_FIRST).await;
                (first, self.sample().await)
            }
        };
        *kept = Some((Arc::clone(&earlier), Arc::clone(&latest)));
        rates(&earlier, &latest)
    }

    async fn sample(&self) -> Arc<Sample> {
        let used = stats::all(&self.state).await;
        let machine = self.state.runtime.machine_usage();
        Arc::new(Sample { at: self.state.clock.now(), used, machine })
    }

    fn nodes_by_pod(&self) -> HashMap<String, String> {
        let lives = self.state.lives();
        let of = lives.iter().filter_map(|life| {
            let life = lock(life);
            Some((life.pod.metadata.uid.clone()?, life.spec().node_name.clone()?))
        });
        of.collect()
    }

    fn labels_by_pod(&self) -> HashMap<String, BTreeMap<String, String>> {
        let lives = self.state.lives();
        let of = lives.iter().filter_map(|life| {
            let metadata = lock(life).pod.metadata.clone();
            Some((metadata.uid?, metadata.labels.unwrap_or_default()))
        });
        of.collect()
    }
}

/// Which objects are wanted.
struct Selection {
    labels: label::Selector,
    labels_text: String,
    fields: field::Selector,
}

impl Selection {
    fn parse(query: &str) -> Result<Self, Refusal> {
        let wrong = |why: String| refusal(StatusCode::BAD_REQUEST, "BadRequest", why);
        let (mut labels_text, mut fields_text) = (String::new(), String::new());
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "labelSelector" => labels_text = value.into_owned(),
                "fieldSelector" => fields_text = value.into_owned(),
                _ => {}
            }
        }
        let fields = field::Selector::parse(&fields_text);
        let fields = fields.map_err(|error| wrong(error.to_string()))?;
        fields.only_metadata().map_err(|error| wrong(error.to_string()))?;
        let labels = label::Selector::parse(&labels_text);
        let labels = labels.map_err(|error| wrong(error.to_string()))?;
        Ok(Selection { labels, labels_text, fields })
    }

    fn takes_fields(&self, namespace: &str, name: &str) -> bool {
        self.fields.matches(|field| match field {
            "metadata.name" => name,
            _ => namespace,
        })
    }
}

fn refusal(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Refusal {
    Refusal { code, reason, message: message.into() }
}

fn one_or_list(
    kind: &str,
    resource: &str,
    name: Option<&str>,
    mut items: Vec<Value>,
) -> Result<Value, Refusal> {
    let Some(name) = name else {
        let list = format!("{kind}List");
        return Ok(json!({"kind": list, "apiVersion": VERSION, "metadata": {}, "items": items}));
    };
    items.pop().ok_or_else(|| {
        let message = format!("{resource}.metrics.k8s.io {name:?} not found");
        refusal(StatusCode::NOT_FOUND, "NotFound", message)
    })
}

fn object(
    kind: &str,
    namespace: &str,
    name: &str,
    labels: &BTreeMap<String, String>,
    measured: &Measure,
) -> Value {
    let time = |time: Timestamp| format!("{time:.0}");
    let mut metadata = json!({"name": name, "creationTimestamp": time(measured.at)});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    json!({
        "kind": kind, "apiVersion": VERSION, "metadata": metadata,
        "timestamp": time(measured.at),
        "window": format!("{}ms", measured.window.as_millis()),
    })
}

fn usage(rate: Rate) -> Value {
    let kibibytes = rate.memory.div_ceil(1024);
    json!({"cpu": format!("{}n", rate.nanocores), "memory": format!("{kibibytes}Ki")})
}

fn resources() -> Value {
    let resource = |name: &str, kind: &str, is_namespaced: bool| {
        json!({
            "name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind,
            "verbs": ["get", "list"],
        })
    };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION,
        "resources": [resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)],
    })
}
