//! The program `workloads` beside a cluster whose pods run, as its page has it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::LazyLock;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use regex::Regex;
use tokio::sync::mpsc;
use workloads::Show;

use super::root;
use crate::User;

/// Where the program says that its page is.
const PLACE: &str = "You can now see your running service: http://localhost:8080/hello";

#[tokio::test]
async fn the_page_about_workloads_shows_what_the_program_prints() {
    let user = User::new();
    let up = "up --ephemeral --detach --node process --port 0 --ingress-port 0 --output json";
    let up = user.json(&up.split(' ').collect::<Vec<_>>());
    let ingress = up["ingress"].as_str().expect("Ingresses are served").to_owned();
    let (tell, mut told) = mpsc::unbounded_channel();
    let show = Show::new(move |line| tell.send(line.to_owned()).expect("somebody reads"));
    let (client, mut printed) = (client(&user).await, Vec::new());
    // Somebody reads, reloads the page until both servers have answered, and has seen enough when
    // their logs say so.
    let watched = async {
        while printed.last().is_none_or(|line| line != PLACE) {
            printed.push(told.recv().await.expect("it goes on"));
        }
        let servers = tokio::task::spawn_blocking(move || reload(&ingress));
        let servers = servers.await.expect("both answer");
        let is_logged = |printed: &[String], server: &str| {
            printed.iter().any(|line| line.starts_with(server) && line.contains("\"GET /hello "))
        };
        while !servers.iter().all(|server| is_logged(&printed, server)) {
            printed.push(told.recv().await.expect("it goes on"));
        }
        Ok(())
    };
    workloads::run(&client, "foo", show, watched).await.expect("it ends well");
    while let Some(line) = told.recv().await {
        printed.push(line);
    }
    let page = fs::read_to_string(root().join("docs/book/operators/workloads.md"));
    let page = page.expect("a page");
    let (_, shown) = page.split_once("-- --kubeconfig \"$KUBECONFIG\"\n").expect("a session");
    let (shown, _) = shown.split_once("```").expect("an end");
    assert_eq!(masked(&printed.join("\n")), masked(shown), "{}", printed.join("\n"));
    user.run(&["down"]).expect("down");
}

/// Asks for the page until two servers have answered, and gives their names.
fn reload(ingress: &str) -> Vec<String> {
    let mut servers = Vec::new();
    while servers.len() < 2 {
        let place = ingress.strip_prefix("http://").expect("a URL");
        let mut stream = TcpStream::connect(place).expect("somebody listens");
        let request = "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        // Until the router has heard of the pods, nobody is named.
        let server = answer.lines().find_map(|line| line.strip_prefix("Server name: "));
        servers.extend(
            server.filter(|it| !servers.iter().any(|known| known == it)).map(str::to_owned),
        );
    }
    servers
}

async fn client(user: &User) -> Client {
    let kubeconfig = Kubeconfig::read_from(user.home.path().join(".kube/config"));
    let kubeconfig = kubeconfig.expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a cluster")).expect("a client")
}

/// What is another each time: pods, times, addresses.
static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"hello-world-\w+-\w+", "<pod>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
        (r"\b\d+\.18\.\d+\.\d+(:\d+)?", "<address>"),
        (r"\b127\.0\.0\.1\b", "<address>"),
        (r" 200 \d+ ", " 200 <bytes> "),
    ]
    .map(|(pattern, mask)| (Regex::new(pattern).expect("a pattern"), mask))
    .into()
});

/// Lines in the order in which they come, but for those of the two pods, and for steps of progress,
/// of which there may be more or fewer.
fn masked(text: &str) -> (Vec<String>, Vec<String>) {
    let lines = text.lines().filter(|line| !line.starts_with("replicas are not ready yet. "));
    let lines = lines.map(|line| {
        MASKS
            .iter()
            .fold(line.to_owned(), |line, (mask, with)| mask.replace_all(&line, *with).into_owned())
    });
    let (mut logs, said): (Vec<String>, Vec<String>) =
        lines.partition(|line| line.starts_with("<pod>: "));
    // As often as the page was reloaded.
    logs.sort();
    logs.dedup();
    (said, logs)
}
