//! Measurements, each side by side with upstream or the named peer on the same machine in one run.
//! Figures from here go into the documentation; tests measure nothing.

mod machine;
mod peer;
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
    /// Fill a store, say so, and wait to be killed: the victim of the recovery measurement
    #[command(hide = true)]
    Fill(store::recovery::FillArguments),
}

fn main() -> Result<()> {
    match Arguments::parse().subject {
        Subject::Store(arguments) => store::run(arguments),
        Subject::Fill(arguments) => store::recovery::fill(arguments),
    }
}
