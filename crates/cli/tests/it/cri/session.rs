//! What users of kubectl do with a Deployment, from its beginning to a node that is drained.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Instant;

use super::{Beside, PATIENCE, Site, forward, get, text, until_answers};

#[test]
fn deployments_are_made_reached_scaled_rolled_read_entered_measured_and_drained() {
    let Some(site) = Site::new() else { return };
    let rolled_out = || {
        let told = site.kubectl(&["rollout", "status", "deployment/hello", "--timeout=120s"]);
        assert!(told.ends_with("deployment \"hello\" successfully rolled out\n"), "{told}");
    };
    let image = "--image=nginxdemos/hello:latest";
    site.kubectl(&["create", "deployment", "hello", image, "--port=80", "--replicas=2"]);
    site.kubectl(&[
        "expose",
        "deployment",
        "hello",
        "--type=NodePort",
        "--port=8000",
        "--target-port=80",
    ]);
    rolled_out();
    let service = site.json(&["get", "service", "hello"]);
    let port = service["spec"]["ports"][0]["nodePort"].as_u64().expect("a port of the node");
    let port = u16::try_from(port).expect("a port");
    // Both answer in turn, once both are known.
    let deadline = Instant::now() + PATIENCE;
    while get(port, "/") == get(port, "/") {
        assert!(Instant::now() < deadline, "only one answers: {}", get(port, "/"));
    }

    site.kubectl(&["scale", "deployment/hello", "--replicas=3"]);
    rolled_out();
    site.kubectl(&["set", "env", "deployment/hello", "COLOUR=green"]);
    rolled_out();
    let history = site.kubectl(&["rollout", "history", "deployment/hello"]);
    assert!(history.contains("\n1 ") && history.contains("\n2 "), "{history}");
    let coloured = || {
        let found = site.json(&["get", "deployment", "hello"]);
        found["spec"]["template"]["spec"]["containers"][0]["env"].clone()
    };
    assert_eq!(coloured()[0]["value"], "green");
    site.kubectl(&["rollout", "undo", "deployment/hello"]);
    rolled_out();
    assert!(coloured().is_null(), "{}", coloured());
    let is_left =
        |list: &serde_json::Value| list["items"].as_array().is_some_and(|it| it.len() == 3);
    let pods = site.until(&["pods", "--selector", "app=hello"], is_left);
    let pod = pods["items"][0]["metadata"]["name"].as_str().expect("a name").to_owned();

    let mut follow = site.command(&["logs", "-f", &pod]);
    let mut follow = Beside(follow.stdout(Stdio::piped()).spawn().expect("kubectl runs"));
    let (_forward, port) = forward(&site, &format!("pod/{pod}"), 80);
    until_answers(port, "/hello", &format!("Server name: {pod}"));
    let lines = BufReader::new(follow.0.stdout.take().expect("a pipe")).lines();
    let asked = lines.map_while(Result::ok).find(|line| line.contains("200"));
    assert!(asked.is_some(), "the log ends without it");
    assert_eq!(site.kubectl(&["exec", &pod, "--", "hostname"]).trim(), pod);
    // Older clients, and upstream's API servers, speak SPDY.
    let mut by_spdy = site.command(&["exec", &pod, "--", "hostname"]);
    let by_spdy = by_spdy.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false").output();
    let by_spdy = by_spdy.expect("kubectl runs");
    assert_eq!(text(&by_spdy.stdout).trim(), pod, "{by_spdy:?}");

    let deadline = Instant::now() + PATIENCE;
    loop {
        let top = site.command(&["top", "pods", "--no-headers"]).output().expect("kubectl runs");
        let told = text(&top.stdout);
        if told.lines().count() == 3 && told.lines().all(|line| line.contains("Mi")) {
            break;
        }
        assert!(Instant::now() < deadline, "pods are not measured: {top:?}");
    }
    let top = site.kubectl(&["top", "nodes", "--no-headers"]);
    assert!(top.lines().count() == 1 && top.contains("Mi"), "{top}");

    let node = site.json(&["get", "nodes"])["items"][0]["metadata"]["name"].clone();
    let node = node.as_str().expect("a name");
    let drained = site.kubectl(&["drain", node, "--force", "--timeout=120s"]);
    assert!(drained.ends_with(&format!("node/{node} drained\n")), "{drained}");
    site.kubectl(&["uncordon", node]);
    rolled_out();
}
