//! Replays what upstream made of objects: accepted ones must come out the same, refused ones must
//! be refused for the same causes.

use std::net::Ipv4Addr;
use std::panic;

use jiff::Timestamp;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::GroupVersion;
use kubewright_apimachinery::name::object_meta;
use kubewright_apimachinery::{builtin, conversion};
use serde_json::{Value, json};

use super::{Context, Rules, edit, ip};
use crate::allocate::{Families, Family, PortPlace, Refusal, plan_create, plan_update};
use crate::fixtures::{self, Case, Step};
use crate::user::User;
use crate::warnings::Warnings;

/// What every time in a recording is.
const RECORDED_AT: Timestamp = Timestamp::constant(946_684_800, 0);

#[test]
fn kinds_default_and_validate_as_upstream_s() {
    let cases = fixtures::load("kinds");
    // One kind that is wrong should not hide the others.
    let failed = cases.iter().filter(|case| panic::catch_unwind(|| replay(case)).is_err());
    let failed: Vec<&str> = failed.map(|case| case.name.as_str()).collect();
    assert_eq!(failed, [""; 0], "see above");
}

fn replay(case: &Case) {
    let mut live = None;
    for (index, step) in case.steps.iter().enumerate() {
        let what = format!("kinds/{} step {}: {}", case.name, index + 1, step.request.path);
        check(step, &mut live, &what);
    }
}

/// What recordings show in the place of every uid.
const RECORDED_UID: &str = "00000000-0000-0000-0000-000000000000";

fn check(step: &Step, live: &mut Option<Value>, what: &str) {
    let Some(body) = step.request.body.clone() else { return };
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    let kind = builtin::kind(group, version, text("kind")).expect("a built-in kind");
    let rules = super::rules(group, text("kind")).unwrap_or(&Rules::PLAIN);
    let answer = step.answer.body.as_ref().expect("an object or a status");

    let mut object = builtin::decode(kind, body.clone()).expect("cases are well typed").value;
    if let Some(namespace) = namespace_of(&step.request.path) {
        object["metadata"]["namespace"] = namespace.into();
    }
    (rules.default)(&mut object);
    let mut object = in_hub(object);
    object["metadata"]["uid"] = RECORDED_UID.into();
    let mut user = User::new("admin", ["system:masters".to_owned()]);
    user.uid = "admin".to_owned();
    let told = Warnings::default();
    let context = Context { user: &user, now: RECORDED_AT, warnings: &told };
    let part = part_of(&step.request.path);
    if (text("kind"), part) == ("Service", None) {
        let old = live.as_ref().filter(|_| step.request.method != "POST");
        if let Err(refusal) = allocate(&mut object, old, answer) {
            return check_refusal(&refusal, step, what);
        }
    }
    if text("kind") == "Pod" {
        let old = live.as_ref().filter(|_| step.request.method != "POST");
        admit(&mut object, old);
    }
    let part = part.map(|part| rules.part(part).expect("the kind has such an endpoint"));
    let errors = match (step.request.method.as_str(), part) {
        ("POST", None) => {
            (rules.prepare_create)(&mut object, &context);
            let mut errors = meta_errors(&object, rules);
            errors.extend((rules.validate)(&object));
            errors
        }
        (_, None) => {
            let old = live.as_ref().expect("an update follows a create");
            (rules.prepare_update)(&mut object, old, &context);
            (rules.validate_update)(&object, old)
        }
        (_, Some(part)) => {
            let old = live.as_ref().expect("an update follows a create");
            (part.prepare_update)(&mut object, old, &context);
            (part.validate_update)(&object, old)
        }
    };

    if step.answer.status == 422 {
        check_causes(&errors, answer, what);
    } else {
        assert_eq!(errors, [], "{what}: upstream says {answer}");
        let answer = in_hub(answer.clone());
        assert_eq!(comparable(&object), comparable(&answer), "{what}");
        let warnings = part.map_or(rules.warnings, |part| part.warnings);
        let old = live.as_ref().filter(|_| step.request.method != "POST");
        // That the whole version is deprecated is said of every request, not by the kind.
        let deprecated = format!("{} {} is deprecated in ", text("apiVersion"), text("kind"));
        let theirs = step.answer.warnings.iter().filter(|text| !text.starts_with(&deprecated));
        told.extend(warnings(&object, old));
        assert_eq!(told.texts(), theirs.cloned().collect::<Vec<_>>(), "{what}");
        *live = Some(answer);
    }
}

fn check_causes(errors: &[Error], answer: &Value, what: &str) {
    let ours = errors.iter().map(|error| {
        json!({"reason": error.kind.reason(), "message": error.body(), "field": error.field})
    });
    let theirs = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    assert_eq!(sorted(ours.collect()), sorted(theirs), "{what}");
}

/// What the admission plugins of the server that was recorded make of a Pod.
fn admit(pod: &mut Value, old: Option<&Value>) {
    let spec = &mut pod["spec"];
    let priority = old.map_or(json!(0), |old| old["spec"]["priority"].clone());
    edit::fill(spec, "priority", priority);
    edit::fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    let tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            let is = |member: &str, value: &str| {
                toleration[member].as_str().is_none_or(|found| found == value)
            };
            is("key", key) && is("effect", "NoExecute")
        });
        if !is_tolerated {
            edit::fill(spec, "tolerations", json!([]));
            spec["tolerations"].as_array_mut().expect("a list").push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// Gives a Service what upstream gave it.
fn allocate(object: &mut Value, old: Option<&Value>, answer: &Value) -> Result<(), Refusal> {
    let families = Families::single(Family::V4);
    let plan = match old {
        None => plan_create(object, families)?,
        Some(old) => plan_update(object, old, families)?,
    };
    let given = |at: String| answer.pointer(&at).cloned().unwrap_or_default();
    let addresses = plan.addresses.iter().map(|wish| {
        let address = given(format!("/spec/clusterIPs/{}", wish.index));
        wish.address.or_else(|| ip::parse(address.as_str()?)).unwrap_or(Ipv4Addr::LOCALHOST.into())
    });
    let ports = plan.ports.iter().map(|wish| {
        let port = match &wish.place {
            PortPlace::HealthCheck => given("/spec/healthCheckNodePort".to_owned()),
            PortPlace::Ports(at) => given(format!("/spec/ports/{}/nodePort", at[0])),
        };
        wish.port.or_else(|| i32::try_from(port.as_i64()?).ok()).unwrap_or(1)
    });
    plan.grant(object, &addresses.collect::<Vec<_>>(), &ports.collect::<Vec<_>>());
    Ok(())
}

fn check_refusal(refusal: &Refusal, step: &Step, what: &str) {
    let answer = step.answer.body.as_ref().expect("a status");
    match refusal {
        Refusal::Invalid(errors) => check_causes(errors, answer, what),
        Refusal::Internal(text) => {
            assert_eq!(step.answer.status, 500, "{what}");
            let message = answer["message"].as_str().unwrap_or_default();
            assert!(message.ends_with(text), "{what}: {text} is not {message}");
        }
    }
}

/// Upstream walks maps in any order.
fn sorted(mut causes: Vec<Value>) -> Vec<Value> {
    causes.sort_by_key(|cause| format!("{} {}", cause["field"], cause["message"]));
    causes
}

fn meta_errors(object: &Value, rules: &Rules) -> Vec<Error> {
    let scope = match object["metadata"].get("namespace") {
        Some(_) => object_meta::Scope::Namespaced,
        None => object_meta::Scope::Cluster,
    };
    let metadata = object["metadata"].as_object().expect("an object has metadata");
    object_meta::validate(metadata, scope, rules.name, &Path::new("metadata"))
}

/// What follows the name of an object in a path.
fn part_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/api/v1/").or_else(|| {
        let (_, rest) = path.strip_prefix("/apis/")?.split_once('/')?;
        Some(rest.split_once('/')?.1)
    })?;
    let parts: Vec<&str> = rest.split('/').collect();
    match parts.as_slice() {
        ["namespaces", _, part @ ("status" | "finalize")] => Some(part),
        ["namespaces", _, _, _, part] => Some(part),
        ["namespaces", ..] => None,
        [_, _, part] => Some(part),
        _ => None,
    }
}

fn namespace_of(path: &str) -> Option<&str> {
    let (namespace, rest) = path.split_once("/namespaces/")?.1.split_once('/')?;
    // These are endpoints of the namespace itself.
    (!matches!(rest, "status" | "finalize")).then_some(namespace)
}

/// The object in the version that its rules are for.
fn in_hub(object: Value) -> Value {
    let hub = match (object["apiVersion"].as_str(), object["kind"].as_str()) {
        (Some("events.k8s.io/v1"), Some("Event")) => ("", "v1"),
        (Some("autoscaling/v1"), Some("HorizontalPodAutoscaler")) => ("autoscaling", "v2"),
        _ => return object,
    };
    let hub = GroupVersion { group: hub.0.to_owned(), version: hub.1.to_owned() };
    conversion::convert(object, &hub).expect("the two versions say the same")
}

/// Without what the server adds to every object.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for added in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.shift_remove(added);
        }
    }
    if object["kind"] == "Pod" {
        for condition in edit::items(&mut object, "/status/conditions") {
            condition["lastTransitionTime"] = Value::Null;
        }
    }
    object
}
