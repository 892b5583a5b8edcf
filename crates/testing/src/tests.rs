//! The library's parts on a real server: they may not know it, so their tests are here.

mod certificates;
mod context;
mod controllers;
mod declared;
mod election;
mod golang;
mod informers;
mod manifests;
mod mishaps;
mod node;
mod operators;
mod replicas;
mod scheduler;
mod serving;
mod shards;
mod traces;
mod webhooks;
mod workloads;

/// How often a test that is decided by a seed runs: `KUBEWRIGHT_RUNS`, or so often.
fn runs(otherwise: u64) -> u64 {
    std::env::var("KUBEWRIGHT_RUNS")
        .map_or(otherwise, |count| count.parse().expect("KUBEWRIGHT_RUNS is a number"))
}

/// Numbers that a seed decides.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
