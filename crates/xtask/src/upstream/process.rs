//! Child processes that never outlive us, however we end.
//!
//! A child is started through this program itself, which first asks the kernel to kill it with its
//! parent and then becomes the real program. So neither a panic nor a `kill -9` leaves one behind.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, getppid, kill_process_group};

/// How much of a log helps; the end is where programs say why they stopped.
const TAIL_LINES: usize = 30;
const TAIL_LINE_CHARS: usize = 400;

/// A program of upstream's, running in a process group of its own, with its log in a file.
pub(super) struct Component {
    pub(super) name: &'static str,
    child: Child,
    log: PathBuf,
}

/// A command that starts `program` and dies with us.
pub(super) fn dependent(program: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.arg("exec-with-parent").arg(std::process::id().to_string()).arg("--").arg(program);
    Ok(command)
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
    pub(super) fn start(
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

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("look after {}", self.name))
    }

    /// The end of its log.
    pub(super) fn tail(&self) -> String {
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
        kill_group(&self.child, Signal::KILL);
        // It was killed; there is nothing left to say about how it ended.
        let _ = self.child.wait();
    }
}

/// Signals a child that leads a process group, with all its group.
pub(super) fn kill_group(child: &Child, signal: Signal) {
    // That it has ended already is what we want.
    let _ = kill_process_group(Pid::from_child(child), signal);
}
