//! SPDY/3.1, as kubectl and API servers speak it to nodes, and nodes to container runtimes: frames,
//! and the streams in them.
//!
//! What is not used there is left out: only the client opens streams, and nobody counts windows.

mod frame;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;

use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::frame::{Decoder, Encoder, Frame};

/// How much of a stream may wait for its reader. Beyond that, the whole connection waits.
const WAITING_BYTES_MAX: usize = 256 * 1024;
/// How many frames may wait to be written.
const FRAMES_MAX: usize = 64;
const CHUNK: usize = 16 * 1024;

/// A stream that the other side has opened.
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) io: DuplexStream,
}

/// Carries streams over a connection until either side ends it. New ones are sent to `opened`,
/// which ends when the connection does.
pub(crate) async fn carry(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    opened: mpsc::Sender<Stream>,
) -> io::Result<()> {
    run(connection, opened, Vec::new()).await
}

/// Opens streams over a connection, one for each of these headers, in that order. What is given back
/// with them carries them until the other side ends the connection.
pub(crate) fn open(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    wanted: Vec<HashMap<String, String>>,
) -> (Vec<DuplexStream>, impl Future<Output = io::Result<()>> + Send) {
    let (mut streams, mut outgoing) = (Vec::new(), Vec::new());
    // Clients have the odd numbers.
    for (id, headers) in (1..).step_by(2).zip(wanted) {
        let (ours, theirs) = tokio::io::duplex(WAITING_BYTES_MAX);
        streams.push(theirs);
        outgoing.push(Stream { id, headers, io: ours });
    }
    let carrying = async move {
        // Nobody opens streams to a client.
        let (opened, _none) = mpsc::channel(1);
        run(connection, opened, outgoing).await
    };
    (streams, carrying)
}

async fn run(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    opened: mpsc::Sender<Stream>,
    outgoing: Vec<Stream>,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(connection);
    let (frames, mut waiting) = mpsc::channel::<Frame>(FRAMES_MAX);
    let mut encoder = Encoder::default();
    let mut reading = Reading { frames, opened, streams: HashMap::new(), pumps: JoinSet::new() };
    for Stream { id, headers, io } in outgoing {
        let open = Frame::Open { id, headers, is_last: false };
        to.write_all(&encoder.encode(&open)).await?;
        reading.add(id, io);
    }
    to.flush().await?;
    let writing = async move {
        while let Some(frame) = waiting.recv().await {
            to.write_all(&encoder.encode(&frame)).await?;
            if waiting.is_empty() {
                to.flush().await?;
            }
        }
        to.shutdown().await
    };
    let (read, written) = futures::future::join(reading.run(&mut from), writing).await;
    read.and(written)
}

struct Reading {
    frames: mpsc::Sender<Frame>,
    opened: mpsc::Sender<Stream>,
    /// Where what arrives for each stream goes.
    streams: HashMap<u32, WriteHalf<DuplexStream>>,
    pumps: JoinSet<()>,
}

impl Reading {
    async fn run(mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut decoder = Decoder::default();
        let mut has_opened = false;
        let done = loop {
            tokio::select! {
                frame = decoder.read(from) => match frame {
                    Ok(Some(frame)) => {
                        has_opened |= matches!(frame, Frame::Open { .. });
                        if let Err(error) = self.note(frame).await {
                            break Err(error);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                },
                // All streams have said all, and nobody wants another.
                () = self.opened.closed(), if has_opened => break Ok(()),
            }
        };
        // Nothing more comes; what the streams still have to say is said.
        for id in self.streams.keys().copied().collect::<Vec<_>>() {
            self.end(id).await;
        }
        while self.pumps.join_next().await.is_some() {}
        done
    }

    async fn note(&mut self, frame: Frame) -> io::Result<()> {
        match frame {
            Frame::Open { id, headers, is_last } => {
                let (ours, theirs) = tokio::io::duplex(WAITING_BYTES_MAX);
                self.add(id, ours);
                self.send(Frame::Opened { id }).await;
                if is_last {
                    self.end(id).await;
                }
                let _ = self.opened.send(Stream { id, headers, io: theirs }).await;
            }
            Frame::Data { id, bytes, is_last } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    // Who does not listen any more has had enough.
                    let _ = stream.write_all(&bytes).await;
                }
                if is_last {
                    self.end(id).await;
                }
            }
            Frame::Reset { id } => self.end(id).await,
            Frame::Ping { id } => self.send(Frame::Ping { id }).await,
            Frame::Opened { .. } | Frame::Other => {}
            Frame::GoAway => return Ok(()),
        }
        Ok(())
    }

    fn add(&mut self, id: u32, io: DuplexStream) {
        let (said, told) = tokio::io::split(io);
        self.pumps.spawn(pump(id, said, self.frames.clone()));
        self.streams.insert(id, told);
    }

    /// Says that nothing more comes on a stream; that the half is dropped says nothing, as the
    /// other is with the pump.
    async fn end(&mut self, id: u32) {
        if let Some(mut stream) = self.streams.remove(&id) {
            let _ = stream.shutdown().await;
        }
    }

    async fn send(&self, frame: Frame) {
        // The writer ends with the connection, which the reader sees too.
        let _ = self.frames.send(frame).await;
    }
}

/// Sends what our side says on a stream, until it has said all.
async fn pump(id: u32, mut said: ReadHalf<DuplexStream>, frames: mpsc::Sender<Frame>) {
    let mut bytes = vec![0; CHUNK];
    loop {
        let n_bytes = said.read(&mut bytes).await.unwrap_or(0);
        let (part, is_last) = (bytes[..n_bytes].to_vec(), n_bytes == 0);
        if frames.send(Frame::Data { id, bytes: part, is_last }).await.is_err() || is_last {
            return;
        }
    }
}
