use super::*;

/// A quota, the objects there are, and the status it should get.
#[track_caller]
fn check(quota: Value, counts: &[Count], expected: Option<Value>) {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    assert_eq!(plan(&quota, counts, now), expected);
}

fn count(evaluator: Evaluator, objects: Vec<Value>) -> Count {
    Count { evaluator, objects: Some(objects) }
}

fn pod(cpu: &str, phase: &str) -> Value {
    let container = json!({ "name": "a", "resources": { "requests": { "cpu": cpu } } });
    json!({ "spec": { "containers": [container] }, "status": { "phase": phase } })
}

fn secrets(number: usize) -> Count {
    let secrets = Evaluator::of("", "secrets").expect("they are counted");
    count(secrets, vec![json!({}); number])
}

#[test]
fn a_new_quota_gets_its_limits_and_what_is_used() {
    let hard =
        json!({ "pods": "3", "requests.cpu": "2", "requests.memory": "1Gi", "secrets": "1" });
    let pods = vec![pod("500m", "Running"), pod("250m", "Pending"), pod("8", "Succeeded")];
    let used =
        json!({ "pods": "2", "requests.cpu": "750m", "requests.memory": "0", "secrets": "0" });
    check(
        json!({ "spec": { "hard": hard } }),
        &[count(Evaluator::Pods, pods), secrets(0)],
        Some(json!({ "hard": hard, "used": used })),
    );
}

#[test]
fn a_quota_that_is_right_is_left_alone() {
    let right = |hard: &str, used: &str| {
        let status = json!({ "hard": { "secrets": hard }, "used": { "secrets": used } });
        json!({ "spec": { "hard": { "secrets": "2" } }, "status": status })
    };
    check(right("2", "1"), &[secrets(1)], None);
    check(right("2000m", "1000m"), &[secrets(1)], None);
    let status =
        |used: &str| Some(json!({ "hard": { "secrets": "2" }, "used": { "secrets": used } }));
    check(right("2", "2"), &[secrets(1)], status("1"));
    check(right("1", "1"), &[secrets(1)], status("1"));
}

#[test]
fn only_what_is_in_scope_is_used() {
    let mut ends = pod("1", "Running");
    ends["spec"]["activeDeadlineSeconds"] = json!(60);
    let spec = json!({ "hard": { "count/pods": "9" }, "scopes": ["Terminating"] });
    check(
        json!({ "spec": spec }),
        &[count(Evaluator::Pods, vec![pod("1", "Running"), ends])],
        Some(json!({ "hard": { "count/pods": "9" }, "used": { "count/pods": "1" } })),
    );
}

#[test]
fn what_is_not_limited_any_more_is_not_used_either() {
    let status = json!({ "hard": { "pods": "1" }, "used": { "pods": "1", "secrets": "1" } });
    check(
        json!({ "spec": { "hard": { "secrets": "1" } }, "status": status }),
        &[secrets(0)],
        Some(json!({ "hard": { "secrets": "1" }, "used": { "secrets": "0" } })),
    );
}

#[test]
fn of_what_could_not_be_counted_the_last_count_stands() {
    let unread = Count { evaluator: Evaluator::Pods, objects: None };
    let hard = json!({ "pods": "5", "secrets": "5", "count/widgets.example.com": "5" });
    let status = json!({ "hard": hard, "used": { "pods": "4", "secrets": "4" } });
    check(
        json!({ "spec": { "hard": hard }, "status": status }),
        &[unread, secrets(1)],
        Some(json!({ "hard": hard, "used": { "pods": "4", "secrets": "1" } })),
    );
}

#[test]
fn a_quota_without_limits_needs_no_status() {
    check(json!({ "spec": {} }), &[], None);
}
