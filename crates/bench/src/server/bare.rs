//! hyper over TLS and nothing else: how fast a server on this machine can be that answers a read or
//! a list.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Args;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
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
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (object, list) = (load::object_as_read(), load::list_as_read());
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("listen")?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.context("accept a connection")?;
        let (acceptor, object, list) = (acceptor.clone(), object.clone(), list.clone());
        connections.spawn(async move {
            // A client that goes away is nothing to tell of.
            let _ = answer(stream, acceptor, object, list).await;
        });
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    object: Bytes,
    list: Bytes,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let service = service_fn(|request: Request<Incoming>| {
        let body = if request.uri().path() == load::LIST { &list } else { &object };
        let response = Response::builder()
            .header("content-type", "application/json")
            .header("cache-control", "no-cache, private")
            .header("audit-id", "6f1d2c1e-3b7a-4f0e-9d5b-2a8c4e6f0a1b")
            .body(Full::new(body.clone()))
            .expect("a response");
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}
