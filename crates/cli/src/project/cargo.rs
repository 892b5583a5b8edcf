//! Builds a project, by cargo, and asks its program for manifests.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use kubewright_project::Project;
use serde_json::Value;

use super::Which;

#[derive(clap::Args)]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    which: Which,
    /// What the operator's own `manifests` takes: `--namespace`, `--image`, `--only`, `--output DIR`
    /// and more; `-- --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn manifests(args: &ManifestsArgs) -> Result<ExitCode> {
    let project = args.which.open()?;
    let program = build(&project)?;
    let status = rendering(&project, &program, &args.arguments).status();
    let status = status.with_context(|| format!("run {}", program.display()))?;
    Ok(code(status))
}

/// Builds the operator, and tells where it is. What cargo says goes to standard error.
pub(crate) fn build(project: &Project) -> Result<PathBuf> {
    let mut child = build_command(project).spawn().context("run cargo: is Rust installed?")?;
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut program = None;
    for line in output.lines() {
        let line = line.context("listen to cargo")?;
        program = program_in(&line, &project.name).or(program);
    }
    let status = child.wait().context("wait for cargo")?;
    if !status.success() {
        bail!("{} does not build: see above", project.name);
    }
    let missing = || format!("find the program: the package has no binary {:?}", project.name);
    program.with_context(missing)
}

/// Cargo, told to say on its output what it has built.
pub(super) fn build_command(project: &Project) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo
        .args(["build", "--message-format", "json-render-diagnostics"])
        .args(["--bin", &project.name]);
    cargo.current_dir(&project.root).stdin(Stdio::null()).stdout(Stdio::piped());
    cargo
}

/// The program that a message of cargo tells of.
pub(super) fn program_in(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["target"]["name"] == name;
    let program = message["executable"].as_str().filter(|_| is_it)?;
    Some(program.into())
}

/// The program, told to render its manifests.
pub(super) fn rendering<T: AsRef<OsStr>>(
    project: &Project,
    program: &std::path::Path,
    arguments: &[T],
) -> Command {
    let mut command = Command::new(program);
    command.arg("manifests").args(arguments);
    let says =
        |flag: &str| arguments.iter().any(|it| it.as_ref().to_string_lossy().starts_with(flag));
    if project.namespaced && !says("--namespaced") && !says("--watch") {
        command.arg("--namespaced");
    }
    command
}

/// The exit code of a program that this one stands for.
pub(super) fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}
