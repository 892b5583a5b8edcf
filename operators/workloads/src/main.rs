//! `workloads`: a program that uses the API.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use kubewright::connect::{self, Options};
use workloads::{Show, run};

#[derive(Parser)]
#[command(version, about = "Runs a service in a namespace of its own until it is interrupted")]
struct Cli {
    /// Which cluster [default: that of the pod, of $KUBECONFIG, or of ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { kubeconfig } = Cli::parse();
    let environment = |name: &str| std::env::var_os(name);
    let connection = connect::find(kubeconfig.as_deref(), environment).await?;
    let client = connection.client(&Options::default())?;
    let interrupted = async {
        tokio::signal::ctrl_c().await.context("listen for signals")?;
        // What the terminal prints of Ctrl-C has no end of line.
        println!();
        Ok(())
    };
    run(&client, "foo", Show::new(|line| println!("{line}")), interrupted).await
}
