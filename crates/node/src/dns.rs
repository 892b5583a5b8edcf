//! Names of Services, for pods: a DNS server that knows those of the cluster, and asks the
//! machine's own servers for all others.

mod message;
mod resolv;
#[cfg(test)]
mod tests;
mod zone;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright::Cache;
use kubewright::informer::{Informer, Scope};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use self::message::{Answer, Code, NoQuestion, Question, read_answer, refusal};
pub(crate) use self::resolv::{ResolvConf, host_resolv_conf};
use self::zone::Zone;

/// The domain of the cluster.
pub(crate) const DOMAIN: &str = "cluster.local";
const PORT: u16 = 53;
const MESSAGE_BYTES_MAX: usize = 65_535;
/// How long another server may take, and a client that has a connection.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const IDLE_MAX: Duration = Duration::from_secs(30);
/// So many questions are answered at once; others wait.
const QUESTIONS_MAX: usize = 512;

/// A DNS server that has a place to listen at.
#[derive(Debug)]
pub struct Dns {
    udp: UdpSocket,
    tcp: TcpListener,
}

impl Dns {
    /// Takes the usual port of an address, without answering yet.
    ///
    /// # Errors
    /// If it is taken, or not for everybody.
    pub async fn bind(address: IpAddr) -> io::Result<Self> {
        Dns::bind_at(SocketAddr::new(address, PORT)).await
    }

    async fn bind_at(place: SocketAddr) -> io::Result<Self> {
        let udp = UdpSocket::bind(place).await?;
        let tcp = TcpListener::bind(udp.local_addr()?).await?;
        Ok(Dns { udp, tcp })
    }

    /// Answers until `shutdown`; returns when everything it started has ended.
    pub async fn run(self, cache: &Cache, shutdown: CancellationToken) {
        let servers = host_resolv_conf().servers;
        let servers = servers.iter().filter_map(|server| server.parse().ok());
        let servers = servers.map(|address| SocketAddr::new(address, PORT)).collect();
        self.answer(cache, servers, shutdown).await;
    }

    async fn answer(self, cache: &Cache, servers: Vec<SocketAddr>, shutdown: CancellationToken) {
        let (tell, zone) = watch::channel(Arc::new(Zone::default()));
        let known = Arc::new(Known { zone, servers });
        let serving = async {
            tokio::join!(
                follow(cache, &tell),
                serve_udp(self.udp, Arc::clone(&known)),
                serve_tcp(self.tcp, known)
            )
        };
        shutdown.run_until_cancelled(serving).await;
    }
}

/// Keeps the zone as the cluster is.
async fn follow(cache: &Cache, tell: &watch::Sender<Arc<Zone>>) {
    let services: Informer<Service> = cache.informer(&Scope::default());
    let slices: Informer<EndpointSlice> = cache.informer(&Scope::default());
    let changed = Arc::new(Notify::new());
    let hear = || {
        let changed = Arc::clone(&changed);
        move || changed.notify_one()
    };
    let (of_services, of_slices) = (hear(), hear());
    let _heard =
        (services.subscribe(move |_| of_services()), slices.subscribe(move |_| of_slices()));
    loop {
        // Before all are listed nothing is known; the first objects change that.
        if let (Ok(services), Ok(slices)) = (services.list(), slices.list()) {
            tell.send_replace(Arc::new(Zone::new(DOMAIN, &services, &slices)));
        }
        changed.notified().await;
    }
}

/// What answers are made of.
struct Known {
    zone: watch::Receiver<Arc<Zone>>,
    /// Who is asked for what this does not know.
    servers: Vec<SocketAddr>,
}

impl Known {
    /// The answer to a message; none if it deserves none.
    async fn answer(&self, asked: &[u8], is_udp: bool) -> Option<Vec<u8>> {
        let question = match Question::read(asked) {
            Ok(question) => question,
            Err(NoQuestion::Garbage) => return None,
            Err(NoQuestion::Other(id)) => return Some(refusal(id, Code::NotImplemented)),
        };
        let bytes_max = if is_udp { question.bytes_max } else { MESSAGE_BYTES_MAX };
        let zone = Arc::clone(&self.zone.borrow());
        if let Some(mut answer) = zone.answer(&question.name, question.kind) {
            if let Some(name) = &answer.elsewhere {
                let asked = message::question(question.id, name, question.kind);
                let found = self.ask(&asked, true).await.as_deref().and_then(read_answer);
                // Without, the other name is told, for whoever knows more.
                answer.records.extend(found.unwrap_or_default());
            }
            return Some(question.answer(&answer, bytes_max));
        }
        if let Some(answer) = self.ask(asked, is_udp).await {
            return Some(answer);
        }
        let failure = Answer { code: Code::Failure, ..Answer::default() };
        Some(question.answer(&failure, bytes_max))
    }

    /// What the first of the other servers answers that does.
    async fn ask(&self, asked: &[u8], is_udp: bool) -> Option<Vec<u8>> {
        for server in &self.servers {
            let asking = async {
                match is_udp {
                    true => ask_udp(*server, asked).await,
                    false => ask_tcp(*server, asked).await,
                }
            };
            match tokio::time::timeout(ANSWER_MAX, asking).await {
                Ok(Ok(answer)) => return Some(answer),
                Ok(Err(error)) => debug!(%server, %error, "a server of names does not answer"),
                Err(_) => debug!(%server, "a server of names does not answer"),
            }
        }
        None
    }
}

async fn serve_udp(socket: UdpSocket, known: Arc<Known>) {
    let socket = Arc::new(socket);
    let mut questions = JoinSet::new();
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    loop {
        while questions.try_join_next().is_some() {}
        if questions.len() >= QUESTIONS_MAX {
            questions.join_next().await;
        }
        // An error is about an earlier answer that nobody waited for.
        let Ok((n_bytes, from)) = socket.recv_from(&mut bytes).await else { continue };
        let (socket, known, asked) =
            (Arc::clone(&socket), Arc::clone(&known), bytes[..n_bytes].to_vec());
        questions.spawn(async move {
            if let Some(answer) = known.answer(&asked, true).await {
                // Who asked may be gone.
                let _ = socket.send_to(&answer, from).await;
            }
        });
    }
}

async fn serve_tcp(listener: TcpListener, known: Arc<Known>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= QUESTIONS_MAX {
            connections.join_next().await;
        }
        let Ok((mut stream, _)) = listener.accept().await else {
            // Most likely there are no more file descriptors: wait until some are free.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let known = Arc::clone(&known);
        connections.spawn(async move {
            while let Ok(Ok(asked)) = tokio::time::timeout(IDLE_MAX, receive(&mut stream)).await {
                let Some(answer) = known.answer(&asked, false).await else { return };
                if send(&mut stream, &answer).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn ask_udp(server: SocketAddr, asked: &[u8]) -> io::Result<Vec<u8>> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(asked).await?;
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    loop {
        let n_bytes = socket.recv(&mut bytes).await?;
        // What has another number answers something else.
        if bytes.get(..2) == asked.get(..2) {
            bytes.truncate(n_bytes);
            return Ok(bytes);
        }
    }
}

async fn ask_tcp(server: SocketAddr, asked: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    send(&mut stream, asked).await?;
    receive(&mut stream).await
}

/// Over connections, messages have their length before them.
async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn send(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(message);
    stream.write_all(&bytes).await
}
