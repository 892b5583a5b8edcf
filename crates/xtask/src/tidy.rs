//! `cargo xtask tidy`: the house rules that a machine can check. Facts only, no taste.
//!
//! Also an ordinary test, so that `cargo test --workspace` says it too.

mod dependencies;
mod modules;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{root, types};

/// Prints every fault; the exit code says whether there was one.
pub fn run() -> Result<ExitCode> {
    let faults = faults()?;
    faults.iter().for_each(|fault| println!("{fault}"));
    // What only `conformance` can tell: scenarios against the api-surface, recordings against cases.
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "kubewright-conformance", "--", "check"])
        .current_dir(root())
        .status()
        .context("run cargo")?;
    if faults.is_empty() && status.success() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// What is wrong with the repository, a sentence each.
pub fn faults() -> Result<Vec<String>> {
    let root = root();
    let files = Files::read(&root)?;
    let packages = dependencies::packages(&root)?;
    let mut faults = dependencies::faults(&packages);
    faults.extend(modules::faults(&root, &files, &packages)?);
    faults.extend(words::faults(&files));
    faults.extend(map_faults(&root)?);
    faults.extend(recording_faults(&files));
    faults.extend(upstream_faults(&root)?);
    faults.extend(types::faults()?);
    Ok(faults)
}

/// Every text file of the repository, by its path from the root.
struct Files(Vec<(PathBuf, String)>);

impl Files {
    fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder);
            for entry in entries.with_context(|| format!("list {}", folder.display()))? {
                let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if matches!(name, ".git" | "target") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(text) = fs::read_to_string(&path) {
                    let relative = path.strip_prefix(root).expect("the walk began there");
                    files.push((relative.to_owned(), text));
                }
            }
        }
        files.sort();
        Ok(Self(files))
    }

    fn rust(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "rs"))
            .map(|(path, text)| (path.as_path(), text.as_str()))
    }
}

/// The crate list of ARCHITECTURE.md is the table of contents; it must be true.
fn map_faults(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).context("read ARCHITECTURE.md")?;
    let mut there = names(&root.join("crates"))?;
    let operators = names(&root.join("operators"))?;
    there.extend(operators.into_iter().map(|name| format!("operators/{name}")));
    Ok(compare_map(&text, &there))
}

/// The folders in one.
fn names(folder: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    Ok(folders.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn compare_map(text: &str, there: &BTreeSet<String>) -> Vec<String> {
    let listed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect();
    let missing = there.difference(&listed);
    let missing =
        missing.map(|name| format!("ARCHITECTURE.md: crate `{name}` is not in the table"));
    let gone = listed.difference(there);
    let gone = gone.map(|name| format!("ARCHITECTURE.md: there is no crate `{name}`"));
    missing.chain(gone).collect()
}

/// A case and its recording come and go together.
fn recording_faults(files: &Files) -> Vec<String> {
    let fixtures = Path::new("crates/apimachinery/fixtures");
    let paths: BTreeSet<&Path> = files.0.iter().map(|(path, _)| path.as_path()).collect();
    paths
        .iter()
        .filter(|path| path.starts_with(fixtures))
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let (twin, word) = match name.strip_suffix(".recorded.json") {
                Some(case) => (format!("{case}.yaml"), "case"),
                None => (format!("{}.recorded.json", name.strip_suffix(".yaml")?), "recording"),
            };
            let lonely = !paths.contains(path.with_file_name(twin).as_path());
            lonely.then(|| format!("{}: has no {word}", path.display()))
        })
        .collect()
}

/// Upstream is the judge: a scenario that it fails is a wrong scenario.
fn upstream_faults(root: &Path) -> Result<Vec<String>> {
    let file = "crates/conformance/expected/upstream.txt";
    let text = fs::read_to_string(root.join(file)).with_context(|| format!("read {file}"))?;
    let names = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    Ok(names
        .map(|name| format!("{file}: upstream is the judge and fails nothing: {name}"))
        .collect())
}

#[cfg(test)]
mod tests;
