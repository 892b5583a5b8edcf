//! What webhooks answer, and which requests their rules mean. What they do to requests is in
//! `conformance`.

use std::sync::Arc;

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_store::Put;
use serde_json::{Value, json};

use super::configuration::{Configurations, ReviewVersion, Role};
use super::review::Verdict;
use super::{Note, patch, review};
use crate::admission::criteria::Rule;
use crate::admission::{Attributes, Operation, Options};
use crate::index::{self, Store};
use crate::sample::{resource, store};
use crate::user::User;
use crate::warnings::Warnings;

/// What comes of an answer to the question with the uid `u`.
fn judged(version: ReviewVersion, role: Role, answer: &str) -> String {
    let verdict = review::read(answer.as_bytes(), version)
        .and_then(|review| review::verify(&review, version, role, "u"));
    match verdict {
        Ok(verdict) => format!("{verdict:?}"),
        Err(why) => why,
    }
}

#[test]
fn an_answer_that_is_none_is_told_in_the_words_of_upstreams_decoder() {
    let check = |answer: &str, expected: &str| {
        assert_eq!(judged(ReviewVersion::V1, Role::Mutating, answer), expected, "{answer}");
    };
    let of = |rest: &str| {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"{rest}}}"#)
    };
    const TARGET: &str = r#"Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let unread = "couldn't get version/kind; json parse error";
    check("hello", &format!("{unread}: json: cannot unmarshal string into {TARGET}"));
    check("[]", &format!("{unread}: json: cannot unmarshal array into {TARGET}"));
    check("{\"a\"", &format!("{unread}: unexpected end of JSON input"));
    check("{}", "webhook response was absent");
    check(&of(""), "webhook response was absent");
    check(
        r#"{"apiVersion":"v1","kind":"Pod"}"#,
        r#"no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#,
    );
    check(
        r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#,
        "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    );
    check(
        r#"{"apiVersion":"v1","kind":"Status"}"#,
        "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
    );
    check(
        r#"{"response":{"uid":"u"}}"#,
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
    );
    check(&of(r#","response":{"uid":"x"}"#), r#"expected response.uid="u", got "x""#);
    check(
        &of(r#","response":{"allowed":"yes"}"#),
        "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of \
         type bool",
    );
    check(&of(r#","response":{"patch":"***"}"#), "illegal base64 data at input byte 0");
    check(
        &of(r#","response":{"uid":"u","patch":"W10="}"#),
        "webhook returned response.patch but not response.patchType",
    );
    check(
        &of(r#","response":{"uid":"u","patchType":"JSONPatch"}"#),
        "webhook returned response.patchType but not response.patch",
    );
    check(
        &of(r#","response":{"uid":"u","patch":"W10=","patchType":""}"#),
        r#"webhook returned invalid response.patchType of """#,
    );
}

#[test]
fn who_judges_may_not_patch() {
    let check = |version, response: Value, expected: &str| {
        let api_version = format!("admission.k8s.io/{}", ReviewVersion::as_str(version));
        let review =
            json!({"apiVersion": api_version, "kind": "AdmissionReview", "response": response});
        let found = judged(version, Role::Validating, &review.to_string());
        assert!(found.contains(expected), "{found}");
    };
    let patch = json!({"uid": "u", "allowed": true, "patch": "W10="});
    check(ReviewVersion::V1, patch.clone(), "validating webhook may not return response.patch");
    check(
        ReviewVersion::V1,
        json!({"uid": "u", "patchType": "JSONPatch"}),
        "validating webhook may not return response.patchType",
    );
    check(ReviewVersion::V1beta1, patch, "patch: None");
    // Nor did anybody compare the uid then.
    check(ReviewVersion::V1beta1, json!({"allowed": true}), "is_allowed: true");
}

#[test]
fn a_patch_that_is_none_is_told_in_gos_words() {
    let check = |patch: &str, expected: &str| {
        let found = patch::decode(patch.as_bytes()).map(|patch| patch.is_empty().to_string());
        assert_eq!(found.unwrap_or_else(|why| why), expected, "{patch}");
    };
    check("null", "true");
    check("[]", "true");
    check(r#"[{"op":"remove","path":"/a"}]"#, "false");
    check(r#"{"a":1}"#, "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
    check("[1]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation");
    check("hello", "invalid character 'h' looking for beginning of value");
}

#[test]
fn a_rule_means_resources_their_parts_and_a_scope() {
    let rule = |resources: &[&str], scope: &str| {
        Rule::read(&json!({
            "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["*"],
            "resources": resources, "scope": scope,
        }))
    };
    let check = |rule: &Rule, request: &str, expected: bool| {
        let words: Vec<&str> = request.split(' ').collect();
        let [operation, path] = words[..] else { panic!("{request}") };
        let (name, part) = path.split_once('/').map_or((path, None), |(n, p)| (n, Some(p)));
        let resource = resource("", "v1", name);
        let (user, warnings) = (User::apiserver(), Warnings::default());
        let attributes = Attributes {
            user: &user,
            resource: &resource,
            part,
            namespace: resource.namespaced.then_some("ns"),
            name: "x",
            operation: match operation {
                "CREATE" => Operation::Create,
                "UPDATE" => Operation::Update,
                _ => Operation::Delete,
            },
            dry_run: false,
            old: None,
            warnings: &warnings,
            options: Options::None,
            deadline: crate::admission::deadline(None),
        };
        assert_eq!(rule.matches(&attributes, &resource.gvr), expected, "{request}");
    };
    let pods = rule(&["pods"], "*");
    check(&pods, "CREATE pods", true);
    check(&pods, "DELETE pods", false);
    check(&pods, "UPDATE pods/status", false);
    check(&pods, "CREATE secrets", false);
    let status = rule(&["pods/status"], "*");
    check(&status, "UPDATE pods/status", true);
    check(&status, "UPDATE pods", false);
    let all_parts = rule(&["pods/*"], "*");
    check(&all_parts, "UPDATE pods/status", true);
    check(&all_parts, "UPDATE pods", true);
    let every = rule(&["*"], "*");
    check(&every, "CREATE secrets", true);
    check(&every, "UPDATE pods/status", false);
    check(&rule(&["*/*"], "*"), "UPDATE pods/status", true);
    check(&rule(&["*/status"], "*"), "UPDATE nodes/status", true);
    check(&rule(&["*"], "Namespaced"), "CREATE pods", true);
    check(&rule(&["*"], "Namespaced"), "CREATE nodes", false);
    // Although a request for it names it as the namespace.
    check(&rule(&["*"], "Namespaced"), "CREATE namespaces", false);
    check(&rule(&["*"], "Cluster"), "CREATE namespaces", true);
    check(&rule(&["*"], "Cluster"), "CREATE pods", false);
}

#[test]
fn a_patched_object_keeps_its_kind() {
    let pods = resource("", "v1", "configmaps");
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    let object =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"a": "b"}});
    let check = |operation: Value, expected: &str| {
        let patch = patch::decode(json!([operation]).to_string().as_bytes()).expect("a patch");
        let found = match patch::apply(&pods, &gvk, &object, &patch) {
            Ok(object) => object.to_string(),
            Err(refusal) => refusal.message,
        };
        assert_eq!(found, expected);
    };
    let whole = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"a":"b"}}"#;
    check(json!({"op": "remove", "path": "/kind"}), whole);
    check(json!({"op": "add", "path": "/unknown", "value": 1}), whole);
    check(
        json!({"op": "add", "path": "/kind", "value": "Foo"}),
        "Internal error occurred: no kind \"Foo\" is registered for version \"v1\" in scheme \
         \"pkg/runtime/scheme.go:111\"",
    );
    check(
        json!({"op": "add", "path": "/kind", "value": "Pod"}),
        "converting (v1.Pod) to (core.ConfigMap): unknown conversion",
    );
    check(
        json!({"op": "add", "path": "/data/x", "value": 5}),
        "Internal error occurred: json: cannot unmarshal number into Go struct field \
         ConfigMap.data of type string",
    );
}

/// Stores a configuration with webhooks of these names.
async fn configure(store: &Store, name: &str, webhooks: &[&str]) {
    let webhook =
        |name: &&str| json!({"name": name, "clientConfig": {"url": "https://127.0.0.1/"}});
    let webhooks: Vec<Value> = webhooks.iter().map(webhook).collect();
    let configuration = json!({
        "kind": "MutatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": name, "uid": "u"}, "webhooks": webhooks,
    });
    let key = format!("/registry/mutatingwebhookconfigurations/{name}");
    let put = Put::new(key.as_str(), index::to_bytes(&configuration));
    store.put(put).await.expect("stored");
}

#[tokio::test]
async fn only_what_changes_is_read_again() {
    let (store, configurations) = (store(), Configurations::new(Role::Mutating));
    assert!(configurations.hooks(&store).is_empty());
    configure(&store, "b", &["one", "two", "one"]).await;
    configure(&store, "a", &["zero"]).await;
    let before = configurations.hooks(&store);
    let ids: Vec<&str> = before.iter().map(|hook| hook.id.as_str()).collect();
    assert_eq!(ids, ["a/zero/0", "b/one/0", "b/two/0", "b/one/1"]);
    assert!(Arc::ptr_eq(&before, &configurations.hooks(&store)));
    configure(&store, "a", &["null"]).await;
    let after = configurations.hooks(&store);
    assert_eq!(after[0].name, "null");
    assert!(Arc::ptr_eq(&before[1], &after[1]));
}

#[tokio::test]
async fn the_audit_log_is_told_who_changed_what() {
    let (store, configurations) = (store(), Configurations::new(Role::Mutating));
    configure(&store, "config", &["hook.example.com"]).await;
    let hooks = configurations.hooks(&store);
    let check = |shows_objects: bool, expected: &[(&str, &str)]| {
        let (user, warnings) = (User::apiserver(), Warnings::annotated(shows_objects));
        let resource = resource("", "v1", "pods");
        let attributes = Attributes {
            user: &user,
            resource: &resource,
            part: None,
            namespace: Some("ns"),
            name: "x",
            operation: Operation::Create,
            dry_run: false,
            old: None,
            warnings: &warnings,
            options: Options::None,
            deadline: crate::admission::deadline(None),
        };
        let note = Note { attributes: &attributes, hook: &hooks[0], round: 1, index: 2 };
        let said = |key: &str, text: &str| {
            let annotations = [(key.to_owned(), text.to_owned())].into();
            note.verdict(&Verdict { annotations, ..Verdict::default() });
        };
        said("team", "blue");
        // What was said first stays, and what is no name is not said.
        said("team", "red");
        said("no name", "x");
        note.mutation(true);
        note.patch(br#"[{"path":"/a","op":"remove"}]"#);
        note.failed_open(Role::Mutating);
        let notes = warnings.notes();
        let found: Vec<(&str, &str)> =
            notes.iter().map(|(key, text)| (&**key, text.as_str())).collect();
        assert_eq!(found, expected);
    };
    let failed_open =
        ("failed-open.mutation.webhook.admission.k8s.io/round_1_index_2", "hook.example.com");
    let team = ("hook.example.com/team", "blue");
    let mutation = (
        "mutation.webhook.admission.k8s.io/round_1_index_2",
        r#"{"configuration":"config","webhook":"hook.example.com","mutated":true}"#,
    );
    let patch = (
        "patch.webhook.admission.k8s.io/round_1_index_2",
        r#"{"configuration":"config","webhook":"hook.example.com","patch":[{"op":"remove","path":"/a"}],"patchType":"JSONPatch"}"#,
    );
    check(false, &[failed_open, team, mutation]);
    check(true, &[failed_open, team, mutation, patch]);
}
