//! The behaviours that make a Kubernetes API, each a scenario that names the api-surface ids it
//! proves.
//!
//! A scenario sees the endpoint only through requests and gets a namespace and an API group of its
//! own. It asserts what upstream does, exactly: one that fails on upstream is a wrong scenario.

mod access;
mod admission;
mod aggregation;
mod apply;
mod auth;
mod autoscalers;
mod certificates;
mod connections;
mod conversion;
mod conversion_failures;
mod crd_schema;
mod crds;
mod deletes;
mod disruptions;
mod documents;
mod endpoints;
mod entering;
mod garbage;
mod jobs;
mod kinds;
mod metrics;
mod mistakes;
mod namespaces;
mod node_access;
mod node_writes;
mod nodes;
mod own_objects;
mod patches;
mod pod_admission;
mod pod_security;
mod pods;
mod policies;
mod protection;
mod protobuf;
mod quotas;
mod reads;
mod routes;
mod routing;
mod rules;
mod running;
mod scheduling;
mod services;
mod tokens;
mod volumes;
mod watches;
mod webhook_requests;
mod webhooks;
mod wire;
mod wire_forms;
mod workloads;
mod writes;

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::crd;
use crate::endpoint::{Answer, Endpoint, Request, Watch};

#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The claim, as a path: `writes::a_name_must_be_given`.
    pub name: &'static str,
    /// Ids of docs/api-surface.md.
    pub proves: &'static [&'static str],
    /// Whether it would disturb others, and so runs when nothing else does.
    pub alone: bool,
    pub run: fn(Context) -> BoxFuture<'static, Result<()>>,
}

impl Scenario {
    pub fn matches(&self, filter: Option<&str>) -> bool {
        filter.is_none_or(|filter| self.name.contains(filter) || self.proves.contains(&filter))
    }
}

/// Scenarios of pods that get nodes, for endpoints beside which a scheduler runs. They are not among
/// [`all`].
pub fn scheduling() -> Vec<Scenario> {
    scheduling::all()
}

/// Scenarios of pods that run, or are said to, for endpoints with a scheduler and at least one node.
/// They are not among [`all`].
pub fn running() -> Vec<Scenario> {
    running::SCENARIOS.to_vec()
}

/// Scenarios of commands in containers and connections to pods, for endpoints with a scheduler and at
/// least one node that runs commands. They are not among [`all`].
pub fn entering() -> Vec<Scenario> {
    entering::SCENARIOS.to_vec()
}

/// Scenarios of Services that lead straight to their endpoints, for endpoints that route so: upstream
/// does with `--enable-aggregator-routing`, which then refuses the Services that others of [`all`]
/// use. They are not among [`all`], and need [`own_address`].
pub fn routing() -> Vec<Scenario> {
    routing::SCENARIOS.to_vec()
}

/// An address of this machine that others may call, if it has one: endpoints may not be loopback.
pub fn own_address() -> Option<Ipv4Addr> {
    // Nothing is sent: this only chooses the way there, and so the address it begins at.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) if !address.is_loopback() && !address.is_link_local() => Some(address),
        _ => None,
    }
}

/// [`all`], and those that are judged only when asked for.
pub fn every() -> Vec<Scenario> {
    [all(), scheduling(), running(), entering(), routing()].concat()
}

/// Every scenario that an API server alone can pass, with its controllers.
pub fn all() -> Vec<Scenario> {
    [
        wire::SCENARIOS,
        wire_forms::SCENARIOS,
        protobuf::SCENARIOS,
        documents::SCENARIOS,
        routes::SCENARIOS,
        mistakes::SCENARIOS,
        metrics::SCENARIOS,
        reads::SCENARIOS,
        watches::SCENARIOS,
        writes::SCENARIOS,
        patches::SCENARIOS,
        apply::SCENARIOS,
        deletes::SCENARIOS,
        crds::SCENARIOS,
        crd_schema::SCENARIOS,
        conversion::SCENARIOS,
        conversion_failures::SCENARIOS,
        rules::SCENARIOS,
        auth::SCENARIOS,
        access::SCENARIOS,
        node_access::SCENARIOS,
        node_writes::SCENARIOS,
        tokens::SCENARIOS,
        own_objects::SCENARIOS,
        kinds::SCENARIOS,
        services::SCENARIOS,
        admission::SCENARIOS,
        webhooks::SCENARIOS,
        webhook_requests::SCENARIOS,
        aggregation::SCENARIOS,
        pod_admission::SCENARIOS,
        pod_security::SCENARIOS,
        policies::SCENARIOS,
        pods::SCENARIOS,
        connections::SCENARIOS,
        quotas::SCENARIOS,
        namespaces::SCENARIOS,
        protection::SCENARIOS,
        garbage::SCENARIOS,
        endpoints::SCENARIOS,
        jobs::SCENARIOS,
        nodes::SCENARIOS,
        disruptions::SCENARIOS,
        workloads::SCENARIOS,
        volumes::SCENARIOS,
        certificates::SCENARIOS,
        autoscalers::SCENARIOS,
    ]
    .concat()
}

/// A table of scenarios: the module's name, and whether they run alone, then each function with the
/// ids it proves.
macro_rules! scenarios {
    ($area:literal: $($rows:tt)+) => {
        crate::scenario::scenarios! { @ $area, false, $($rows)+ }
    };
    ($area:literal, alone: $($rows:tt)+) => {
        crate::scenario::scenarios! { @ $area, true, $($rows)+ }
    };
    (@ $area:literal, $alone:literal, $($function:ident [$($id:ident)+],)+) => {
        pub(super) const SCENARIOS: &[crate::scenario::Scenario] = &[$(
            crate::scenario::Scenario {
                name: concat!($area, "::", stringify!($function)),
                proves: &[$(stringify!($id)),+],
                alone: $alone,
                run: |context| Box::pin($function(context)),
            },
        )+];
    };
}
use scenarios;

/// The place of one scenario.
#[derive(Clone)]
pub struct Context {
    pub endpoint: Endpoint,
    /// Fresh, and ours alone.
    pub namespace: String,
}

impl Context {
    /// Fails unless these lines are among the metrics.
    pub(crate) async fn counted(&self, lines: &[&str]) -> Result<()> {
        let page = self.send(Request::get("/metrics")).await?;
        let page = String::from_utf8_lossy(&page.bytes).into_owned();
        for line in lines {
            if !page.lines().any(|found| found == *line) {
                let family = line.split('{').next().unwrap_or_default();
                let near = page.lines().filter(|found| found.starts_with(family));
                bail!("no line {line} among\n{}", near.collect::<Vec<_>>().join("\n"));
            }
        }
        Ok(())
    }

    pub(crate) async fn new(endpoint: Endpoint) -> Result<Self> {
        let namespace = json!({ "metadata": { "generateName": "conformance-" } });
        let answer = endpoint.send(&Request::post("/api/v1/namespaces", &namespace)).await?;
        let namespace = text(&expect(&answer, 201)?, "/metadata/name").to_owned();
        Ok(Self { endpoint, namespace })
    }

    /// Lets go of what the scenario made; whoever owns the endpoint sees to the rest.
    pub(crate) async fn leave(self) -> Result<()> {
        let suffix = format!(".{}", self.group());
        let definitions = self.get(crd::PATH).await?;
        for definition in definitions["items"].as_array().into_iter().flatten() {
            let name = text(definition, "/metadata/name");
            if name.ends_with(&suffix) {
                self.send(Request::delete(format!("{}/{name}", crd::PATH))).await?;
            }
        }
        let registrations = self.get("/apis/apiregistration.k8s.io/v1/apiservices").await?;
        for registration in registrations["items"].as_array().into_iter().flatten() {
            let (group, name) =
                (text(registration, "/spec/group"), text(registration, "/metadata/name"));
            // Those of definitions go with them. Of all others discovery goes on telling, even of
            // one whose server was taken from it, and while that is away no namespace ends.
            let labels = &registration["metadata"]["labels"];
            let is_theirs = !labels["kube-aggregator.kubernetes.io/automanaged"].is_null();
            if group == self.group() && !is_theirs {
                let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
                self.send(Request::delete(path)).await?;
            }
        }
        // Pods on nodes that are not there would wait for those to let them go.
        self.send(Request::delete(self.core("pods?gracePeriodSeconds=0"))).await?;
        self.send(Request::delete(format!("/api/v1/namespaces/{}", self.namespace))).await?;
        for collection in LABELLED {
            let ours = format!("{collection}?labelSelector={OWNER}%3D{}", self.namespace);
            self.send(Request::delete(ours)).await?;
        }
        Ok(())
    }

    /// An API group for the scenario's own definitions.
    fn group(&self) -> String {
        format!("{}.kubewright.dev", self.namespace)
    }

    /// `/api/v1/namespaces/<ours>/<resource>`
    fn core(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.namespace)
    }

    /// `/apis/<group_version>/namespaces/<ours>/<resource>`
    fn apis(&self, group_version: &str, resource: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{resource}", self.namespace)
    }

    async fn send(&self, request: Request) -> Result<Answer> {
        self.endpoint.send(&request).await
    }

    async fn get(&self, target: &str) -> Result<Value> {
        expect(&self.send(Request::get(target)).await?, 200)
    }

    async fn create(&self, collection: &str, object: &Value) -> Result<Value> {
        expect(&self.send(Request::post(collection, object)).await?, 201)
    }

    /// Waits until what is at a path is so.
    async fn wait(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let done = |answer: &Answer| answer.json().is_ok_and(|body| is_so(&body));
        let body = self.endpoint.poll(&Request::get(path), PATIENCE, done).await?.json()?;
        ensure!(is_so(&body), "{path} is not so: {body}");
        Ok(body)
    }

    async fn config_map(&self, name: &str) -> Result<Value> {
        self.create(&self.core("configmaps"), &config_map(name)).await
    }

    /// Waits until pods can be created, which all have an account.
    async fn wait_for_account(&self) -> Result<()> {
        let account = Request::get(self.core("serviceaccounts/default"));
        self.endpoint.poll(&account, PATIENCE, |answer| answer.status == 200).await?;
        Ok(())
    }

    /// Takes all finalizers from an object.
    async fn release(&self, path: &str) -> Result<()> {
        let patch = json!({ "metadata": { "finalizers": null } });
        expect(&self.send(Request::merge_patch(path, &patch)).await?, 200)?;
        Ok(())
    }

    async fn watch(&self, target: String) -> Result<Watch> {
        self.endpoint.watch(&Request::get(target)).await
    }

    /// Makes a definition named `<plural>.<our group>` and waits until it is served.
    async fn define(&self, definition: &Value) -> Result<Value> {
        let created = self.create(crd::PATH, definition).await?;
        let name = text(&created, "/metadata/name");
        if !crd::wait_until_served(&self.endpoint, name).await? {
            bail!("the names of {name} are not accepted");
        }
        self.get(&format!("{}/{name}", crd::PATH)).await
    }

    /// A definition of `widgets` in our group with one version, `v1`, and this schema.
    fn widgets(&self, schema: Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("widgets.{}", self.group()) },
            "spec": {
                "group": self.group(),
                "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        })
    }

    /// The collection of [`Self::widgets`] in our namespace.
    fn widget_path(&self) -> String {
        self.apis(&format!("{}/v1", self.group()), "widgets")
    }

    fn widget(&self, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group()),
            "kind": "Widget",
            "metadata": { "name": name },
            "spec": spec,
        })
    }
}

/// The label of what a scenario has that is in no namespace: the name of its namespace.
const OWNER: &str = "conformance.kubewright.dev/scenario";
/// Of what may have it.
const LABELLED: &[&str] = &[
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];

/// How long a state that must come may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Selects the ConfigMaps that a scenario made: a server with controllers publishes its certificate
/// in every namespace, at a moment of its own.
const OURS: &str = "fieldSelector=metadata.name%21%3Dkube-root-ca.crt";

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "key": "value" },
    })
}

/// A pod that nobody runs.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "example.com/image" }] },
    })
}

/// Whether somebody has asked for the end of an object that is there.
fn is_deleting(answer: &Answer) -> bool {
    answer.json().is_ok_and(|object| !text(&object, "/metadata/deletionTimestamp").is_empty())
}

/// A schema that lets everything be.
fn any_schema() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The body of an answer that must have this status.
fn expect(answer: &Answer, status: u16) -> Result<Value> {
    if answer.status != status {
        bail!("expected {status}, got {answer}");
    }
    answer.json()
}

/// The body of a refusal: a whole `Status` with this code, reason and message.
fn refused(answer: &Answer, code: u16, reason: &str, message: &str) -> Result<Value> {
    let status = expect(answer, code)?;
    same("kind", &status["kind"], json!("Status"))?;
    same("apiVersion", &status["apiVersion"], json!("v1"))?;
    same("status", &status["status"], json!("Failure"))?;
    same("code", &status["code"], json!(code))?;
    same("reason", &status["reason"], json!(reason))?;
    same("message", &status["message"], json!(message))?;
    Ok(status)
}

/// Both values in full when they differ.
fn same(what: &str, actual: &Value, expected: Value) -> Result<()> {
    if *actual != expected {
        bail!("{what}: expected {expected}, got {actual}");
    }
    Ok(())
}

/// The string at a JSON pointer; empty when there is none.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The names of a list's items, in its order.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| text(item, "/metadata/name")).collect()
}

/// The number behind an object's or a list's resource version.
fn revision(object: &Value) -> Result<u64> {
    let version = text(object, "/metadata/resourceVersion");
    version.parse().map_err(|_| anyhow::anyhow!("resource version {version:?} is no number"))
}
