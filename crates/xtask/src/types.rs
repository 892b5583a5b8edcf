//! `cargo xtask types`: the table of built-in types, by a Go program that reflects over upstream's
//! types and asks a running upstream for the rest.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{root, upstream};

pub fn run(here: bool, check: bool) -> Result<ExitCode> {
    let build = tempfile::tempdir().context("make a folder for the generator")?;
    let generator = build.path().join("types");
    upstream::compile("./types", &generator)?;
    let mut command: Vec<OsString> = vec![generator.into()];
    command.extend(["-data".into(), data().into(), "-golden".into(), golden().into()]);
    command.extend(check.then(|| "-check".into()));
    if !here {
        return upstream::run(&[], &[], &command);
    }
    if std::env::var_os("KUBECONFIG").is_none() {
        bail!("--here needs KUBECONFIG");
    }
    let status =
        Command::new(&command[0]).args(&command[1..]).status().context("run the generator")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says which generated files are of another generator or another upstream than today's. Needs no
/// Go: each file begins with what it was made from.
pub fn faults() -> Result<Vec<String>> {
    let expected =
        format!("upstream {}\ngenerator {:016x}\n", upstream::VERSION, generator_hash()?);
    let mut faults = Vec::new();
    for name in ["types.txt", "resources.txt"] {
        let found =
            fs::read_to_string(data().join(name)).with_context(|| format!("read {name}"))?;
        if !found.starts_with(&expected) {
            faults.push(format!("{name} is of another generator: run `cargo xtask types`"));
        }
    }
    Ok(faults)
}

/// FNV-1a over the generator's sources in the order of their names, as the generator computes it.
fn generator_hash() -> Result<u64> {
    let folder = root().join("crates/xtask/upstream/types");
    let mut sources = Vec::new();
    for entry in fs::read_dir(&folder).context("list the generator's sources")? {
        let path = entry.context("list the generator's sources")?.path();
        if path.extension().is_some_and(|extension| extension == "go") {
            sources.push(path);
        }
    }
    sources.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for source in sources {
        for byte in fs::read(source).context("read the generator's sources")? {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Ok(hash)
}

fn data() -> PathBuf {
    root().join("crates/apimachinery/data")
}

/// Beside the test that reads it.
fn golden() -> PathBuf {
    root().join("crates/apimachinery/src/proto")
}
