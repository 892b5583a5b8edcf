//! Kinds that are derived from types of the program.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, ResourceExt as _,
};
use kube::core::crd::merge_crds;
use kube::discovery::ApiResource;
use kube::runtime::wait::delete::delete_and_finalize;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{refusal, run, typed};

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "rust.example.com", version = "v1", kind = "Boat", namespaced)]
#[kube(status = "BoatStatus", shortname = "bt", selectable = ".spec.port")]
#[kube(scale(spec_replicas_path = ".spec.oars", status_replicas_path = ".status.oars"))]
#[kube(printcolumn(name = "Oars", json_path = ".spec.oars", type_ = "integer"))]
#[kube(validation = "self.metadata.name != 'titanic'")]
pub(super) struct BoatSpec {
    #[schemars(length(min = 3))]
    pub(super) port: String,
    #[serde(default)]
    oars: i32,
    /// Left out, it is made of wood; null, it is unknown.
    #[serde(default = "wood", skip_serializing_if = "Option::is_none")]
    hull: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "set_of_texts")]
    flags: Vec<String>,
    #[serde(default = "white")]
    #[x_kube(
        validation = Rule::new("self != 'black'")
            .message(Message::Expression("'no ' + self + ' sails'".into()))
            .reason(Reason::FieldValueForbidden)
    )]
    sail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is immutable"))]
    keel: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]
pub(super) struct BoatStatus {
    oars: i32,
}

fn wood() -> Option<String> {
    Some("wood".to_owned())
}

fn white() -> String {
    "white".to_owned()
}

fn set_of_texts(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "string" },
        "x-kubernetes-list-type": "set",
    })
}

pub(super) fn boat(name: &str, port: &str) -> Boat {
    let flags = Vec::new();
    let port = port.to_owned();
    let spec = BoatSpec { port, oars: 2, hull: wood(), flags, sail: white(), keel: None };
    Boat::new(name, spec)
}

/// Applies a definition and waits until it is served.
pub(super) async fn define(client: &Client, crd: &CustomResourceDefinition) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("rust").force();
    crds.patch(&crd.name_any(), &params, &Patch::Apply(crd)).await.expect("applied");
    let established = conditions::is_crd_established();
    await_condition(crds, &crd.name_any(), established).await.expect("established");
}

#[test]
fn an_object_of_a_derived_kind_lives_and_dies() {
    run(|client| async move {
        define(&client, &Boat::crd()).await;
        let boats: Api<Boat> = Api::default_namespaced(client.clone());
        let post = PostParams::default();
        let params = PatchParams::default();

        let made = boats.create(&post, &boat("one", "Oslo")).await.expect("created");
        let mut moved = made.clone();
        moved.spec.port = "Bergen".to_owned();
        let moved = boats.replace("one", &post, &moved).await.expect("replaced");
        assert_eq!((moved.spec.port.as_str(), moved.metadata.generation), ("Bergen", Some(2)));
        assert_eq!(refusal(boats.replace("one", &post, &made).await).0, 409);

        let mut seen = moved;
        seen.status = Some(BoatStatus { oars: 1 });
        seen.spec.port = "ignored".to_owned();
        let seen = boats.replace_status("one", &post, &seen).await.expect("replaced");
        assert_eq!(seen.spec.port, "Bergen");
        let status = Patch::Merge(json!({"status": {"oars": 2}}));
        boats.patch_status("one", &params, &status).await.expect("patched");
        let status = boats.get_status("one").await.expect("read").status;
        assert_eq!(status.expect("a status").oars, 2);

        let scale = Patch::Merge(json!({"spec": {"replicas": 4}}));
        boats.patch_scale("one", &params, &scale).await.expect("scaled");
        let scale = boats.get_scale("one").await.expect("read");
        let wished = scale.spec.expect("a spec").replicas;
        assert_eq!((wished, scale.status.expect("a status").replicas), (Some(4), 2));

        let (code, message) = refusal(boats.create(&post, &boat("two", "x")).await);
        assert_eq!(code, 422);
        assert!(message.contains("spec.port in body should be at least 3 chars long"), "{message}");
        boats.create(&post, &boat("two", "Oslo")).await.expect("created");
        let here = ListParams::default().fields("spec.port=Oslo");
        let listed = boats.list(&here).await.expect("listed");
        assert_eq!(listed.items.iter().map(|boat| boat.name_any()).collect::<Vec<_>>(), ["two"]);

        assert!(boats.delete("one", &DeleteParams::default()).await.expect("deleted").is_right());
        let all = ListParams::default();
        let gone = boats.delete_collection(&DeleteParams::default(), &all).await.expect("deleted");
        assert_eq!(gone.left().expect("a list").items.len(), 1);
        let crds: Api<CustomResourceDefinition> = Api::all(client);
        delete_and_finalize(crds, "boats.rust.example.com", &DeleteParams::default())
            .await
            .expect("it goes");
        assert_eq!(refusal(boats.list(&all).await).0, 404);
    });
}

#[test]
fn a_derived_schema_sets_defaults_and_judges() {
    run(|client| async move {
        define(&client, &Boat::crd()).await;
        let boats: Api<Boat> = Api::default_namespaced(client.clone());
        let raw: Api<DynamicObject> =
            Api::default_namespaced_with(client, &ApiResource::erase::<Boat>(&()));
        let post = PostParams::default();
        let wish = |name: &str, spec| {
            typed::<DynamicObject>(json!({
                "apiVersion": "rust.example.com/v1",
                "kind": "Boat",
                "metadata": {"name": name},
                "spec": spec,
            }))
        };
        let made = raw.create(&post, &wish("one", json!({"port": "Oslo"}))).await.expect("created");
        let spec = json!({"port": "Oslo", "oars": 0, "hull": "wood", "flags": [], "sail": "white"});
        assert_eq!(made.data["spec"], spec);
        let unknown = wish("two", json!({"port": "Oslo", "hull": null, "other": 1}));
        let made = raw.create(&post, &unknown).await.expect("created");
        assert_eq!(made.data["spec"]["hull"], json!(null));
        assert_eq!(made.data["spec"].get("other"), None);

        let (code, message) = refusal(raw.create(&post, &wish("three", json!({}))).await);
        assert_eq!(code, 422);
        assert!(message.contains("spec.port: Required value"), "{message}");
        let (_, message) = refusal(boats.create(&post, &boat("titanic", "Cork")).await);
        assert!(message.contains("failed rule: self.metadata.name != 'titanic'"), "{message}");

        let apply = async |manager: &str, spec| {
            let params = PatchParams::apply(manager).force();
            let boat = wish("one", spec);
            boats.patch("one", &params, &Patch::Apply(&boat)).await
        };
        apply("a", json!({"flags": ["red"], "keel": "lead"})).await.expect("applied");
        let both = apply("b", json!({"flags": ["blue"]})).await.expect("applied");
        assert_eq!(both.spec.flags, ["red", "blue"], "a set holds what each has put in");
        let (_, message) = refusal(apply("b", json!({"sail": "black"})).await);
        assert!(message.contains("spec.sail: Forbidden: no black sails"), "{message}");
        let (_, message) = refusal(apply("b", json!({"keel": "steel"})).await);
        assert!(message.contains("spec.keel: Invalid value: \"steel\": is immutable"), "{message}");
    });
}

/// Two versions of one kind, each with a type of its own.
mod raft {
    pub(super) mod v1 {
        use kube::{CustomResource, KubeSchema};
        use serde::{Deserialize, Serialize};

        #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
        #[kube(group = "rust.example.com", version = "v1", kind = "Raft", namespaced)]
        pub(crate) struct RaftSpec {
            pub(crate) logs: u32,
        }
    }

    pub(super) mod v2 {
        use kube::{CustomResource, KubeSchema};
        use serde::{Deserialize, Serialize};

        #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
        #[kube(group = "rust.example.com", version = "v2", kind = "Raft", namespaced)]
        pub(crate) struct RaftSpec {
            pub(crate) logs: u32,
            pub(crate) rope: Option<String>,
        }
    }
}

#[test]
fn derived_versions_show_the_same_objects() {
    run(|client| async move {
        let versions = || vec![raft::v1::Raft::crd(), raft::v2::Raft::crd()];
        define(&client, &merge_crds(versions(), "v1").expect("one kind")).await;
        let old: Api<raft::v1::Raft> = Api::default_namespaced(client.clone());
        let new: Api<raft::v2::Raft> = Api::default_namespaced(client.clone());
        let params = PatchParams::apply("rust").force();
        let spec = raft::v2::RaftSpec { logs: 3, rope: Some("hemp".to_owned()) };
        let wish = raft::v2::Raft::new("one", spec);

        // Nothing is kept that the stored version has no field for.
        let made = new.patch("one", &params, &Patch::Apply(&wish)).await.expect("applied");
        assert_eq!(made.spec.rope, None);
        assert_eq!(old.get("one").await.expect("read").spec.logs, 3);

        define(&client, &merge_crds(versions(), "v2").expect("one kind")).await;
        let made = new.patch("one", &params, &Patch::Apply(&wish)).await.expect("applied");
        assert_eq!(made.spec.rope.as_deref(), Some("hemp"));
        assert_eq!(old.get("one").await.expect("read").spec.logs, 3);
    });
}
