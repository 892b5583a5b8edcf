use super::*;
use crate::revisions;

/// What upstream's own functions say of a template, without collisions and with one.
#[track_caller]
fn check(template: &str, expected: &str, collided: &str) {
    let template = serde_json::from_str(template).expect("a template");
    assert_eq!(super::template(&template, None), expected);
    assert_eq!(super::template(&template, Some(1)), collided);
}

#[test]
fn a_plain_template_has_upstreams_hash() {
    check(
        r#"{
            "metadata": { "labels": { "app": "web" } },
            "spec": {
                "containers": [{
                    "name": "web", "image": "nginx", "resources": {}, "imagePullPolicy": "Always",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                }],
                "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst", "securityContext": {},
                "schedulerName": "default-scheduler"
            }
        }"#,
        "5d79f54576",
        "7fcb5d9d5",
    );
}

#[test]
fn amounts_ports_and_volumes_are_dumped_as_go_keeps_them() {
    check(
        r#"{
            "metadata": { "labels": { "b": "2", "a": "1" }, "annotations": { "note": "a b\"c" } },
            "spec": {
                "volumes": [
                    { "name": "cm", "configMap": { "name": "conf", "defaultMode": 420,
                      "items": [{ "key": "a", "path": "b" }] } },
                    { "name": "tmp", "emptyDir": { "sizeLimit": "1Gi" } }
                ],
                "initContainers": [{ "name": "i", "image": "busybox", "restartPolicy": "Always",
                                     "command": ["sh", "-c", "echo hi"] }],
                "containers": [{
                    "name": "web", "image": "nginx",
                    "ports": [{ "containerPort": 80, "protocol": "TCP", "name": "http" }],
                    "env": [
                        { "name": "A", "value": "1" },
                        { "name": "B", "valueFrom": { "fieldRef": {
                            "apiVersion": "v1", "fieldPath": "metadata.name" } } }
                    ],
                    "resources": {
                        "requests": { "cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1500" },
                        "limits": { "cpu": "1500m", "memory": "1k" }
                    },
                    "readinessProbe": { "periodSeconds": 10,
                        "httpGet": { "path": "/", "port": "http", "scheme": "HTTP" } },
                    "livenessProbe": { "tcpSocket": { "port": 8080 }, "initialDelaySeconds": 5 },
                    "securityContext": { "runAsUser": 1000, "capabilities": { "drop": ["ALL"] } },
                    "volumeMounts": [{ "name": "cm", "mountPath": "/etc/conf", "readOnly": true }]
                }],
                "tolerations": [{ "key": "x", "operator": "Exists", "effect": "NoExecute",
                                  "tolerationSeconds": 300 }],
                "nodeSelector": {},
                "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{ "matchExpressions": [
                        { "key": "k", "operator": "In", "values": ["a", "b"] }] }] } } },
                "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": { "matchLabels": { "a": "1" } } }]
            }
        }"#,
        "6c679c576d",
        "6fc48f46c7",
    );
}

#[test]
fn a_revision_is_named_by_the_text_that_go_writes() {
    let template = serde_json::from_str(
        r#"{
            "metadata": { "labels": { "app": "web" } },
            "spec": {
                "containers": [{
                    "name": "web", "image": "example.com/web:1", "resources": {},
                    "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File"
                }],
                "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst", "securityContext": {},
                "schedulerName": "default-scheduler"
            }
        }"#,
    );
    let text = revisions::go_json(&revisions::patch(&template.expect("a template")));
    assert_eq!(revision(text.as_bytes(), Some(0)), "6cc8569764");
}
