//! Commands in containers of this machine and connections to them, as `kube` makes them: over
//! WebSockets with channels.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{run_as, typed, within_patience};
use crate::User;

const PORT: u16 = 8080;

#[test]
fn a_pod_of_this_machine_is_entered_and_reached() {
    let user = User::new();
    let up = "up --detach --port 0 --ingress-port 0 --node process --ephemeral";
    user.run(&up.split(' ').collect::<Vec<_>>()).expect("up");
    run_as(&user, |client| {
        within_patience(async move {
            let pods: Api<Pod> = Api::default_namespaced(client);
            let pod = typed(json!({
                "metadata": {"name": "web"},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                    "name": "web",
                    "image": "nginxdemos/hello",
                    "ports": [{"containerPort": PORT}],
                }]},
            }));
            pods.create(&PostParams::default(), &pod).await.expect("created");
            await_condition(pods.clone(), "web", conditions::is_pod_running()).await.expect("runs");
            enter(&pods).await;
            reach(&pods).await;
            reach_nobody(&pods).await;
        })
    });
    user.run(&["down"]).expect("down");
}

/// What is said to a command comes back, and so does what it ends with.
async fn enter(pods: &Api<Pod>) {
    let params = AttachParams::default().stdin(true).stderr(false);
    let mut process = pods.exec("web", ["sh", "-c", "cat; exit 3"], &params).await.expect("runs");
    let ended = process.take_status().expect("its status");
    let (mut stdin, mut stdout) = (process.stdin().expect("open"), process.stdout().expect("open"));
    stdin.write_all(b"hello, container").await.expect("it listens");
    stdin.shutdown().await.expect("it hears the end");
    drop(stdin);
    let mut heard = String::new();
    stdout.read_to_string(&mut heard).await.expect("it answers");
    assert_eq!(heard, "hello, container");
    let status = ended.await.expect("it ends");
    assert_eq!(status.reason.as_deref(), Some("NonZeroExitCode"), "{status:?}");
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    assert!(causes.iter().any(|cause| cause.message.as_deref() == Some("3")), "{causes:?}");
}

/// A port of the pod answers.
async fn reach(pods: &Api<Pod>) {
    let mut forwarder = pods.portforward("web", &[PORT]).await.expect("forwarded");
    let mut stream = forwarder.take_stream(PORT).expect("a stream");
    let request = b"GET /by-channels HTTP/1.1\r\nHost: web\r\n\r\n";
    stream.write_all(request).await.expect("it listens");
    let mut answer = Vec::new();
    while !answer.ends_with(b"URI: /by-channels\n") {
        let length = stream.read_buf(&mut answer).await.expect("it answers");
        assert!(length > 0, "{}", String::from_utf8_lossy(&answer));
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

/// Nobody listens there, and the client is told so on the port's own channel of errors.
async fn reach_nobody(pods: &Api<Pod>) {
    let mut forwarder = pods.portforward("web", &[PORT, 1]).await.expect("forwarded");
    let why = forwarder.take_error(1).expect("errors").await.expect("an error");
    assert!(why.starts_with("error forwarding port 1 to pod "), "{why}");
    let mut stream = forwarder.take_stream(PORT).expect("a stream");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("the other port is there");
    let mut start = [0; 8];
    stream.read_exact(&mut start).await.expect("it answers");
    assert_eq!(&start, b"HTTP/1.1");
}
