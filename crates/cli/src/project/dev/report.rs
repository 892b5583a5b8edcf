//! What an operator says of itself on its page `/debug/controllers`, in a few lines.

use std::net::SocketAddr;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How an operator is doing. What an older library does not say is left out.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    controllers: Vec<Controller>,
    kinds: Vec<Kind>,
    webhooks: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Controller {
    name: String,
    running: bool,
    waiting: Option<usize>,
    reconciles: u64,
    failures: u64,
    last_failure: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
    state: String,
    objects: u64,
}

impl Report {
    /// Asks an operator; none if it does not answer.
    pub(super) async fn ask(address: SocketAddr) -> Option<Self> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = "GET /debug/controllers HTTP/1.1\r\nHost: localhost\r\n\
                       Accept: application/json\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (_, document) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(document).ok()
    }

    /// A line for each controller and for its last failure, one for kinds, and one for webhooks.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for it in &self.controllers {
            let waiting = match it.waiting {
                Some(waiting) if it.running => format!("{waiting} waiting"),
                _ => "not running".to_owned(),
            };
            let Controller { name, reconciles, failures, .. } = it;
            lines.push(format!("{name}: {reconciles} reconciles, {failures} failed, {waiting}"));
            lines.extend(it.last_failure.iter().map(|why| format!("  failed last: {why}")));
        }
        let kind = |it: &Kind| match it.state.as_str() {
            "live" => format!("{} ({})", it.kind, it.objects),
            state => format!("{} {state}", it.kind),
        };
        let kinds: Vec<String> = self.kinds.iter().map(kind).collect();
        for (what, which) in [("kinds", &kinds), ("webhooks", &self.webhooks)] {
            if !which.is_empty() {
                lines.push(format!("{what}: {}", which.join(", ")));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operator_is_told_of_in_a_few_lines() {
        let page = json!({
            "controllers": [
                {
                    "name": "book", "running": true, "waiting": 2, "reconciles": 12, "failures": 1,
                    "lastFailure": "default/first: Error: no paper", "recent": [],
                },
                {"name": "shelf", "running": false, "waiting": null},
            ],
            "kinds": [
                {"kind": "Book.library.my.domain", "state": "live", "objects": 3, "bytes": 9},
                {"kind": "Shelf.library.my.domain", "state": "is not served", "objects": 0},
            ],
            "webhooks": ["/validate-library-my-domain-v1-book"],
        });
        let report: Report = serde_json::from_value(page).expect("a report");
        let expected = [
            "book: 12 reconciles, 1 failed, 2 waiting",
            "  failed last: default/first: Error: no paper",
            "shelf: 0 reconciles, 0 failed, not running",
            "kinds: Book.library.my.domain (3), Shelf.library.my.domain is not served",
            "webhooks: /validate-library-my-domain-v1-book",
        ];
        assert_eq!(report.lines(), expected);
        assert!(Report::default().lines().is_empty());
    }
}
