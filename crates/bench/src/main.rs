//! Measurements, each side by side with upstream or the named peer on the same machine in one run.
//! Figures from here go into the documentation; tests measure nothing.

mod fleet;
mod machine;
mod operator;
mod peer;
mod scheduler;
mod server;
mod store;
mod table;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// What the command has, and what projects begin with: the bare server and the measured operators in
/// Rust have it as well, so that it is no part of any difference between them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// Reconciles, memory and starts of an operator on our library, next to others
    Operator(operator::Arguments),
    /// Pods that get a node, per second, next to kube-scheduler on the same API server
    Scheduler(scheduler::Arguments),
    /// A whole cluster of simulated nodes: how long until all pods run, and what that takes
    Fleet(fleet::Arguments),
    /// Fill a store, say so, and wait to be killed: the victim of the recovery measurement
    #[command(hide = true)]
    Fill(store::recovery::FillArguments),
    /// Answer reads with nothing but hyper: what the server is compared with
    #[command(hide = true)]
    Bare(server::BareArguments),
    /// Schedule pods until killed: what is measured beside kube-scheduler
    #[command(hide = true)]
    Schedule(scheduler::ScheduleArguments),
    /// Start clusters in memory and say how long it took
    #[command(hide = true)]
    Starts(server::StartsArguments),
    /// Be the measured operator
    #[command(hide = true)]
    Operate(operator::OperateArguments),
}

fn main() -> Result<()> {
    match Arguments::parse().subject {
        Subject::Store(arguments) => store::run(arguments),
        Subject::Server(arguments) => server::run(arguments),
        Subject::Operator(arguments) => operator::run(arguments),
        Subject::Operate(arguments) => operator::play(arguments),
        Subject::Scheduler(arguments) => scheduler::run(arguments),
        Subject::Schedule(arguments) => scheduler::schedule(arguments),
        Subject::Fleet(arguments) => fleet::run(arguments),
        Subject::Fill(arguments) => store::recovery::fill(arguments),
        Subject::Bare(arguments) => server::serve_bare(arguments),
        Subject::Starts(arguments) => server::run_starts(arguments),
    }
}
