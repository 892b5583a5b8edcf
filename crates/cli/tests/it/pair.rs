//! Two servers on one etcd are one API.

use std::collections::BTreeSet;

use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Access, Client};
use crate::server::{Etcd, Ours, Upstream};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Pair {
    servers: [Ours; 2],
    _etcd: Etcd,
    _home: tempfile::TempDir,
}

impl Pair {
    /// None where there is no etcd. Nobody but the test writes ConfigMaps.
    fn start() -> Option<Self> {
        Self::with("*,-root-ca-certificate-publisher-controller")
    }

    /// With these controllers, in both.
    fn with(controllers: &str) -> Option<Self> {
        let upstream = Upstream::find()?;
        let home = tempfile::tempdir().expect("a directory");
        let etcd = upstream.etcd(&home.path().join("etcd"));
        let store = format!("etcd={}", etcd.url);
        let args = ["--store", &store, "--port", "0", "--controllers", controllers];
        let first = Ours::up(home.path(), "first", &args);
        let second = Ours::up(home.path(), "second", &args);
        Some(Pair { servers: [first, second], _etcd: etcd, _home: home })
    }

    fn access(&self) -> [&Access; 2] {
        self.servers.each_ref().map(|server| &server.access)
    }

    async fn clients(&self) -> [Client; 2] {
        let [first, second] = self.access();
        [first.client().await, second.client().await]
    }
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

#[tokio::test]
async fn what_one_server_wrote_the_other_reads_at_once_and_watches_in_order() {
    let Some(pair) = Pair::start() else { return };
    let mut clients = pair.clients().await;
    let start = clients[0].get(CONFIG_MAPS).await;
    let start = start["metadata"]["resourceVersion"].as_str().expect("a version");
    let mut watches = [
        pair.access()[0].watch(CONFIG_MAPS, start).await,
        pair.access()[1].watch(CONFIG_MAPS, start).await,
    ];

    let mut written = Vec::new();
    for turn in 0..60 {
        let (writer, reader) = (turn % 2, 1 - turn % 2);
        let name = format!("map-{turn}");
        let created = clients[writer].create(CONFIG_MAPS, &config_map(&name, &json!({}))).await;
        let path = format!("{CONFIG_MAPS}/{name}");
        assert_eq!(clients[reader].get(&path).await, created);
        let list = clients[reader].get(CONFIG_MAPS).await;
        let items = list["items"].as_array().expect("a list");
        assert!(items.iter().any(|item| item["metadata"]["name"] == name), "{name} is not listed");
        written.push(created["metadata"]["resourceVersion"].clone());
        if turn % 3 == 0 {
            let (status, deleted) = clients[reader].send("DELETE", &path, &Value::Null).await;
            assert_eq!(status, 200, "{deleted}");
            let (status, _) = clients[writer].send("GET", &path, &Value::Null).await;
            assert_eq!(status, 404, "{name} was deleted");
        }
    }
    let mut seen = [Vec::new(), Vec::new()];
    for (watch, seen) in watches.iter_mut().zip(&mut seen) {
        while seen.len() < 80 {
            let event = watch.next().await;
            seen.push((
                event["type"].clone(),
                event["object"]["metadata"]["resourceVersion"].clone(),
            ));
        }
    }
    assert_eq!(seen[0], seen[1]);
    let added: Vec<_> = seen[0].iter().filter(|event| event.0 == "ADDED").collect();
    assert_eq!(added.iter().map(|event| event.1.clone()).collect::<Vec<_>>(), written);
}

#[tokio::test]
async fn a_token_of_one_server_is_good_at_the_other() {
    let Some(pair) = Pair::with("*") else { return };
    let [mut first, mut second] = pair.clients().await;
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    // Each time the other server may be yet to hear of the account.
    for turn in 0..10 {
        for issued_there in [false, true] {
            let name = format!("robot-{turn}-{issued_there}");
            first.create(accounts, &json!({"metadata": {"name": name}})).await;
            let issuer = if issued_there { &mut second } else { &mut first };
            let token =
                issuer.create(&format!("{accounts}/{name}/token"), &json!({"spec": {}})).await;
            let review = json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                "spec": {"token": token["status"]["token"]},
            });
            let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
            let reviewed = second.create(reviews, &review).await;
            assert_eq!(reviewed["status"]["authenticated"], true, "{reviewed}");
        }
    }
    // Both publish one certificate, so neither has anything to correct.
    let map = format!("{CONFIG_MAPS}/kube-root-ca.crt");
    while first.send("GET", &map, &Value::Null).await.0 == 404 {
        tokio::task::yield_now().await;
    }
    let fields = first.get(&map).await["metadata"]["managedFields"].clone();
    assert_eq!(fields.as_array().map(Vec::len), Some(1), "{fields}");
    assert_eq!(second.get(&map).await["data"], first.get(&map).await["data"]);
}

#[tokio::test]
async fn what_one_server_is_told_to_serve_and_to_allow_the_other_does() {
    let Some(pair) = Pair::start() else { return };
    let [mut first, mut second] = pair.clients().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.pair.example.com"},
        "spec": {
            "group": "pair.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    first.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let widgets = "/apis/pair.example.com/v1/namespaces/default/widgets";
    let widget = json!({
        "apiVersion": "pair.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1},
    });
    for client in [&mut second, &mut first] {
        while client.send("GET", widgets, &Value::Null).await.0 == 404 {
            tokio::task::yield_now().await;
        }
    }
    let created = second.create(widgets, &widget).await;
    assert_eq!(first.get(&format!("{widgets}/w")).await, created);

    assert_eq!(as_jane(&mut second).await, 403);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    first.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", &role).await;
    let binding = json!({
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    first.create(bindings, &binding).await;
    while as_jane(&mut second).await != 200 {
        tokio::task::yield_now().await;
    }
    let (status, _) = first.send("DELETE", &format!("{bindings}/jane"), &Value::Null).await;
    assert_eq!(status, 200);
    while as_jane(&mut second).await != 403 {
        tokio::task::yield_now().await;
    }
}

async fn as_jane(client: &mut Client) -> u16 {
    let request = Request::get(CONFIG_MAPS)
        .header("impersonate-user", "jane")
        .body(Full::default())
        .expect("a request");
    client.exchange(request).await.expect("an answer").0
}

#[tokio::test]
async fn no_update_is_lost_between_two_servers() {
    const WRITERS: u64 = 8;
    const TURNS: u64 = 15;
    let Some(pair) = Pair::start() else { return };
    let [mut first, _] = pair.clients().await;
    first.create(CONFIG_MAPS, &config_map("counter", &json!({"count": "0"}))).await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let access = pair.access()[usize::from(writer % 2 == 0)].clone();
        writers.spawn(async move {
            let mut client = access.client().await;
            let path = format!("{CONFIG_MAPS}/counter");
            let (mut done, mut conflicts) = (0, 0);
            while done < TURNS {
                let mut object = client.get(&path).await;
                let count = object["data"]["count"].as_str().expect("a count");
                let count: u64 = count.parse().expect("a number");
                object["data"]["count"] = (count + 1).to_string().into();
                match client.send("PUT", &path, &object).await {
                    (200, _) => done += 1,
                    (409, _) => conflicts += 1,
                    (status, answer) => panic!("{status}: {answer}"),
                }
            }
            conflicts
        });
    }
    let conflicts: u64 = writers.join_all().await.into_iter().sum();
    let counter = first.get(&format!("{CONFIG_MAPS}/counter")).await;
    assert_eq!(counter["data"]["count"], (WRITERS * TURNS).to_string());
    eprintln!("{} updates, {conflicts} conflicts", WRITERS * TURNS);
}

#[tokio::test]
async fn two_servers_never_give_an_address_or_a_port_twice() {
    let Some(pair) = Pair::start() else { return };
    let services = "/api/v1/namespaces/default/services";
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        let access = pair.access()[writer % 2].clone();
        writers.spawn(async move {
            let mut client = access.client().await;
            let mut given = Vec::new();
            for turn in 0..10 {
                let service = json!({
                    "metadata": {"name": format!("s-{writer}-{turn}")},
                    "spec": {"type": "NodePort", "ports": [{"port": 80}]},
                });
                let created = client.create(services, &service).await;
                let spec = &created["spec"];
                given.push((
                    spec["clusterIP"].to_string(),
                    spec["ports"][0]["nodePort"].to_string(),
                ));
            }
            given
        });
    }
    let given = writers.join_all().await.concat();
    let addresses: BTreeSet<_> = given.iter().map(|one| &one.0).collect();
    let ports: BTreeSet<_> = given.iter().map(|one| &one.1).collect();
    assert_eq!((addresses.len(), ports.len()), (given.len(), given.len()), "{given:?}");
}
