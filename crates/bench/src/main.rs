//! Measurements, each side by side with upstream or the named peer on the same machine in one run.
//! Figures from here go into the documentation; tests measure nothing.

mod machine;
mod peer;
mod server;
mod store;
mod table;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about, version)]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// Durable writes, recovery and watch fan-out of the store, next to etcd and the bare engine
    Store(store::Arguments),
    /// Starts, memory, writes, reads, lists and watches of the server, next to upstream with etcd
    Server(server::Arguments),
    /// Fill a store, say so, and wait to be killed: the victim of the recovery measurement
    #[command(hide = true)]
    Fill(store::recovery::FillArguments),
    /// Answer reads with nothing but hyper: what the server is compared with
    #[command(hide = true)]
    Bare(server::BareArguments),
    /// Start clusters in memory and say how long it took
    #[command(hide = true)]
    Starts(server::StartsArguments),
}

fn main() -> Result<()> {
    match Arguments::parse().subject {
        Subject::Store(arguments) => store::run(arguments),
        Subject::Server(arguments) => server::run(arguments),
        Subject::Fill(arguments) => store::recovery::fill(arguments),
        Subject::Bare(arguments) => server::serve_bare(arguments),
        Subject::Starts(arguments) => server::run_starts(arguments),
    }
}
