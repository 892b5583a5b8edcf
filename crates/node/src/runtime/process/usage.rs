//! What processes use, and the whole machine, as the kernel counts it.

use std::fs;
use std::time::Duration;

use crate::runtime::Usage;

/// The sum of these processes; none if none of them is there.
pub(super) fn of(processes: impl IntoIterator<Item = i32>) -> Option<Usage> {
    let stats = processes.into_iter().map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")));
    let used = stats.filter_map(|stat| read(&stat.ok()?));
    used.reduce(|sum, used| Usage { cpu: sum.cpu + used.cpu, memory: sum.memory + used.memory })
}

/// What one process uses.
pub(super) fn read(stat: &str) -> Option<Usage> {
    // The name is in parentheses, and may have any in it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Its own, and that of children that have ended, which it has been told of.
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let page = rustix::param::page_size() as u64;
    Some(Usage {
        cpu: Duration::from_millis(ticks.saturating_mul(1000) / per_second),
        memory: number(21)? * page,
    })
}

/// What this machine uses, whoever does.
pub(in crate::runtime) fn of_machine() -> Option<Usage> {
    let (stat, memory) =
        (fs::read_to_string("/proc/stat").ok()?, fs::read_to_string("/proc/meminfo").ok()?);
    read_machine(&stat, &memory, rustix::param::clock_ticks_per_second())
}

pub(super) fn read_machine(stat: &str, meminfo: &str, per_second: u64) -> Option<Usage> {
    let times = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = times.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    // User, nice, system, then idle and waiting, then interrupts and what was stolen. Guests are in
    // the first two already.
    let busy =
        |range: std::ops::Range<usize>| times.get(range).unwrap_or_default().iter().sum::<u64>();
    let ticks = busy(0..3) + busy(5..8);
    let kibibytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    let used = kibibytes("MemTotal:")?.saturating_sub(kibibytes("MemAvailable:")?);
    Some(Usage {
        cpu: Duration::from_millis(ticks.saturating_mul(1000) / per_second.max(1)),
        memory: used * 1024,
    })
}
