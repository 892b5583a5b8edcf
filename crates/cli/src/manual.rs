//! What shells and `man` should know of this command: `completions` and `man`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Args;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell; `source <(kubewright completions bash)` makes it known.
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The folder to write a page for each command into; without it, the first page is printed.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "kubewright", &mut text);
    say!("{}", String::from_utf8_lossy(&text).trim_end());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &ManArgs) -> Result<ExitCode> {
    match &args.output {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
                .with_context(|| format!("write {}", folder.display()))?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Args::command()).render(&mut text).context("write the page")?;
            say!("{}", String::from_utf8_lossy(&text).trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}
