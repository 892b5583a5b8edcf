//! Crashes: a child process writes, reports what was acknowledged, and loses its power.
//!
//! The child runs under a shim ([`power`]) that kills it at a chosen moment; then everything it
//! had not synced is taken from its files. Whatever was acknowledged must still be there, no
//! number may come twice, and after a failed sync nothing more may be acknowledged. A child that
//! never syncs must be caught: a test that cannot fail proves nothing.
//!
//! `KUBEWRIGHT_CRASHES` sets how many crashes there are; the default suits an ordinary test run.
//! `KUBEWRIGHT_CRASH_FIRST` is the number of the first store, where others than 1 have other crashes.

mod child;
mod power;
mod witness;

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::layout::{self, Place};
use super::recovery::FIRST;
use power::{Loss, Outage, Shim};
use witness::{Random, Witness};

/// After this many crashes a directory has seen enough, and the next one starts from nothing.
const CRASHES_PER_STORE: u32 = 25;

const SIGKILL: i32 = 9;

#[test]
fn acknowledged_writes_survive_loss_of_power() {
    for (store, mut random) in stores(20) {
        let mut site = Site::new();
        let crashes = CRASHES_PER_STORE.min(crashes(20));
        for crash in 0..crashes {
            // The first commits of a child are a time of their own: it has promised nothing yet.
            let latest = if random.below(3) == 0 { 10 } else { 400 };
            let outage = Outage { kill_at: Some(1 + random.below(latest)), ..Outage::default() };
            // Now and then somebody starts it again before the power goes.
            let loss = match random.below(5) {
                0 => Loss::Nothing,
                1 | 2 => Loss::Everything,
                _ => Loss::Some,
            };
            site.crash(&outage, &[], loss, &mut random)
                .unwrap_or_else(|lie| panic!("store {store}, crash {crash}, {outage:?}: {lie}"));
        }
        assert!(site.witness.acknowledged() > 0, "no child ever got to write");
        assert!(!Place::Log(FIRST).path(&layout::data(&site.dir)).exists(), "its first log lasted");
    }
}

#[test]
fn nothing_is_acknowledged_after_a_failed_sync() {
    for (store, mut random) in stores(8) {
        let mut site = Site::new();
        for crash in 0..CRASHES_PER_STORE.min(crashes(8)) {
            let outage = Outage { fail_sync_at: Some(1 + random.below(150)), ..Outage::default() };
            let loss = if random.below(3) == 0 { Loss::Nothing } else { Loss::Everything };
            site.crash(&outage, &[], loss, &mut random)
                .unwrap_or_else(|lie| panic!("store {store}, crash {crash}, {outage:?}: {lie}"));
        }
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    for (store, mut random) in stores(8) {
        let mut site = Site::new();
        for crash in 0..CRASHES_PER_STORE.min(crashes(8)) {
            let outage = Outage { space: Some(random.below(1_500_000)), ..Outage::default() };
            let loss = if random.below(2) == 0 { Loss::Everything } else { Loss::Some };
            site.crash(&outage, &[], loss, &mut random)
                .unwrap_or_else(|lie| panic!("store {store}, crash {crash}, {outage:?}: {lie}"));
        }
    }
}

#[test]
fn a_store_that_never_syncs_is_caught() {
    let mut random = Random::new(1);
    let mut site = Site::new();
    let caught = (0..10).find_map(|_| {
        let outage = Outage { kill_at: Some(150 + random.below(200)), ..Outage::default() };
        site.crash(&outage, &[(child::NEVER_SYNC, "1")], Loss::Everything, &mut random).err()
    });
    assert!(caught.is_some(), "the test does not notice lost writes");
}

/// How many crashes to cause in all.
fn crashes(otherwise: u32) -> u32 {
    crashes_asked_for().unwrap_or(otherwise)
}

fn crashes_asked_for() -> Option<u32> {
    let count = std::env::var("KUBEWRIGHT_CRASHES").ok()?;
    Some(count.parse().expect("KUBEWRIGHT_CRASHES is a number"))
}

/// As many stores as it takes.
fn stores(otherwise: u32) -> impl Iterator<Item = (u32, Random)> {
    numbered(crashes(otherwise).div_ceil(CRASHES_PER_STORE))
}

/// One source of randomness for each store; the same in every run.
fn numbered(count: u32) -> impl Iterator<Item = (u32, Random)> {
    let first = std::env::var("KUBEWRIGHT_CRASH_FIRST")
        .map_or(1, |first| first.parse().expect("KUBEWRIGHT_CRASH_FIRST is a number"));
    (first..first + count).map(|store| (store, Random::new(u64::from(store))))
}

/// A store that keeps being crashed.
struct Site {
    shim: Shim,
    witness: Witness,
    dir: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        // The shim compares paths with those that the kernel knows.
        let place = scratch.path().canonicalize().unwrap();
        let disk = place.join("disk");
        std::fs::create_dir(&disk).unwrap();
        let dir = disk.join("store");
        let shim = Shim::build(&place, &disk);
        Self { shim, witness: Witness::default(), dir, _scratch: scratch }
    }

    /// Runs a child until its outage, takes what was not synced, and asks the witness.
    fn crash(
        &mut self,
        outage: &Outage,
        environment: &[(&str, &str)],
        loss: Loss,
        random: &mut Random,
    ) -> Result<(), witness::Lie> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["embedded::crash::child::write_until_stopped", "--exact", "--nocapture"])
            .arg("--test-threads=1")
            .env(child::DIR, &self.dir)
            .env(child::SEED, random.below(1 << 32).to_string())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        self.shim.preload(&mut command, outage);
        let output = command.output().unwrap();
        let killed = outage.kill_at.is_some() && output.status.signal() == Some(SIGKILL);
        assert!(killed || output.status.success(), "the child ended with {}", output.status);
        if loss != Loss::Nothing {
            self.shim.lose_power(loss, random);
        }
        let report = String::from_utf8_lossy(&output.stdout);
        let copy = self.shim.copy_of_disk().join("store");
        self.witness.hear(&report, &copy)
    }
}
