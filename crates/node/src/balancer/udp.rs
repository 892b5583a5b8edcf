//! Passes datagrams on, those of one client to one pod for as long as they keep coming.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::affinity::Turns;
use super::table::Behind;

/// As the kernel forgets who talks to whom when neither does.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The largest datagram there is.
const BYTES_MAX: usize = 65_535;
/// So many datagrams of a client may wait; more are lost, as datagrams may be.
const WAITING_MAX: usize = 64;

/// # Errors
/// If the place is taken.
pub(super) async fn serve(
    place: SocketAddr,
    behind: impl Fn() -> Behind,
    stop: CancellationToken,
) -> io::Result<()> {
    let socket = Arc::new(UdpSocket::bind(place).await?);
    let mut talks: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let (mut tasks, mut turns) = (JoinSet::new(), Turns::default());
    let mut buffer = vec![0; BYTES_MAX];
    while let Some(received) = stop.run_until_cancelled(socket.recv_from(&mut buffer)).await {
        // What the system tells of an earlier answer is about somebody who is gone.
        let Ok((length, client)) = received else { continue };
        while let Some(ended) = tasks.try_join_next() {
            talks.remove(&ended.unwrap_or(client));
        }
        let is_new = talks.get(&client).is_none_or(mpsc::Sender::is_closed);
        if is_new {
            let behind = behind();
            let backends = behind.for_client(client.ip(), place.ip());
            let turn = turns.take(client.ip(), backends, behind.affinity, Instant::now());
            let Some(backend) = backends.get(turn) else { continue };
            let (sender, receiver) = mpsc::channel(WAITING_MAX);
            tasks.spawn(talk(Arc::clone(&socket), client, *backend, receiver));
            talks.insert(client, sender);
        }
        if let Some(talk) = talks.get(&client) {
            // A full queue loses it.
            let _ = talk.try_send(buffer[..length].to_vec());
        }
    }
    tasks.shutdown().await;
    Ok(())
}

/// Passes on what a client and a pod say, until both are silent. Gives the client back.
async fn talk(
    front: Arc<UdpSocket>,
    client: SocketAddr,
    backend: SocketAddr,
    mut said: mpsc::Receiver<Vec<u8>>,
) -> SocketAddr {
    let any: IpAddr = match backend {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let talking = async {
        let pod = UdpSocket::bind((any, 0)).await?;
        pod.connect(backend).await?;
        let mut buffer = vec![0; BYTES_MAX];
        loop {
            tokio::select! {
                Some(datagram) = said.recv() => {
                    pod.send(&datagram).await?;
                }
                received = pod.recv(&mut buffer) => {
                    front.send_to(&buffer[..received?], client).await?;
                }
                () = tokio::time::sleep(IDLE_MAX) => return io::Result::Ok(()),
            }
        }
    };
    if let Err(error) = talking.await {
        debug!(%client, %backend, %error, "datagrams are not passed on");
    }
    client
}
