//! Webhooks by value: what they are asked, and what they answer.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kubewright_apimachinery::patch::json::Patch as JsonPatch;
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

/// Sends a body to one webhook after the other; the status of HTTP, and the answer.
async fn ask(webhooks: &Webhooks, path: &str, media_type: &str, body: &str) -> (u16, Value) {
    ask_counted(webhooks, path, media_type, body, &Metrics::new(&mut Registry::default())).await
}

async fn ask_counted(
    webhooks: &Webhooks,
    path: &str,
    media_type: &str,
    body: &str,
    metrics: &Metrics,
) -> (u16, Value) {
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, media_type)
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .expect("a request");
    let answer = webhooks.answer(request, metrics).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// The response to a review of a ConfigMap by one webhook.
async fn respond(webhook: Webhook, more: Value) -> Value {
    let path = webhook.registration.path.clone();
    let mut request = json!({
        "uid": "u", "operation": "CREATE", "name": "it", "namespace": "here",
        "kind": { "group": "", "version": "v1", "kind": "ConfigMap" },
        "object": null, "oldObject": null,
    });
    for (name, value) in more.as_object().expect("fields") {
        request[name] = value.clone();
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
    });
    let webhooks = Webhooks::new().with(webhook);
    let (status, answer) = ask(&webhooks, &path, "application/json", &review.to_string()).await;
    assert_eq!(status, 200);
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["response"]["uid"], "u");
    answer["response"].clone()
}

/// What a response makes of an object.
fn patched(object: &Value, response: &Value) -> Value {
    let encoded = &response["patch"];
    if encoded.is_null() {
        assert!(response.get("patchType").is_none());
        return object.clone();
    }
    assert_eq!(response["patchType"], "JSONPatch");
    let bytes: k8s_openapi::ByteString = serde_json::from_value(encoded.clone()).expect("base64");
    let patch = serde_json::from_slice(&bytes.0).expect("a patch in JSON");
    JsonPatch::decode(patch).expect("a patch").apply(object).expect("it applies")
}

#[test]
fn a_patch_leads_from_one_object_to_the_other() {
    fn check(from: Value, to: Value, steps: usize) {
        let patch = patch::difference(&from, &to);
        assert_eq!(patch.len(), steps, "{patch:?}");
        let patch = JsonPatch::decode(serde_json::to_value(&patch).unwrap()).expect("a patch");
        assert_eq!(patch.apply(&from).expect("it applies"), to);
    }
    check(json!({"a": 1}), json!({"a": 1}), 0);
    check(json!({"a": 1, "b": {"c": 2}}), json!({"b": {"c": 3}, "d": null}), 3);
    check(json!({"a/b": {"~": 1}}), json!({"a/b": {"~": 2}}), 1);
    check(json!({"a": [1, 2, 3, 4]}), json!({"a": [1, 5]}), 3);
    check(json!({"a": [1]}), json!({"a": [1, 2, 3]}), 2);
    check(json!({"a": [{"b": 1}]}), json!({"a": {"b": 1}}), 1);
    check(json!({"a": []}), json!({"a": null}), 1);
}

#[test]
fn only_what_the_author_changed_is_carried_over() {
    fn check(sent: Value, before: Value, after: Value, expected: Value) {
        assert_eq!(patch::carry(&sent, &before, &after), expected);
    }
    // A field that the type does not know stays, one that it writes out does not appear.
    check(
        json!({"known": 1, "new": true}),
        json!({"known": 1, "written": []}),
        json!({"known": 2, "written": []}),
        json!({"known": 2, "new": true}),
    );
    // What the author took away goes.
    check(json!({"a": 1, "x": 0}), json!({"a": 1}), json!({}), json!({"x": 0}));
    // Items keep what is theirs when others come, go and change.
    check(
        json!({"l": [{"n": "a", "x": 1}, {"n": "b", "x": 2}]}),
        json!({"l": [{"n": "a"}, {"n": "b"}]}),
        json!({"l": [{"n": "c"}, {"n": "a"}, {"n": "b"}]}),
        json!({"l": [{"n": "c"}, {"n": "a", "x": 1}, {"n": "b", "x": 2}]}),
    );
    check(
        json!({"l": [{"n": "a", "x": 1}, {"n": "b", "x": 2}]}),
        json!({"l": [{"n": "a"}, {"n": "b"}]}),
        json!({"l": [{"n": "a"}, {"n": "B"}]}),
        json!({"l": [{"n": "a", "x": 1}, {"n": "B", "x": 2}]}),
    );
    // A set has forgotten how often and where things were.
    check(
        json!({"s": ["b", "a", "a"]}),
        json!({"s": ["a", "b"]}),
        json!({"s": ["a", "b", "c"]}),
        json!({"s": ["a", "b", "c"]}),
    );
}

fn completing() -> Webhook {
    Webhook::defaulting(|it: &mut ConfigMap, review: &Review| {
        it.data.get_or_insert_default().entry("a".into()).or_insert_with(|| "1".into());
        review.annotate("done", if review.is_dry_run() { "as a trial" } else { "for good" });
        Ok(())
    })
}

#[tokio::test]
async fn an_object_is_completed_by_a_patch_of_the_difference() {
    let object = json!({"metadata": {"name": "it"}, "unheard": {"of": [1]}});
    let response = respond(completing(), json!({"object": object, "dryRun": true})).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(response["auditAnnotations"], json!({"done": "as a trial"}));
    let mut expected = object.clone();
    expected["data"] = json!({"a": "1"});
    assert_eq!(patched(&object, &response), expected);
}

#[tokio::test]
async fn an_object_that_is_complete_gets_no_patch() {
    let object = json!({"metadata": {"name": "it"}, "data": {"a": "0"}});
    let response = respond(completing(), json!({"object": object})).await;
    assert_eq!(patched(&object, &response), object);
    assert_eq!(response["status"]["code"], 200);
}

#[tokio::test]
async fn a_deletion_completes_nothing() {
    let object = json!({"metadata": {"name": "it"}});
    let response = respond(completing(), json!({"operation": "DELETE", "oldObject": object})).await;
    assert_eq!(response["allowed"], true);
    assert!(response.get("auditAnnotations").is_none());
}

struct Rules;

impl Validator<ConfigMap> for Rules {
    async fn create(&self, object: &ConfigMap, _: &Review) -> Result<Warnings, Denied> {
        match &object.data {
            None => Err(Denied::invalid([
                Cause::required("data", "say something"),
                Cause::invalid("metadata.name", "it", "too short"),
            ])),
            Some(data) if data.contains_key("old") => Ok(vec!["old is old".to_owned()]),
            Some(_) => Ok(vec![]),
        }
    }

    async fn update(
        &self,
        old: &ConfigMap,
        new: &ConfigMap,
        review: &Review,
    ) -> Result<Warnings, Denied> {
        review.warn("looked at");
        match old.data == new.data {
            true => Ok(vec!["unchanged".to_owned()]),
            false => Err(Denied::new("data stays").with_code(409, "Conflict")),
        }
    }
}

#[tokio::test]
async fn a_judgement_has_a_code_a_reason_and_causes() {
    let response = respond(Webhook::validating(Rules), json!({"object": {}})).await;
    assert_eq!(response["allowed"], false);
    assert_eq!(
        response["status"],
        json!({
            "metadata": {}, "code": 422, "reason": "Invalid",
            "message": "ConfigMap \"it\" is invalid: [data: Required value: say something, \
                        metadata.name: Invalid value: \"it\": too short]",
            "details": { "group": "", "kind": "ConfigMap", "name": "it", "causes": [
                { "field": "data", "message": "Required value: say something",
                  "reason": "FieldValueRequired" },
                { "field": "metadata.name", "message": "Invalid value: \"it\": too short",
                  "reason": "FieldValueInvalid" },
            ] },
        })
    );
    let changed = json!({"operation": "UPDATE", "object": {"data": {"a": "1"}}, "oldObject": {}});
    let response = respond(Webhook::validating(Rules), changed).await;
    assert_eq!(
        response["status"],
        json!({"metadata": {}, "code": 409, "reason": "Conflict", "message": "data stays"})
    );
    assert_eq!(response["warnings"], json!(["looked at"]));
}

#[tokio::test]
async fn what_is_allowed_may_be_warned_of() {
    let response = respond(Webhook::validating(Rules), json!({"object": {"data": {"old": ""}}}));
    let response = response.await;
    assert_eq!(
        (&response["allowed"], &response["warnings"]),
        (&json!(true), &json!(["old is old"]))
    );
    let same = json!({"operation": "UPDATE", "object": {}, "oldObject": {}});
    let response = respond(Webhook::validating(Rules), same).await;
    assert_eq!(response["warnings"], json!(["looked at", "unchanged"]));
    let deleted = json!({"operation": "DELETE", "oldObject": {}});
    assert_eq!(respond(Webhook::validating(Rules), deleted).await["allowed"], true);
}

#[tokio::test]
async fn an_object_of_another_form_is_a_bad_request() {
    let response = respond(Webhook::validating(Rules), json!({"object": {"data": 1}})).await;
    assert_eq!(response["status"]["code"], 400);
    let response = respond(Webhook::validating(Rules), json!({})).await;
    assert_eq!(response["status"]["message"], "there is no content to decode");
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let webhook = Webhook::defaulting(|_: &mut ConfigMap, _: &Review| panic!("no {}", "way"));
    let response = respond(webhook, json!({"object": {}})).await;
    assert_eq!(
        response["status"],
        json!({"metadata": {}, "code": 500, "message": "panic: no way [recovered]"})
    );
}

#[tokio::test]
async fn any_review_can_be_answered_by_hand() {
    let registration = Registration::new(Purpose::Mutate, "/all", "*", "*", "*/*", "");
    let webhook = Webhook::new(registration, |review: &Review| {
        let mut object = review.object.clone();
        object["seen"] = json!(true);
        Response::patched(review, &object).with_warnings(["seen".to_owned()])
    });
    let object = json!({"anything": 1});
    let response = respond(webhook, json!({"object": object})).await;
    assert_eq!(patched(&object, &response), json!({"anything": 1, "seen": true}));
    assert_eq!(response["warnings"], json!(["seen"]));
}

#[tokio::test]
async fn what_is_no_review_is_said_in_a_review() {
    async fn check(media_type: &str, body: &str, code: u16, message: &str) {
        let webhooks = Webhooks::new().with(completing());
        let (status, answer) = ask(&webhooks, "/mutate--v1-configmap", media_type, body).await;
        assert_eq!(status, 200);
        let response = &answer["response"];
        assert_eq!(response["allowed"], false);
        assert_eq!(response["status"]["code"], code);
        let said = response["status"]["message"].as_str().expect("a message");
        assert!(said.contains(message), "{said}");
    }
    const JSON: &str = "application/json";
    check(JSON, "", 400, "request body is empty").await;
    check("text/plain", "{}", 400, "contentType=text/plain, expected application/json").await;
    check(JSON, "nonsense", 400, "expected").await;
    check(JSON, "{}", 400, "the review has no request").await;
    check(JSON, r#"{"apiVersion":"v1","kind":"Pod"}"#, 400, "no kind \"Pod\"").await;
    let unknown = r#"{"request":{"operation":"LOOK"}}"#;
    check(JSON, unknown, 400, "unknown variant `LOOK`").await;
    let large = format!(r#"{{"request":{{"name":"{}"}}}}"#, "x".repeat(7 << 20));
    check(JSON, &large, 413, "request entity is too large; limit is 7340032 bytes").await;
}

#[tokio::test]
async fn an_older_review_is_answered_in_its_version() {
    let body = json!({
        "apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview",
        "request": { "uid": "u", "operation": "CONNECT" },
    });
    let webhooks = Webhooks::new().with(Webhook::validating(Rules));
    let path = "/validate--v1-configmap";
    let (_, answer) = ask(&webhooks, path, "application/json", &body.to_string()).await;
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(answer["response"]["allowed"], true);
    let (status, _) = ask(&webhooks, "/elsewhere", "application/json", "{}").await;
    assert_eq!(status, 404);
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "zoo.example.com", version = "v1", kind = "Pet", namespaced)]
struct PetSpec {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    age: Option<u32>,
}

mod alpha {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "zoo.example.com", version = "v1alpha1", kind = "Pet", namespaced)]
    pub(super) struct PetSpec {
        pub(super) title: String,
    }
}

mod beta {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "zoo.example.com", version = "v1beta1", kind = "Pet", namespaced)]
    pub(super) struct PetSpec {
        pub(super) names: Vec<String>,
    }
}

/// Moves the metadata, and keeps the age in an annotation.
impl Spoke for alpha::Pet {
    type Hub = Pet;

    fn into_hub(mut self) -> Result<Pet, ConversionError> {
        let annotations = self.metadata.annotations.get_or_insert_default();
        let age = annotations.remove("age").map(|age| age.parse()).transpose()?;
        Ok(Pet { metadata: self.metadata, spec: PetSpec { name: self.spec.title, age } })
    }

    fn from_hub(mut hub: Pet) -> Result<Self, ConversionError> {
        if let Some(age) = hub.spec.age {
            let annotations = hub.metadata.annotations.get_or_insert_default();
            annotations.insert("age".to_owned(), age.to_string());
        }
        Ok(alpha::Pet { metadata: hub.metadata, spec: alpha::PetSpec { title: hub.spec.name } })
    }
}

/// Leaves the metadata to the library.
impl Spoke for beta::Pet {
    type Hub = Pet;

    fn into_hub(self) -> Result<Pet, ConversionError> {
        match self.spec.names.as_slice() {
            [] => Err("it has no name".into()),
            [name] if name == "panic" => panic!("at the vet"),
            [name, ..] => Ok(Pet::new("", PetSpec { name: name.clone(), age: None })),
        }
    }

    fn from_hub(hub: Pet) -> Result<Self, ConversionError> {
        Ok(beta::Pet::new("", beta::PetSpec { names: vec![hub.spec.name] }))
    }
}

/// The answer of a webhook to the wish for other versions, less what is always the same.
async fn convert(desired: &str, objects: Value) -> Value {
    let webhooks = Webhooks::new()
        .converting(Conversion::hub::<Pet>().spoke::<alpha::Pet>().spoke::<beta::Pet>());
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": desired, "objects": objects },
    });
    let body = review.to_string();
    let (status, answer) = ask(&webhooks, "/convert", "application/json", &body).await;
    assert_eq!(status, 200);
    assert_eq!(answer["kind"], "ConversionReview");
    assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(answer["response"]["uid"], "u");
    assert!(answer.get("request").is_none());
    answer["response"].clone()
}

fn pet(version: &str, metadata: Value, spec: Value) -> Value {
    json!({
        "apiVersion": format!("zoo.example.com/{version}"), "kind": "Pet",
        "metadata": metadata, "spec": spec,
    })
}

#[tokio::test]
async fn versions_become_each_other_by_way_of_the_hub() {
    async fn check(from: Value, version: &str, expected: Value) {
        let response = convert(&format!("zoo.example.com/{version}"), json!([from])).await;
        assert_eq!(response["result"], json!({"metadata": {}, "status": "Success"}));
        assert_eq!(response["convertedObjects"], json!([expected]));
    }
    let own = json!({
        "name": "rex", "namespace": "zoo", "uid": "1", "generation": 3,
        "labels": {"l": "1"}, "managedFields": [{"manager": "m", "unheard": "of"}],
    });
    let mut aged = own.clone();
    aged["annotations"] = json!({"age": "7"});
    let v1 = pet("v1", own.clone(), json!({"name": "Rex", "age": 7}));
    let alpha = pet("v1alpha1", aged.clone(), json!({"title": "Rex"}));
    check(v1.clone(), "v1alpha1", alpha.clone()).await;
    check(alpha.clone(), "v1", v1.clone()).await;
    check(v1.clone(), "v1", v1.clone()).await;
    check(v1, "v1beta1", pet("v1beta1", own, json!({"names": ["Rex"]}))).await;
    // The last one leaves metadata alone, so the annotation that the first took away stays away.
    let mut plain = aged.clone();
    plain["annotations"] = json!({"age": "7", "b": "2"});
    let beta = pet("v1beta1", plain.clone(), json!({"names": ["Rex", "Max"]}));
    check(beta, "v1alpha1", pet("v1alpha1", plain, json!({"title": "Rex"}))).await;
}

#[tokio::test]
async fn what_cannot_be_converted_is_named_with_its_versions() {
    async fn check(desired: &str, object: Value, message: &str) {
        let response = convert(desired, json!([object])).await;
        assert_eq!(
            response["result"],
            json!({"metadata": {}, "status": "Failure", "message": message})
        );
    }
    let named = json!({"name": "rex", "namespace": "zoo"});
    check(
        "zoo.example.com/v1",
        pet("v1beta1", named.clone(), json!({"names": []})),
        "convert Pet \"zoo/rex\" from zoo.example.com/v1beta1 to zoo.example.com/v1: \
         it has no name",
    )
    .await;
    check(
        "zoo.example.com/v2",
        pet("v1", named.clone(), json!({"name": "Rex"})),
        "convert Pet \"zoo/rex\" from zoo.example.com/v1 to zoo.example.com/v2: \
         no such conversion is known",
    )
    .await;
    check(
        "zoo.example.com/v1",
        pet("v1alpha1", named.clone(), json!({})),
        "convert Pet \"zoo/rex\" from zoo.example.com/v1alpha1 to zoo.example.com/v1: \
         missing field `title`",
    )
    .await;
    check(
        "zoo.example.com/v1",
        pet("v1beta1", named, json!({"names": ["panic"]})),
        "internal error occurred during conversion",
    )
    .await;
}

#[tokio::test]
async fn a_version_that_panics_is_counted_and_the_next_review_is_answered() {
    let webhooks = Webhooks::new().converting(Conversion::hub::<Pet>().spoke::<beta::Pet>());
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let mut results = Vec::new();
    for name in ["panic", "Rex"] {
        let review = json!({"request": {
            "uid": "u", "desiredAPIVersion": "zoo.example.com/v1",
            "objects": [pet("v1beta1", json!({"name": "rex"}), json!({"names": [name]}))],
        }});
        let body = review.to_string();
        let asked = ask_counted(&webhooks, "/convert", "application/json", &body, &metrics).await;
        results.push(asked.1["response"]["result"]["status"].clone());
    }
    assert_eq!(results, ["Failure", "Success"]);
    let mut told = String::new();
    prometheus_client::encoding::text::encode(&mut told, &registry).expect("a text");
    let count = "controller_runtime_conversion_webhook_panics_total 1";
    assert!(told.lines().any(|line| line == count), "{told}");
}

#[tokio::test]
async fn what_is_no_conversion_review_is_a_bad_request() {
    let webhooks = Webhooks::new().converting(Conversion::hub::<Pet>().spoke::<alpha::Pet>());
    for body in ["", "nonsense", "{}", r#"{"request": 1}"#] {
        let (status, _) = ask(&webhooks, "/convert", "application/json", body).await;
        assert_eq!(status, 400, "{body}");
    }
}

#[test]
fn a_registration_says_what_controller_runtime_would() {
    let webhooks = Webhooks::new()
        .with(Webhook::defaulting(|_: &mut Pet, _: &Review| Ok(())))
        .with(
            Webhook::validating(|_: Change<'_, Pet>, _: &Review| Ok(vec![]))
                .operations([Operation::Delete])
                .failure_policy(FailurePolicy::Ignore)
                .when("not-me", "request.userInfo.username != 'me'"),
        )
        .converting(Conversion::hub::<Pet>().spoke::<alpha::Pet>());
    let registrations: Vec<Registration> = webhooks.registrations().cloned().collect();
    let paths: Vec<&str> = registrations.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/mutate-zoo-example-com-v1-pet", "/validate-zoo-example-com-v1-pet", "/convert"]
    );
    let place = Place::Service { namespace: "ns".into(), name: "svc".into(), port: 443 };
    let trust = Trust::CertManager { namespace: "ns".into(), certificate: "cert".into() };
    let configurations = Configurations::new("zoo", &registrations, &place, &trust);
    let mutating = serde_json::to_value(configurations.mutating).expect("JSON");
    assert_eq!(
        mutating,
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {
                "name": "zoo-mutating-webhook-configuration",
                "annotations": {"cert-manager.io/inject-ca-from": "ns/cert"},
            },
            "webhooks": [{
                "name": "mutate.pets.v1.zoo.example.com",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {
                    "name": "svc", "namespace": "ns", "port": 443,
                    "path": "/mutate-zoo-example-com-v1-pet",
                }},
                "failurePolicy": "Fail", "matchPolicy": "Equivalent",
                "reinvocationPolicy": "Never", "sideEffects": "None", "timeoutSeconds": 10,
                "rules": [{
                    "apiGroups": ["zoo.example.com"], "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["pets"],
                }],
            }],
        })
    );
    let validating = configurations.validating.and_then(|it| it.webhooks).expect("webhooks");
    assert_eq!(validating[0].failure_policy.as_deref(), Some("Ignore"));
    assert_eq!(validating[0].match_conditions.as_ref().expect("some")[0].name, "not-me");
    assert_eq!(registrations[2].definition(), "pets.zoo.example.com");
}
