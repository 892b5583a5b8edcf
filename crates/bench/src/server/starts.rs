//! How long a cluster in memory takes to start, for tests that want one each.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kubewright_cluster::{Clock, Cluster, Config, Names, Storage, Terms};

use crate::table::median;

const CLUSTERS: usize = 20;
/// A process is over in a moment, and so may be measured while something else is done.
const PROCESSES: usize = 9;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Of fresh processes: the median of their first starts and that of later ones, in seconds.
pub(super) fn measure() -> Result<(f64, f64)> {
    let program = std::env::current_exe().context("find this program")?;
    let (mut firsts, mut laters) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        let output = Command::new(&program).arg("starts").output().context("start clusters")?;
        let text = String::from_utf8(output.stdout).context("read figures")?;
        let mut figures = text.split_whitespace().map(|figure| figure.parse::<f64>());
        let mut next = || figures.next().context("read figures")?.context("read figures");
        firsts.push(next()?);
        laters.push(next()?);
    }
    Ok((median(&firsts), median(&laters)))
}

/// The fresh process.
pub(crate) fn run(_: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let mut times = Vec::new();
    for _ in 0..=CLUSTERS {
        let start = Instant::now();
        let controllers = Names::all();
        let (storage, clock) = (Storage::Memory, Clock::System);
        let terms = Terms::default();
        let config =
            Config { storage, listen: None, clock, controllers, nodes: None, audit: None, terms };
        let cluster = runtime.block_on(Cluster::start(config))?;
        times.push(start.elapsed());
        runtime.block_on(cluster.shutdown());
    }
    let later: Duration = median(&times[1..]);
    println!("{} {}", times[0].as_secs_f64(), later.as_secs_f64());
    Ok(())
}
