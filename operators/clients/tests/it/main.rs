//! Every example, on a cluster, ours in virtual time, or one that is there already.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use clients::pod::{self, RelabelError};
use clients::watch::{self, Seen};
use clients::{custom, find, shared};
use futures::future::BoxFuture;
use http::header::ACCEPT;
use http::request::Parts;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::client::Body;
use kube::{Client, ResourceExt as _};
use kubewright::Cache;
use kubewright::connect::Transcode;
use kubewright::informer::Change;
use kubewright_testing::{Cluster, on_cluster, yaml};
use tokio::sync::mpsc;
use tower_layer::Layer as _;
use tower_service::Service;

fn pods(cluster: &Cluster) -> Api<Pod> {
    Api::default_namespaced(cluster.client())
}

/// Notes requests that are so, and lets them pass.
fn note(cluster: &Cluster, which: impl Fn(&Parts) -> Option<String> + Send + 'static) -> Noted {
    let noted = Noted::default();
    let notes = noted.clone();
    cluster.faults().answer(500, 1, move |request| {
        notes.lock().expect("nobody panics here").extend(which(request));
        false
    });
    noted
}

/// A client as what clients are made of.
#[derive(Clone)]
struct Server(Client);

impl Service<Request<Body>> for Server {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}

type Noted = Arc<Mutex<Vec<String>>>;

fn is_watch(request: &Parts) -> bool {
    request.uri.query().is_some_and(|query| query.contains("watch="))
}

#[test]
fn a_pod_lives_and_is_relabelled() {
    on_cluster(async |cluster| {
        let pods = pods(cluster);
        let made = pod::create(&pods, "foo").await.expect("created");
        assert_eq!(made.labels()["k"], "v");
        let changed = pod::relabel(&pods, "foo", ("patch", "v1")).await.expect("relabelled");
        assert_eq!(changed.labels().len(), 1);
        assert_eq!(changed.labels()["patch"], "v1");
        pod::delete(&pods, "foo").await.expect("deleted");
        let is_ending =
            |pod: Option<&Pod>| pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
        cluster.eventually(Some(cluster.namespace()), "foo", is_ending).await;
        pod::delete(&pods, "never-there").await.expect("as good as deleted");
    });
}

#[test]
fn a_conflict_is_tried_again_and_four_are_too_many() {
    on_cluster(async |cluster| {
        let pods = pods(cluster);
        pod::create(&pods, "foo").await.expect("created");
        let is_put = |request: &Parts| request.method == Method::PUT;
        let before = tokio::time::Instant::now();
        cluster.faults().answer(409, 3, is_put);
        pod::relabel(&pods, "foo", ("patch", "v1")).await.expect("relabelled");
        assert_eq!(before.elapsed().as_secs() / 3, 3);
        cluster.faults().answer(409, 4, is_put);
        let refused = pod::relabel(&pods, "foo", ("patch", "v2")).await;
        assert!(matches!(refused, Err(RelabelError::Contended { .. })), "{refused:?}");
        assert_eq!(pods.get("foo").await.expect("a pod").labels()["patch"], "v1");
    });
}

#[test]
fn a_watch_goes_on_whatever_ends_it() {
    on_cluster(async |cluster| {
        let pods = pods(cluster);
        pod::create(&pods, "before").await.expect("created");
        let (tell, mut told) = mpsc::channel(64);
        let see = |seen: Seen| match tell.try_send(seen) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        let doing = async {
            // What becomes of pods, and not what the server tells of itself meanwhile.
            let mut next = async || loop {
                match told.recv().await.expect("it is watched") {
                    Seen::Bookmark => {}
                    seen => return seen,
                }
            };
            let name = || "foo".to_owned();
            assert_eq!(next().await, Seen::Added("before".to_owned()));
            pod::create(&pods, "foo").await.expect("created");
            assert_eq!(next().await, Seen::Added(name()));
            pod::relabel(&pods, "foo", ("patch", "v1")).await.expect("relabelled");
            assert_eq!(next().await, Seen::Modified(name()));

            // What happens while nobody watches is not missed.
            cluster.faults().cut_watches();
            pod::relabel(&pods, "foo", ("patch", "v2")).await.expect("relabelled");
            assert_eq!(next().await, Seen::Closed);
            assert_eq!(next().await, Seen::Modified(name()));

            // A server that has forgotten is asked for all of it.
            cluster.faults().answer(410, 1, is_watch);
            cluster.faults().cut_watches();
            assert_eq!(next().await, Seen::Closed);
            assert_eq!(next().await, Seen::Expired);
            let mut again = [next().await, next().await];
            again.sort_by_key(|seen| format!("{seen:?}"));
            assert_eq!(again, [Seen::Added("before".to_owned()), Seen::Added(name())]);

            pods.delete("foo", &kube::api::DeleteParams::default().grace_period(0))
                .await
                .expect("deleted");
            while next().await != Seen::Deleted(name()) {}
        };
        tokio::select! {
            () = doing => {}
            ended = watch::follow(&pods, see) => panic!("the watch ended: {ended:?}"),
        }
    });
}

#[test]
fn a_watch_is_told_how_far_it_is_and_can_have_enough() {
    on_cluster(async |cluster| {
        if !cluster.is_virtual() {
            return;
        }
        let see = |seen: Seen| match seen {
            Seen::Bookmark => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        watch::follow(&pods(cluster), see).await.expect("followed");
    });
}

#[test]
fn two_consumers_share_one_connection() {
    on_cluster(async |cluster| {
        let watches = note(cluster, |request| {
            let is_it = is_watch(request) && request.uri.path().ends_with("/pods");
            is_it.then(|| request.uri.to_string())
        });
        pod::create(&pods(cluster), "before").await.expect("created");
        let (cache, run) = Cache::new(cluster.client());
        let following = async {
            let (tell, mut told) = mpsc::channel(64);
            let consumer = |name: &'static str| {
                let tell = tell.clone();
                move |change: &Change<Pod>| {
                    let pod = match change {
                        Change::Applied { object, .. } | Change::Deleted(object) => object,
                    };
                    let _ = tell.try_send(format!("{name} {}", pod.name_any()));
                }
            };
            let informer = shared::pods(&cache, cluster.namespace());
            let first = shared::consume(&informer, consumer("first")).await.expect("synced");
            let other = shared::pods(&cache, cluster.namespace());
            let second = shared::consume(&other, consumer("second")).await.expect("synced");
            pod::create(&pods(cluster), "foo").await.expect("created");
            let mut seen = Vec::new();
            while !["first foo", "second foo"].iter().all(|it| seen.contains(&(*it).to_owned())) {
                seen.push(told.recv().await.expect("a change"));
            }
            assert!(seen.contains(&"first before".to_owned()), "{seen:?}");
            assert!(seen.contains(&"second before".to_owned()), "{seen:?}");
            assert_eq!(watches.lock().expect("nobody panics here").len(), 1);

            // And all of it again, as often as is wanted.
            drop((first, second));
            let (tell, mut told) = mpsc::channel(64);
            let see = move |pod: &Arc<Pod>| {
                let _ = tell.try_send(pod.name_any());
            };
            let every = Duration::from_secs(1);
            let twice = async {
                for name in ["before", "foo", "before", "foo"] {
                    assert_eq!(told.recv().await.as_deref(), Some(name));
                }
            };
            tokio::select! {
                () = twice => {}
                () = shared::resync(&informer, every, see) => {}
            }
        };
        tokio::select! {
            () = following => {}
            () = run => panic!("the cache ended"),
        }
    });
}

#[test]
fn a_custom_resource_is_read_with_and_without_its_type() {
    on_cluster(async |cluster| {
        // Its definition comes with its operator.
        cluster.run(at::operator()).await.stop().await;
        let mut sample = yaml(include_str!("../../../at/samples/at.yaml")).remove(0);
        sample["metadata"]["namespace"] = cluster.namespace().into();
        cluster.apply(&sample).await;
        let (client, namespace) = (cluster.client(), cluster.namespace());
        let object = custom::get_dynamic(&client, namespace, "example-at").await.expect("it");
        assert_eq!(object.data["spec"]["command"], "echo YAY");
        let at = custom::get_typed(&client, namespace, "example-at").await.expect("it");
        assert_eq!(at.spec.command.as_deref(), Some("echo YAY"));
        let missing = custom::get_typed(&client, namespace, "nobody").await;
        assert!(matches!(missing, Err(kube::Error::Api(status)) if status.code == 404));
    });
}

#[test]
fn built_in_kinds_come_in_protobuf_and_custom_ones_in_json() {
    on_cluster(async |cluster| {
        cluster.run(at::operator()).await.stop().await;
        let accepted = note(cluster, |request| {
            let accepted = request.headers.get(ACCEPT)?.to_str().ok()?;
            (request.method == Method::GET).then(|| accepted.to_owned())
        });
        let client = Transcode::new(true).layer(Server(cluster.client()));
        let client = Client::new(client, cluster.namespace());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        pod::create(&pods, "foo").await.expect("created");
        let pod = pods.get("foo").await.expect("a pod");
        assert_eq!(pod.labels()["k"], "v");
        let both = "application/vnd.kubernetes.protobuf, application/json";
        assert!(accepted.lock().expect("nobody panics here").iter().any(|it| it == both));
        // The server has no protobuf for it, and both can live with that.
        let ats: Api<at::At> = Api::default_namespaced(client);
        assert!(
            ats.list(&kube::api::ListParams::default()).await.expect("a list").items.is_empty()
        );
    });
}

#[tokio::test]
async fn without_a_cluster_it_is_said_where_one_was_looked_for() {
    let Err(error) = find::client(None, |_| None).await else { panic!("there is a cluster") };
    let told = "the pod's service account: KUBERNETES_SERVICE_HOST is not set";
    assert!(error.to_string().contains(told), "{error}");
}

/// What is around a process in a pod is enough to look for its service account, which is not there,
/// and nowhere else.
#[tokio::test]
async fn in_a_pod_the_service_account_is_looked_for() {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        eprintln!("skipped: this is a pod");
        return;
    }
    let environment = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some("10.0.0.1".into()),
        "KUBERNETES_SERVICE_PORT" => Some("443".into()),
        _ => None,
    };
    let Err(error) = find::client(None, environment).await else { panic!("this is no pod") };
    // `kube` asks the process itself, which is in no pod.
    let told = "find a cluster: the pod's service account: failed to read an incluster environment \
                variable: environment variable not found";
    assert_eq!(error.to_string(), told);
}

/// What a page of the book shows of the program.
const PAGE: &str = include_str!("../../../../docs/book/operators/clients.md");

#[tokio::test]
async fn the_page_shows_what_the_program_prints() {
    let cluster = Cluster::from_env().await;
    // Its definition comes with its operator.
    cluster.run(at::operator()).await.stop().await;
    let mut sample = yaml(at::SAMPLE).remove(0);
    sample["metadata"]["namespace"] = cluster.namespace().into();
    cluster.apply(&sample).await;
    let mut shown = String::new();
    for words in ["pod", "typed --namespace cnat"] {
        let arguments = words.replace("cnat", cluster.namespace());
        let ran = tokio::process::Command::new(env!("CARGO_BIN_EXE_clients"))
            .args(arguments.split(' '))
            .env("KUBECONFIG", cluster.kubeconfig().await)
            .output();
        let ran = ran.await.expect("it runs");
        assert!(ran.status.success(), "{ran:?}");
        shown += &format!("$ clients {words}\n{}", String::from_utf8_lossy(&ran.stdout));
    }
    assert!(PAGE.contains(&format!("```text\n{shown}```\n")), "{shown}");
    cluster.shutdown().await;
}
