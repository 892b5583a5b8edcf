//! `helm`, unchanged, with a chart of ours: a definition with an object of its kind, a hook, objects
//! that only some revisions have, a revision that the server refuses. Read the same on upstream.

use std::env;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::{Api, ListParams, ResourceExt as _};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::rust::run_as;
use crate::{UP_ALONE, User};

/// Names a helm that is not `helm`.
const HELM: &str = "KUBEWRIGHT_HELM";
const NAMESPACE: &str = "harbour";

struct Helm<'a> {
    program: String,
    user: &'a User,
}

impl Helm<'_> {
    /// What the command prints, or its complaint.
    fn run(&self, args: &str) -> Result<String, String> {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/chart");
        let output = Command::new(&self.program)
            .args(args.split(' '))
            .args(["--namespace", NAMESPACE])
            .current_dir(chart)
            .env("HOME", self.user.home.path())
            .env("KUBECONFIG", self.user.home.path().join(".kube/config"))
            .output()
            .expect("helm runs");
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }

    fn json(&self, args: &str) -> Value {
        let text = self.run(&format!("{args} --output json")).expect(args);
        serde_json::from_str(&text).expect("it prints JSON")
    }
}

#[test]
fn a_chart_is_installed_upgraded_rolled_back_and_uninstalled() {
    let program = env::var(HELM).unwrap_or_else(|_| "helm".to_owned());
    if !Command::new(&program).arg("version").output().is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: there is no `{program}`; {HELM} may name one");
        return;
    }
    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    let helm = Helm { program, user: &user };
    run_as(&user, |client| async move { live(&helm, &client).await });
}

async fn live(helm: &Helm<'_>, client: &Client) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let replicas = async || {
        let web = deployments.get("web").await.expect("read");
        let revision = web.labels()["revision"].clone();
        (web.spec.expect("a spec").replicas.expect("a number"), revision)
    };
    let made = helm.json("install web . --create-namespace --set replicas=2");
    assert_eq!((&made["info"]["status"], &made["version"]), (&json!("deployed"), &json!(1)));
    assert_eq!(made["info"]["notes"], "web has 2 replicas.\n");
    assert_eq!(replicas().await, (2, "1".to_owned()));
    assert_eq!(names::<ConfigMap>(client).await, ["web-extra", "web-hook", "web-seen"]);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let seen = maps.get("web-seen").await.expect("read").data.expect("data");
    assert_eq!(
        json!(seen),
        json!({"minor": "36", "namespace": "default", "policies": "true"}),
        "what the server says while the chart is rendered"
    );
    let twice = helm.run("install web .").expect_err("it is there");
    assert!(twice.contains("a name that is still in use"), "{twice}");

    let changed = helm.json("upgrade web . --set replicas=3,extra=false");
    assert_eq!((&changed["info"]["status"], &changed["version"]), (&json!("deployed"), &json!(2)));
    assert_eq!(replicas().await, (3, "2".to_owned()));
    assert_eq!(names::<ConfigMap>(client).await, ["web-hook", "web-seen"]);
    let hook = maps.get("web-hook").await.expect("read").data.expect("data");
    assert_eq!(hook["revision"], "2");
    let dry = helm.run("upgrade web . --dry-run=server --set replicas=9").expect("rendered");
    assert!(dry.contains("replicas: 9"), "{dry}");
    assert_eq!(replicas().await, (3, "2".to_owned()));

    let refused = helm.run("upgrade web . --set oars=-1").expect_err("it is refused");
    let why = "spec.oars in body should be greater than or equal to 0";
    assert!(refused.contains(why), "{refused}");
    helm.run("rollback web 1").expect("rolled back");
    assert_eq!(replicas().await, (2, "1".to_owned()));
    assert_eq!(names::<ConfigMap>(client).await, ["web-extra", "web-hook", "web-seen"]);

    let history = helm.json("history web");
    let history = history.as_array().expect("a list");
    let statuses: Vec<_> = history.iter().map(|entry| &entry["status"]).collect();
    assert_eq!(statuses, ["superseded", "superseded", "failed", "deployed"]);
    assert_eq!(history[3]["description"], "Rollback to 1");
    assert_eq!(helm.json("get values web"), json!({"replicas": 2}));
    let manifest = helm.run("get manifest web").expect("read");
    assert!(manifest.contains("kind: Boat"), "{manifest}");
    let listed = helm.json("list");
    assert_eq!((&listed[0]["name"], &listed[0]["revision"]), (&json!("web"), &json!("4")));
    let kept: Vec<_> = names::<Secret>(client).await;
    assert_eq!(kept, [1, 2, 3, 4].map(|n| format!("sh.helm.release.v1.web.v{n}")));

    helm.run("uninstall web").expect("uninstalled");
    assert_eq!(names::<Secret>(client).await, [""; 0]);
    assert_eq!(names::<Deployment>(client).await, [""; 0]);
    assert_eq!(names::<Service>(client).await, [""; 0]);
    assert_eq!(names::<ConfigMap>(client).await, ["web-hook"], "hooks are nobody's");
    assert_eq!(helm.json("list"), json!([]));
    let gone = helm.run("status web").expect_err("it is gone");
    assert!(gone.contains("release: not found"), "{gone}");
}

/// The objects of a kind but those that every namespace has.
async fn names<K>(client: &Client) -> Vec<String>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let listed = objects.list(&ListParams::default()).await.expect("listed");
    let names = listed.items.iter().map(|object| object.name_any());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}
