//! `cargo xtask record`: the recorder of `conformance`, with an upstream to ask.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{root, upstream};

pub fn run(here: bool, check: bool, only: &[String]) -> Result<ExitCode> {
    let fixtures = root().join("crates/apimachinery/fixtures");
    let mut command: Vec<OsString> =
        ["cargo", "run", "--quiet", "--package", "kubewright-conformance", "--"]
            .map(Into::into)
            .into();
    command.extend(["record".into(), "--dir".into(), fixtures.into()]);
    command.extend(check.then(|| "--check".into()));
    command.extend(only.iter().map(Into::into));
    if !here {
        return upstream::run(&[], &[], &command);
    }
    if std::env::var_os("KUBECONFIG").is_none() {
        bail!("--here needs KUBECONFIG");
    }
    let status = Command::new(&command[0])
        .args(&command[1..])
        .current_dir(root())
        .status()
        .context("run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
