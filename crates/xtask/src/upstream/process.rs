//! Child processes that never outlive us, however we end.
//!
//! A child is started through this program itself, which first asks the kernel to kill it with its
//! parent and then becomes the real program. So neither a panic nor a `kill -9` leaves one behind.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::IsTerminal as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, getppid, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How much of a log helps; the end is where programs say why they stopped.
const TAIL_LINES: usize = 30;
const TAIL_LINE_CHARS: usize = 400;

/// The signal that asked us to end; 0 while none did.
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);
/// The process that signals are passed on to: positive for one process, negative for a group.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// A program, running in a process group of its own, with its log in a file.
pub(crate) struct Component {
    pub(crate) name: &'static str,
    child: Child,
    log: PathBuf,
}

/// A command that starts `program` and dies with us.
pub(crate) fn dependent(program: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.arg("exec-with-parent").arg(std::process::id().to_string()).arg("--").arg(program);
    Ok(command)
}

/// Runs a command until it ends, or until we are asked to end, and gives its exit code. `complete`
/// says what it is to know.
pub(crate) fn run_command(command: &[OsString], complete: impl FnOnce(&mut Command)) -> Result<u8> {
    let mut dependent: Command = dependent(&command[0])?;
    dependent.args(&command[1..]);
    complete(&mut dependent);
    // At a terminal the command must stay in the foreground group to read from it, and gets
    // the terminal's signals itself. Elsewhere a group of its own lets us stop all of it.
    let own_group = !std::io::stdin().is_terminal();
    if own_group {
        dependent.process_group(0);
    }
    let mut child = dependent.spawn().context("start the command")?;
    let pid = Pid::from_child(&child).as_raw_pid();
    COMMAND.store(if own_group { -pid } else { pid }, Ordering::SeqCst);
    let status = child.wait().context("wait for the command")?;
    COMMAND.store(0, Ordering::SeqCst);
    if own_group {
        kill_group(&child, Signal::KILL);
    }
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Whether somebody has asked us to end.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst) != 0
}

/// The first signal ends the command, and with it the run; the second ends us at once.
pub(crate) fn pass_signals_on() -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .context("listen to signals")?;
    thread::spawn(move || {
        for number in signals.forever() {
            if INTERRUPTED.swap(number, Ordering::SeqCst) != 0 {
                std::process::exit(128 + number);
            }
            let target = COMMAND.load(Ordering::SeqCst);
            let signal = if number == SIGINT { Signal::INT } else { Signal::TERM };
            // That the command has ended already is what we want.
            let _ = match Pid::from_raw(target.abs()) {
                Some(group) if target < 0 => kill_process_group(group, signal),
                // The terminal has told it already.
                Some(_) if number == SIGINT => Ok(()),
                Some(pid) => kill_process(pid, signal),
                None => Ok(()),
            };
        }
    });
    Ok(())
}

/// The child's half of `dependent`; returns only when it fails.
pub fn exec_with_parent(parent: u32, command: &[OsString]) -> Result<ExitCode> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("ask to end with the parent")?;
    // The parent may have ended before we asked.
    if getppid().map(Pid::as_raw_pid) != i32::try_from(parent).ok() {
        bail!("the parent is gone");
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    Err(error).with_context(|| format!("start {}", command[0].display()))
}

impl Component {
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        folder: &Path,
        arguments: &[String],
    ) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| format!("make {}", log.display()))?;
        let child = dependent(program)?
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("share the log")?)
            .stderr(output)
            // Ctrl-C is for us; we stop our components ourselves.
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {name}"))?;
        Ok(Self { name, child, log })
    }

    /// Ends it, as far as it can be.
    pub(crate) fn stop(&mut self) {
        kill_group(&self.child, Signal::KILL);
        // It was killed; there is nothing left to say about how it ended.
        let _ = self.child.wait();
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("look after {}", self.name))
    }

    /// The end of its log.
    pub(crate) fn tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<String> =
            log.lines().map(|line| line.chars().take(TAIL_LINE_CHARS).collect()).collect();
        let end = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("--- end of the log of {}:\n{}\n", self.name, end.join("\n"))
    }
}

impl Drop for Component {
    /// Kills at once: nothing it holds is worth a goodbye.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Signals a child that leads a process group, with all its group.
pub(crate) fn kill_group(child: &Child, signal: Signal) {
    // That it has ended already is what we want.
    let _ = kill_process_group(Pid::from_child(child), signal);
}
