//! A server that is killed while clients write has everything that it said it had.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::client::Access;
use crate::server::Ours;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CLIENTS: usize = 8;
/// How many writes are acknowledged before the end comes, in each life.
const WRITES: u32 = 400;
const LIVES: u32 = 3;

/// What one client knows of one object.
#[derive(Debug, Clone)]
struct Known {
    /// Of the last write that was acknowledged.
    version: u64,
    data: String,
    /// What it wrote last and was never told about.
    unanswered: Option<String>,
}

#[tokio::test]
async fn every_acknowledged_write_outlives_a_kill_and_no_event_is_missed() {
    let home = tempfile::tempdir().expect("a directory");
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut versions: Vec<u64> = Vec::new();
    for life in 0..LIVES {
        let ours = Ours::up(home.path(), "kubewright", &["--port", "0"]);
        let mut client = ours.access.client().await;
        let list = client.get(CONFIG_MAPS).await;
        check(&list, &known);
        if life > 0 {
            // Nobody wrote anything else, and nothing was deleted.
            let items = list["items"].as_array().expect("a list");
            let durable = items.iter().map(version).max().expect("objects");
            assert!(versions.iter().all(|acknowledged| *acknowledged <= durable));
            resume(&ours.access, durable, life).await;
        }

        let acknowledged = Arc::new(Semaphore::new(0));
        let mut writers = JoinSet::new();
        for writer in 0..CLIENTS {
            let (access, acknowledged) = (ours.access.clone(), Arc::clone(&acknowledged));
            writers.spawn(async move { write(&access, life, writer, &acknowledged).await });
        }
        acknowledged.acquire_many(WRITES).await.expect("it is open").forget();
        ours.kill();
        for (objects, own) in writers.join_all().await {
            known.extend(objects);
            versions.extend(own);
        }
    }
    let ours = Ours::up(home.path(), "kubewright", &["--port", "0"]);
    check(&ours.access.client().await.get(CONFIG_MAPS).await, &known);
    eprintln!("{LIVES} kills, {} writes acknowledged, none lost", versions.len());
}

/// Creates objects and changes each a few times, until nobody answers.
async fn write(
    access: &Access,
    life: u32,
    writer: usize,
    acknowledged: &Semaphore,
) -> (BTreeMap<String, Known>, Vec<u64>) {
    let (mut known, mut versions) = (BTreeMap::new(), Vec::new());
    let Ok(mut client) = access.connect().await else { return (known, versions) };
    for turn in 0.. {
        let name = format!("map-{life}-{writer}-{}", turn / 3);
        let data = format!("{life}-{writer}-{turn}");
        let object = json!({"metadata": {"name": name}, "data": {"written": data}});
        let answer = match turn % 3 {
            0 => client.try_send("POST", CONFIG_MAPS, &object).await,
            _ => client.try_send("PUT", &format!("{CONFIG_MAPS}/{name}"), &object).await,
        };
        match answer {
            Ok((200 | 201, object)) => {
                let version = version(&object);
                known.insert(name, Known { version, data, unanswered: None });
                versions.push(version);
                acknowledged.add_permits(1);
            }
            Ok((status, answer)) => panic!("{status}: {answer}"),
            Err(_) => {
                if let Some(known) = known.get_mut(&name) {
                    known.unanswered = Some(data);
                }
                break;
            }
        }
    }
    (known, versions)
}

/// Every object is as its client knows it, or as it was about to be.
fn check(list: &Value, known: &BTreeMap<String, Known>) {
    let items = list["items"].as_array().expect("a list");
    let found: BTreeMap<&str, &Value> = items
        .iter()
        .map(|item| (item["metadata"]["name"].as_str().expect("a name"), item))
        .collect();
    for (name, known) in known {
        let item = found.get(name.as_str()).unwrap_or_else(|| panic!("{name} is lost"));
        let data = item["data"]["written"].as_str().expect("data");
        match known.unanswered.as_deref() == Some(data) {
            true => assert!(version(item) > known.version, "{name}"),
            false => assert_eq!((version(item), data), (known.version, known.data.as_str())),
        }
    }
}

/// A watch from the last durable version goes on with whatever came after.
async fn resume(access: &Access, last: u64, life: u32) {
    let mut watch = access.watch(CONFIG_MAPS, &last.to_string()).await;
    let name = format!("life-{life}");
    let object = json!({"metadata": {"name": name}});
    let created = access.client().await.create(CONFIG_MAPS, &object).await;
    let event = watch.next().await;
    assert_eq!(event["type"], "ADDED", "{event}");
    assert_eq!(version(&event["object"]), version(&created));
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().expect("a version");
    version.parse().expect("a number")
}
