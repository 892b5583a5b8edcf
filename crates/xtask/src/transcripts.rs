//! `cargo xtask transcripts`: the sessions with kubectl, with an upstream to talk to.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::upstream;

/// Shows what the whole cluster has, so it goes first and alone; all others keep to their own.
const WHOLE_CLUSTER: &str = "transcript::there_is_what_there_is_on_upstream";

pub fn run(check: bool) -> Result<ExitCode> {
    let mode = if check { "check" } else { "record" };
    // The whole workspace, as it is built for all other tests; only one crate has sessions.
    let test = "cargo test --quiet --workspace --test it --";
    let script =
        format!("{test} --exact {WHOLE_CLUSTER} && {test} transcript:: --skip {WHOLE_CLUSTER}");
    let mode = format!("KUBEWRIGHT_TRANSCRIPTS={mode}");
    let command = ["env", &mode, "sh", "-c", &script].map(OsString::from);
    // The workloads in them stay as they are written, on both sides.
    upstream::run(&[upstream::Extra::Housekeeping], &[], &command)
}
