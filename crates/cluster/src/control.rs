//! How another process of the same user tells a cluster what to do: a line each way over a socket
//! in the cluster's directory. Clients of the API have no such thing.

#[cfg(test)]
mod tests;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// What a cluster can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub enum Command {
    /// End. The answer comes before the end.
    Stop,
    /// Forget all objects, and go on.
    Reset,
    /// Write all objects to a new file.
    Snapshot { path: PathBuf },
    /// Go on with the objects of a snapshot.
    Restore { path: PathBuf },
}

/// What a cluster says then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Done,
    /// It could not be done, and why.
    Failed(String),
}

/// A command, and where its answer goes.
pub(crate) type Order = (Command, oneshot::Sender<Answer>);

/// More than any command needs.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Whoever connects has something to say.
const LINE_WAIT: Duration = Duration::from_secs(5);
/// What the address of a socket may hold, on the least generous system, with its final zero.
const SOCKET_PATH_MAX: usize = 104;

/// Tells a cluster something and waits until it is done.
pub fn tell(socket: &Path, command: &Command) -> Result<()> {
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("reach the cluster at {}", socket.display()))?;
    let mut line = serde_json::to_vec(command).context("encode the command")?;
    line.push(b'\n');
    stream.write_all(&line).context("tell the cluster")?;
    stream.shutdown(Shutdown::Write).context("tell the cluster")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("hear from the cluster")?;
    match serde_json::from_str(&answer).context("understand the cluster")? {
        Answer::Done => Ok(()),
        Answer::Failed(why) => bail!(why),
    }
}

/// A socket, which goes away with it.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Where the socket is when the cluster's own directory has too long a name.
    _elsewhere: Option<tempfile::TempDir>,
}

impl Socket {
    /// In `dir`, which only its owner can reach into and which the caller holds.
    pub(crate) fn bind(dir: &Path) -> Result<Self> {
        let mut path = dir.join("control");
        let mut elsewhere = None;
        if path.as_os_str().len() >= SOCKET_PATH_MAX {
            let dir = tempfile::tempdir().context("make a directory for the control socket")?;
            path = dir.path().join("control");
            elsewhere = Some(dir);
        }
        // Left behind by a process that was killed: nobody else can be using it.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .with_context(|| format!("make the control socket {}", path.display()))?;
        Ok(Socket { listener, path, _elsewhere: elsewhere })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes one command after the other, until nobody wants them any more.
    pub(crate) async fn run(&self, orders: mpsc::Sender<Order>) {
        while let Ok((stream, _)) = self.listener.accept().await {
            if let Err(error) = converse(stream, &orders).await {
                warn!(%error, "command not taken");
            }
            if orders.is_closed() {
                return;
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn converse(stream: tokio::net::UnixStream, orders: &mpsc::Sender<Order>) -> Result<()> {
    let (input, mut output) = stream.into_split();
    let mut line = String::new();
    let mut input = BufReader::new(input.take(LINE_BYTES_MAX));
    tokio::time::timeout(LINE_WAIT, input.read_line(&mut line))
        .await
        .context("read it in time")??;
    let answer = match serde_json::from_str(&line) {
        Ok(command) => {
            let (sender, receiver) = oneshot::channel();
            orders.send((command, sender)).await.context("pass it on")?;
            receiver.await.context("hear what came of it")?
        }
        Err(error) => Answer::Failed(format!("understand the command: {error}")),
    };
    let answer = serde_json::to_vec(&answer).context("encode the answer")?;
    output.write_all(&answer).await.context("answer")
}
