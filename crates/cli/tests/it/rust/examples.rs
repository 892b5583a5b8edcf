//! The examples of `kube` themselves, where they are built: `cargo build --examples` in its
//! repository. Those that need containers, such as `pod_exec`, are left out, and
//! `crd_derive_schema`, which begins to wait for the end of its definition when that may be past.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::{PATIENCE, node, run_as};
use crate::User;

/// Names the folder that they are in.
const EXAMPLES: &str = "KUBEWRIGHT_KUBE_EXAMPLES";

/// An example, its arguments, and what it says when it has done what it shows.
struct Example {
    command: &'static str,
    says: Says,
}

enum Says {
    /// This, and goes on for ever.
    AtSomeTime(&'static str),
    /// This, and ends well.
    AtTheEnd(&'static str),
}

use Says::{AtSomeTime, AtTheEnd};

const EXAMPLE: &[Example] = &[
    Example { command: "kubectl apply -f objects.yaml", says: AtTheEnd("applied Pod example") },
    Example { command: "kubectl apply -f generator.yaml", says: AtTheEnd("applied ConfigMapGen") },
    Example { command: "kubectl get pods -o yaml", says: AtTheEnd("name: example") },
    Example { command: "kubectl get namespaces", says: AtTheEnd("kube-system") },
    Example { command: "kubectl watch configmaps", says: AtSomeTime("example") },
    Example { command: "crd_api", says: AtTheEnd("Rejected fx for invalid name x") },
    Example { command: "crd_apply", says: AtTheEnd("Applied 2 baz") },
    Example { command: "crd_derive", says: AtTheEnd("Spec (via HasSpec)") },
    Example { command: "crd_derive_multi", says: AtTheEnd("new on v2 correct on reapply to v2") },
    Example { command: "kubectl delete foo baz", says: AtTheEnd("") },
    Example { command: "kubectl apply -f foo.yaml", says: AtTheEnd("applied Foo example") },
    Example { command: "crd_reflector", says: AtSomeTime("saw example") },
    Example { command: "dynamic_api", says: AtTheEnd("RuntimeClass") },
    Example { command: "dynamic_jsonpath", says: AtTheEnd("busybox") },
    Example { command: "dynamic_pod", says: AtTheEnd("Pod example runs") },
    Example { command: "dynamic_watcher", says: AtSomeTime("saw Pod example in default") },
    Example { command: "cert_check", says: AtTheEnd("in Namespace(\"kube-system\") with all 3") },
    Example { command: "custom_client", says: AtTheEnd("example") },
    Example { command: "custom_client_retry", says: AtTheEnd("example") },
    Example { command: "custom_client_trace", says: AtTheEnd("example") },
    Example { command: "errorbounded_configmap_watcher", says: AtSomeTime("failed to parse: ") },
    Example { command: "event_watcher", says: AtSomeTime("as wished") },
    Example { command: "event_watcher --for=Pod/example", says: AtSomeTime("as wished") },
    Example { command: "multi_watcher", says: AtSomeTime("Got configmap: example") },
    Example { command: "node_reflector", says: AtSomeTime("saw node example") },
    Example { command: "node_watcher", says: AtSomeTime("Healthy node: example") },
    Example { command: "pod_api", says: AtTheEnd("Found Pod: blog") },
    Example { command: "pod_evict", says: AtTheEnd("Status") },
    Example { command: "pod_paged", says: AtTheEnd("Found Pod: example") },
    Example { command: "pod_reflector", says: AtSomeTime("saw example") },
    Example { command: "pod_resize", says: AtTheEnd("Pod resized via replace") },
    Example { command: "pod_watcher", says: AtSomeTime("saw example") },
    Example { command: "secret_reflector", says: AtSomeTime("saw: example") },
    Example { command: "secret_syncer", says: AtSomeTime("Reconciled: Ok") },
    Example { command: "configmapgen_controller", says: AtSomeTime("reconciled (ObjectRef") },
    Example { command: "shared_stream_controllers", says: AtSomeTime("Reconciled Pod") },
    Example { command: "kubectl delete configmap example", says: AtTheEnd("") },
];

/// What the examples are to find.
const OBJECTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: example, labels: {configmap-secret-syncer.nullable.se/sync: "true"}}
data: {k: v}
---
apiVersion: v1
kind: Secret
metadata: {name: example}
stringData: {k: v}
---
apiVersion: v1
kind: Node
metadata: {name: example, labels: {kubernetes.io/arch: amd64}}
---
apiVersion: v1
kind: Pod
metadata: {name: example, labels: {app: example}}
spec: {containers: [{name: c, image: busybox}]}
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: example}
eventTime: "2026-01-01T00:00:00.000000Z"
action: Tested
reason: Tested
type: Normal
note: as wished
regarding: {apiVersion: v1, kind: Pod, name: example, namespace: default}
reportingController: example
reportingInstance: example
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: configmapgenerators.nullable.se}
spec:
  group: nullable.se
  scope: Namespaced
  names: {plural: configmapgenerators, kind: ConfigMapGenerator}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {content: {type: string}}}}
"#;

/// For `configmapgen_controller`, once its definition is there.
const GENERATOR: &str = r#"
apiVersion: nullable.se/v1
kind: ConfigMapGenerator
metadata: {name: example}
spec: {content: words}
"#;

/// For `crd_reflector`, of the kind that `crd_apply` has left.
const FOO: &str = r#"
apiVersion: clux.dev/v1
kind: Foo
metadata: {name: example}
spec: {name: example, info: words, replicas: 1}
"#;

#[test]
fn the_examples_of_kube_do_what_they_show() {
    let Some(folder) = env::var_os(EXAMPLES).map(PathBuf::from) else {
        eprintln!("skipped: {EXAMPLES} does not name a folder of built examples");
        return;
    };
    let user = User::new();
    user.run(&["up", "--ephemeral", "--detach", "--port", "0"]).expect("up");
    for (name, text) in [("objects", OBJECTS), ("generator", GENERATOR), ("foo", FOO)] {
        let file = user.home.path().join(name).with_extension("yaml");
        std::fs::write(file, text).expect("written");
    }
    run_as(&user, |client| async {
        let work = async {
            for example in EXAMPLE {
                let driven = tokio::time::timeout(PATIENCE, drive(&folder, &user, example)).await;
                driven.unwrap_or_else(|_| panic!("{} says nothing of it", example.command));
            }
        };
        tokio::select! {
            () = node::play(client) => panic!("a node does not end"),
            () = work => (),
        }
    });
}

async fn drive(folder: &Path, user: &User, Example { command, says }: &Example) {
    let mut words = command.split(' ');
    let program = folder.join(words.next().expect("a name"));
    let mut child = Command::new(&program)
        .args(words)
        .current_dir(user.home.path())
        .env("KUBECONFIG", user.home.path().join(".kube/config"))
        .env("RUST_LOG", "info")
        .env("NO_COLOR", "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut out = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut told = String::new();
    while let Some(line) = out.next_line().await.expect("text") {
        told.push_str(&line);
        told.push('\n');
        if matches!(says, AtSomeTime(text) if line.contains(text)) {
            child.kill().await.expect("it runs");
            return;
        }
    }
    let ended = child.wait_with_output().await.expect("it ends");
    let complaint = String::from_utf8_lossy(&ended.stderr);
    match says {
        AtTheEnd(text) if ended.status.success() && told.contains(text) => (),
        _ => panic!("{command}: {}\n{told}{complaint}", ended.status),
    }
}
