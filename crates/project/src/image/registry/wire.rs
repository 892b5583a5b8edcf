//! Requests to a registry: one connection each, over TLS or without.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Options, Reference};

/// How a registry is reached.
pub(super) struct Wire {
    base: String,
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("{place:?} is no address")]
    Address { place: String },
    #[error("connect to {host}")]
    Connect { host: String, source: io::Error },
    #[error("speak with {host}")]
    Speak { host: String, source: hyper::Error },
}

impl Wire {
    pub(super) fn new(to: &Reference, options: &Options) -> Self {
        let host = to.registry.split(':').next().unwrap_or_default();
        let is_local = host == "localhost" || host.starts_with("127.");
        let scheme = if options.plain_http || is_local { "http" } else { "https" };
        // What people call it, and where it is.
        let registry = match to.registry.as_str() {
            "docker.io" => "registry-1.docker.io",
            registry => registry,
        };
        Wire { base: format!("{scheme}://{registry}") }
    }

    /// The answer to a request; the place may be a path, or an address of its own.
    pub(super) async fn send(
        &self,
        method: Method,
        place: &str,
        body: Option<(Bytes, &str)>,
        authorization: Option<&str>,
    ) -> Result<Response<Bytes>, WireError> {
        let place =
            if place.starts_with('/') { format!("{}{place}", self.base) } else { place.to_owned() };
        let wrong = || WireError::Address { place: place.clone() };
        let uri: Uri = place.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?.clone();
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        let (body, kind) = body.unwrap_or((Bytes::new(), ""));
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, authority.as_str())
            .header(header::USER_AGENT, concat!("kubewright/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_LENGTH, body.len());
        if !kind.is_empty() {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        if let Some(mut value) = authorization.and_then(|it| HeaderValue::from_str(it).ok()) {
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let request = request.body(Full::new(body)).map_err(|_| wrong())?;
        let is_plain = uri.scheme_str() == Some("http");
        let host = authority.host().to_owned();
        let port = authority.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let connect = |source| WireError::Connect { host: host.clone(), source };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(connect)?;
        match is_plain {
            true => exchange(stream, request, &host).await,
            false => {
                exchange(secure(stream, &authority).await.map_err(connect)?, request, &host).await
            }
        }
    }
}

async fn secure(
    stream: TcpStream,
    authority: &Authority,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(authority.host().to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    host: &str,
) -> Result<Response<Bytes>, WireError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let speak = |source| WireError::Speak { host: host.to_owned(), source };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(speak)?;
    let asked = async {
        let answer = sender.send_request(request).await.map_err(speak)?;
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.map_err(speak)?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    // The connection is driven here, and ends with the answer.
    tokio::pin!(asked);
    tokio::pin!(connection);
    let mut is_open = true;
    loop {
        tokio::select! {
            answer = &mut asked => return answer,
            _ = &mut connection, if is_open => is_open = false,
        }
    }
}
