//! A stock kube-apiserver takes over what ours stored in etcd, and ours what that stored.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

use crate::client::{Access, Client};
use crate::server::{Ours, Upstream};

/// One object of every kind. The name of the namespace is part of every name outside it.
const EVERY_KIND: &str = include_str!("every-kind.yaml");
const NAMESPACE: &str = "handover";
const ADDRESS: &str = "10.9.9.9";

/// Pods need accounts. Others report on objects whenever they get to it, those that upstream stored
/// included, and this is about what is stored.
const CONTROLLERS: &str = "serviceaccount-controller";

/// Kinds on which upstream reports as soon as it starts.
const REPORTED_ON: [&str; 2] = ["FlowSchema", "APIService"];

#[tokio::test]
async fn either_server_reads_every_kind_that_the_other_stored() {
    let Some(upstream) = Upstream::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let etcd = upstream.etcd(&home.path().join("etcd"));
    let store = format!("etcd={}", etcd.url);
    let args = ["--store", &store, "--port", "0", "--controllers", CONTROLLERS];

    let ours = Ours::up(home.path(), "first", &args);
    let paths = create_all(&ours.access, NAMESPACE, ADDRESS).await;
    let written = read_settled(&ours.access, &paths).await;
    ours.kill();

    let Some((mut theirs, access)) = upstream.apiserver(home.path(), "first", &etcd).await else {
        return;
    };
    let read = read_all(&access, &paths).await;
    compare(&written, &read);

    // Every kind as upstream stores it, in other bytes and partly in other versions.
    let mut paths = paths;
    paths.extend(create_all(&access, "handback", "10.9.9.10").await);
    settle(&access).await;
    let written = read_settled(&access, &paths).await;
    theirs.kill();

    let ours = Ours::up(home.path(), "first", &args);
    let read = read_all(&ours.access, &paths).await;
    compare(&written, &read);
    // What was read is also what is changed.
    let mut client = ours.access.client().await;
    for path in &paths {
        let label = json!({"metadata": {"labels": {"handed": "over"}}});
        let (status, changed) = client.send("PATCH", path, &label).await;
        assert_eq!(status, 200, "{path}: {changed}");
        let mut expected = read[path].clone();
        expected["metadata"]["labels"]["handed"] = "over".into();
        assert_eq!(without_history(&changed), without_history(&expected), "{path}");
    }
    eprintln!("{} objects of {} kinds were handed over and back", paths.len(), paths.len() / 2);
}

/// Creates the objects of the manifest, and gives their paths.
async fn create_all(access: &Access, namespace: &str, address: &str) -> Vec<String> {
    let mut client = access.client().await;
    let text = EVERY_KIND.replace(NAMESPACE, namespace).replace(ADDRESS, address);
    let mut served = served(&mut client).await;
    let mut paths = Vec::new();
    let mut created = BTreeSet::new();
    for document in yaml::documents(&text).expect("a stream") {
        let object = yaml::decode(document).expect("a document").value;
        let kind = (text_of(&object["apiVersion"]), text_of(&object["kind"]));
        // A definition is served when it has been looked at.
        while !served.contains_key(&kind) {
            tokio::task::yield_now().await;
            served = self::served(&mut client).await;
        }
        let collection = served[&kind].replace("{namespace}", namespace);
        loop {
            let (status, created) = client.send("POST", &collection, &object).await;
            // Upstream lists what it serves a moment before it does.
            if status == 404 && kind.1 == "Widget" {
                continue;
            }
            assert_eq!(status, 201, "{collection}: {created}");
            break;
        }
        paths.push(format!("{collection}/{}", text_of(&object["metadata"]["name"])));
        created.insert(kind);
    }
    // Other versions of kinds that are there already.
    let is_other = |kind: &(String, String)| kind.0 == "autoscaling/v1" || kind.1 == "Widget";
    let left: Vec<_> =
        served.keys().filter(|kind| !created.contains(*kind) && !is_other(kind)).collect();
    assert!(left.is_empty(), "the manifest lacks {left:?}");
    paths
}

/// The collections of objects that are stored, by version and kind.
async fn served(client: &mut Client) -> BTreeMap<(String, String), String> {
    let mut prefixes = vec!["/api/v1".to_owned()];
    for group in items(&client.get("/apis").await["groups"]) {
        for version in items(&group["versions"]) {
            prefixes.push(format!("/apis/{}", text_of(&version["groupVersion"])));
        }
    }
    let mut served = BTreeMap::new();
    for prefix in prefixes {
        // What is served elsewhere, and nobody is there.
        let (200, list) = client.send("GET", &prefix, &Value::Null).await else { continue };
        for resource in items(&list["resources"]) {
            let has = |verb: &str| items(&resource["verbs"]).iter().any(|other| other == verb);
            let name = text_of(&resource["name"]);
            if name.contains('/') || !has("create") || !has("get") {
                continue;
            }
            let kind = (text_of(&list["groupVersion"]), text_of(&resource["kind"]));
            let scope = match resource["namespaced"] == true {
                true => "/namespaces/{namespace}",
                false => "",
            };
            served.insert(kind, format!("{prefix}{scope}/{name}"));
        }
    }
    served
}

/// What is there when nobody has more to say about it: definitions are established.
async fn read_settled(access: &Access, paths: &[String]) -> BTreeMap<String, Value> {
    let mut before = read_all(access, paths).await;
    loop {
        let after = read_all(access, paths).await;
        if after == before {
            return after;
        }
        before = after;
    }
}

async fn read_all(access: &Access, paths: &[String]) -> BTreeMap<String, Value> {
    let mut client = access.client().await;
    let mut read = BTreeMap::new();
    for path in paths {
        let object = client.get(path).await;
        // Lists and single objects are read in different ways.
        let (collection, name) = path.rsplit_once('/').expect("a path");
        let list = client.get(collection).await;
        let mut listed = items(&list["items"]).iter();
        let listed = listed.find(|item| item["metadata"]["name"] == name).expect("it is listed");
        assert_eq!(listed["metadata"], object["metadata"], "{path}");
        read.insert(path.clone(), object);
    }
    read
}

fn compare(written: &BTreeMap<String, Value>, read: &BTreeMap<String, Value>) {
    for (path, written) in written {
        let read = &read[path];
        if REPORTED_ON.contains(&text_of(&written["kind"]).as_str()) {
            assert_eq!(read["spec"], written["spec"], "{path}");
            assert_eq!(read["metadata"]["uid"], written["metadata"]["uid"], "{path}");
            continue;
        }
        assert_eq!(read, written, "{path}");
    }
}

/// Waits until upstream has established the definitions of both sides.
async fn settle(access: &Access) {
    let mut client = access.client().await;
    let path =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.handback.example.com";
    loop {
        let definition = client.get(path).await;
        let conditions = items(&definition["status"]["conditions"]);
        if conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True") {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// An object without what a change of its labels changes; for some kinds that is a new generation.
fn without_history(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for field in ["generation", "managedFields", "resourceVersion"] {
        metadata.remove(field);
    }
    object
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
