use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde_json::{Value, json};

use super::*;
use crate::kind::AcmeNamespaceSpec;

fn team(tier: Option<Tier>) -> AcmeNamespace {
    let spec = AcmeNamespaceSpec {
        namespace_name: "app-y".to_owned(),
        admin_username: "sam".to_owned(),
        deployment_tier: tier,
    };
    let mut team = AcmeNamespace::new("team-x", spec);
    team.metadata.uid = Some("u1".to_owned());
    team
}

#[test]
fn a_namespace_is_its_owners() {
    let check = |owner: Option<&str>, is_ending: bool, expected| {
        let owners = owner
            .map(|uid| vec![OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() }]);
        let mut found = namespace("app-y", "sam");
        found.metadata.owner_references = owners;
        found.metadata.deletion_timestamp =
            is_ending.then(|| Time("2026-01-01T00:00:00Z".parse().expect("a time")));
        assert_eq!(standing(&team(None), Some(&found)), expected);
    };
    check(Some("u1"), false, Standing::Ours);
    check(Some("u1"), true, Standing::Ending);
    check(Some("u2"), false, Standing::Taken);
    check(Some("u2"), true, Standing::Taken);
    check(None, false, Standing::Taken);
    assert_eq!(standing(&team(None), None), Standing::Free);
}

#[test]
fn the_quota_is_the_tiers_and_called_after_it() {
    let check = |tier: Option<Tier>, name: &str, hard: Value| {
        let Children { quota, .. } = Children::of(&team(tier));
        assert_eq!(quota.metadata.name.as_deref(), Some(name));
        assert_eq!(json!(quota.spec)["hard"], hard);
    };
    check(None, "dev", json!({"cpu": "5", "memory": "10Gi", "pods": "10"}));
    check(Some(Tier::Dev), "dev", json!({"cpu": "5", "memory": "10Gi", "pods": "10"}));
    check(Some(Tier::Stg), "stg", json!({"cpu": "50", "memory": "50Gi", "pods": "50"}));
    check(Some(Tier::Prod), "prod", json!({"cpu": "500", "memory": "200Gi", "pods": "100"}));
}

#[test]
fn only_the_quota_of_the_tier_stays() {
    let children = Children::of(&team(Some(Tier::Prod)));
    assert!(children.is_obsolete(&quota("app-y", Tier::Dev)));
    assert!(children.is_obsolete(&quota("elsewhere", Tier::Prod)));
    assert!(!children.is_obsolete(&quota("app-y", Tier::Prod)));
}

#[test]
fn the_administrator_may_do_everything_in_the_namespace() {
    let Children { namespace, role, binding, .. } = Children::of(&team(None));
    assert_eq!(json!(namespace.metadata.labels), json!({"admin": "sam"}));
    assert_eq!(
        json!(role.rules),
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    );
    assert_eq!(
        json!(binding.subjects),
        json!([{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "sam",
            "namespace": "app-y",
        }])
    );
    assert_eq!(binding.role_ref.name, "namespace-admin");
    assert_eq!(binding.metadata.namespace.as_deref(), Some("app-y"));
}
