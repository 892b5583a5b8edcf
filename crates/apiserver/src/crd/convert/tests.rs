use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubewright_apimachinery::schema::crd::Definition;
use serde_json::{Value, json};

use super::Webhook;
use crate::crd::resources;
use crate::encode;
use crate::index::Stored;
use crate::outbound::tests::{Site, authority, issued};
use crate::resource::Resource;
use crate::sample::{object, put, store};

/// Widgets in `v1` and `v2`, of which the first is stored; a webhook converts them.
fn widgets(version: &str, client_config: &Value) -> Arc<Resource> {
    let mut definition = object(
        "
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: widgets.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
          versions:
          - name: v1
            served: true
            storage: true
            schema: &any
              openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
          - {name: v2, served: true, storage: false, schema: *any}
          conversion:
            strategy: Webhook
            webhook: {conversionReviewVersions: [v1beta1]}
        ",
    );
    definition["spec"]["conversion"]["webhook"]["clientConfig"] = client_config.clone();
    let parsed = Arc::new(Definition::parse(&definition).expect("it is a definition"));
    let webhook = Webhook::of(&store(), &Arc::default(), &definition, &parsed);
    let mut resources = resources(&definition, &parsed, webhook).into_iter();
    resources.find(|resource| resource.gvr.version == version).expect("it has this version")
}

fn widget(version: &str) -> Value {
    object(&format!(
        "
        kind: Widget
        apiVersion: example.com/{version}
        metadata: {{generation: 1, name: a, namespace: default, uid: u}}
        spec: {{of: {version}}}
        "
    ))
}

/// Where nobody answers.
fn nowhere() -> Value {
    json!({ "url": "https://127.0.0.1:1/" })
}

async fn stored(resource: &Resource, version: &str) -> Stored {
    put(&store(), resource, &widget(version)).await
}

#[tokio::test]
async fn whoever_wants_the_same_shares_one_review_and_it_is_kept() {
    let review = json!({
        "response": { "result": { "status": "Success" }, "convertedObjects": [widget("v2")] },
    });
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{review}", review.to_string().len());
    let authority = authority("ours");
    let pair = issued(&authority, &["127.0.0.1"], |_| {});
    // A second review would never be answered.
    let answers: &'static [&'static str] = Box::leak(Box::new([&*answer.leak()]));
    let site = Site::start(&pair, Box::leak(Box::new([answers]))).await;
    let config = json!({
        "url": format!("https://{}/", site.address),
        "caBundle": BASE64_STANDARD.encode(authority.pem()),
    });
    let v2 = widgets("v2", &config);
    let rev = stored(&v2, "v1").await;

    let wanted = || v2.shown(vec![Arc::clone(&rev)]);
    let (one, other) = tokio::join!(wanted(), wanted());
    let later = wanted().await;
    for shown in [one, other, later] {
        let shown = shown.expect("it was converted");
        let mut expected = widget("v2");
        expected["metadata"]["resourceVersion"] = rev.revision.to_string().into();
        assert_eq!(encode::live(&v2, &shown[0]).expect("an object"), expected);
        assert_eq!(shown[0].revision, rev.revision);
    }
}

#[tokio::test]
async fn what_is_stored_in_the_version_wanted_needs_nobody() {
    let v1 = widgets("v1", &nowhere());
    let rev = stored(&v1, "v1").await;
    let shown = v1.shown(vec![Arc::clone(&rev)]).await.expect("nobody is asked");
    assert!(Arc::ptr_eq(&shown[0], &rev));
    let shown = v1.shown_anew(&rev).await.expect("nobody is asked");
    assert!(Arc::ptr_eq(&shown, &rev));
}

#[tokio::test]
async fn what_cannot_be_converted_says_why() {
    let v2 = widgets("v2", &nowhere());
    let rev = stored(&v2, "v1").await;
    let refusal = v2.shown(vec![Arc::clone(&rev)]).await.expect_err("nobody answers");
    assert_eq!(
        refusal.message,
        "conversion webhook for example.com/v1, Kind=Widget failed: Post \
         \"https://127.0.0.1:1/?timeout=30s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
    let unknown = stored(&v2, "v0").await;
    let refusal = v2.shown(vec![unknown]).await.expect_err("there is no such version");
    assert_eq!(
        refusal.message,
        "request to convert CR from an invalid group/version: example.com/v0"
    );
}
