//! Declared uses against the rules they become.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret};
use kube::core::PartialObjectMeta;

use super::*;

/// Each rule as `groups: resources [names] = verbs`.
fn check(accesses: &[Access], expected: &[&str]) {
    let line = |rule: PolicyRule| {
        let groups = rule.api_groups.unwrap_or_default().join(",");
        let resources = rule.resources.unwrap_or_default().join(",");
        let names = rule.resource_names.map(|names| format!(" [{}]", names.join(",")));
        format!("{groups}: {resources}{} = {}", names.unwrap_or_default(), rule.verbs.join(","))
    };
    let lines: Vec<_> = rules(accesses).into_iter().map(line).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_kind_knows_its_names_and_its_scope() {
    let deployment = Access::of::<Deployment>();
    let names = [&deployment.group, &deployment.version, &deployment.kind, &deployment.plural];
    assert_eq!(names, ["apps", "v1", "Deployment", "deployments"]);
    assert!(deployment.namespaced);
    assert!(!Access::of::<Node>().namespaced);
    assert!(!Access::of::<PartialObjectMeta<Namespace>>().namespaced);
}

#[test]
fn a_reconciled_kind_is_watched_and_its_status_and_finalizers_written() {
    check(
        &[Access::reconciled::<Deployment>()],
        &[
            "apps: deployments = get,list,patch,update,watch",
            "apps: deployments/finalizers = update",
            "apps: deployments/status = get,patch,update",
        ],
    );
}

#[test]
fn an_owned_kind_is_watched_and_written() {
    let expected = ["apps: deployments = create,delete,get,list,patch,update,watch"];
    check(&[Access::owned::<Deployment>()], &expected);
    check(&[Access::read::<Deployment>(), Access::written::<Deployment>()], &expected);
}

#[test]
fn kinds_with_the_same_verbs_share_a_rule() {
    check(
        &[Access::read::<Secret>(), Access::owned::<Pod>(), Access::read::<ConfigMap>()],
        &[
            ": configmaps,secrets = get,list,watch",
            ": pods = create,delete,get,list,patch,update,watch",
        ],
    );
}

#[test]
fn groups_with_the_same_resources_and_verbs_share_a_rule() {
    let mut old = Access::read::<Deployment>();
    old.group = "extensions".to_owned();
    check(&[old, Access::read::<Deployment>()], &["apps,extensions: deployments = get,list,watch"]);
}

#[test]
fn the_order_of_declarations_does_not_matter() {
    let mut accesses = [events(), leases(), reviews()].concat();
    let rendered = rules(&accesses);
    accesses.reverse();
    assert_eq!(rules(&accesses), rendered);
}

#[test]
fn subresources_and_further_verbs_add_up() {
    check(
        &[Access::of::<Deployment>().and(&["get"]).on("scale", &["get"]), {
            Access::of::<Deployment>().and(&["get"]).on("scale", &["update"])
        }],
        &["apps: deployments = get", "apps: deployments/scale = get,update"],
    );
}

#[test]
fn a_use_without_verbs_is_no_rule() {
    check(&[Access::of::<Pod>()], &[]);
}

#[test]
fn names_restrict_only_what_no_other_rule_grants() {
    let secret = || Access::of::<Secret>();
    check(
        &[secret().and(&["get", "update"]).named(["ca"]), secret().and(&["get", "create"])],
        &[": secrets = create,get", ": secrets [ca] = update"],
    );
    check(&[secret().and(&["get"]).named(["ca"]), secret().and(&["get"])], &[": secrets = get"]);
}

#[test]
fn metrics_ask_who_calls_and_what_it_may() {
    check(
        &reviews(),
        &[
            "authentication.k8s.io: tokenreviews = create",
            "authorization.k8s.io: subjectaccessreviews = create",
        ],
    );
}

#[test]
fn leases_and_their_events_are_at_home() {
    assert!(leases().iter().all(|access| access.reach == Reach::Home));
    check(
        &leases(),
        &[
            "coordination.k8s.io: leases = create,delete,get,list,patch,update,watch",
            "events.k8s.io: events = create,patch",
        ],
    );
}

#[test]
fn certificates_reach_only_what_has_their_name() {
    let uses = Certificates {
        secret: "pets-webhook-certificates".to_owned(),
        validating: vec!["pets".to_owned()],
        definitions: vec!["pets.example.com".to_owned()],
        ..Certificates::default()
    };
    check(
        &certificates(&uses),
        &[
            ": secrets = create",
            ": secrets [pets-webhook-certificates] = get,update",
            "admissionregistration.k8s.io: validatingwebhookconfigurations [pets] = get,patch",
            "apiextensions.k8s.io: customresourcedefinitions [pets.example.com] = get,patch",
        ],
    );
}
