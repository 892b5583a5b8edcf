//! Whether the server that an APIService names is there, as its condition tells.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::select_ok;
use http::header::{HOST, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::Empty;
use kubewright_apimachinery::json::go_quote;
use kubewright_store::Snapshot;
use serde_json::{Value, json};

use super::front;
use super::registration::MANAGER;
use super::{Registration, Remote};
use crate::catalog::Catalog;
use crate::conditions;
use crate::index::{self, Index};
use crate::meta;
use crate::options::WriteOptions;
use crate::outbound::Line;
use crate::refusal::Refusal;
use crate::server::Inner;
use crate::user::{MASTERS, User};
use crate::write::Replace;

/// How many are asked at once: one endpoint of many that answers is enough.
const ATTEMPTS: usize = 5;
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    reason: &'static str,
    message: String,
}

impl Finding {
    pub(super) fn is_available(&self) -> bool {
        self.reason == "Passed"
    }

    /// Whether only asking again will tell. What is stored tells by itself when it changes.
    pub(super) fn is_worth_asking_again(&self) -> bool {
        self.reason == "FailedDiscoveryCheck"
    }
}

/// Finds out whether a server is there.
pub(super) async fn check(server: &Inner, registration: &Registration, line: &Line) -> Finding {
    let Some(remote) = &registration.remote else {
        unreachable!("only servers behind this one are checked")
    };
    if let Some(finding) = stored_problem(&server.store.snapshot(), remote) {
        return finding;
    }
    let attempts = (0..ATTEMPTS).map(|_| ask(registration, line).boxed());
    match select_ok(attempts).await {
        Ok(_) => Finding { reason: "Passed", message: "all checks passed".to_owned() },
        Err(message) => Finding { reason: "FailedDiscoveryCheck", message },
    }
}

/// What can be told of a server without asking it.
fn stored_problem(snapshot: &Snapshot<Index>, remote: &Remote) -> Option<Finding> {
    let Remote { namespace, service: name, port, .. } = remote;
    let finding = |reason, message| Some(Finding { reason, message });
    let shown = format!("service/{name} in {}", go_quote(namespace));
    let key = format!("/registry/services/specs/{namespace}/{name}");
    let Some(service) = snapshot.get(&key).and_then(|found| index::object(found)) else {
        return finding("ServiceNotFound", format!("{shown} is not present"));
    };
    // Others lead somewhere that nothing is known of here.
    if service["spec"]["type"] != "ClusterIP" {
        return None;
    }
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let Some(port) = ports.find(|known| known["port"] == *port) else {
        return finding("ServicePortError", format!("{shown} is not listening on port {port}"));
    };
    let port_name = port["name"].as_str().unwrap_or_default();
    let slices = snapshot.range(&format!("/registry/endpointslices/{namespace}/"), None, None);
    let slices = slices
        .iter()
        .filter(|slice| slice.extracted.labels.get("kubernetes.io/service-name") == Some(name));
    let slices: Vec<Value> = slices.filter_map(|slice| index::object(slice)).collect();
    if slices.is_empty() {
        return finding("EndpointsNotFound", format!("cannot find endpointslices for {shown}"));
    }
    if !slices.iter().any(|slice| is_ready(slice, port_name)) {
        let port_name = go_quote(port_name);
        let message =
            format!("endpointslices for {shown} have no addresses with port name {port_name}");
        return finding("MissingEndpoints", message);
    }
    None
}

/// Whether somebody is behind this port.
fn is_ready(slice: &Value, port_name: &str) -> bool {
    let list = |field: &str| slice[field].as_array().into_iter().flatten();
    let is_port = |port: &Value| {
        port["name"].as_str().unwrap_or_default() == port_name && port["port"].is_number()
    };
    list("endpoints").any(|endpoint| endpoint["conditions"]["ready"] != false)
        && list("ports").any(is_port)
}

/// Asks a server for what every server has: the resources of the version.
async fn ask(registration: &Registration, line: &Line) -> Result<(), String> {
    let line = line.to_endpoint()?;
    let host = line.authority();
    let path = match registration.group.as_str() {
        "" => format!("/api/{}", registration.version),
        group => format!("/apis/{group}/{}", registration.version),
    };
    let url = format!("https://{host}{path}");
    let answered = async {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = path.parse().map_err(|_| "invalid URL".to_owned())?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::try_from(host).map_err(|error| error.to_string())?);
        // Whatever its policy is, this user has access.
        front::introduce(headers, &aggregator()).expect("our own name is fit for a header");
        let asked = tokio::time::timeout(ANSWER_MAX, line.send(request)).await;
        let error = match asked {
            Ok(Ok(answer)) if answer.status().is_success() => return Ok(()),
            Ok(Ok(answer)) => return Err(bad_status(&url, answer.status())),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
                .to_owned(),
        };
        Err(format!("Get {}: {error}", go_quote(&url)))
    };
    answered.await.map_err(|error| format!("failing or missing response from {url}: {error}"))
}

fn bad_status(url: &str, status: StatusCode) -> String {
    format!("bad status from {url}: {}", status.as_u16())
}

/// Who this server is to others when nobody else asks.
pub(super) fn aggregator() -> User {
    let mut user = User::new("system:kube-aggregator", []);
    user.groups = vec![MASTERS.to_owned()];
    user
}

/// Has the condition of an APIService say so. True if it did not.
pub(super) async fn tell(server: &Inner, name: &str, finding: &Finding) -> Result<bool, Refusal> {
    let resource = Catalog::api_services();
    let stored = server.store.get(resource.key(None, name).as_str());
    let Some(stored) = stored.and_then(|stored| index::object(&stored)) else { return Ok(false) };
    let was_available = conditions::is_true(&stored["status"], "Available");
    let mut object = stored.clone();
    let condition = json!({
        "type": "Available",
        "status": if finding.is_available() { "True" } else { "False" },
        "lastTransitionTime": meta::time(server.now()),
        "reason": finding.reason,
        "message": finding.message,
    });
    conditions::set(&mut object["status"], condition);
    if object == stored {
        return Ok(false);
    }
    let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
    match server.write_status(resource, name, &options, &Replace(object)).await {
        // It has changed meanwhile, so it will be looked at again.
        Err(refusal) if matches!(refusal.code, 404 | 409) => Ok(false),
        done => {
            if was_available && !finding.is_available() {
                server.metrics.lost_service(name, finding.reason);
            }
            done.map(|()| true)
        }
    }
}
