//! `cargo xtask oracle`: random input for `apimachinery`, judged by upstream's own libraries.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{root, upstream};

pub fn run(cases: u32) -> Result<ExitCode> {
    let build = tempfile::tempdir().context("make a folder for the oracle")?;
    let oracle = build.path().join("oracle");
    upstream::compile("./oracle", &oracle)?;
    let status = Command::new("cargo")
        .args(["test", "--package", "kubewright-apimachinery", "oracle::"])
        .current_dir(root())
        .env("KUBEWRIGHT_ORACLE", &oracle)
        .env("KUBEWRIGHT_ORACLE_CASES", cases.to_string())
        .status()
        .context("run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
