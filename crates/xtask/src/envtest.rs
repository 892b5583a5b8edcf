//! `cargo xtask envtest`: controller-runtime's own test suites, on upstream's programs and on ours.
//! The table of the last run stands in docs/envtest.md.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::{root, upstream};

const MODULE: &str = "sigs.k8s.io/controller-runtime";
const VERSION: &str = "v0.24.1";
const DOCUMENT: &str = "docs/envtest.md";
/// The table is between these lines.
const MARKS: [&str; 2] = ["<!-- table -->", "<!-- /table -->"];
/// Those that start a control plane or talk to one.
const PACKAGES: [&str; 13] = [
    "client",
    "cache",
    "controller",
    "manager",
    "builder",
    "webhook",
    "envtest",
    "source",
    "handler",
    "reconcile",
    "cluster",
    "metrics/filters",
    "client/apiutil",
];

/// What came of a suite on one set of programs.
struct Outcome {
    passed: u64,
    failed: u64,
    took: Duration,
    succeeded: bool,
}

/// Runs the suites of `only`, or of all packages, first on upstream's programs and then on ours.
/// A whole run is noted. Fails if a suite that passes there fails here.
pub fn run(only: &[String]) -> Result<ExitCode> {
    let chosen = |package: &&str| only.is_empty() || only.iter().any(|name| name == package);
    let packages = Vec::from_iter(PACKAGES.into_iter().filter(chosen));
    ensure!(!packages.is_empty(), "there are {}", PACKAGES.join(", "));
    let folder = root().join("target/envtest");
    let theirs = upstream::build()?;
    let ours = assets(&folder, &theirs)?;
    let module = module(&folder)?;
    let mut rows = Vec::new();
    let mut regressed = false;
    for package in packages {
        let suite = compile(&module, &folder, package)?;
        let upstream = play(&module, package, &suite, &theirs)?;
        let own = play(&module, package, &suite, &ours)?;
        regressed |= upstream.succeeded && !own.succeeded;
        let row = row(package, &upstream, &own);
        println!("{row}");
        rows.push(row);
    }
    if only.is_empty() {
        note(&rows)?;
    }
    Ok(if regressed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A folder of our programs, with upstream's kubectl, which suites ask as well.
fn assets(folder: &Path, theirs: &Path) -> Result<PathBuf> {
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "kubewright-cli"])
        .current_dir(root())
        .status();
    ensure!(built.context("run cargo")?.success(), "kubewright does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    let assets = folder.join("assets");
    let laid_out = Command::new(target.join("release/kubewright"))
        .arg("envtest")
        .arg(&assets)
        .env("PATH", theirs)
        .stdout(Stdio::null())
        .status();
    ensure!(laid_out.context("run kubewright")?.success(), "the folder is not laid out");
    Ok(assets)
}

/// The module's sources, in a folder where its tests may write.
fn module(folder: &Path) -> Result<PathBuf> {
    let sources = folder.join(format!("controller-runtime-{VERSION}"));
    if sources.exists() {
        return Ok(sources);
    }
    let downloaded = Command::new("go")
        .args(["mod", "download", "-json", &format!("{MODULE}@{VERSION}")])
        .current_dir(std::env::temp_dir())
        .output()
        .context("run go")?;
    let answer: Value = serde_json::from_slice(&downloaded.stdout).context("read what go says")?;
    let Some(dir) = answer["Dir"].as_str() else { bail!("{MODULE}: {}", answer["Error"]) };
    let draft = sources.with_extension("new");
    if draft.exists() {
        fs::remove_dir_all(&draft).context("remove an unfinished copy")?;
    }
    copy(Path::new(dir), &draft).with_context(|| format!("copy {dir}"))?;
    fs::rename(&draft, &sources).context("put the copy in its place")?;
    Ok(sources)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            // Go keeps modules read-only.
            fs::set_permissions(&target, fs::Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}

fn compile(module: &Path, folder: &Path, package: &str) -> Result<PathBuf> {
    let suite = folder.join(format!("{}.test", package.replace('/', "-")));
    let compiled = Command::new("go")
        .args(["test", "-c", "-o"])
        .arg(&suite)
        .arg(format!("./pkg/{package}"))
        .current_dir(module)
        .status();
    ensure!(compiled.context("run go")?.success(), "the tests of {package} do not compile");
    Ok(suite)
}

fn play(module: &Path, package: &str, suite: &Path, assets: &Path) -> Result<Outcome> {
    let started = Instant::now();
    let output = Command::new(suite)
        .args(["-test.v", "-ginkgo.no-color"])
        .env("KUBEBUILDER_ASSETS", assets)
        .current_dir(module.join("pkg").join(package))
        .output()
        .with_context(|| format!("run the tests of {package}"))?;
    let took = started.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let failed = text.lines().filter(|line| line.contains("FAIL"));
        let label = if assets.starts_with(root()) { "ours" } else { "upstream" };
        failed.for_each(|line| println!("    {label}: {}", line.trim()));
    }
    let (passed, failed) = tally(&text);
    Ok(Outcome { passed, failed, took, succeeded: output.status.success() })
}

/// How many passed and how many failed: specs of Ginkgo, and tests of Go, which have no specs below
/// them that are counted already.
fn tally(text: &str) -> (u64, u64) {
    let count = |mark: &str| {
        let lines = text.lines().filter(|line| line.trim_start().starts_with(mark));
        u64::try_from(lines.count()).unwrap_or_default()
    };
    let specs = |word: &str| {
        let summaries = text.lines().filter(|line| line.contains("Passed |"));
        let before = |line: &str| {
            let words = Vec::from_iter(line.split_whitespace());
            let at = words.iter().position(|found| *found == word)?;
            words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
        };
        summaries.filter_map(before).sum::<u64>()
    };
    (count("--- PASS") + specs("Passed"), count("--- FAIL") + specs("Failed"))
}

fn row(package: &str, upstream: &Outcome, ours: &Outcome) -> String {
    let of = |outcome: &Outcome| match outcome.failed {
        0 => format!("{} passed", outcome.passed),
        failed => format!("{} passed, {failed} failed", outcome.passed),
    };
    format!(
        "| {package} | {} | {} | {:.1} s | {:.1} s |",
        of(upstream),
        of(ours),
        upstream.took.as_secs_f64(),
        ours.took.as_secs_f64(),
    )
}

fn note(rows: &[String]) -> Result<()> {
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("read {DOCUMENT}"))?;
    let [start, end] = MARKS;
    let (Some((before, _)), Some((_, after))) = (text.split_once(start), text.split_once(end))
    else {
        bail!("{DOCUMENT} has no place for the table");
    };
    let head = "| package | upstream | ours | upstream's time | our time |\n|---|---|---|---|---|";
    let table = format!("{before}{start}\n{head}\n{}\n{end}{after}", rows.join("\n"));
    fs::write(&path, table).with_context(|| format!("write {DOCUMENT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_and_tests_are_counted() {
        let text = "\
=== RUN   TestSource
SUCCESS! -- 27 Passed | 1 Failed | 0 Pending | 0 Skipped
--- FAIL: TestSource (5.56s)
    --- PASS: TestVersion/one (0.00s)
--- PASS: TestVersion (0.00s)
";
        assert_eq!(tally(text), (29, 2));
    }
}
