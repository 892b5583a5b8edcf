//! What nodes are asked over HTTPS: logs, commands, connections, and what is used.
//!
//! One server answers for all nodes of an agent. API servers ask it in the names of their users;
//! whoever asks is known by a certificate, or by a token that the API server knows, and may ask what
//! the cluster's roles say of `nodes/proxy` and its like.

mod access;
mod logs;
mod remote;
pub(crate) mod stats;
#[cfg(test)]
mod tests;
mod websocket;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kube::Client;
use kubewright::certificate::Current;
use kubewright::{Clock, ObjectKey};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use crate::pod::run_of;
use crate::pod::worker::{SharedLife, lock};
use crate::runtime::{Attempt, Id, Runtime};

pub(crate) use self::access::User;

use self::access::Access;

/// How long whoever connects may take to say who it is, and what it asks.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const HEADERS_MAX: Duration = Duration::from_secs(30);

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// How nodes are reached.
pub struct ServerConfig {
    pub address: SocketAddr,
    /// What clients are shown.
    pub certificate: Current,
    /// Whose certificates clients may show; without any, all clients need tokens.
    pub client_authorities: Vec<CertificateDer<'static>>,
}

/// A server that has a place to listen at.
pub struct Server {
    listener: TcpListener,
    tls: TlsAcceptor,
    address: SocketAddr,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("listen at {address}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("use the certificates of clients")]
    Authorities(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The pods of an agent, for those who ask about them.
pub(crate) type Pods = Arc<Mutex<HashMap<ObjectKey, SharedLife>>>;

impl Server {
    /// Takes a place, without answering yet.
    ///
    /// # Errors
    /// If it is taken, or the authorities are none.
    pub async fn bind(config: ServerConfig) -> Result<Self, ServeError> {
        let tls = tls(config.certificate, config.client_authorities)?;
        let bind = |source| ServeError::Bind { address: config.address, source };
        let listener = TcpListener::bind(config.address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Server { listener, tls, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown`; what is under way then is cut off.
    pub(crate) async fn run(self, answers: impl Answers, shutdown: CancellationToken) {
        info!(address = %self.address, "serving");
        let (tasks, answers) = (TaskTracker::new(), Arc::new(answers));
        while let Some(accepted) = shutdown.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((stream, _)) => {
                    let (tls, answers) = (self.tls.clone(), Arc::clone(&answers));
                    let (stop, inner) = (shutdown.clone(), tasks.clone());
                    tasks.spawn(async move {
                        let served = connection(stream, tls, answers, inner, stop.clone());
                        if let Some(Err(error)) = stop.run_until_cancelled(served).await {
                            debug!(%error, "a connection ended badly");
                        }
                    });
                }
                Err(error) => {
                    warn!(%error, "connection not accepted");
                    // Most likely there are no more file descriptors: wait until some are free.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        tasks.close();
        tasks.wait().await;
    }
}

fn tls(
    certificate: Current,
    authorities: Vec<CertificateDer<'static>>,
) -> Result<TlsAcceptor, ServeError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let wrong = |error: Box<dyn std::error::Error + Send + Sync>| ServeError::Authorities(error);
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.into()))?;
    let builder = match authorities.is_empty() {
        true => builder.with_no_client_auth(),
        false => {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority).map_err(|error| wrong(error.into()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| wrong(error.into()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    Ok(TlsAcceptor::from(Arc::new(builder.with_cert_resolver(Arc::new(certificate)))))
}

/// What answers questions.
pub(crate) trait Answers: Send + Sync + 'static {
    /// `user` is whom a certificate names that the authorities vouch for.
    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
        user: Option<&'a User>,
        upgrades: Upgrades,
    ) -> BoxFuture<'a, Response<Body>>;
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    answers: Arc<impl Answers>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await??;
    let certificates = stream.get_ref().1.peer_certificates();
    let user = certificates.and_then(|certificates| access::user(certificates.first()?));
    let user = Arc::new(user);
    let service = service_fn(move |request| {
        let (answers, user) = (Arc::clone(&answers), Arc::clone(&user));
        let upgrades = Upgrades { tasks: tasks.clone(), shutdown: shutdown.clone() };
        async move {
            Ok::<_, Infallible>(answers.answer(request, user.as_ref().as_ref(), upgrades).await)
        }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await?;
    Ok(())
}

/// Where what becomes of a connection goes on.
pub(crate) struct Upgrades {
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Upgrades {
    fn spawn(&self, going_on: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        self.tasks.spawn(async move {
            shutdown.run_until_cancelled(going_on).await;
        });
    }
}

/// What answers are made of.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) pods: Pods,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// The first, for questions that are about no pod.
    pub(crate) node: String,
}

/// A question that is not answered as it was asked.
#[derive(Debug)]
struct Refusal(StatusCode, String);

impl Answers for State {
    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
        user: Option<&'a User>,
        upgrades: Upgrades,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let answered = self.try_answer(request, user, upgrades).await;
            answered.unwrap_or_else(|Refusal(status, why)| text(status, why))
        })
    }
}

impl State {
    async fn try_answer(
        &self,
        request: Request<Incoming>,
        user: Option<&User>,
        upgrades: Upgrades,
    ) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path().to_owned();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let node = self.node_of(&parts);
        Access { client: &self.client, node: &node }.permit(&request, user).await?;
        let is_asked = matches!(*request.method(), Method::GET | Method::HEAD);
        match parts[..] {
            ["healthz", ..] if is_asked => Ok(text(StatusCode::OK, "ok")),
            ["pods"] if is_asked => Ok(self.all_pods()),
            ["stats", "summary"] if is_asked => Ok(stats::summary(self, &node).await),
            ["metrics", "resource"] if is_asked => Ok(stats::resource(self).await),
            ["metrics"] if is_asked => Ok(stats::resource(self).await),
            ["containerLogs", namespace, pod, container] if is_asked => {
                let query = request.uri().query().unwrap_or_default();
                self.logs(namespace, pod, container, query).await
            }
            [action @ ("exec" | "attach"), namespace, pod, container]
            | [action @ ("exec" | "attach"), namespace, pod, _, container] => {
                let id = self.running(namespace, pod, container)?;
                let is_exec = action == "exec";
                remote::command(Arc::clone(&self.runtime), request, id, is_exec, &upgrades)
            }
            ["portForward", namespace, pod] | ["portForward", namespace, pod, _] => {
                let life = self.life(namespace, pod)?;
                let pod = Arc::clone(&lock(&life).pod);
                remote::forward(Arc::clone(&self.runtime), request, pod, &upgrades)
            }
            _ => Err(Refusal(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())),
        }
    }

    /// The node that a question is about.
    fn node_of(&self, parts: &[&str]) -> String {
        let pod = match parts {
            [_, namespace, pod, ..] => self.life(namespace, pod).ok(),
            _ => None,
        };
        let node = pod.and_then(|life| lock(&life).spec().node_name.clone());
        node.unwrap_or_else(|| self.node.clone())
    }

    fn life(&self, namespace: &str, pod: &str) -> Result<SharedLife, Refusal> {
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let life = pods.get(&ObjectKey::new(Some(namespace), pod)).cloned();
        life.ok_or_else(|| {
            Refusal(StatusCode::NOT_FOUND, format!("pod \"{namespace}/{pod}\" not found\n"))
        })
    }

    pub(crate) fn lives(&self) -> Vec<SharedLife> {
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        pods.values().cloned().collect()
    }

    fn running(&self, namespace: &str, pod: &str, container: &str) -> Result<Id, Refusal> {
        let life = self.life(namespace, pod)?;
        let life = lock(&life);
        let running = life.member(container).and_then(|member| member.up());
        running.map(|running| running.started.id.clone()).ok_or_else(|| {
            Refusal(StatusCode::NOT_FOUND, format!("container not found (\"{container}\")\n"))
        })
    }

    async fn logs(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        query: &str,
    ) -> Result<Response<Body>, Refusal> {
        let refuse = |why: String| Refusal(StatusCode::BAD_REQUEST, why);
        let options = logs::Options::parse(query, self.clock.now()).map_err(refuse)?;
        let attempt = {
            let life = self.life(namespace, pod)?;
            let life = lock(&life);
            let member = life.member(container).ok_or_else(|| {
                let why = format!("container {container:?} in pod {pod:?} is not available\n");
                Refusal(StatusCode::NOT_FOUND, why)
            })?;
            let number = run_of(&life, member, options.previous);
            let number = number.map_err(|why| refuse(format!("{why}\n")))?;
            let uid = life.pod.metadata.uid.clone().unwrap_or_default();
            Attempt { pod: uid, container: container.to_owned(), number }
        };
        let failed = |error: crate::runtime::RuntimeError| {
            Refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
        };
        let mut skipped = 0;
        if let Some(tail) = options.tail {
            let mut counting = logs::Selection::new(options.clone());
            let mut log = self.runtime.logs(&attempt, false).await.map_err(failed)?;
            while let Some(Ok(bytes)) = log.next().await {
                counting.select(&bytes);
            }
            skipped = counting.lines().saturating_sub(tail);
        }
        let log = self.runtime.logs(&attempt, options.follow).await.map_err(failed)?;
        let log = logs::stream(log, logs::Selection::new(options).skipping(skipped));
        let frames = log.map_ok(|bytes| Frame::data(Bytes::from(bytes)));
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
        Ok(response)
    }

    /// The pods that this agent knows.
    fn all_pods(&self) -> Response<Body> {
        let pods: Vec<_> = self.lives().iter().map(|life| Arc::clone(&lock(life).pod)).collect();
        let items: Vec<_> = pods.iter().map(AsRef::as_ref).collect();
        json(&serde_json::json!({
            "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items
        }))
    }
}

pub(crate) fn json(value: &serde_json::Value) -> Response<Body> {
    let mut response = text(StatusCode::OK, value.to_string());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
