//! An operator as a process of its own, which tells when its cache is filled.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::sync::mpsc;

use crate::machine;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Who uses less of a second has nothing to do.
const IDLE: Duration = Duration::from_millis(10);

/// Ends when dropped.
pub(super) struct Program {
    child: Child,
    start: Instant,
    told: mpsc::UnboundedReceiver<(String, Duration)>,
}

/// What it holds when it has nothing more to do.
pub(super) struct Settled {
    pub(super) resident: f64,
    /// Without pages of programs and other files.
    pub(super) own: f64,
    pub(super) peak: f64,
    pub(super) processor: Duration,
}

impl Program {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let start = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            command.spawn().with_context(|| format!("start {:?}", command.get_program()))?;
        let output = child.stdout.take().context("hear from the operator")?;
        let (tell, told) = mpsc::unbounded_channel();
        // Ends when the operator does.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send((line, start.elapsed())).is_err() {
                    return;
                }
            }
        });
        Ok(Program { child, start, told })
    }

    /// When it told this, from its start.
    pub(super) async fn hear(&mut self, word: &str) -> Result<Duration> {
        match tokio::time::timeout(PATIENCE, self.told.recv()).await {
            Ok(Some((told, at))) if told == word => Ok(at),
            Ok(Some((told, _))) => bail!("it told {told:?}, and not {word:?}"),
            Ok(None) => bail!("it ended and has not told {word:?}"),
            Err(_) => bail!("it has not told {word:?} in {PATIENCE:?}"),
        }
    }

    /// Waits until it has nothing to do.
    pub(super) async fn settle(&self) -> Result<Settled> {
        let mut processor = self.processor_time()?;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.processor_time()?;
            if now - processor < IDLE {
                break;
            }
            processor = now;
            ensure!(self.start.elapsed() < PATIENCE, "it is still busy after {PATIENCE:?}");
        }
        let id = self.child.id();
        Ok(Settled {
            resident: machine::resident_bytes(id)? as f64,
            own: machine::own_bytes(id)? as f64,
            peak: machine::peak_bytes(id)? as f64,
            processor,
        })
    }

    pub(super) fn processor_time(&self) -> Result<Duration> {
        machine::processor_time_of(self.child.id())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing more to do about it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
