//! What is rendered of an operator, on a server: whether it is taken, and what it permits. And
//! clients that are measured, or speak protobuf.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{
    Api, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use kubewright::access::Access;
use kubewright::connect::{Measure, Metrics, Transcode};
use kubewright::manifest::{Manifest, Package, Part, Watched};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower_layer::Layer as _;
use tower_service::Service;

use crate::Cluster;

fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "minLength": 1}},
        }},
    });
    json!({
        "metadata": {"name": "pets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Pet", "plural": "pets"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn webhook(path: &str) -> Value {
    json!({
        "name": "pet.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        // Nobody answers, and nobody has to.
        "failurePolicy": "Ignore",
        "rules": [{
            "apiGroups": ["example.com"],
            "apiVersions": ["v1"],
            "operations": ["DELETE"],
            "resources": ["pets"],
        }],
        "clientConfig": {"service": {"name": "", "namespace": "", "path": path}},
    })
}

fn pets() -> Package {
    let of = |value: Value| serde_json::from_value(value).expect("a definition");
    Package {
        accesses: vec![Access::owned::<ConfigMap>()],
        definitions: vec![of(definition())],
        ..Package::new("pets")
    }
}

fn pets_with_webhooks() -> Package {
    Package {
        mutating: vec![serde_json::from_value(webhook("/mutate")).expect("a webhook")],
        validating: vec![serde_json::from_value(webhook("/validate")).expect("a webhook")],
        converted: vec!["pets.example.com".to_owned()],
        ..pets()
    }
}

/// Creates everything but samples, strictly, in the order it is rendered.
async fn install(cluster: &Cluster, package: &Package) -> Vec<Manifest> {
    let manifests = package.render().expect("it is rendered");
    for manifest in manifests.iter().filter(|it| it.part != Part::Samples) {
        create(&cluster.client(), manifest).await;
    }
    manifests
}

async fn create(client: &Client, manifest: &Manifest) {
    let object: DynamicObject = serde_json::from_value(manifest.object.clone()).expect("an object");
    let types = object.types.as_ref().expect("its kind");
    let kind = GroupVersionKind::try_from(types).expect("its kind");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match manifest.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply("test").validation_strict();
    let created = api.patch(manifest.name(), &params, &Patch::Apply(&object)).await;
    created.unwrap_or_else(|error| panic!("{} {}: {error}", manifest.kind(), manifest.name()));
}

#[tokio::test(start_paused = true)]
async fn a_server_takes_all_that_is_rendered() {
    for watched in [Watched::Everywhere, Watched::Home] {
        let cluster = Cluster::start().await;
        install(&cluster, &Package { watched, ..pets_with_webhooks() }).await;
        cluster.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_takes_the_sample_that_is_made_of_a_schema() {
    let cluster = Cluster::start().await;
    let manifests = install(&cluster, &pets()).await;
    let sample = manifests.iter().find(|it| it.part == Part::Samples).expect("a sample");
    let object: DynamicObject = serde_json::from_value(sample.object.clone()).expect("an object");
    let kind = GroupVersionKind::gvk("example.com", "v1", "Pet");
    let api: Api<DynamicObject> =
        Api::default_namespaced_with(cluster.client(), &ApiResource::from_gvk(&kind));
    // A definition is served as soon as somebody has looked at its names.
    while let Err(error) = api.create(&PostParams::default(), &object).await {
        assert!(matches!(&error, Error::Api(status) if status.code == 404), "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    cluster.shutdown().await;
}

const ACCOUNT: &str = "system:serviceaccount:pets-system:pets-controller-manager";

async fn may_list<K>(client: &Client, namespace: &str) -> bool
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    match Api::<K>::namespaced(client.clone(), namespace).list(&ListParams::default()).await {
        Ok(_) => true,
        Err(Error::Api(status)) if status.code == 403 => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_may_do_what_it_declared_and_nothing_else() {
    let cluster = Cluster::start().await;
    install(&cluster, &pets()).await;
    let client = cluster.client_as(ACCOUNT, &[]);
    assert!(may_list::<ConfigMap>(&client, "default").await);
    assert!(!may_list::<Secret>(&client, "default").await);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_of_one_namespace_may_nothing_in_another() {
    let cluster = Cluster::start().await;
    install(&cluster, &Package { watched: Watched::Home, ..pets() }).await;
    let client = cluster.client_as(ACCOUNT, &[]);
    assert!(may_list::<ConfigMap>(&client, "pets-system").await);
    assert!(!may_list::<ConfigMap>(&client, "default").await);
    cluster.shutdown().await;
}

/// A client as a service, to put something in front of it; it notes what answers come in.
#[derive(Clone)]
struct Behind {
    client: Client,
    forms: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Behind {
    fn new(client: Client) -> Self {
        Behind { client, forms: Arc::default() }
    }
}

impl Service<Request<Body>> for Behind {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Behind { client, forms } = self.clone();
        Box::pin(async move {
            let answer = client.send(request).await?;
            let form = answer.headers().get("content-type");
            let form = form.and_then(|form| form.to_str().ok()).unwrap_or_default();
            forms.lock().expect("nobody panicked").push(form.to_owned());
            Ok(answer)
        })
    }
}

fn config_map(name: &str) -> ConfigMap {
    let object =
        json!({"metadata": {"name": name}, "data": {"key": "value"}, "binaryData": {"b": "AAEC"}});
    serde_json::from_value(object).expect("a ConfigMap")
}

#[tokio::test(start_paused = true)]
async fn a_client_that_speaks_protobuf_reads_the_same_objects() {
    let cluster = Cluster::start().await;
    let plain: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    plain.create(&PostParams::default(), &config_map("one")).await.expect("created");

    let server = Behind::new(cluster.client());
    let forms = Arc::clone(&server.forms);
    let client = Client::new(Transcode::new(true).layer(server), "default");
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let took = |forms: &Arc<std::sync::Mutex<Vec<String>>>| {
        std::mem::take(&mut *forms.lock().expect("nobody panicked"))
    };
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

    assert_eq!(api.get("one").await.expect("read"), plain.get("one").await.expect("read"));
    assert_eq!(took(&forms), [PROTOBUF]);
    let list = api.list(&ListParams::default()).await.expect("read");
    assert_eq!(list.items, plain.list(&ListParams::default()).await.expect("read").items);
    assert_eq!(took(&forms), [PROTOBUF]);
    let written = api.create(&PostParams::default(), &config_map("two")).await.expect("created");
    assert_eq!(written, plain.get("two").await.expect("read"));

    // A watch is transcoded event by event, and goes on.
    let version = list.metadata.resource_version.expect("a version");
    let mut events = api.watch(&WatchParams::default(), &version).await.expect("watched").boxed();
    let event = events.try_next().await.expect("an event").expect("an event");
    assert!(matches!(event, WatchEvent::Added(object) if object == written));
    plain.create(&PostParams::default(), &config_map("three")).await.expect("created");
    let event = events.try_next().await.expect("an event").expect("an event");
    assert!(
        matches!(event, WatchEvent::Added(object) if object.metadata.name.as_deref() == Some("three"))
    );
    let forms = took(&forms);
    assert_eq!(
        forms.last().map(String::as_str),
        Some("application/vnd.kubernetes.protobuf;stream=watch")
    );

    // A refusal is a Status, which has a protobuf form too.
    let error = api.get("none").await.expect_err("there is none");
    assert!(matches!(&error, Error::Api(status) if status.reason == "NotFound"), "{error}");
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn custom_resources_come_in_json_to_a_client_that_speaks_protobuf() {
    let cluster = Cluster::start().await;
    install(&cluster, &pets()).await;
    let server = Behind::new(cluster.client());
    let forms = Arc::clone(&server.forms);
    let client = Client::new(Transcode::new(true).layer(server), "default");
    let definitions = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Pet"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &definitions);
    while let Err(error) = api.list(&ListParams::default()).await {
        assert!(matches!(&error, Error::Api(status) if status.code == 404), "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(
        forms.lock().expect("nobody panicked").last().map(String::as_str),
        Some("application/json")
    );
    cluster.shutdown().await;
}

/// A server that cannot be reached.
struct Unreachable;

impl Service<Request<Body>> for Unreachable {
    type Response = Response<Body>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        Box::pin(async { Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) })
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_what_came_of_them() {
    let cluster = Cluster::start().await;
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(&mut registry));
    let measure = Measure::new(Some(metrics), "example.com:6443");
    let client = Client::new(measure.layer(Behind::new(cluster.client())), "default");
    let api: Api<Pod> = Api::default_namespaced(client);
    api.list(&ListParams::default()).await.expect("read");
    api.get("none").await.expect_err("there is none");
    let api: Api<Pod> = Api::default_namespaced(Client::new(measure.layer(Unreachable), "default"));
    api.get("none").await.expect_err("there is no server");

    let mut text = String::new();
    encode(&mut text, &registry).expect("text");
    for line in [
        r#"rest_client_requests_total{code="200",method="GET",host="example.com:6443"} 1"#,
        r#"rest_client_requests_total{code="404",method="GET",host="example.com:6443"} 1"#,
        r#"rest_client_requests_total{code="<error>",method="GET",host="example.com:6443"} 1"#,
        r#"rest_client_request_duration_seconds_count{verb="GET",host="example.com:6443"} 3"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    cluster.shutdown().await;
}
