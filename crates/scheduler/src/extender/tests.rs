//! Extenders that answer over real sockets.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;
use crate::fixtures::{pod, snapshot};

const CLUSTER: &str = "
    {kind: Node, metadata: {name: a}}
    {kind: Node, metadata: {name: b}}
    {kind: Pod, metadata: {name: p, uid: u1}, spec: {nodeName: a}}";

/// An extender that answers questions by `answer`, which is given the verb.
struct Fake {
    url: String,
    _serving: JoinSet<()>,
}

impl Fake {
    async fn start(answer: fn(&str, Value) -> (u16, Value)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/sub/", listener.local_addr().expect("an address"));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, answer).await;
            }
        });
        Fake { url, _serving: serving }
    }

    fn extender(&self, more: &str) -> Extender {
        let mut config: Value = kubewright_apimachinery::yaml::decode(more).expect("YAML").value;
        config["urlPrefix"] = json!(self.url);
        Extender::new(&serde_json::from_value(config).expect("an extender")).expect("a client")
    }
}

/// Answers one request, and closes the connection.
async fn serve(mut stream: TcpStream, answer: fn(&str, Value) -> (u16, Value)) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.expect("a request");
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
        });
        if body.len() >= length.expect("a length") {
            break (head.to_owned(), body.to_owned());
        }
    };
    let path = head.split_whitespace().nth(1).expect("a path");
    let verb = path.strip_prefix("/sub/").expect("below its prefix");
    let (status, answer) = answer(verb, serde_json::from_str(&body).expect("JSON"));
    let answer = answer.to_string();
    let response = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{answer}",
        answer.len()
    );
    stream.write_all(response.as_bytes()).await.expect("answered");
}

/// Likes `b`, and lets no pod go but one.
fn sensible(verb: &str, question: Value) -> (u16, Value) {
    let answer = match verb {
        "filter" if question["NodeNames"].is_array() => json!({
            "NodeNames": ["b"], "FailedNodes": {"a": "it is taken"},
        }),
        "filter" => {
            let items = question["Nodes"]["items"].as_array().expect("nodes");
            let left: Vec<&Value> =
                items.iter().filter(|node| node["metadata"]["name"] == "b").collect();
            json!({
                "Nodes": {"items": left}, "NodeNames": null, "FailedNodes": null,
                "FailedAndUnresolvableNodes": {"a": "it is broken"}, "Error": "",
            })
        }
        "prioritize" => json!([{"Host": "a", "Score": 1}, {"Host": "b", "Score": 10}]),
        "preempt" => {
            assert_eq!(question["NodeNameToMetaVictims"]["a"]["Pods"], json!([{"UID": "u1"}]));
            json!({"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 3}}})
        }
        "bind" => {
            assert_eq!(question["PodName"], "new");
            assert_eq!(question["PodUID"], "new");
            json!({"Error": if question["Node"] == "a" { "a is full" } else { "" }})
        }
        _ => return (404, json!({})),
    };
    (200, answer)
}

async fn filtered(extender: &Extender) -> Result<String, String> {
    let (snapshot, pod) = (snapshot(CLUSTER), pod("{}"));
    let nodes: Vec<&Node> = snapshot.nodes().iter().collect();
    let mut diagnosis = Diagnosis::new(2);
    let left = extender.filter(&pod, nodes, &mut diagnosis).await?;
    let left: Vec<&str> = left.iter().map(|node| &*node.name).collect();
    Ok(format!("{} | {diagnosis}", left.join(" ")))
}

#[tokio::test]
async fn nodes_are_filtered_whole_or_by_name() {
    let fake = Fake::start(sensible).await;
    let whole = fake.extender("{filterVerb: filter}");
    let expected = "b | 0/2 nodes are available: 1 it is broken.";
    assert_eq!(filtered(&whole).await.as_deref(), Ok(expected));
    let by_name = fake.extender("{filterVerb: filter, nodeCacheCapable: true}");
    let expected = "b | 0/2 nodes are available: 1 it is taken.";
    assert_eq!(filtered(&by_name).await.as_deref(), Ok(expected));
}

#[tokio::test]
async fn an_extender_that_fails_is_passed_over_only_if_it_may_be() {
    let fake = Fake::start(sensible).await;
    let url = fake.url.trim_end_matches('/').to_owned();
    let needed = fake.extender("{filterVerb: missing}");
    let why = format!("failed missing with extender at URL {url}/missing, code 404");
    assert_eq!(filtered(&needed).await, Err(why));
    let ignorable = fake.extender("{filterVerb: missing, ignorable: true}");
    assert_eq!(filtered(&ignorable).await.as_deref(), Ok("a b | 0/2 nodes are available:"));
}

#[tokio::test]
async fn scores_are_weighed_in_the_schedulers_range() {
    let fake = Fake::start(sensible).await;
    let extender = fake.extender("{prioritizeVerb: prioritize, weight: 2}");
    let (snapshot, pod) = (snapshot(CLUSTER), pod("{}"));
    let nodes: Vec<&Node> = snapshot.nodes().iter().collect();
    let mut scores = vec![5, 0];
    extender.prioritize(&pod, &nodes, &mut scores).await;
    assert_eq!(scores, [25, 200]);
}

#[tokio::test]
async fn victims_and_bindings_are_an_extenders_to_decide() {
    let fake = Fake::start(sensible).await;
    let extender = fake.extender("{preemptVerb: preempt, bindVerb: bind, nodeCacheCapable: true}");
    let (snapshot, pod) = (snapshot(CLUSTER), pod("{}"));
    let victims = snapshot.node("a").expect("a node").pods.clone();
    let candidate = Preemption { node: "a".into(), victims, violations: 0 };
    let left = extender.preempt(&pod, vec![candidate], &snapshot).await.expect("an answer");
    assert_eq!((left.len(), left[0].violations, left[0].victims.len()), (1, 3, 1));

    let bind = |node: &str| {
        let assignment = Arc::new(Assignment { pod: Arc::clone(&pod), node: node.into() });
        extender.bind(&assignment).expect("it binds")
    };
    assert_eq!(bind("a").await, Err("a is full".to_owned()));
    assert_eq!(bind("b").await, Ok(()));
}

#[tokio::test]
async fn only_pods_that_ask_for_what_it_manages_concern_it() {
    let fake = Fake::start(sensible).await;
    let extender = fake.extender("{managedResources: [{name: example.com/gpu}]}");
    assert!(!extender.is_interested(&pod("{}")));
    let asks = "{spec: {containers: [{name: c, resources: {limits: {example.com/gpu: 1}}}]}}";
    assert!(extender.is_interested(&pod(asks)));
    assert!(fake.extender("{}").is_interested(&pod("{}")));
}
