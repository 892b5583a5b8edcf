//! `podpolicy`: webhooks that judge and complete pods.

use std::io;

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand};
use kubewright::manifest;
use kubewright::settings::Layer;
use podpolicy::Policy;

#[derive(Parser)]
#[command(version, about = "Gives pods a sidecar, and lets in only images that are allowed")]
struct Cli {
    #[command(flatten)]
    policy: Policy,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the webhooks
    Run(Box<Layer>),
    /// Write the manifests that install them
    Manifests(manifest::Options),
}

fn main() -> Result<()> {
    let Cli { policy, command } = Cli::parse();
    match command {
        Command::Run(flags) => {
            podpolicy::operator(&policy).start(&flags).map_err(|error| anyhow!(error))
        }
        Command::Manifests(options) => {
            Ok(options.run(podpolicy::package(&policy), &mut io::stdout().lock())?)
        }
    }
}
