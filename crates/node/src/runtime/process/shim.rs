//! The process that stands over a container: it starts it, writes its log, and keeps its exit code.
//!
//! It does not need the agent, and lives as long as the container. For that long it holds a pipe
//! open, whose end tells whoever reads it that the container has ended. Whatever the container
//! starts ends with it, and with the shim.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use kubewright::Clock;
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use super::attach::{self, Hall};
use super::jail::{BEGINS, OWN_PATH};
use super::place::Place;
use super::whom::Whom;
use super::{PATH, exec, stand_in, tree};

/// How long what a container left behind may still write after it has ended.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// A line that is longer is written in parts.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How much of a log gives way to how its container ended, on a full disk: some blocks.
const GIVEN_UP_BYTES: usize = 16 * 1024;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) command: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) directory: PathBuf,
    pub(super) log_bytes_max: u64,
    /// For other commands in the container.
    #[serde(default)]
    pub(super) whom: Whom,
    /// Whether the process of the command stands only at the beginning of the container's.
    #[serde(default)]
    pub(super) has_init: bool,
    /// Whether the end of its log stands in for last words, if it fails without any.
    #[serde(default)]
    pub(super) says_last_what_it_logs: bool,
    #[serde(default)]
    pub(super) channel: Channel,
}

/// How people can talk with a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Channel {
    pub(super) has_input: bool,
    /// Whether the first who brings input is the last.
    pub(super) is_once: bool,
    pub(super) has_terminal: bool,
}

impl Channel {
    pub(super) fn of(container: &Container) -> Self {
        let is = |flag: Option<bool>| flag == Some(true);
        Channel {
            has_input: is(container.stdin),
            is_once: is(container.stdin_once),
            has_terminal: is(container.tty),
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) at: Timestamp,
    /// Why its program never began, if it did not.
    #[serde(default)]
    pub(super) failure: Option<String>,
}

/// What the command in [`ProcessConfig::shim`](super::ProcessConfig::shim) must call, with the
/// words that were appended to it.
pub fn main(words: &[OsString]) -> ExitCode {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let done = match words[..] {
        ["run", directory] => run(&Place::at(directory.into())),
        _ => stand_in::run(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(place: &Place) -> io::Result<()> {
    // Signals for the agent's terminal are none for its pods. Who leads a group already may not.
    let _ = rustix::process::setsid();
    match start(place) {
        Ok(running) => {
            say(&format!("started {}", running.child.id()))?;
            running.finish(place)
        }
        Err(error) => say(&format!("failed {error}")),
    }
}

/// Tells the agent, which waits for this line.
fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

struct Running {
    child: std::process::Child,
    outputs: Vec<(&'static str, Box<dyn Read + Send>)>,
    hall: Arc<Hall>,
    /// Open for as long as this process lives.
    _alive: File,
    log_bytes_max: u64,
}

fn start(place: &Place) -> io::Result<Running> {
    let order = place.order()?;
    let alive = place.alive();
    let _ = fs::remove_file(&alive);
    let alive = pipe_at(&alive)?;
    let (program, arguments) = order
        .command
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
    // What it leaves behind becomes ours, wherever it has gone.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let (report, told) = io::pipe()?;
    let own_path = order.variables.get("PATH").map_or(PATH, String::as_str);
    let terminal = order.channel.has_terminal.then(exec::terminal).transpose()?;
    let output = || match &terminal {
        Some((_, theirs)) => theirs.try_clone().map(Stdio::from),
        None => Ok(Stdio::piped()),
    };
    // There from the beginning, since the container opens it, which waits for us.
    let input = place.input();
    let has_pipe = order.channel.has_input && terminal.is_none();
    let held = has_pipe.then(|| pipe_at(&input)).transpose()?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&order.variables)
        // The machine's tools come first.
        .env("PATH", PATH)
        .env(OWN_PATH, own_path)
        .current_dir(&order.directory)
        .stdin(told)
        .stdout(output()?)
        .stderr(output()?)
        .process_group(0)
        .spawn()?;
    place.write_pid(child.id())?;
    if let Err(why) = begins(report) {
        end_all(&mut child);
        return Err(why);
    }
    let (outputs, input) = match terminal {
        Some((ours, _)) => {
            let output: Box<dyn Read + Send> = Box::new(File::from(ours.try_clone()?));
            (vec![("stdout", output)], Some(attach::Input::Terminal(ours.into())))
        }
        None => {
            let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
            let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
            let outputs = [("stdout", stdout), ("stderr", stderr)].into_iter();
            let input = has_pipe.then(|| OpenOptions::new().write(true).open(&input));
            let outputs = outputs.filter_map(|(name, pipe)| Some((name, pipe?))).collect();
            (outputs, input.transpose()?.map(attach::Input::Pipe))
        }
    };
    drop(held);
    let hall = Hall::open(place, input, order.channel);
    Ok(Running { child, outputs, hall, _alive: alive, log_bytes_max: order.log_bytes_max })
}

/// Makes a named pipe and holds it open. For reading too: nobody need be there to read.
fn pipe_at(path: &Path) -> io::Result<File> {
    let _ = fs::remove_file(path);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )?;
    OpenOptions::new().read(true).write(true).open(path)
}

/// Waits until a container's program begins.
///
/// # Errors
/// Why it does not.
fn begins(report: impl Read) -> io::Result<()> {
    let mut said = Vec::new();
    for line in BufReader::new(report).lines() {
        match line? {
            line if line == BEGINS => return Ok(()),
            line => said.push(line),
        }
    }
    match said.is_empty() {
        true => Err(io::Error::other("it ended before its program began")),
        false => Err(io::Error::other(said.join("; "))),
    }
}

/// Ends all that is left of a container, and waits for it.
fn end_all(child: &mut std::process::Child) {
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    // Those who have left the group are children of ours by now, or of such.
    let own = rustix::process::getpid().as_raw_nonzero().get();
    loop {
        for left in tree::descendants(own, &tree::all()) {
            if let Some(pid) = Pid::from_raw(left) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        if rustix::process::wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

impl Running {
    fn finish(mut self, place: &Place) -> io::Result<()> {
        let log = Arc::new(Mutex::new(Log::open(place, self.log_bytes_max)?));
        let (done, all_done) = mpsc::channel::<()>();
        for (stream, pipe) in self.outputs.drain(..) {
            let (log, hall, done) = (Arc::clone(&log), Arc::clone(&self.hall), done.clone());
            // Ends with the pipe, or with this process.
            thread::spawn(move || {
                copy(Told { pipe, stream, hall }, stream, &log);
                drop(done);
            });
        }
        drop(done);
        let status = self.child.wait()?;
        // What it started goes with it.
        end_all(&mut self.child);
        let _ = all_done.recv_timeout(DRAIN_MAX);
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        let exit = Exit { code, at: now(), failure: None };
        place.write_exit(&exit).or_else(|_| {
            // On a full disk how it ended is worth more than what it said.
            log.lock().unwrap_or_else(PoisonError::into_inner).give_up()?;
            place.write_exit(&exit)
        })
    }
}

/// What a container writes, which whoever is attached is told at once.
struct Told {
    pipe: Box<dyn Read + Send>,
    stream: &'static str,
    hall: Arc<Hall>,
}

impl Read for Told {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.pipe.read(bytes)?;
        self.hall.tell(self.stream, &bytes[..n_bytes]);
        Ok(n_bytes)
    }
}

/// Copies what a container writes, line by line, until it writes no more.
fn copy(pipe: impl Read, stream: &str, log: &Mutex<Log>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limited = (&mut pipe).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line);
        if !matches!(limited, Ok(1..)) {
            return;
        }
        let is_full = line.last() == Some(&b'\n');
        if is_full {
            line.pop();
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk costs lines of the log, not the container.
        let _ = log.write(&entry(now(), stream, is_full, &line));
    }
}

/// A line as CRI has it: when, where, whether it is a whole one, and what.
pub(super) fn entry(at: Timestamp, stream: &str, is_full: bool, line: &[u8]) -> Vec<u8> {
    let tag = if is_full { 'F' } else { 'P' };
    let mut entry = format!("{at:.9} {stream} {tag} ").into_bytes();
    entry.extend_from_slice(line);
    entry.push(b'\n');
    entry
}

/// A file that begins anew when it is full; the one before is kept.
struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl Log {
    fn open(place: &Place, bytes_max: u64) -> io::Result<Self> {
        let path = place.log();
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Log { path, file, bytes, bytes_max })
    }

    fn write(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + entry.len() as u64 > self.bytes_max {
            fs::rename(&self.path, self.path.with_extension("1"))?;
            self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            self.bytes = 0;
        }
        let written = self.file.write_all(entry);
        match written {
            Ok(()) => self.bytes += entry.len() as u64,
            // Half a line would run into the next.
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }

    /// Gives up lines, for the sake of what is more important: the oldest if they are by themselves,
    /// else the newest.
    fn give_up(&mut self) -> io::Result<()> {
        if fs::remove_file(self.path.with_extension("1")).is_ok() {
            return Ok(());
        }
        let text = fs::read(&self.path)?;
        let kept = &text[..text.len().saturating_sub(GIVEN_UP_BYTES)];
        let lines_end = kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.bytes = lines_end as u64;
        self.file.set_len(self.bytes)
    }
}

fn now() -> Timestamp {
    Clock::system().now()
}
