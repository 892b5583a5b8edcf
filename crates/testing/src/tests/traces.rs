//! What a trace tells: from a change, over the queue, to what a reconcile asks of the API.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, PostParams};
use kubewright::connect;
use kubewright::{Action, Clock, Context, Controller, Error, ObjectKey, Operator, Reconciler};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context as Around, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::Cluster;

/// Spans as they begin and end: a collector that knows who is whose parent.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[derive(Debug, Clone)]
struct Span {
    id: Id,
    name: &'static str,
    parent: Option<Id>,
    fields: String,
    is_over: bool,
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        *self.0 += &format!("{field}={value:?} ");
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, around: Around<'_, S>) {
        let mut fields = String::new();
        attributes.record(&mut Fields(&mut fields));
        let parent = around.span(id).and_then(|span| span.parent().map(|parent| parent.id()));
        let name = attributes.metadata().name();
        self.all().push(Span { id: id.clone(), name, parent, fields, is_over: false });
    }

    fn on_close(&self, id: Id, _: Around<'_, S>) {
        // Numbers are used again.
        if let Some(span) = self.all().iter_mut().rev().find(|span| span.id == id) {
            span.is_over = true;
        }
    }
}

impl Collector {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Span>> {
        self.0.lock().unwrap()
    }

    /// Those from the root of a trace to its last call, by name.
    fn path_to(&self, last: &Span) -> Vec<Span> {
        let all = self.all();
        let mut path = vec![last.clone()];
        while let Some(parent) = path.last().and_then(|span| span.parent.clone()) {
            let parent = all.iter().find(|span| span.id == parent && !span.is_over);
            path.push(parent.expect("a parent outlives its children").clone());
        }
        path.reverse();
        path
    }
}

/// Asks for something while it reconciles, and notes in which spans it does.
struct Curious {
    collector: Collector,
    paths: Arc<Mutex<Vec<Vec<Span>>>>,
}

impl Reconciler<ConfigMap> for Curious {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let namespace = object.namespace().unwrap_or_default();
        let maps: Api<ConfigMap> = Api::namespaced(ctx.client().clone(), &namespace);
        let before = self.collector.all().len();
        let name = object.name_any();
        let mut asking = std::pin::pin!(maps.get(&name));
        // The call has begun when it has to wait for its answer.
        let path = std::future::poll_fn(|task| {
            use std::task::Poll;
            match asking.as_mut().poll(task) {
                Poll::Ready(answer) => Poll::Ready(answer),
                Poll::Pending => {
                    let calls = self.collector.all()[before..].to_vec();
                    if let Some(call) = calls.iter().find(|span| span.name == "HTTP") {
                        self.paths.lock().unwrap().push(self.collector.path_to(call));
                    }
                    Poll::Pending
                }
            }
        });
        path.await?;
        Ok(Action::Done)
    }
}

#[tokio::test]
async fn a_call_of_the_api_is_in_the_trace_of_the_change_that_led_to_it() {
    let collector = Collector::default();
    let traced = Registry::default().with(collector.clone().with_filter(LevelFilter::DEBUG));
    let _guard = tracing::subscriber::set_default(traced);
    let cluster = Cluster::start().await;
    // A client as operators have it, over a socket.
    let kubeconfig = cluster.kubeconfig().await;
    let found = connect::find(Some(&kubeconfig), |_| None).await.expect("a cluster");
    let client = found.client(&connect::Options::default()).expect("a client");

    let paths: Arc<Mutex<Vec<Vec<Span>>>> = Arc::default();
    let curious = Curious { collector: collector.clone(), paths: Arc::clone(&paths) };
    let controller = Controller::new("curious", curious)
        .labelled("app=test")
        .watches::<Secret>(|_| vec![ObjectKey::new(Some("default"), "it")]);
    let operator = Operator::new("curious").controller(controller);
    let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let stop = shutdown.clone();
    tasks.spawn(async move { operator.run(client, Clock::system(), stop).await });

    let map = json!({"metadata": {"name": "it", "labels": {"app": "test"}}});
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = serde_json::from_value(map).expect("an object");
    maps.create(&PostParams::default(), &map).await.expect("created");
    let seen = async |what: &str| -> Vec<Span> {
        for _ in 0..6_000 {
            let paths = paths.lock().unwrap().clone();
            if let Some(path) = paths.into_iter().find(|path| path[0].fields.contains(what)) {
                return path;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no trace of {what:?}: {:#?}", paths.lock().unwrap());
    };
    let path = seen("watch ConfigMap").await;
    let names: Vec<&str> = path.iter().map(|span| span.name).collect();
    assert_eq!(names, ["event", "reconcile", "HTTP"], "{path:#?}");
    assert!(path[0].fields.contains("object=\"default/it\""), "{path:#?}");
    assert!(path[0].fields.contains("revision=\""), "{path:#?}");
    assert!(path[1].fields.contains("controller=\"curious\""), "{path:#?}");
    // The wait was over when the work began.
    let waits = |event: &Span| -> Vec<Span> {
        let all = collector.all();
        let is_of = |span: &&Span| span.name == "queue" && span.parent.as_ref() == Some(&event.id);
        all.iter().filter(is_of).cloned().collect()
    };
    let waited = waits(&path[0]);
    assert!(!waited.is_empty() && waited.iter().all(|queue| queue.is_over), "{waited:#?}");

    // What happens to another object is told as what happened to that one.
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let secret = serde_json::from_value(json!({"metadata": {"name": "other"}})).expect("one");
    secrets.create(&PostParams::default(), &secret).await.expect("created");
    let path = seen("object=\"default/other\"").await;
    assert!(path[0].fields.contains("source=\"watch Secret\""), "{path:#?}");
    assert!(path[1].fields.contains("key=default/it"), "{path:#?}");
    shutdown.cancel();
    while tasks.join_next().await.is_some() {}
    cluster.shutdown().await;
}
