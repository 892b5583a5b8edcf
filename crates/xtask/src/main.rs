//! `cargo xtask`: the chores of this repository.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use kubewright_xtask::{
    containerd, envtest, long, oracle, record, tidy, transcripts, types, upstream,
};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Upstream Kubernetes and etcd as real binaries.
    #[command(subcommand)]
    Upstream(Upstream),
    /// Ask upstream the cases in `crates/apimachinery/fixtures` and keep its answers.
    Record {
        /// Ask the endpoint of KUBECONFIG instead of an upstream of our own.
        #[arg(long)]
        here: bool,
        /// Write nothing; fail when an answer differs from the recorded one.
        #[arg(long)]
        check: bool,
        /// Only these: `AREA` or `AREA/CASE`.
        only: Vec<String>,
    },
    /// Check the house rules.
    Tidy,
    /// Run everything that is slow, and note the results in docs/long.md.
    Long {
        /// Only lanes whose name contains one of these.
        only: Vec<String>,
    },
    /// Generate the table of built-in types, and examples of each, from upstream's Go types.
    Types {
        /// Ask the endpoint of KUBECONFIG instead of an upstream of our own.
        #[arg(long)]
        here: bool,
        /// Write nothing; fail when a file is not what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Run the sessions in `crates/cli/tests/it/kubectl` on upstream and keep what kubectl prints.
    Transcripts {
        /// Write nothing; fail when kubectl prints something else.
        #[arg(long)]
        check: bool,
    },
    /// Put random input to `apimachinery` and to upstream's own libraries, and compare.
    Oracle {
        /// How many questions a test asks.
        #[arg(long, default_value_t = 5_000)]
        cases: u32,
    },
    /// Run controller-runtime's test suites on upstream's programs and on ours, and note the results
    /// in docs/envtest.md.
    Envtest {
        /// Only these packages, and note nothing.
        only: Vec<String>,
    },
    /// Run a command beside a fresh containerd, with KUBEWRIGHT_CRI set to its socket; then stop it
    /// all. Installs Debian's packages where they are missing.
    Containerd {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Become a program that ends when its parent does; for our own use.
    #[command(hide = true)]
    ExecWithParent {
        parent: u32,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Subcommand)]
enum Upstream {
    /// Build the binaries into the user's cache folder, unless they are there.
    Build,
    /// Run a command beside a fresh upstream, with KUBECONFIG set; then stop it all.
    Run {
        /// Also start these.
        #[arg(long, value_delimiter = ',', value_name = "COMPONENT")]
        with: Vec<upstream::Extra>,
        /// Start kube-apiserver with this flag, too.
        #[arg(long = "apiserver-flag", value_name = "FLAG", allow_hyphen_values = true)]
        apiserver_flags: Vec<String>,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    run(Args::parse().chore).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(chore: Chore) -> Result<ExitCode> {
    match chore {
        Chore::Upstream(Upstream::Build) => {
            println!("{}", upstream::build()?.display());
            Ok(ExitCode::SUCCESS)
        }
        Chore::Upstream(Upstream::Run { with, apiserver_flags, command }) => {
            upstream::run(&with, &apiserver_flags, &command)
        }
        Chore::Record { here, check, only } => record::run(here, check, &only),
        Chore::Tidy => tidy::run(),
        Chore::Long { only } => long::run(&only),
        Chore::Types { here, check } => types::run(here, check),
        Chore::Transcripts { check } => transcripts::run(check),
        Chore::Oracle { cases } => oracle::run(cases),
        Chore::Envtest { only } => envtest::run(&only),
        Chore::Containerd { command } => containerd::run(&command),
        Chore::ExecWithParent { parent, command } => upstream::exec_with_parent(parent, &command),
    }
}
