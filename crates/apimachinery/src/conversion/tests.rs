//! Compares conversions with the versions that upstream gave of the same objects.

use serde_json::{Value, json};

use super::scale::{self, Paths};
use super::{convert, event};
use crate::fixtures::{self, Case, Step};
use crate::gvk::GroupVersion;
use crate::json;

fn case(name: &str) -> Vec<Step> {
    let cases = fixtures::load("conversion");
    let Case { steps, .. } = cases.into_iter().find(|case| case.name == name).unwrap();
    steps
}

/// Each GET and the one after it, which gives the same object in another way.
fn pairs(name: &str) -> Vec<(Value, Step)> {
    let mut pairs = Vec::new();
    let mut first = None;
    for step in case(name).into_iter().filter(|step| step.request.method == "GET") {
        match first.take() {
            None => first = step.answer.body,
            Some(first) => pairs.push((first, step)),
        }
    }
    assert!(pairs.len() > 2, "{name} proves little");
    pairs
}

/// Converts and compares to the last byte.
fn check(object: &Value, expected: &Value) {
    let version = GroupVersion::parse(expected["apiVersion"].as_str().unwrap()).unwrap();
    let converted = convert(object.clone(), &version).unwrap();
    assert_eq!(json::to_string(&converted), json::to_string(expected));
}

#[test]
fn events_are_the_same_in_both_groups() {
    for (core, step) in pairs("events") {
        let event = step.answer.body.unwrap();
        check(&core, &event);
        check(&event, &core);
    }
}

#[test]
fn autoscalers_convert_as_upstream_converts_them() {
    for name in ["autoscalers-to-v1", "autoscalers-to-v2"] {
        for (v2, step) in pairs(name) {
            let v1 = step.answer.body.unwrap();
            check(&v2, &v1);
            // v1 cannot say that a current value is missing; it becomes zero on the way back.
            if step.request.more.get("lossy").is_none() {
                check(&v1, &v2);
            }
        }
    }
}

#[test]
fn a_v1_autoscaler_becomes_v2_when_it_is_made() {
    let mut made = 0;
    let steps = case("autoscalers-to-v2");
    for pair in steps.windows(2) {
        let [post, get] = pair else { unreachable!() };
        if post.request.method != "POST" {
            continue;
        }
        made += 1;
        let body = post.request.body.clone().unwrap();
        let v2 = convert(body, &GroupVersion::new("autoscaling", "v2")).unwrap();
        let stored = get.answer.body.as_ref().unwrap();
        assert_eq!(v2["metadata"].get("annotations"), stored["metadata"].get("annotations"));
        assert_eq!(v2["spec"]["metrics"], stored["spec"]["metrics"]);
        // Defaults of the behaviour come when the stored object is read.
        let behaves = |object: &Value| object["spec"].get("behavior").is_some();
        assert_eq!(behaves(&v2), behaves(stored));
    }
    assert_eq!(made, 8);
}

#[test]
fn a_workload_has_a_scale() {
    for (workload, step) in pairs("scales") {
        let scale = scale::of_workload(&workload).unwrap();
        assert_eq!(json::to_string(&scale), json::to_string(&step.answer.body.unwrap()));
    }
}

fn paths() -> Paths {
    Paths {
        spec_replicas: ".spec.size.want".to_owned(),
        status_replicas: ".status.have".to_owned(),
        label_selector: Some(".status.selector".to_owned()),
    }
}

#[test]
fn a_custom_resource_has_a_scale_by_its_paths() {
    for (resource, step) in pairs("custom-scales") {
        let answer = step.answer.body.unwrap();
        match scale::of_custom(&resource, &paths()) {
            Ok(scale) => assert_eq!(json::to_string(&scale), json::to_string(&answer)),
            Err(error) => {
                assert_eq!(answer["message"], format!("Internal error occurred: {error}"));
            }
        }
    }
}

#[test]
fn values_of_other_types_are_no_replicas() {
    let scale = |resource: Value| scale::of_custom(&resource, &paths()).unwrap_err().to_string();
    assert_eq!(
        scale(json!({"spec": {"size": {"want": null}}})),
        ".spec.size.want accessor error: <nil> is of the type <nil>, expected int64",
    );
    assert_eq!(
        scale(json!({"spec": {"size": {"want": "3"}}})),
        ".spec.size.want accessor error: 3 is of the type string, expected int64",
    );
}

#[test]
fn scaling_sets_the_replicas_where_they_are() {
    let mut resource = json!({"status": {}});
    scale::set_replicas(&mut resource, ".spec.size.want", 7).unwrap();
    assert_eq!(resource, json!({"status": {}, "spec": {"size": {"want": 7}}}));
    scale::set_replicas(&mut json!({"spec": 1}), ".spec.size", 7).unwrap_err();
}

#[test]
fn other_kinds_have_no_other_version() {
    let pod = json!({"kind": "Pod", "apiVersion": "v1"});
    assert_eq!(convert(pod.clone(), &GroupVersion::new("", "v1")), Ok(pod.clone()));
    let error = convert(pod, &GroupVersion::new("", "v2")).unwrap_err();
    assert_eq!(error.to_string(), r#"Pod cannot be converted from "v1" to v2"#);
}

#[test]
fn an_event_without_fields_still_has_those_that_must_be() {
    let event = event::to_core(json!({"kind": "Event"}).as_object().unwrap().clone());
    assert_eq!(
        Value::Object(event),
        json!({
            "kind": "Event",
            "involvedObject": {},
            "source": {},
            "firstTimestamp": null,
            "lastTimestamp": null,
            "eventTime": null,
            "reportingComponent": "",
            "reportingInstance": "",
        }),
    );
}
