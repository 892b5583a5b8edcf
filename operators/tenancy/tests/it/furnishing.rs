//! What a namespace is given, and keeps.

use http::Method;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kubewright::condition::READY;
use serde_json::json;
use tenancy::Phase;

use crate::site::on_site;

#[test]
fn a_team_gets_all_that_it_needs() {
    on_site(async |site| {
        site.create().await;
        let team = site.created().await;
        assert_eq!(team.status.as_ref().and_then(|it| it.phase), Some(Phase::Created));
        // Nobody has to be told of the end.
        assert!(team.finalizers().is_empty());

        let (home, client) = (site.home(), site.cluster.client());
        let namespace = site.namespaces().get(&home).await.expect("a namespace");
        assert_eq!(namespace.labels()["admin"], "sam");
        assert_eq!(namespace.owner_references()[0].uid, team.uid().expect("a uid"));
        let roles: Api<Role> = Api::namespaced(client.clone(), &home);
        roles.get("namespace-admin").await.expect("a role");
        let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), &home);
        let binding = bindings.get("namespace-admin").await.expect("a binding");
        assert_eq!(binding.subjects.expect("subjects")[0].name, "sam");
        let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), &home);
        let quota = quotas.get("dev").await.expect("a quota");
        assert_eq!(
            json!(quota.spec.expect("a spec").hard),
            json!({"cpu": "5", "memory": "10Gi", "pods": "10"})
        );
        let limits: Api<LimitRange> = Api::namespaced(client.clone(), &home);
        limits.get("container-defaults").await.expect("limits");
        let policies: Api<NetworkPolicy> = Api::namespaced(client, &home);
        policies.get("same-namespace-only").await.expect("a policy");
    });
}

#[test]
fn a_new_tier_or_administrator_changes_the_children() {
    on_site(async |site| {
        site.create().await;
        site.created().await;
        site.edit(json!({"deploymentTier": "prod", "adminUsername": "ada"})).await;
        site.created().await;
        site.child::<ResourceQuota>("prod", |quota| quota.is_some()).await;
        site.child::<ResourceQuota>("dev", |quota| quota.is_none()).await;
        let namespace = site.namespaces().get(&site.home()).await.expect("a namespace");
        assert_eq!(namespace.labels()["admin"], "ada");
        let of_ada = |binding: Option<&RoleBinding>| {
            let subjects = binding.and_then(|binding| binding.subjects.as_deref());
            subjects.is_some_and(|subjects| subjects[0].name == "ada" && subjects.len() == 1)
        };
        site.child("namespace-admin", of_ada).await;
    });
}

#[test]
fn a_child_that_is_tampered_with_comes_back() {
    on_site(async |site| {
        site.create().await;
        site.created().await;
        let (home, client) = (site.home(), site.cluster.client());
        let (params, delete) = (PatchParams::default(), DeleteParams::default());

        let roles: Api<Role> = Api::namespaced(client.clone(), &home);
        let less = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
        roles.patch("namespace-admin", &params, &Patch::Merge(less)).await.expect("changed");
        let is_whole = |role: Option<&Role>| {
            let rules = role.and_then(|role| role.rules.as_deref());
            rules.is_some_and(|rules| rules.len() == 1 && rules[0].verbs == ["*"])
        };
        site.child("namespace-admin", is_whole).await;

        let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), &home);
        let more = json!({"spec": {"hard": {"pods": "1000"}}});
        quotas.patch("dev", &params, &Patch::Merge(more)).await.expect("changed");
        let is_small = |quota: Option<&ResourceQuota>| {
            let hard = quota.and_then(|quota| quota.spec.as_ref()?.hard.as_ref());
            hard.is_some_and(|hard| hard["pods"].0 == "10")
        };
        site.child("dev", is_small).await;

        let policies: Api<NetworkPolicy> = Api::namespaced(client.clone(), &home);
        policies.delete("same-namespace-only", &delete).await.expect("deleted");
        let is_there = |policy: Option<&NetworkPolicy>| {
            policy.is_some_and(|policy| policy.metadata.deletion_timestamp.is_none())
        };
        site.child("same-namespace-only", is_there).await;

        let nobody = Patch::Merge(json!({"metadata": {"labels": {"admin": "nobody"}}}));
        site.namespaces().patch(&home, &params, &nobody).await.expect("changed");
        let is_sams = |it: Option<&Namespace>| it.is_some_and(|it| it.labels()["admin"] == "sam");
        site.cluster.eventually(None, &home, is_sams).await;
    });
}

#[test]
fn a_namespace_that_is_deleted_is_made_again() {
    on_site(async |site| {
        site.create().await;
        site.created().await;
        let home = site.home();
        let before = site.namespaces().get(&home).await.expect("a namespace").uid();
        site.namespaces().delete(&home, &DeleteParams::default()).await.expect("deleted");
        let is_new = |it: Option<&Namespace>| it.is_some_and(|it| it.uid() != before);
        site.cluster.eventually(None, &home, is_new).await;
        site.child::<ResourceQuota>("dev", |quota| quota.is_some()).await;
        site.created().await;
    });
}

/// The phase may say anything: what counts is what there is.
#[test]
fn a_crash_half_way_is_repaired_from_what_exists() {
    on_site(async |site| {
        let mut refusal = site.refuse(|request| {
            request.method == Method::PATCH && request.uri.path().contains("/limitranges/")
        });
        site.create().await;
        refusal.tried(1).await;
        site.kill();
        refusal.end();
        let (team, params) = (site.team(), PatchParams::default());
        let all_is_well = Patch::Merge(json!({"status": {"phase": "Created"}}));
        site.teams().patch_status(&team, &params, &all_is_well).await.expect("a status");
        let limits: Api<LimitRange> = Api::namespaced(site.cluster.client(), &site.home());
        assert!(limits.get_opt("container-defaults").await.expect("an answer").is_none());

        site.run().await;
        site.child::<LimitRange>("container-defaults", |limits| limits.is_some()).await;
        site.child::<NetworkPolicy>("same-namespace-only", |policy| policy.is_some()).await;
        site.created().await;
    });
}

#[test]
fn retries_wait_from_a_second_to_five_minutes() {
    on_site(async |site| {
        if !site.cluster.is_virtual() {
            return;
        }
        // Before there are children, whose changes would be reasons to look again.
        let mut refusal = site.refuse(|request| {
            request.method == Method::POST && request.uri.path().ends_with("/namespaces")
        });
        site.create().await;
        let tried = refusal.tried(12).await;
        let pauses = tried.windows(2).map(|pair| (pair[1] - pair[0]).as_secs());
        let pauses: Vec<_> = pauses.collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        let team = site.told(READY, "False", "Incomplete").await;
        let phase = team.status.as_ref().and_then(|it| it.phase);
        assert_eq!(phase, Some(Phase::CreationInProgress));
        refusal.end();
        site.cluster.pass(std::time::Duration::from_secs(300)).await;
        site.created().await;
    });
}

#[test]
fn a_namespace_of_somebody_else_is_left_alone() {
    on_site(async |site| {
        let home = site.home();
        let metadata = ObjectMeta { name: Some(home.clone()), ..ObjectMeta::default() };
        let theirs = Namespace { metadata, ..Namespace::default() };
        site.namespaces().create(&PostParams::default(), &theirs).await.expect("created");
        site.create().await;
        site.told(READY, "False", "NamespaceTaken").await;
        let theirs = site.namespaces().get(&home).await.expect("a namespace");
        assert!(theirs.owner_references().is_empty());
        assert!(!theirs.labels().contains_key("admin"));

        site.namespaces().delete(&home, &DeleteParams::default()).await.expect("deleted");
        site.created().await;
    });
}

/// Owner references are enough.
#[test]
fn without_billing_a_team_goes_also_while_the_operator_is_away() {
    on_site(async |site| {
        site.create().await;
        site.created().await;
        site.stop().await;
        site.delete().await;
        site.gone().await;
    });
}

#[test]
fn the_schema_refuses_what_cannot_be() {
    on_site(async |site| {
        let check = async |spec: serde_json::Value, told: &str| {
            let refused = site.try_create(spec).await.expect_err("it is refused").to_string();
            assert!(refused.contains(told), "{refused}");
        };
        check(json!({"namespaceName": "kube-mine"}), "must not begin with kube-").await;
        let label = "must be the name of a namespace, as app-y";
        check(json!({"namespaceName": "App_Y"}), label).await;
        check(json!({"adminUsername": "sam@acme.com"}), "must be a user's name, as sam").await;
        let sample = kubewright_testing::yaml(tenancy::SAMPLE).remove(0);
        let typo = json!({"spec": {"adminUserName": "sam"}});
        let refusal = site.cluster.refusal(&sample, typo).await;
        let told = r#"strict decoding error: unknown field "spec.adminUserName""#;
        assert!(refusal.contains(told), "{refusal}");
        let nobody = json!({"spec": {"adminUsername": null}});
        let refusal = site.cluster.refusal(&sample, nobody).await;
        assert!(refusal.contains("spec.adminUsername: Required value"), "{refusal}");
        site.create().await;
        let refused = site.try_edit(json!({"namespaceName": "other"})).await;
        let refused = refused.expect_err("it is refused").to_string();
        assert!(refused.contains("cannot be changed: make another AcmeNamespace"), "{refused}");
        let refused = site.try_edit(json!({"deploymentTier": "test"})).await;
        let refused = refused.expect_err("it is refused").to_string();
        assert!(refused.contains(r#"supported values: "dev", "stg", "prod""#), "{refused}");
        site.created().await;
    });
}

#[test]
fn its_samples_are_those_of_its_folder() {
    let manifests = tenancy::package(&tenancy::Services::default()).render().expect("manifests");
    let samples = manifests.iter().filter(|it| it.part == kubewright::manifest::Part::Samples);
    let names: Vec<&str> = samples.map(|it| it.name()).collect();
    assert_eq!(names, ["team-x"]);
}
