//! Passes connections on, each to one of the pods behind a place.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::ACCEPT_PAUSE;
use super::affinity::Turns;
use super::table::Behind;

/// How long a pod may take to take a connection before another is tried.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// # Errors
/// If the place is taken.
pub(super) async fn serve(
    place: SocketAddr,
    behind: impl Fn() -> Behind,
    stop: CancellationToken,
) -> io::Result<()> {
    let listener = TcpListener::bind(place).await?;
    let (mut turns, mut connections) = (Turns::default(), JoinSet::new());
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let Ok((mut client, peer)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let behind = behind();
        let backends = behind.for_client(peer.ip(), place.ip()).to_vec();
        let turn = turns.take(peer.ip(), &backends, behind.affinity, Instant::now());
        connections.spawn(async move {
            match connect(&backends, turn).await {
                Ok(mut pod) => {
                    // Either side may end it, as it likes.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut pod).await;
                }
                Err(error) => debug!(%place, %error, "no pod takes a connection"),
            }
        });
        while connections.try_join_next().is_some() {}
    }
    // Nobody stands behind this place any more.
    connections.shutdown().await;
    Ok(())
}

/// A connection to one of these, in turn; one that cannot be reached is passed over.
pub(super) async fn connect(backends: &[SocketAddr], turn: usize) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there are none");
    for offset in 0..backends.len() {
        let backend = backends[(turn + offset) % backends.len()];
        match tokio::time::timeout(CONNECT_MAX, TcpStream::connect(backend)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}
