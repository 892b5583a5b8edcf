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
    use std::net::TcpListener;
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, ObjectMeta, PostParams};
    use kubewright::operator::{Host, Surrounding};
    use kubewright::serve::Bind;
    use kubewright::settings::Settings;
    use kubewright::webhook::{Change, Review, Webhook};
    use kubewright::{Action, Context, Error, Operator, Reconciler};
    use kubewright_apiserver::user::{MASTERS, User};
    use kubewright_cluster::{Clock, Cluster, Config, Names, Storage, Terms};
    use serde_json::json;
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// Fails for all that is called `bad`.
    struct Reader;

    impl Reconciler<ConfigMap> for Reader {
        async fn reconcile(&self, map: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
            match map.metadata.name.as_deref() {
                Some("bad") => Err(Error::retry("no paper")),
                _ => Ok(Action::Done),
            }
        }
    }

    /// What an operator of the library says is what is read here: a name that one of the two has
    /// otherwise was nothing to the other, and nobody noticed.
    #[tokio::test]
    async fn what_an_operator_of_the_library_says_is_understood() {
        let config = Config {
            storage: Storage::Memory,
            listen: None,
            clock: Clock::started_now(),
            controllers: Names::all(),
            nodes: None,
            audit: None,
            terms: Terms::default(),
        };
        let cluster = Cluster::start(config).await.expect("a cluster");
        let admin = cluster.server().as_user(User::new("admin", [MASTERS.to_owned()]));
        let client = kube::Client::new(admin, "default");
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let bad = ObjectMeta { name: Some("bad".to_owned()), ..ObjectMeta::default() };
        let bad = ConfigMap { metadata: bad, ..ConfigMap::default() };
        maps.create(&PostParams::default(), &bad).await.expect("created");

        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = free.expect("a port");
        let mut settings = Settings { probes: Bind::Nowhere, ..Settings::default() };
        settings.metrics.bind = Bind::At(address);
        settings.metrics.secure = false;
        settings.webhooks.bind = Some(Bind::At(([127, 0, 0, 1], 0).into()));
        let host = Host {
            client,
            clock: kubewright::Clock::system(),
            settings,
            namespace: "default".to_owned(),
            surrounding: Surrounding::Beside,
            registry: Default::default(),
        };
        let judge = |_: Change<'_, ConfigMap>, _: &Review| Ok(Vec::new());
        let operator = Operator::new("reader")
            .controller(kubewright::Controller::<ConfigMap, _>::new("book", Reader))
            .webhook(Webhook::validating(judge))
            .without_leader();
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        running.spawn(operator.serve(host, stop.clone()));
        let understood = async {
            loop {
                let report = Report::ask(address).await.unwrap_or_default();
                let [controller] = &report.controllers[..] else { continue };
                let [kind] = &report.kinds[..] else { continue };
                let Controller { name, running, waiting, reconciles, failures, last_failure } =
                    controller;
                let is_whole = name == "book"
                    && *running
                    && waiting.is_some()
                    && reconciles > failures
                    && *failures > 0
                    && last_failure.as_ref().is_some_and(|why| why.contains("no paper"))
                    && (kind.kind.as_str(), kind.state.as_str()) == ("ConfigMap", "live")
                    && kind.objects > 0
                    && report.webhooks == ["/validate--v1-configmap"];
                if is_whole {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = understood => {}
            ended = running.join_next() => panic!("the operator ended: {ended:?}"),
            () = tokio::time::sleep(Duration::from_secs(60)) => {
                panic!("not understood: {:?}", Report::ask(address).await);
            }
        }
        stop.cancel();
        running.join_next().await.expect("it ran").expect("it ended").expect("and well");
        cluster.shutdown().await;
    }

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
