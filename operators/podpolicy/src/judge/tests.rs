use serde_json::{Value, json};

use super::*;

/// Judges a pod with this spec by a list that has only `registry.acme.com`.
fn check(spec: Value, expected: &[&str]) {
    let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
    let allowed = AllowList::new(&["registry.acme.com".to_owned()]);
    let found: Vec<_> = faults(&pod, &allowed).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

fn container(more: Value) -> Value {
    let mut container = json!({"name": "app", "image": "registry.acme.com/app:1"});
    for (field, value) in more.as_object().expect("fields") {
        container[field] = value.clone();
    }
    container
}

#[test]
fn images_of_all_containers_are_looked_at() {
    check(
        json!({
            "initContainers": [{"name": "a", "image": "busybox:1"}],
            "containers": [
                {"name": "b", "image": "registry.acme.com/app:1"}, {"name": "c", "image": "evil:2"},
            ],
            "ephemeralContainers": [{"name": "d", "image": "debug:3"}],
        }),
        &[
            "spec.initContainers[0].image: Invalid value: \"busybox:1\": is not allowed: take one \
             from registry.acme.com",
            "spec.containers[1].image: Invalid value: \"evil:2\": is not allowed: take one from \
             registry.acme.com",
            "spec.ephemeralContainers[0].image: Invalid value: \"debug:3\": is not allowed: take \
             one from registry.acme.com",
        ],
    );
}

#[test]
fn what_is_latest_is_always_pulled() {
    let latest = |image: &str, policy: &str| json!({"containers": [container(json!({"image": image, "imagePullPolicy": policy}))]});
    check(latest("registry.acme.com/app:1", "Never"), &[]);
    check(latest("registry.acme.com/app", "Always"), &[]);
    let told = |policy: &str| {
        format!(
            "spec.containers[0].imagePullPolicy: Invalid value: \"{policy}\": an image without a \
             tag, or tagged latest, must always be pulled: give it a tag, or set Always"
        )
    };
    check(latest("registry.acme.com/app", "Never"), &[&told("Never")]);
    check(latest("registry.acme.com/app:latest", "IfNotPresent"), &[&told("IfNotPresent")]);
}

#[test]
fn root_is_not_what_must_not_be_root() {
    let told = "spec.containers[0].securityContext.runAsUser: Invalid value: 0: is root, and \
                runAsNonRoot is true: set another user, or runAsNonRoot to false";
    let spec = |above: Value, own: Value| {
        let containers = [container(json!({"securityContext": own}))];
        json!({"securityContext": above, "containers": containers})
    };
    check(spec(json!({}), json!({"runAsNonRoot": true, "runAsUser": 0})), &[told]);
    check(spec(json!({"runAsNonRoot": true}), json!({"runAsUser": 0})), &[told]);
    check(spec(json!({"runAsNonRoot": true, "runAsUser": 0}), json!({})), &[told]);
    check(spec(json!({"runAsNonRoot": true, "runAsUser": 0}), json!({"runAsUser": 1000})), &[]);
    check(spec(json!({"runAsNonRoot": true}), json!({"runAsNonRoot": false, "runAsUser": 0})), &[]);
}

#[test]
fn probes_ask_ports_that_are_there() {
    let spec = |port: Value| {
        json!({"containers": [container(json!({
            "ports": [{"name": "http", "containerPort": 80}],
            "livenessProbe": {"tcpSocket": {"port": 9}},
            "readinessProbe": {"httpGet": {"port": port}},
        }))]})
    };
    check(spec(json!("http")), &[]);
    check(spec(json!(8080)), &[]);
    check(
        spec(json!("web")),
        &[
            "spec.containers[0].readinessProbe.httpGet.port: Invalid value: \"web\": is the name of \
           none of the container's ports: add it to ports, or give its number",
        ],
    );
}
