//! hyper over TLS and nothing else: how fast a server on this machine can be that answers a read or
//! a list, or tells many of what it was sent.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Args;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::load;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where its certificate and key are.
    pki: PathBuf,
    port: u16,
}

/// Serves until it is killed.
pub(crate) fn serve(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    runtime.block_on(listen(arguments))
}

async fn listen(Arguments { pki, port }: Arguments) -> Result<()> {
    let certificate = CertificateDer::from_pem_file(pki.join("apiserver.crt"))?;
    let key = PrivateKeyDer::from_pem_file(pki.join("apiserver.key"))?;
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    // What Go's servers choose, and ours.
    let chosen = CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.retain(|suite| suite.suite() == chosen);
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let answers = Arc::new(Answers::new());
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("listen")?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.context("accept a connection")?;
        let (acceptor, answers) = (acceptor.clone(), Arc::clone(&answers));
        connections.spawn(async move {
            // A client that goes away is nothing to tell of.
            let _ = answer(stream, acceptor, answers).await;
        });
    }
}

async fn answer(stream: TcpStream, acceptor: TlsAcceptor, answers: Arc<Answers>) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let service = service_fn(|request: Request<Incoming>| {
        let answers = Arc::clone(&answers);
        async move { Ok::<_, Infallible>(answers.to(request).await) }
    });
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

/// The same for everybody, whatever is asked for.
struct Answers {
    object: Bytes,
    list: Bytes,
    event: Bytes,
    /// All events so far, one behind another, and how long that is.
    tape: Mutex<Vec<u8>>,
    length: watch::Sender<usize>,
}

impl Answers {
    fn new() -> Self {
        Answers {
            object: load::object_as_read(),
            list: load::list_as_read(),
            event: load::event_as_read(),
            tape: Mutex::default(),
            length: watch::Sender::new(0),
        }
    }

    async fn to(self: Arc<Self>, request: Request<Incoming>) -> Response<Answer> {
        let uri = request.uri();
        let body = match request.method() {
            &Method::POST => {
                // What is sent is read; who sends it is told when it is.
                let _ = request.into_body().collect().await;
                self.record();
                Either::Left(Full::new(self.object.clone()))
            }
            _ if uri.query().is_some_and(|query| query.contains("watch=1")) => {
                let length = self.length.subscribe();
                let follow =
                    stream::unfold((self, length, 0), |(answers, mut length, at)| async move {
                        let end = *length.wait_for(|end| *end > at).await.ok()?;
                        let frame = Frame::data(answers.played(at, end));
                        Some((Ok(frame), (answers, length, end)))
                    });
                Either::Right(StreamBody::new(follow.boxed()))
            }
            _ if uri.path() == load::LIST => Either::Left(Full::new(self.list.clone())),
            _ => Either::Left(Full::new(self.object.clone())),
        };
        Response::builder()
            .header("content-type", "application/json")
            .header("cache-control", "no-cache, private")
            .header("audit-id", "6f1d2c1e-3b7a-4f0e-9d5b-2a8c4e6f0a1b")
            .body(body)
            .expect("a response")
    }

    fn record(&self) {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        tape.extend_from_slice(&self.event);
        let length = tape.len();
        drop(tape);
        self.length.send_modify(|known| *known = length.max(*known));
    }

    fn played(&self, from: usize, to: usize) -> Bytes {
        let tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        Bytes::copy_from_slice(&tape[from..to])
    }
}

type Answer = Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;
