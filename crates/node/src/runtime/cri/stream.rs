//! Commands in containers and connections to pods, through the server that a runtime has for them:
//! it is reached at addresses that the runtime gives out, and speaks SPDY.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::runtime::{Connection, RuntimeError, Size, Streams};
use crate::spdy;

const COMMAND: &str = "v4.channel.k8s.io";
const FORWARD: &str = "portforward.k8s.io";
/// How much is read of a refusal, or of why a connection failed.
const REFUSAL_BYTES_MAX: usize = 4096;

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Connects streams with a command at this address until it ends, and gives its exit code.
pub(super) async fn command(url: &str, streams: Streams) -> Result<i32, RuntimeError> {
    let Streams { stdin, stdout, stderr, terminal } = streams;
    let wanted = [
        ("error", true),
        ("stdin", stdin.is_some()),
        ("stdout", stdout.is_some()),
        ("stderr", stderr.is_some()),
        ("resize", terminal.is_some()),
    ];
    let names: Vec<&str> =
        wanted.iter().filter(|(_, is_wanted)| *is_wanted).map(|it| it.0).collect();
    let headers = names.iter().map(|name| HashMap::from([text("streamtype", name)])).collect();
    let connection = upgrade(url, COMMAND).await?;
    let (opened, carrying) = spdy::open(connection, headers);
    let mut opened: HashMap<&str, DuplexStream> = names.into_iter().zip(opened).collect();
    let (stdin_to, resize_to) = (opened.remove("stdin"), opened.remove("resize"));
    let (stdout_from, stderr_from) = (opened.remove("stdout"), opened.remove("stderr"));
    let mut errors = opened.remove("error").expect("it is always opened");
    let feeding = async {
        tokio::join!(feed(stdin, stdin_to), resize(terminal, resize_to));
        std::future::pending::<()>().await
    };
    let listening = async {
        let mut outcome = Vec::new();
        let (read, (), ()) = tokio::join!(
            errors.read_to_end(&mut outcome),
            drain(stdout_from, stdout),
            drain(stderr_from, stderr)
        );
        read.map(|_| outcome)
    };
    let mut carrying = std::pin::pin!(carrying);
    let mut listening = std::pin::pin!(listening);
    let outcome = tokio::select! {
        outcome = &mut listening => outcome,
        () = feeding => unreachable!("it never ends"),
        // What has arrived by then is still to be heard.
        _ = &mut carrying => listening.await,
    };
    exit_code(&outcome.map_err(failed)?)
}

async fn feed(from: Option<Input>, to: Option<DuplexStream>) {
    if let (Some(mut from), Some(mut to)) = (from, to) {
        // Who does not read any more has had enough.
        let _ = tokio::io::copy(&mut from, &mut to).await;
        let _ = to.shutdown().await;
        // It is whole until the command ends: what it says there is nothing.
        std::future::pending::<()>().await;
    }
}

async fn resize(sizes: Option<mpsc::Receiver<Size>>, to: Option<DuplexStream>) {
    let (Some(mut sizes), Some(mut to)) = (sizes, to) else { return };
    while let Some(Size { width, height }) = sizes.recv().await {
        let size = serde_json::json!({"Width": width, "Height": height});
        if to.write_all(format!("{size}\n").as_bytes()).await.is_err() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

async fn drain(from: Option<DuplexStream>, to: Option<Output>) {
    let (Some(mut from), Some(mut to)) = (from, to) else { return };
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(n_bytes @ 1..) = from.read(&mut bytes).await {
        if to.write_all(&bytes[..n_bytes]).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

/// How a command ended, as it is told in the end.
#[derive(Deserialize)]
struct Outcome {
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

fn exit_code(told: &[u8]) -> Result<i32, RuntimeError> {
    let outcome: Outcome = serde_json::from_slice(told)
        .map_err(|_| RuntimeError::Failed("the command was cut off".to_owned()))?;
    if outcome.status == "Success" {
        return Ok(0);
    }
    let causes = outcome.details.map(|details| details.causes).unwrap_or_default();
    let code = causes.iter().find(|cause| cause.reason == "ExitCode");
    match code.and_then(|cause| cause.message.parse().ok()) {
        Some(code) if outcome.reason == "NonZeroExitCode" => Ok(code),
        _ => Err(RuntimeError::Failed(outcome.message)),
    }
}

/// A connection to a port of a pod at this address.
pub(super) async fn forward(url: &str, port: u16) -> Result<Box<dyn Connection>, RuntimeError> {
    let connection = upgrade(url, FORWARD).await?;
    let headers = |kind: &str| {
        HashMap::from([
            text("streamtype", kind),
            text("port", &port.to_string()),
            text("requestid", "0"),
        ])
    };
    let (streams, carrying) = spdy::open(connection, vec![headers("error"), headers("data")]);
    let [error, data]: [DuplexStream; 2] =
        streams.try_into().map_err(|_| RuntimeError::Failed("two streams".to_owned()))?;
    let mut carrier = JoinSet::new();
    carrier.spawn(async move {
        // The streams end with it, which is all there is to know.
        let _ = carrying.await;
    });
    Ok(Box::new(Forwarded { data, error, why: Vec::new(), _carrier: carrier }))
}

/// A connection that may fail after it was made.
struct Forwarded {
    data: DuplexStream,
    /// Says in the end why it failed, if it did.
    error: DuplexStream,
    why: Vec<u8>,
    _carrier: JoinSet<()>,
}

impl AsyncRead for Forwarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.data).poll_read(context, buffer))?;
        if buffer.filled().len() > before || buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut bytes = [0; 512];
            let mut part = ReadBuf::new(&mut bytes);
            std::task::ready!(Pin::new(&mut self.error).poll_read(context, &mut part))?;
            if part.filled().is_empty() {
                break;
            }
            if self.why.len() < REFUSAL_BYTES_MAX {
                self.why.extend_from_slice(part.filled());
            }
        }
        match String::from_utf8_lossy(&std::mem::take(&mut self.why)) {
            why if why.is_empty() => Poll::Ready(Ok(())),
            why => Poll::Ready(Err(io::Error::other(why.into_owned()))),
        }
    }
}

impl AsyncWrite for Forwarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.data).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.data).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.data).poll_shutdown(context)
    }
}

/// A connection to a runtime's server that speaks SPDY from here on.
async fn upgrade(
    url: &str,
    protocol: &str,
) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, RuntimeError> {
    let wrong = |why: String| RuntimeError::Failed(format!("use the runtime's {url}: {why}"));
    let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong("it is no http:// address".to_owned()));
    };
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80)))
        .await
        .map_err(|error| wrong(error.to_string()))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| wrong(error.to_string()))?;
    let request = Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(header::HOST, authority.as_str())
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "SPDY/3.1")
        .header("x-stream-protocol-version", protocol)
        .body(Empty::<Bytes>::new())
        .map_err(|error| wrong(error.to_string()))?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return hyper::upgrade::on(response).await.map_err(failed);
        }
        let status = response.status();
        let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX).collect().await;
        let why = body.map(|body| body.to_bytes()).unwrap_or_default();
        Err(wrong(format!("{status}: {}", String::from_utf8_lossy(&why).trim())))
    };
    let (mut asking, connection) = (std::pin::pin!(asking), connection.with_upgrades());
    let upgraded = tokio::select! {
        upgraded = &mut asking => upgraded,
        // It ends when it is upgraded.
        _ = connection => asking.await,
    };
    Ok(TokioIo::new(upgraded?))
}

fn text(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn failed(error: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Failed(error.to_string())
}
