//! Kinds that a program learns about while it runs, and types of its own for known kinds.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace as NamespaceObject, Pod};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, NotUsed, Object, ObjectMeta, Patch,
    PatchParams, PostParams, ResourceExt as _,
};
use kube::client::scope::{Cluster, Namespace};
use kube::core::{GroupVersion, GroupVersionKind};
use kube::discovery::{self, ApiCapabilities, Discovery, Scope, verbs};
use kube::{Client, CustomResourceExt as _, Resource};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::custom::{Boat, define};
use super::{run, typed};

/// The collection of a kind, as `kubectl get` would ask for it.
fn collection(
    client: &Client,
    resource: &ApiResource,
    capabilities: &ApiCapabilities,
) -> Api<DynamicObject> {
    match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => Api::default_namespaced_with(client.clone(), resource),
    }
}

#[test]
fn all_that_can_be_listed_is_found_and_listed() {
    run(|client| async move {
        define(&client, &Boat::crd()).await;
        let whole = Discovery::new(client.clone()).run_aggregated().await.expect("discovery");
        let by_group = Discovery::new(client.clone()).run().await.expect("discovery");
        let found = |discovery: &Discovery| {
            let groups = discovery.groups_alphabetical().into_iter();
            let resources = groups.flat_map(|group| group.recommended_resources());
            resources
                .map(|(resource, capabilities)| {
                    let mut verbs = capabilities.operations;
                    verbs.sort();
                    (resource.api_version, resource.plural, verbs)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&whole), found(&by_group), "both ways lead to the same");

        let mut lists = 0;
        for group in whole.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                if capabilities.supports_operation(verbs::LIST) {
                    let api = collection(&client, &resource, &capabilities);
                    api.list(&ListParams::default()).await.expect("listed");
                    lists += 1;
                }
            }
        }
        assert!(lists > 50, "{lists}");
    });
}

#[test]
fn a_kind_is_found_by_its_names() {
    run(|client| async move {
        define(&client, &Boat::crd()).await;
        let kind = GroupVersionKind::gvk("rust.example.com", "v1", "Boat");
        let (pinned, capabilities) =
            discovery::pinned_kind(&client, &kind).await.expect("discovered");
        let version = GroupVersion::gv("rust.example.com", "v1");
        let group = discovery::pinned_group(&client, &version).await.expect("discovered");
        let (recommended, _) = group.recommended_kind("Boat").expect("it is there");
        assert_eq!((&pinned, &recommended), (&recommended, &ApiResource::erase::<Boat>(&())));
        let subresources = capabilities.subresources.iter();
        let mut names: Vec<&str> = subresources.map(|(of, _)| of.plural.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["scale", "status"]);

        // What `kubectl apply`, `get` and `delete` do.
        let boats = collection(&client, &pinned, &capabilities);
        let boat = json!({
            "apiVersion": "rust.example.com/v1",
            "kind": "Boat",
            "metadata": {"name": "one"},
            "spec": {"port": "Oslo"},
        });
        let object: DynamicObject = typed(boat);
        let all = Discovery::new(client.clone()).run_aggregated().await.expect("discovery");
        assert_eq!(all.resolve_object(&object).expect("known").0, pinned);
        let params = PatchParams::apply("kubectl").force();
        boats.patch("one", &params, &Patch::Apply(&object)).await.expect("applied");
        assert_eq!(boats.get("one").await.expect("read").data["spec"]["port"], "Oslo");
        boats.delete("one", &DeleteParams::default()).await.expect("deleted");
        assert_eq!(boats.get_opt("one").await.expect("asked").map(|boat| boat.name_any()), None);
    });
}

/// As much of a pod as one program cares for.
#[derive(Clone, Debug, Deserialize)]
struct Images {
    containers: Vec<Image>,
}

#[derive(Clone, Debug, Deserialize)]
struct Image {
    image: String,
}

/// The ConfigMap that every namespace is given.
#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = ConfigMap)]
struct Trust {
    metadata: ObjectMeta,
    data: Bundle,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Bundle {
    #[serde(rename = "ca.crt")]
    certificate: String,
}

#[test]
fn a_program_reads_known_kinds_by_types_of_its_own() {
    run(|client| async move {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        });
        pods.create(&PostParams::default(), &typed(pod)).await.expect("created");
        let resource = ApiResource::erase::<Pod>(&());
        let pods: Api<Object<Images, NotUsed>> =
            Api::default_namespaced_with(client.clone(), &resource);
        let listed = pods.list(&ListParams::default()).await.expect("listed");
        let images = listed.items.iter().flat_map(|pod| &pod.spec.containers);
        assert_eq!(images.map(|container| &container.image).collect::<Vec<_>>(), ["busybox"]);

        let all = ListParams::default();
        for object in client.list::<NamespaceObject>(&all, &Cluster).await.expect("listed") {
            let namespace = Namespace::try_from(&object).expect("a name");
            let name = object.name_any();
            let maps: Api<Trust> = Api::namespaced(client.clone(), &name);
            // Soon after the namespace.
            let published = kube::runtime::wait::conditions::is_created();
            kube::runtime::wait::await_condition(maps, "kube-root-ca.crt", published)
                .await
                .expect("published");
            let trust: Trust = client.get("kube-root-ca.crt", &namespace).await.expect("read");
            assert_eq!(trust.metadata.namespace.as_deref(), Some(name.as_str()));
            assert!(trust.data.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        }
    });
}

#[test]
fn a_raw_request_is_answered() {
    run(|client| async move {
        let version = client.apiserver_version().await.expect("a version");
        assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
        let get = |path: &str| http::Request::get(path).body(Vec::new()).expect("a request");
        assert_eq!(client.request_text(get("/readyz")).await.expect("an answer"), "ok");
        let paths: serde_json::Value = client.request(get("/")).await.expect("an answer");
        assert!(paths["paths"].as_array().expect("a list").contains(&json!("/openapi/v3")));
        let metrics = client.request_text(get("/metrics")).await.expect("an answer");
        assert!(metrics.contains("apiserver_request_total"));
    });
}
