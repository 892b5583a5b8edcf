//! Commands in containers and connections to pods, over SPDY or WebSockets, as kubectl and API
//! servers speak them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::debug;

use super::websocket::{Channel, Form};
use super::{Body, Refusal, Upgrades, text, websocket};
use crate::runtime::{Id, Runtime, RuntimeError, Size, Streams};
use crate::spdy;

/// How long the other side may take to open the streams that it asked for.
const OPEN_MAX: Duration = Duration::from_secs(30);
const WAITING_BYTES_MAX: usize = 256 * 1024;
/// How many ports have two channels each, where a channel is a byte, and 255 is none.
const FORWARDED_MAX: usize = 127;

const COMMAND_SPDY: &[&str] =
    &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// The last is for clients that name none.
const COMMAND_WEBSOCKET: &[&str] = &[
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "",
];
const FORWARD_SPDY: &[&str] = &["portforward.k8s.io"];
/// SPDY inside messages, as kubectl has it, which names ports as it goes.
const FORWARD_TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const FORWARD_WEBSOCKET: &[&str] =
    &[FORWARD_TUNNEL, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""];

/// What a command is to be connected with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    command: Vec<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    terminal: bool,
}

impl Wanted {
    fn parse(query: &str) -> Self {
        let mut wanted = Wanted::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let flag = matches!(&*value, "1" | "true");
            match &*name {
                "command" => wanted.command.push(value.into_owned()),
                "input" | "stdin" => wanted.stdin = flag,
                "output" | "stdout" => wanted.stdout = flag,
                "error" | "stderr" => wanted.stderr = flag,
                "tty" => wanted.terminal = flag,
                _ => {}
            }
        }
        // A terminal has one output.
        wanted.stderr &= !wanted.terminal;
        wanted
    }
}

/// The streams of a command, whatever carries them.
struct Carried {
    streams: HashMap<&'static str, DuplexStream>,
    /// Streams end when this is dropped.
    _held: Option<mpsc::Receiver<spdy::Stream>>,
}

/// Runs a command in a container, or looks at its own, over the connection of a request.
pub(super) fn command(
    runtime: Arc<dyn Runtime>,
    request: Request<Incoming>,
    id: Id,
    is_exec: bool,
    upgrades: &Upgrades,
) -> Result<Response<Body>, Refusal> {
    let wanted = Wanted::parse(request.uri().query().unwrap_or_default());
    if !wanted.stdin && !wanted.stdout && !wanted.stderr {
        let why = "you must specify at least 1 of stdin, stdout, stderr\n".to_owned();
        return Err(Refusal(StatusCode::BAD_REQUEST, why));
    }
    let handshake = Handshake::of(&request, COMMAND_SPDY, COMMAND_WEBSOCKET)?;
    let response = handshake.response();
    let upgrade = hyper::upgrade::on(request);
    upgrades.spawn(async move {
        let connection = match upgrade.await {
            Ok(connection) => TokioIo::new(connection),
            Err(error) => return debug!(%error, "a connection was not upgraded"),
        };
        let protocol = handshake.protocol;
        let run = |carried| attend(runtime, id, is_exec, wanted.clone(), protocol, carried);
        let done = match handshake.key {
            None => over_spdy(connection, &wanted, run).await,
            Some(_) => over_websocket(connection, protocol, &wanted, run).await,
        };
        if let Err(error) = done {
            debug!(%error, "a command was cut off");
        }
    });
    Ok(response)
}

async fn over_spdy<F: Future<Output = ()>>(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    wanted: &Wanted,
    run: impl FnOnce(Carried) -> F,
) -> io::Result<()> {
    let (opened, mut streams) = mpsc::channel::<spdy::Stream>(8);
    let running = async move {
        let names = ["error", "stdin", "stdout", "stderr", "resize"];
        let is_wanted = |name: &str| match name {
            "stdin" => wanted.stdin,
            "stdout" => wanted.stdout,
            "stderr" => wanted.stderr,
            "resize" => wanted.terminal,
            _ => true,
        };
        let count = names.iter().filter(|name| is_wanted(name)).count();
        let mut found = HashMap::new();
        let opening = async {
            while found.len() < count {
                let Some(stream) = streams.recv().await else { return };
                let kind = stream.headers.get("streamtype").map(String::as_str);
                if let Some(name) = names.iter().find(|name| Some(**name) == kind) {
                    found.insert(*name, stream.io);
                }
            }
        };
        if tokio::time::timeout(OPEN_MAX, opening).await.is_ok() && found.len() == count {
            run(Carried { streams: found, _held: Some(streams) }).await;
        }
    };
    while_heard(spdy::carry(connection, opened), running).await
}

async fn over_websocket<F: Future<Output = ()>>(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    protocol: &str,
    wanted: &Wanted,
    run: impl FnOnce(Carried) -> F,
) -> io::Result<()> {
    let all = [
        (0, "stdin", wanted.stdin),
        (1, "stdout", wanted.stdout),
        (2, "stderr", wanted.stderr),
        (3, "error", true),
        (4, "resize", wanted.terminal),
    ];
    let (mut channels, mut streams) = (Vec::new(), HashMap::new());
    // The first channel that we may speak on says at once, with nothing, that the connection is
    // there.
    let mut greeting = Some(Vec::new());
    for (number, name, _) in all.into_iter().filter(|(.., is_wanted)| *is_wanted) {
        let (ours, theirs) = tokio::io::duplex(WAITING_BYTES_MAX);
        let greeting = if name == "stdin" { None } else { greeting.take() };
        channels.push(Channel { number, io: theirs, greeting });
        streams.insert(name, ours);
    }
    let carrying = websocket::carry(connection, channels, Form::of(protocol));
    let running = run(Carried { streams, _held: None });
    while_heard(carrying, running).await
}

/// Runs a command to its end, and carries what is left to say; or until the connection ends. A
/// container that says nothing would otherwise be attended to for ever.
async fn while_heard(
    carrying: impl Future<Output = io::Result<()>>,
    running: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut carrying = std::pin::pin!(carrying);
    tokio::select! {
        carried = &mut carrying => return carried,
        () = running => {}
    }
    carrying.await
}

/// Runs the command, and tells on the stream of errors what became of it.
async fn attend(
    runtime: Arc<dyn Runtime>,
    id: Id,
    is_exec: bool,
    wanted: Wanted,
    protocol: &'static str,
    mut carried: Carried,
) {
    let mut take = |name| carried.streams.remove(name);
    let (stdin, stdout, stderr) = (take("stdin"), take("stdout"), take("stderr"));
    let (error, resize) = (take("error"), take("resize"));
    let (sizes, terminal) = mpsc::channel(1);
    let streams = Streams {
        stdin: stdin.map(|io| Box::new(io) as Box<dyn AsyncRead + Send + Unpin>),
        stdout: stdout.map(|io| Box::new(io) as Box<dyn AsyncWrite + Send + Unpin>),
        stderr: stderr.map(|io| Box::new(io) as Box<dyn AsyncWrite + Send + Unpin>),
        terminal: wanted.terminal.then_some(terminal),
    };
    let resizing = async {
        if let Some(resize) = resize {
            // One JSON after the other, a line each.
            let mut lines = BufReader::new(resize).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(size) = serde_json::from_str::<Size>(&line) {
                    let _ = sizes.send(size).await;
                }
            }
        }
        std::future::pending::<()>().await
    };
    let running = async {
        match is_exec {
            true => runtime.exec(&id, &wanted.command, streams).await,
            false => runtime.attach(&id, streams).await.map(|()| 0),
        }
    };
    let done = tokio::select! {
        done = running => done,
        () = resizing => return,
    };
    if let Some(mut error) = error {
        let told = outcome(&done, protocol);
        let _ = error.write_all(told.as_bytes()).await;
        let _ = error.shutdown().await;
    }
}

/// What the other side is told in the end.
fn outcome(done: &Result<i32, RuntimeError>, protocol: &str) -> String {
    let has_status = protocol.starts_with("v4") || protocol.starts_with("v5");
    match done {
        Ok(0) if has_status => json!({"metadata": {}, "status": "Success"}).to_string(),
        Ok(0) => String::new(),
        Ok(code) => {
            let message = format!("command terminated with non-zero exit code: exit status {code}");
            if !has_status {
                return message;
            }
            json!({
                "metadata": {}, "status": "Failure", "message": message,
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            })
            .to_string()
        }
        Err(error) if has_status => json!({
            "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
            "message": format!("Internal error occurred: {error}"),
            "details": {"causes": [{"message": error.to_string()}]},
        })
        .to_string(),
        Err(error) => error.to_string(),
    }
}

/// Carries connections to ports of a pod, over the connection of a request.
pub(super) fn forward(
    runtime: Arc<dyn Runtime>,
    request: Request<Incoming>,
    pod: Arc<Pod>,
    upgrades: &Upgrades,
) -> Result<Response<Body>, Refusal> {
    let handshake = Handshake::of(&request, FORWARD_SPDY, FORWARD_WEBSOCKET)?;
    let is_tunnel = handshake.protocol == FORWARD_TUNNEL;
    let ports = match handshake.key {
        Some(_) if !is_tunnel => forwarded_ports(request.uri().query().unwrap_or_default())
            .map_err(|why| Refusal(StatusCode::BAD_REQUEST, why))?,
        _ => Vec::new(),
    };
    let response = handshake.response();
    let upgrade = hyper::upgrade::on(request);
    upgrades.spawn(async move {
        let connection = match upgrade.await {
            Ok(connection) => TokioIo::new(connection),
            Err(error) => return debug!(%error, "a connection was not upgraded"),
        };
        let (opened, streams) = mpsc::channel(8);
        let carried = match handshake.key {
            None => {
                let connecting = connect_all(runtime, pod, streams);
                futures::future::join(spdy::carry(connection, opened), connecting).await.0
            }
            Some(_) if is_tunnel => {
                let connecting = connect_all(runtime, pod, streams);
                let (inner, tunnelling) = websocket::tunnel(connection);
                let carrying = spdy::carry(inner, opened);
                let ((), carried, tunnelled) =
                    futures::future::join3(connecting, carrying, tunnelling).await;
                carried.and(tunnelled)
            }
            Some(_) => {
                let form = Form::of(handshake.protocol);
                forward_over_websocket(connection, form, &ports, runtime.as_ref(), &pod).await
            }
        };
        if let Err(error) = carried {
            debug!(%error, "a connection to a pod was cut off");
        }
    });
    Ok(response)
}

/// The ports that a query asks for: clients without SPDY say beforehand which they want.
fn forwarded_ports(query: &str) -> Result<Vec<u16>, String> {
    let mut ports = Vec::new();
    for (_, value) in form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "port") {
        if value.is_empty() {
            return Err("query parameter \"port\" cannot be empty".to_owned());
        }
        for port in value.split(',') {
            match port.parse::<u16>() {
                Ok(0) => return Err(format!("port {value:?} must be > 0")),
                Ok(port) => ports.push(port),
                Err(error) => return Err(format!("unable to parse {value:?} as a port: {error}")),
            }
        }
    }
    match ports.len() {
        0 => Err("query parameter \"port\" is required".to_owned()),
        1..=FORWARDED_MAX => Ok(ports),
        _ => Err(format!("at most {FORWARDED_MAX} ports may be forwarded over a connection")),
    }
}

/// Connects two channels for each port, one for data and one for errors. Each begins with the
/// number of its port.
async fn forward_over_websocket(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    form: Form,
    ports: &[u16],
    runtime: &dyn Runtime,
    pod: &Pod,
) -> io::Result<()> {
    let mut channels = Vec::new();
    let mut channel = |port: u16| {
        let (ours, theirs) = tokio::io::duplex(WAITING_BYTES_MAX);
        let number = u8::try_from(channels.len()).expect("there are not that many ports");
        let greeting = Some(port.to_le_bytes().to_vec());
        channels.push(Channel { number, io: theirs, greeting });
        ours
    };
    let connections = ports.iter().map(|port| {
        let (data, mut errors) = (channel(*port), channel(*port));
        async move {
            if let Err(why) = connect(runtime, pod, *port, data, Parting::Pod).await {
                let _ = errors.write_all(why.as_bytes()).await;
            }
        }
    });
    let connections: Vec<_> = connections.collect();
    let connecting = async { drop(futures::future::join_all(connections).await) };
    while_heard(websocket::carry(connection, channels, form), connecting).await
}

/// Connects pairs of streams, one for data and one for errors, with ports.
async fn connect_all(
    runtime: Arc<dyn Runtime>,
    pod: Arc<Pod>,
    mut opened: mpsc::Receiver<spdy::Stream>,
) {
    let mut halves: HashMap<String, spdy::Stream> = HashMap::new();
    let mut connections = JoinSet::new();
    while let Some(stream) = opened.recv().await {
        // Old clients do not number their requests: streams of a pair follow each other.
        let request = stream.headers.get("requestid").cloned();
        let request = request.unwrap_or_else(|| (stream.id.saturating_sub(1) / 4).to_string());
        let Some(other) = halves.remove(&request) else {
            halves.insert(request, stream);
            continue;
        };
        let is_error = |stream: &spdy::Stream| {
            stream.headers.get("streamtype").is_some_and(|kind| kind == "error")
        };
        let (errors, data) = if is_error(&stream) { (stream, other) } else { (other, stream) };
        let port = data.headers.get("port").and_then(|port| port.parse::<u16>().ok());
        let (runtime, pod) = (Arc::clone(&runtime), Arc::clone(&pod));
        connections.spawn(async move {
            let mut errors = errors.io;
            let told = match port {
                Some(port) => connect(runtime.as_ref(), &pod, port, data.io, Parting::Each).await,
                None => Err("\"port\" header is required".to_owned()),
            };
            if let Err(why) = told {
                let _ = errors.write_all(why.as_bytes()).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
    // The other side is gone, and with it whoever would read.
    connections.shutdown().await;
}

/// How two sides of a forwarded connection part.
#[derive(Clone, Copy)]
enum Parting {
    /// Each says that it has said all.
    Each,
    /// The client has no way to say so: all is over when the pod has said all.
    Pod,
}

async fn connect(
    runtime: &dyn Runtime,
    pod: &Pod,
    port: u16,
    mut data: DuplexStream,
    parting: Parting,
) -> Result<(), String> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let failed = |why: String| format!("error forwarding port {port} to pod {uid}, uid : {why}");
    let mut connection =
        runtime.connect(pod, port).await.map_err(|error| failed(error.to_string()))?;
    let copied = match parting {
        Parting::Each => tokio::io::copy_bidirectional(&mut data, &mut connection).await.map(drop),
        Parting::Pod => {
            let (mut answers, mut questions) = tokio::io::split(connection);
            let (mut asked, mut told) = tokio::io::split(data);
            let asking = async {
                let _ = tokio::io::copy(&mut asked, &mut questions).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                copied = tokio::io::copy(&mut answers, &mut told) => copied.map(drop),
                () = asking => Ok(()),
            }
        }
    };
    match copied {
        // What a runtime has to say about it.
        Err(error) if error.kind() == io::ErrorKind::Other => Err(failed(error.to_string())),
        // An end without a farewell is an end.
        _ => Ok(()),
    }
}

/// How a connection becomes another.
struct Handshake {
    protocol: &'static str,
    /// Of a WebSocket; none for SPDY.
    key: Option<String>,
}

impl Handshake {
    fn of(
        request: &Request<Incoming>,
        spdy: &[&'static str],
        websocket: &[&'static str],
    ) -> Result<Self, Refusal> {
        let header = |name: &str| -> Vec<String> {
            let values = request.headers().get_all(name).iter();
            let values = values.filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',').map(|it| it.trim().to_owned())).collect()
        };
        let refuse = |why: String| Refusal(StatusCode::BAD_REQUEST, why);
        let upgrade = header("upgrade");
        let is = |name: &str| upgrade.iter().any(|it| it.eq_ignore_ascii_case(name));
        let (offered, known, key) = match () {
            () if is("websocket") => {
                let key = header("sec-websocket-key").into_iter().next();
                (header("sec-websocket-protocol"), websocket, key)
            }
            () if is("SPDY/3.1") => (header("x-stream-protocol-version"), spdy, None),
            () => {
                let why = "unable to upgrade: missing upgrade headers in request\n";
                return Err(refuse(why.to_owned()));
            }
        };
        let found = offered.iter().find_map(|it| known.iter().find(|known| *known == it));
        let protocol = match (found, offered.is_empty()) {
            (Some(protocol), _) => *protocol,
            // The first clients did not say which they speak.
            (None, true) => known.last().copied().unwrap_or_default(),
            (None, false) => {
                return Err(Refusal(
                    StatusCode::FORBIDDEN,
                    format!(
                        "unable to upgrade: unable to negotiate protocol: client supports \
                         {offered:?}, server accepts {known:?}\n"
                    ),
                ));
            }
        };
        Ok(Handshake { protocol, key })
    }

    fn response(&self) -> Response<Body> {
        let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "");
        let headers = response.headers_mut();
        headers.clear();
        let value = |text: &str| header::HeaderValue::from_str(text).expect("it is ASCII");
        headers.insert(header::CONNECTION, value("Upgrade"));
        match &self.key {
            None => {
                headers.insert(header::UPGRADE, value("SPDY/3.1"));
                headers.insert("x-stream-protocol-version", value(self.protocol));
            }
            Some(key) => {
                headers.insert(header::UPGRADE, value("websocket"));
                headers.insert("sec-websocket-accept", value(&websocket::accept(key)));
                if !self.protocol.is_empty() {
                    headers.insert("sec-websocket-protocol", value(self.protocol));
                }
            }
        }
        response
    }
}
