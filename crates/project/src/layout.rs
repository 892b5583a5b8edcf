//! Lays sources out as rustfmt does, where there is one.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a source looks like under the rules of the project in `root`; none if there is no rustfmt,
/// or it does not understand the source.
pub(crate) fn rustfmt(root: &Path, text: &str) -> Option<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--quiet"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // It reads all before it writes anything, so neither waits for the other.
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.is_empty()).then_some(text)
}
