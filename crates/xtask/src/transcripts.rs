//! `cargo xtask transcripts`: the sessions with kubectl, with an upstream to talk to.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::upstream;

pub fn run(check: bool) -> Result<ExitCode> {
    let mode = if check { "check" } else { "record" };
    let mut command: Vec<OsString> = vec!["env".into()];
    command.push(format!("KUBEWRIGHT_TRANSCRIPTS={mode}").into());
    command.extend(["cargo", "test", "--quiet", "--package", "kubewright-cli"].map(Into::into));
    // One after the other: some show what the whole cluster has.
    command.extend(["--test", "it", "transcript", "--", "--test-threads=1"].map(Into::into));
    // The workloads in them stay as they are written, on both sides.
    upstream::run(&[upstream::Extra::Housekeeping], &command)
}
