//! Replays what upstream answered to people of different rights: refusals, reviews, requests for
//! tokens, and writes of roles.

use std::sync::Arc;

use http::Request;
use http::request::Parts;
use jiff::Timestamp;
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::status::Status;
use kubewright_store::Put;
use serde_json::{Value, json};

use super::*;
use crate::authn::key::SigningKey;
use crate::authn::token::{Issuer, Lifetimes};
use crate::authn::{StaticTokens, Verifier};
use crate::authz::{self, escalation};
use crate::fixtures::{self, Step};
use crate::index::{self, Store};
use crate::query::Query;
use crate::target::{ResourceTarget, Target};
use crate::warnings::Warnings;
use crate::{bootstrap, sample};

const UID: &str = "00000000-0000-0000-0000-000000000000";
const ISSUER: &str = "https://kubernetes.default.svc";

#[tokio::test]
async fn people_are_answered_as_by_upstream() {
    for case in fixtures::load("auth") {
        let server = Server::new().await;
        for (index, step) in case.steps.iter().enumerate() {
            let what = format!("auth/{} step {}: {}", case.name, index + 1, step.request.path);
            let answer = match server.answer(step).await {
                Ok(answer) => answer,
                Err(status) => serde_json::to_value(status).expect("a status is plain data"),
            };
            server.check(step, answer, &what);
        }
    }
}

/// As much of a server as access needs.
struct Server {
    store: Store,
    authorizer: Arc<Authorizer>,
    authenticator: Authenticator,
    issuer: Issuer,
}

impl Server {
    async fn new() -> Self {
        let store = sample::store();
        for object in bootstrap::objects() {
            authz::tests::put(&store, object).await;
        }
        let authorizer = Arc::new(Authorizer::new(store.clone()));
        let pem = rcgen::KeyPair::generate().expect("a key").serialize_pem();
        let key = SigningKey::from_pem(pem.as_bytes()).expect("a key that signs");
        let audiences = vec![ISSUER.to_owned()];
        let authenticator = Authenticator::new(
            store.clone(),
            Arc::clone(&authorizer),
            StaticTokens::parse("admin,admin,admin,\"system:masters\"").expect("a token"),
            Verifier::new(audiences.clone(), audiences.clone(), vec![key.public.clone()]),
        );
        let lifetimes = Lifetimes::default();
        let issuer = Issuer { url: ISSUER.to_owned(), keys_url: None, audiences, key, lifetimes };
        Server { store, authorizer, authenticator, issuer }
    }

    async fn answer(&self, step: &Step) -> Result<Value, Box<Status>> {
        let parts = parts(step);
        let user = self.authenticator.identify(&parts)?;
        let target = Target::of(&parts, &Query::parse(parts.uri.query()));
        let attributes = Attributes::of(&target);
        self.authorizer.require(&user, &attributes)?;
        let (Target::Resource(target), Some(body)) = (&target, &step.request.body) else {
            return Ok(Value::Null);
        };
        self.write(&user, target, body).await
    }

    async fn write(
        &self,
        user: &User,
        target: &ResourceTarget,
        body: &Value,
    ) -> Result<Value, Box<Status>> {
        let text = |name: &str| body[name].as_str().unwrap_or_default();
        let (group, version) =
            text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        let kind = builtin::kind(group, version, text("kind")).expect("a built-in kind");
        let mut object = builtin::decode(kind, body.clone()).expect("well typed").value;
        let now = Timestamp::from_second(sample::NOW.as_secs() as i64).expect("in range");
        let namespace = target.namespace.as_deref();
        if target.subresource == "token" {
            let namespace = namespace.expect("accounts have one");
            let warnings = Warnings::default();
            let name = &target.name;
            return self.issuer.issue(&self.store, namespace, name, &object, now, &warnings);
        }
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let cx = Context {
            authenticator: &self.authenticator,
            authorizer: &self.authorizer,
            user,
            namespace,
            now,
        };
        if let Some(answer) = answer(&cx, text("kind"), &object).await {
            return answer;
        }
        let name = object["metadata"]["name"].as_str().expect("a name");
        let namespace = namespace.expect("nothing else is written here");
        let key = format!("/registry/{}/{namespace}/{name}", target.resource);
        let old = self.store.get(&key).and_then(|rev| index::object(&rev));
        escalation::check(&self.authorizer, user, target, &object, old.as_ref())?;
        object["metadata"]["uid"] = UID.into();
        self.store.put(Put::new(key, index::to_bytes(&object))).await.expect("memory takes all");
        Ok(Value::Null)
    }

    fn check(&self, step: &Step, mut answer: Value, what: &str) {
        let mut expected = step.answer.body.clone().expect("an object or a status");
        if step.answer.status < 300 {
            // What is stored is the business of others.
            if expected["status"].is_null() || expected["kind"] == "Pod" {
                assert!(answer.is_null(), "{what}: {answer}");
                return;
            }
            for object in [&mut answer, &mut expected] {
                let metadata = object["metadata"].as_object_mut().expect("metadata");
                metadata.remove("managedFields");
                metadata.remove("creationTimestamp");
            }
        }
        assert_eq!(answer, expected, "{what}");
    }
}

fn parts(step: &Step) -> Parts {
    let query: Vec<String> =
        step.request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let uri = format!("{}?{}", step.request.path, query.join("&"));
    let mut request = Request::builder()
        .method(step.request.method.as_str())
        .uri(uri)
        .header("authorization", "Bearer admin");
    let headers = step.request.more.get("headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten() {
        request = request.header(name, value.as_str().expect("a header is text"));
    }
    request.body(()).expect("a request").into_parts().0
}

#[tokio::test]
async fn a_review_with_a_name_is_refused() {
    let server = Server::new().await;
    let user = User::new("ann", []);
    let cx = Context {
        authenticator: &server.authenticator,
        authorizer: &server.authorizer,
        user: &user,
        namespace: None,
        now: Timestamp::UNIX_EPOCH,
    };
    let review = json!({
        "metadata": { "name": "mine" },
        "spec": { "nonResourceAttributes": { "path": "/livez", "verb": "get" } },
    });
    let refused =
        answer(&cx, "SelfSubjectAccessReview", &review).await.expect("a review").unwrap_err();
    assert_eq!(
        refused.message,
        ".authorization.k8s.io \"\" is invalid: metadata: Invalid value: {\"name\":\"mine\"}: must \
         be empty"
    );
    assert!(answer(&cx, "Pod", &json!({})).await.is_none());
}

#[tokio::test]
async fn rules_are_reviewed_with_what_keeps_others_away() {
    let server = Server::new().await;
    authz::tests::write(
        &server.store,
        "role web reader\n  get \"\" pods one\n\
         rolebinding web reader -\n  user ann\n  group staff\n\
         rolebinding web gone -\n  user ann",
    )
    .await;
    let user = User { groups: vec!["staff".to_owned()], ..User::new("ann", []) };
    let cx = Context {
        authenticator: &server.authenticator,
        authorizer: &server.authorizer,
        user: &user,
        namespace: None,
        now: Timestamp::UNIX_EPOCH,
    };
    let review = json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": { "name": "ignored" },
        "spec": { "namespace": "web" },
    });
    let answer = answer(&cx, "SelfSubjectRulesReview", &review).await.expect("a review").unwrap();
    let expected = json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [{
                "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["one"],
            }],
            "nonResourceRules": [],
            "incomplete": false,
            "evaluationError": "role.rbac.authorization.k8s.io \"gone\" not found",
        },
    });
    assert_eq!(answer, expected);
}
