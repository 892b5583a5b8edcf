//! Talking with a container's own process: what it writes from now on, and what it reads.
//!
//! The shim lets people in by a socket beside the container's log, since it has the other ends of the
//! container's streams. What goes over it is frames: a byte that says what follows, four for its
//! length, and so many more.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::exec;
use super::place::Place;
use super::shim::Channel;
use crate::runtime::{RuntimeError, Size, Streams};

/// What the container is to read. The first, without any, says that there will be some.
const INPUT: u8 = 0;
/// What the container has written.
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
/// There is no more to read.
const INPUT_ENDS: u8 = 3;
/// How wide and high the terminal is, two bytes each.
const SIZE: u8 = 4;

const FRAME_BYTES_MAX: usize = 64 * 1024;
/// Who does not listen for so long is not told any more: the container must not wait for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a container's input goes, on the shim's side.
pub(super) enum Input {
    Pipe(File),
    Terminal(File),
}

/// Those who are attached to a container, and its input.
pub(super) struct Hall {
    sessions: Mutex<Vec<UnixStream>>,
    input: Mutex<Option<Input>>,
    channel: Channel,
}

impl Hall {
    /// Lets people in for as long as this process lives. Where that cannot be, nobody comes: the
    /// container runs all the same.
    pub(super) fn open(place: &Place, input: Option<Input>, channel: Channel) -> Arc<Self> {
        let hall = Arc::new(Hall { sessions: Mutex::default(), input: Mutex::new(input), channel });
        let _ = std::fs::remove_file(place.door());
        let listener = short(place).and_then(|(_directory, name)| UnixListener::bind(name));
        if let Ok(listener) = listener {
            let hall = Arc::clone(&hall);
            thread::spawn(move || {
                for session in listener.incoming().flatten() {
                    let hall = Arc::clone(&hall);
                    thread::spawn(move || hall.attend(session));
                }
            });
        }
        hall
    }

    /// Tells everybody what the container has written.
    pub(super) fn tell(&self, stream: &str, bytes: &[u8]) {
        let kind = if stream == "stderr" { ERRORS } else { OUTPUT };
        let mut sessions = lock(&self.sessions);
        for bytes in bytes.chunks(FRAME_BYTES_MAX) {
            let frame = frame(kind, bytes);
            sessions.retain_mut(|session| session.write_all(&frame).is_ok());
        }
    }

    /// Does what somebody says until they leave.
    fn attend(&self, mut session: UnixStream) {
        let enter = || -> io::Result<UnixStream> {
            let told = session.try_clone()?;
            told.set_write_timeout(Some(PATIENCE))?;
            Ok(told)
        };
        let Ok(told) = enter() else { return };
        lock(&self.sessions).push(told);
        let mut brings_input = false;
        while let Ok((kind, bytes)) = read(&mut session) {
            match kind {
                INPUT => {
                    brings_input = true;
                    self.feed(&bytes);
                }
                INPUT_ENDS => self.end_input(true),
                SIZE => self.resize(&bytes),
                _ => {}
            }
        }
        if brings_input {
            self.end_input(false);
        }
    }

    fn feed(&self, bytes: &[u8]) {
        if !self.channel.has_input {
            return;
        }
        let mut input = lock(&self.input);
        let written = match input.as_mut() {
            Some(Input::Pipe(file) | Input::Terminal(file)) => file.write_all(bytes),
            None => Ok(()),
        };
        if written.is_err() {
            // Who does not read any more has had enough.
            *input = None;
        }
    }

    /// Somebody has brought all they had; or, if they did not say so, has left.
    fn end_input(&self, is_said: bool) {
        let mut input = lock(&self.input);
        match input.as_mut() {
            Some(Input::Pipe(_)) if self.channel.is_once => *input = None,
            Some(Input::Terminal(file)) if is_said && self.channel.is_once => {
                // As somebody at a terminal says that there is no more.
                let _ = file.write_all(b"\x04");
            }
            _ => {}
        }
    }

    fn resize(&self, bytes: &[u8]) {
        if let (Some(Input::Terminal(file)), [a, b, c, d]) = (&*lock(&self.input), bytes) {
            let (width, height) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
            exec::resize(file, Size { width, height });
        }
    }
}

/// Connects streams with those of a container until it ends, or nobody listens.
pub(super) async fn run(place: &Place, streams: Streams) -> Result<(), RuntimeError> {
    let failed = |error: io::Error| RuntimeError::Failed(error.to_string());
    let (_directory, name) = short(place).map_err(failed)?;
    let stream = tokio::net::UnixStream::connect(name).await.map_err(failed)?;
    let (mut from, mut to) = stream.into_split();
    let Streams { stdin, stdout, stderr, terminal } = streams;
    let saying = async {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let (mut stdin, mut sizes) = (stdin, terminal);
        if stdin.is_some() {
            to.write_all(&frame(INPUT, &[])).await?;
        }
        loop {
            // Both can be given up half-way.
            let said = tokio::select! {
                Some(read) = async { Some(stdin.as_mut()?.read(&mut bytes).await) },
                    if stdin.is_some() => match read {
                    Ok(n_bytes @ 1..) => frame(INPUT, &bytes[..n_bytes]),
                    Ok(0) | Err(_) => {
                        stdin = None;
                        frame(INPUT_ENDS, &[])
                    }
                },
                Some(size) = async { sizes.as_mut()?.recv().await } => {
                    let [a, b] = size.width.to_be_bytes();
                    let [c, d] = size.height.to_be_bytes();
                    frame(SIZE, &[a, b, c, d])
                }
                else => return io::Result::Ok(()),
            };
            to.write_all(&said).await?;
        }
    };
    let saying = async {
        // When the container has ended, its last words are still to be heard.
        let _: io::Result<()> = saying.await;
        std::future::pending::<()>().await
    };
    let hearing = async {
        let (mut stdout, mut stderr) = (stdout, stderr);
        // It ends with the shim, which ends with the container.
        while let Ok((kind, bytes)) = hear(&mut from).await {
            let to = match kind {
                ERRORS if stderr.is_some() => stderr.as_mut(),
                _ => stdout.as_mut(),
            };
            if let Some(to) = to {
                to.write_all(&bytes).await?;
                to.flush().await?;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        ended = hearing => ended.map_err(failed),
        () = saying => Ok(()),
    }
}

/// The door of a container by a name that is short enough for a socket, while the directory is open.
fn short(place: &Place) -> io::Result<(File, PathBuf)> {
    let directory = File::open(place.directory())?;
    let name = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let door = place.door();
    Ok((directory, name.join(door.file_name().unwrap_or_default())))
}

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend((bytes.len() as u32).to_be_bytes());
    frame.extend(bytes);
    frame
}

fn read(stream: &mut UnixStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let mut bytes = vec![0; length(&head)?];
    stream.read_exact(&mut bytes)?;
    Ok((head[0], bytes))
}

async fn hear(stream: &mut tokio::net::unix::OwnedReadHalf) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).await?;
    let mut bytes = vec![0; length(&head)?];
    stream.read_exact(&mut bytes).await?;
    Ok((head[0], bytes))
}

fn length(head: &[u8; 5]) -> io::Result<usize> {
    let [_, length @ ..] = *head;
    let length = u32::from_be_bytes(length) as usize;
    match length <= FRAME_BYTES_MAX {
        true => Ok(length),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long")),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds it panics half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
