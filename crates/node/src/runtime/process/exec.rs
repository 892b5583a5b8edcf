//! Other commands in a container: with its environment, in its view of the files.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use super::jail::{Jail, ON_TERMINAL, OWN_PATH};
use super::place::Place;
use super::{PATH, shim, tree, until_ended};
use crate::runtime::{RuntimeError, Size, Streams};

/// How long what is still to be read of a command may take when its container has ended.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Runs a command until it ends, or its container does.
pub(super) async fn run(
    place: &Place,
    jail: Option<&Jail>,
    command: &[String],
    streams: Streams,
) -> Result<i32, RuntimeError> {
    let order = place.order().map_err(failed)?;
    let Streams { stdin, stdout, stderr, terminal } = streams;
    let on_terminal_first = ON_TERMINAL.iter().filter(|_| terminal.is_some());
    let command: Vec<String> =
        on_terminal_first.map(|&word| word.to_owned()).chain(command.iter().cloned()).collect();
    let first = place.pid().map(|pid| if order.has_init { first_child(pid) } else { pid });
    let command = match (jail, first) {
        (Some(jail), Some(pid)) => jail.enter(pid, order.has_init, &order.whom, &command),
        _ => command,
    };
    let variables = variables(&order, jail.is_some());
    let (mut child, copying) = match terminal {
        Some(sizes) => {
            let (child, terminal) = on_terminal(&command, &order.directory, &variables)?;
            let copying = attend_terminal(terminal, stdin, stdout, sizes);
            (child, futures::future::Either::Left(copying))
        }
        None => {
            let (program, arguments) = split(&command)?;
            let mut child = Command::new(program)
                .args(arguments)
                .env_clear()
                .envs(&variables)
                .current_dir(&order.directory)
                .process_group(0)
                .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .map_err(failed)?;
            let copying = attend_pipes(&mut child, stdin, stdout, stderr);
            (child, futures::future::Either::Right(copying))
        }
    };
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let waiting = async { child.wait().await };
    // What was written before the end is still to be read.
    let mut running = pin!(futures::future::join(waiting, copying));
    let (status, ()) = tokio::select! {
        done = &mut running => done,
        () = until_ended(place) => {
            if let Some(group) = group {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let gone = |_| RuntimeError::NotFound("the container has ended".to_owned());
            timeout(DRAIN_MAX, running).await.map_err(gone)?
        }
    };
    let status = status.map_err(failed)?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    Ok(status.code().unwrap_or(128 + signal.unwrap_or_default()))
}

/// The process that is the first of a container.
fn first_child(pid: i32) -> i32 {
    let all = tree::all();
    all.iter().find(|(_, parent)| *parent == pid).map_or(pid, |(child, _)| *child)
}

/// The variables of a container, for a command that the machine's tools run in its view.
fn variables(order: &shim::Order, has_view: bool) -> BTreeMap<String, String> {
    let mut variables = order.variables.clone();
    if has_view {
        let own = variables.insert("PATH".to_owned(), PATH.to_owned());
        variables.insert(OWN_PATH.to_owned(), own.unwrap_or_else(|| PATH.to_owned()));
    }
    variables
}

/// Copies between a child and whoever asked for it, until the child writes no more.
fn attend_pipes(
    child: &mut Child,
    stdin: Option<Box<dyn AsyncRead + Send + Unpin>>,
    stdout: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    stderr: Option<Box<dyn AsyncWrite + Send + Unpin>>,
) -> impl Future<Output = ()> + use<> {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    async move {
        let feeding = async {
            if let (Some(mut from), Some(mut to)) = (stdin, input) {
                // Who does not read any more has had enough.
                let _ = tokio::io::copy(&mut from, &mut to).await;
            }
            std::future::pending::<()>().await
        };
        let reading = futures::future::join(drain(output, stdout), drain(errors, stderr));
        tokio::select! {
            () = feeding => {}
            _ = reading => {}
        }
    }
}

async fn drain(
    from: Option<impl AsyncRead + Unpin>,
    to: Option<Box<dyn AsyncWrite + Send + Unpin>>,
) {
    let Some(mut from) = from else { return };
    match to {
        Some(mut to) => {
            let _ = tokio::io::copy(&mut from, &mut to).await;
            let _ = to.shutdown().await;
        }
        None => {
            let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
        }
    }
}

/// A terminal: our side, and that of whoever runs on it.
pub(super) fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    Ok((ours, theirs))
}

/// Gives a terminal a size.
pub(super) fn resize(terminal: impl AsFd, Size { width, height }: Size) {
    let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
    // Its program may have ended.
    let _ = rustix::termios::tcsetwinsize(terminal, size);
}

/// Starts a command on a terminal of its own.
fn on_terminal(
    command: &[String],
    directory: &std::path::Path,
    variables: &BTreeMap<String, String>,
) -> Result<(Child, OwnedFd), RuntimeError> {
    let (ours, theirs) = terminal().map_err(failed)?;
    let stdio = || theirs.try_clone().map(Stdio::from).map_err(failed);
    let (program, arguments) = split(command)?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(variables)
        .env("TERM", "xterm")
        .current_dir(directory)
        .process_group(0)
        .stdin(stdio()?)
        .stdout(stdio()?)
        .stderr(stdio()?)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    Ok((child, ours))
}

async fn attend_terminal(
    terminal: OwnedFd,
    stdin: Option<Box<dyn AsyncRead + Send + Unpin>>,
    stdout: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    mut sizes: mpsc::Receiver<Size>,
) {
    // Both of its directions are as pipes are.
    let halves = || -> io::Result<(pipe::Receiver, pipe::Sender)> {
        let flags = rustix::fs::fcntl_getfl(&terminal)?;
        rustix::fs::fcntl_setfl(&terminal, flags | OFlags::NONBLOCK)?;
        let from = pipe::Receiver::from_owned_fd_unchecked(terminal.try_clone()?)?;
        Ok((from, pipe::Sender::from_owned_fd_unchecked(terminal.try_clone()?)?))
    };
    let Ok((mut from, mut to)) = halves() else { return };
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // Who does not read any more has had enough.
            let _ = tokio::io::copy(&mut stdin, &mut to).await;
            // As somebody at a terminal says that there is no more.
            let _ = to.write_all(b"\x04").await;
        }
        std::future::pending::<()>().await
    };
    let resizing = async {
        while let Some(size) = sizes.recv().await {
            resize(&terminal, size);
        }
        std::future::pending::<()>().await
    };
    let reading = async {
        let mut stdout = stdout.unwrap_or_else(|| Box::new(tokio::io::sink()));
        let mut bytes = [0; 4096];
        // The end of a terminal is an error: nobody has its other side open.
        while let Ok(n_bytes @ 1..) = from.read(&mut bytes).await {
            if stdout.write_all(&bytes[..n_bytes]).await.is_err() {
                break;
            }
            let _ = stdout.flush().await;
        }
        let _ = stdout.shutdown().await;
    };
    tokio::select! {
        () = feeding => {}
        () = resizing => {}
        () = reading => {}
    }
}

fn split(command: &[String]) -> Result<(&String, &[String]), RuntimeError> {
    command.split_first().ok_or_else(|| RuntimeError::Failed("no command".to_owned()))
}

fn failed(error: io::Error) -> RuntimeError {
    RuntimeError::Failed(error.to_string())
}
