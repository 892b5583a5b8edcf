//! What the machine knows of this process, under the names that Prometheus' libraries share.
//!
//! There is something to tell only where there is a `/proc`.

use std::fmt::Error;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Tells of the process whenever metrics are read.
#[derive(Debug)]
pub struct Process(());

/// What there is to tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Facts {
    pub(super) cpu_seconds: f64,
    pub(super) start_seconds: f64,
    pub(super) virtual_bytes: u64,
    pub(super) resident_bytes: u64,
}

impl Process {
    pub fn register(registry: &mut Registry) {
        registry.register_collector(Box::new(Process(())));
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut tell = |name, help, metric: &dyn Metric| metric.tell(&mut encoder, name, help);
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second();
        let page = rustix::param::page_size() as u64;
        if let Some(facts) = facts(&read("/proc/self/stat"), &read("/proc/stat"), ticks, page) {
            tell(
                "process_cpu_seconds",
                "Total user and system CPU time spent in seconds",
                &ConstCounter::new(facts.cpu_seconds),
            )?;
            tell(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds",
                &ConstGauge::new(facts.start_seconds),
            )?;
            tell(
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes",
                &ConstGauge::new(facts.virtual_bytes as f64),
            )?;
            tell(
                "process_resident_memory_bytes",
                "Resident memory size in bytes",
                &ConstGauge::new(facts.resident_bytes as f64),
            )?;
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The directory itself is open while it is read.
            let open = open.count().saturating_sub(1);
            let help = "Number of open file descriptors";
            tell("process_open_fds", help, &ConstGauge::new(open as f64))?;
        }
        if let Some(max) = open_files_max(&read("/proc/self/limits")) {
            let help = "Maximum number of open file descriptors";
            tell("process_max_fds", help, &ConstGauge::new(max))?;
        }
        Ok(())
    }
}

/// A metric of any type.
trait Metric {
    fn tell(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> Result<(), Error>;
}

impl<M: EncodeMetric> Metric for M {
    fn tell(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> Result<(), Error> {
        self.encode(encoder.encode_descriptor(name, help, None, self.metric_type())?)
    }
}

/// From `/proc/self/stat` and `/proc/stat`.
pub(super) fn facts(own: &str, machine: &str, ticks: u64, page: u64) -> Option<Facts> {
    // The name of the program is in parentheses, and may have any letters.
    let (_, rest) = own.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of these is the third in the manual.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim();
    let booted: f64 = booted.parse().ok()?;
    let seconds = |count: u64| count as f64 / ticks as f64;
    Some(Facts {
        cpu_seconds: seconds(field(14)? + field(15)?),
        start_seconds: booted + seconds(field(22)?),
        virtual_bytes: field(23)?,
        resident_bytes: field(24)? * page,
    })
}

/// From `/proc/self/limits`: the soft limit.
pub(super) fn open_files_max(limits: &str) -> Option<f64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match limit.split_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        number => number.parse().ok(),
    }
}
