//! How long a store takes to open after its process was killed, with everything still there.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use kubewright_store::{Expect, Put, Store};
use tokio::task::JoinSet;

use super::config;
use super::writes::Noise;

pub(crate) const OBJECTS: usize = 100_000;
const WRITERS: usize = 64;
const FULL: &str = "full";

#[derive(Args)]
pub(crate) struct FillArguments {
    dir: PathBuf,
}

/// Lets another process fill a store, kills it, and opens what it left.
pub(crate) fn measure(dir: &Path) -> Result<Duration> {
    let program = std::env::current_exe().context("find this program")?;
    let mut victim = Command::new(program)
        .arg("fill")
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .context("start a process to kill")?;
    let mut line = String::new();
    let output = victim.stdout.take().context("read from the process")?;
    BufReader::new(output).read_line(&mut line).context("read from the process")?;
    victim.kill().context("kill the process")?;
    victim.wait().context("kill the process")?;
    ensure!(line.trim_end() == FULL, "the process to kill ended by itself");

    let start = Instant::now();
    let store = Store::embedded(dir, config())?;
    let elapsed = start.elapsed();
    let found = store.count("/registry/");
    ensure!(found == OBJECTS, "{OBJECTS} writes were acknowledged, {found} are there");
    eprintln!("  recovery: {:.0} ms", elapsed.as_secs_f64() * 1e3);
    Ok(elapsed)
}

/// The process to kill: acknowledges every object, then holds the store open.
pub(crate) fn fill(arguments: FillArguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let store = Store::embedded(&arguments.dir, config())?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let store = store.clone();
            tasks.spawn(async move {
                let mut noise = Noise::new(writer as u64);
                for number in (writer..OBJECTS).step_by(WRITERS) {
                    let key = format!("/registry/pods/namespace-{}/pod-{number}", number % 100);
                    store.put(Put::new(key, noise.value()).expect(Expect::Absent)).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.context("run a writer")??;
        }
        anyhow::Ok(())
    })?;
    println!("{FULL}");
    loop {
        std::thread::park();
    }
}
