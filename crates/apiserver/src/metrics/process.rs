//! What the operating system knows about this process. Elsewhere than on Linux, nothing.

use std::fs;

use super::text::{Kind, Page};

/// What `/proc` says about a process.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    cpu_seconds: f64,
    start_seconds: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
}

/// Upstream's kernels count in hundredths of a second, whatever their own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// When the process started, in seconds since 1970.
pub(super) fn start_seconds() -> Option<f64> {
    read().map(|process| process.start_seconds)
}

pub(super) fn write(page: &mut Page) {
    let Some(process) = read() else { return };
    let mut one = |name, kind, help, value| {
        page.family(name, kind, help);
        page.sample(&[], value);
    };
    one(
        "process_cpu_seconds_total",
        Kind::Counter,
        "Total user and system CPU time spent in seconds.",
        process.cpu_seconds,
    );
    if let Some(limit) = limit("Max open files") {
        let help = "Maximum number of open file descriptors.";
        one("process_max_fds", Kind::Gauge, help, limit);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        let help = "Number of open file descriptors.";
        one("process_open_fds", Kind::Gauge, help, files.count() as f64);
    }
    one(
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Resident memory size in bytes.",
        process.resident_bytes,
    );
    one(
        "process_start_time_seconds",
        Kind::Gauge,
        "Start time of the process since unix epoch in seconds.",
        process.start_seconds,
    );
    one(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Virtual memory size in bytes.",
        process.virtual_bytes,
    );
    // Whoever has no limit has all that can be counted.
    let virtual_max = limit("Max address space").unwrap_or(u64::MAX as f64);
    let help = "Maximum amount of virtual memory available in bytes.";
    one("process_virtual_memory_max_bytes", Kind::Gauge, help, virtual_max);
}

fn read() -> Option<Process> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    parse(&stat, &system, rustix::param::page_size())
}

fn limit(name: &str) -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `stat` is of the process, `system` of the machine, which knows when it was started.
fn parse(stat: &str, system: &str, page_bytes: usize) -> Option<Process> {
    // The second field is the name, which may contain anything; what follows is numbers.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.trim().parse::<f64>().ok();
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(Process {
        cpu_seconds: (number(11)? + number(12)?) / TICKS_PER_SECOND,
        start_seconds: boot.trim().parse::<f64>().ok()? + number(19)? / TICKS_PER_SECOND,
        virtual_bytes: number(20)?,
        resident_bytes: number(21)? * page_bytes as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "4711 (odd ) name) S 1 1 1 0 -1 4194560 9 0 0 0 150 25 0 0 20 0 8 0 250 \
                    1742716928 1000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n";
        let system = "cpu 1 2 3\nbtime 1700000000\nprocesses 7\n";
        let expected = Process {
            cpu_seconds: 1.75,
            start_seconds: 1_700_000_002.5,
            virtual_bytes: 1_742_716_928.0,
            resident_bytes: 4_096_000.0,
        };
        assert_eq!(parse(stat, system, 4096), Some(expected));
        assert_eq!(parse("4711 (short) S 1", system, 4096), None);
    }
}
