//! What the figures were measured on, and how much processor time this process has used.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// One line that names the machine: processor, cores, kernel, file system under `dir`.
pub(crate) fn describe(dir: &Path) -> Result<String> {
    let cores = std::thread::available_parallelism().context("count cores")?;
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system = std::env::consts::OS;
    let filesystem = filesystem(dir)?;
    Ok(format!("{cores} cores of {model}, {system} {}, data on {filesystem}", kernel.trim()))
}

/// Type and device of the file system that holds `dir`: the longest mount point above it.
fn filesystem(dir: &Path) -> Result<String> {
    let dir = dir.canonicalize().context("find the data directory")?;
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let holding = fields.filter(|(_, point, _)| dir.starts_with(point));
    let (device, _, kind) =
        holding.max_by_key(|(_, point, _)| point.len()).unwrap_or(("?", "/", "unknown"));
    Ok(format!("{kind} ({device})"))
}

/// The processor time that all living threads of this process have used.
pub(crate) fn processor_time() -> Result<Duration> {
    processor_time_of(std::process::id())
}

/// The same of another process.
pub(crate) fn processor_time_of(pid: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("list threads")? {
        let path = thread.context("list threads")?.path().join("schedstat");
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(path) else { continue };
        let on_cpu = text.split(' ').next().and_then(|field| field.parse::<u64>().ok());
        nanoseconds += on_cpu.context("read schedstat")?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// The memory of a process that is in RAM.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// What of it is the process's own, and not a page of a file that the kernel may drop at any time.
pub(crate) fn own_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "RssAnon:")
}

/// The most that it ever was.
pub(crate) fn peak_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("read the status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kilobytes.context("read the resident size")? * 1024)
}

/// How many processes wanted to run, on average over 1, 5 and 15 minutes.
pub(crate) fn load_average() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("read the load average")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(", "))
}
