//! `tenancy`: the operator that gives teams namespaces.

use std::io;

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand};
use kubewright::manifest;
use kubewright::settings::Layer;
use tenancy::Services;

#[derive(Parser)]
#[command(version, about = "Gives teams namespaces with all that they need")]
struct Cli {
    #[command(flatten)]
    services: Services,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator
    Run(Box<Layer>),
    /// Write the manifests that install the operator
    Manifests(manifest::Options),
}

fn main() -> Result<()> {
    let Cli { services, command } = Cli::parse();
    match command {
        Command::Run(flags) => {
            tenancy::operator(&services).start(&flags).map_err(|error| anyhow!(error))
        }
        Command::Manifests(options) => {
            Ok(options.run(tenancy::package(&services), &mut io::stdout().lock())?)
        }
    }
}
