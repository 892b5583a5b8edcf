//! What a node is made of: of this machine, or made up.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// What a node says about the machine it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Where pods and their node are reached.
    pub address: IpAddr,
    /// What there is of each resource.
    pub capacity: BTreeMap<String, Quantity>,
    pub architecture: String,
    pub os: String,
    pub os_image: String,
    pub kernel_version: String,
    pub machine_id: String,
    pub system_uuid: String,
    pub boot_id: String,
}

/// How many pods a node takes.
const PODS_MAX: &str = "110";

impl Machine {
    /// A machine that does not exist: 32 processors and 256 GiB, on which nothing runs.
    pub fn simulated() -> Self {
        Machine {
            capacity: resources([
                ("cpu", "32"),
                ("ephemeral-storage", "1Ti"),
                ("hugepages-1Gi", "0"),
                ("hugepages-2Mi", "0"),
                ("memory", "256Gi"),
                ("pods", PODS_MAX),
            ]),
            os_image: "none".to_owned(),
            kernel_version: "none".to_owned(),
            machine_id: String::new(),
            system_uuid: String::new(),
            boot_id: String::new(),
            ..Machine::this()
        }
    }

    /// The machine that this runs on, which others reach at the loopback address.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = memory(&read("/proc/meminfo"));
        let machine_id = read("/etc/machine-id");
        Machine {
            address: Ipv4Addr::LOCALHOST.into(),
            capacity: resources([
                ("cpu", processors.to_string().as_str()),
                ("ephemeral-storage", &disk()),
                ("hugepages-1Gi", "0"),
                ("hugepages-2Mi", "0"),
                ("memory", &memory),
                ("pods", PODS_MAX),
            ]),
            architecture: architecture().to_owned(),
            os: if cfg!(target_os = "macos") { "darwin" } else { "linux" }.to_owned(),
            os_image: os_image(&read("/etc/os-release")),
            kernel_version: read("/proc/sys/kernel/osrelease"),
            system_uuid: machine_id.clone(),
            machine_id,
            boot_id: read("/proc/sys/kernel/random/boot_id"),
        }
    }
}

fn resources<const N: usize>(amounts: [(&str, &str); N]) -> BTreeMap<String, Quantity> {
    amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into()
}

/// As Go calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The first line of `/proc/meminfo` says how much memory there is.
pub(super) fn memory(meminfo: &str) -> String {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|total| total.trim().strip_suffix(" kB"));
    kibibytes.map_or_else(|| "0".to_owned(), |kibibytes| format!("{kibibytes}Ki"))
}

fn disk() -> String {
    let kibibytes = rustix::fs::statvfs("/").map_or(0, |disk| disk.f_blocks * disk.f_frsize / 1024);
    format!("{kibibytes}Ki")
}

pub(super) fn os_image(os_release: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}
