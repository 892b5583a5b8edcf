//! What fields select, and which can.

use std::sync::Arc;

use super::*;
use crate::sample;

fn selection(resource: &Resource, labels: &str, fields: &str) -> Result<Selection, FieldError> {
    let labels = label::Selector::parse(labels).expect("it is a selector");
    let fields = field::Selector::parse(fields).expect("it is a selector");
    Selection::new(resource, labels, fields)
}

fn check_unsupported(resource: &Resource, fields: &str, expected: &str) {
    let error = selection(resource, "", fields).expect_err("it is refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn every_kind_has_its_words_for_what_it_does_not_know() {
    let resource = sample::resource;
    check_unsupported(
        &resource("", "v1", "configmaps"),
        "spec.x=1",
        "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
    );
    check_unsupported(
        &resource("", "v1", "secrets"),
        "data.x=1",
        "field label not supported: data.x",
    );
    check_unsupported(
        &resource("batch", "v1", "jobs"),
        "spec.x=1",
        "field label \"spec.x\" not supported for Job",
    );
    check_unsupported(
        &resource("", "v1", "namespaces"),
        "metadata.namespace=a",
        "field label not supported: metadata.namespace",
    );
    check_unsupported(
        &resource("events.k8s.io", "v1", "events"),
        "involvedObject.name=a",
        "field label not supported: involvedObject.name",
    );
    check_unsupported(
        &sample::widgets("v1", WIDGETS),
        "spec.other=1",
        "field label not supported: spec.other",
    );
}

async fn check(resource: &Arc<Resource>, yaml: &str, fields: &str, expected: bool) {
    let store = sample::store();
    let rev = sample::put(&store, resource, &sample::object(yaml)).await;
    let renderer = Renderer::new(resource);
    let selection = selection(resource, "", fields).expect("it is supported");
    for _ in 0..2 {
        assert_eq!(selection.matches(&renderer, &rev), expected, "{fields}");
    }
}

#[tokio::test]
async fn fields_of_built_in_kinds_select() {
    let secrets = sample::resource("", "v1", "secrets");
    let secret =
        "{kind: Secret, apiVersion: v1, metadata: {name: a, namespace: b, uid: c}, type: t}";
    check(&secrets, secret, "type=t", true).await;
    check(&secrets, secret, "type!=t", false).await;
    check(&secrets, secret, "metadata.name=a,metadata.namespace=b", true).await;
    check(&secrets, secret, "metadata.namespace=c", false).await;
    let roles = sample::resource("rbac.authorization.k8s.io", "v1", "clusterroles");
    let role = "
        kind: ClusterRole
        apiVersion: rbac.authorization.k8s.io/v1
        metadata: {name: a, uid: c}
        rules: null
        ";
    check(&roles, role, "metadata.name=a", true).await;
    check(&roles, role, "metadata.namespace=b", false).await;
}

#[tokio::test]
async fn events_are_selected_alike_in_both_groups() {
    let event = "
        kind: Event
        apiVersion: v1
        metadata: {name: a, namespace: b, uid: c}
        involvedObject: {kind: Pod, name: p}
        reason: Started
        reportingComponent: k
        ";
    let core = sample::resource("", "v1", "events");
    check(&core, event, "involvedObject.name=p,reason=Started", true).await;
    check(&core, event, "involvedObject.kind=Node", false).await;
    let events = sample::resource("events.k8s.io", "v1", "events");
    check(&events, event, "regarding.name=p,reportingController=k", true).await;
    check(&events, event, "regarding.name=q", false).await;
}

const WIDGETS: &str = "
    - {name: v1, served: true, storage: true,
       selectableFields: [{jsonPath: .spec.size}, {jsonPath: .spec.active}, {jsonPath: .spec.colour}],
       schema: {openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {
          size: {type: integer}, active: {type: boolean}, colour: {type: string}}}}}}}
    ";

#[tokio::test]
async fn selectable_fields_of_custom_resources_select() {
    let widgets = sample::widgets("v1", WIDGETS);
    let widget = "
        kind: Widget
        apiVersion: example.com/v1
        metadata: {name: a, namespace: b, uid: c}
        spec: {active: true, size: 3}
        ";
    check(&widgets, widget, "spec.size=3,spec.active=true,spec.colour=", true).await;
    check(&widgets, widget, "spec.size=4", false).await;
    check(&widgets, widget, "spec.colour!=red", true).await;
}
