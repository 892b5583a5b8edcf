//! Serves Ingresses: passes each request on to a pod that is to answer it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::ACCEPT_PAUSE;
use super::table::Table;
use super::tcp::connect;

type Body = BoxBody<Bytes, hyper::Error>;

pub(super) async fn run(
    listener: TcpListener,
    table: watch::Receiver<Arc<Table>>,
    shutdown: CancellationToken,
) {
    let router = Arc::new(Router {
        table,
        turn: AtomicUsize::new(0),
        tasks: TaskTracker::new(),
        shutdown: shutdown.clone(),
    });
    let mut connections = JoinSet::new();
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                connections.spawn(Arc::clone(&router).serve(stream, peer));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
    connections.shutdown().await;
    router.tasks.close();
    router.tasks.wait().await;
}

struct Router {
    table: watch::Receiver<Arc<Table>>,
    turn: AtomicUsize,
    /// Connections to pods, which end when their answers have; and what has become of others.
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Router {
    async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let service = service_fn(|request| async {
            let answered = self.pass_on(request, peer).await;
            let answered = answered.unwrap_or_else(|error| {
                debug!(%error, "a request was not passed on");
                text(StatusCode::BAD_GATEWAY, "bad gateway\n")
            });
            Ok::<_, Infallible>(answered)
        });
        let connection = hyper::server::conn::http1::Builder::new();
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.with_upgrades().await {
            debug!(%error, "a connection ended badly");
        }
    }

    async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
    ) -> io::Result<Response<Body>> {
        let table = Arc::clone(&self.table.borrow());
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.unwrap_or_default().to_owned();
        let Some(route) = table.route(&host, request.uri().path()) else {
            return Ok(text(StatusCode::NOT_FOUND, "default backend - 404\n"));
        };
        if route.backends.is_empty() {
            return Ok(text(StatusCode::SERVICE_UNAVAILABLE, "no pod is ready\n"));
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let stream = connect(&route.backends, turn).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        self.tasks.spawn(async move {
            // Whoever waits for the answer hears of what goes wrong.
            let _ = connection.with_upgrades().await;
        });
        let client = hyper::upgrade::on(&mut request);
        let headers = request.headers_mut();
        // What is said about a connection holds for one only, unless it is to become another: then
        // the pod must say so too.
        headers.remove(header::CONNECTION);
        if headers.contains_key(header::UPGRADE) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        let text = |text: &str| HeaderValue::from_str(text).map_err(io::Error::other);
        headers.insert("x-forwarded-for", text(&peer.ip().to_string())?);
        headers.insert("x-forwarded-host", text(&host)?);
        headers.insert("x-forwarded-proto", HeaderValue::from_static("http"));
        let mut response = sender.send_request(request).await.map_err(io::Error::other)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let (pod, shutdown) = (hyper::upgrade::on(&mut response), self.shutdown.clone());
            self.tasks.spawn(async move {
                shutdown.run_until_cancelled(join(client, pod)).await;
            });
        }
        Ok(response.map(BodyExt::boxed))
    }
}

/// Passes on whatever is said on a connection that is not HTTP any more.
async fn join(client: OnUpgrade, pod: OnUpgrade) {
    let (Ok(client), Ok(pod)) = (client.await, pod.await) else { return };
    let (mut client, mut pod) = (TokioIo::new(client), TokioIo::new(pod));
    // Either side may end it, as it likes.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut pod).await;
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    *response.status_mut() = status;
    response
}
