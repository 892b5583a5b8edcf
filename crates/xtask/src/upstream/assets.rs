//! Where upstream's binaries come from: a folder that the user names, or a build of our own in
//! the user's cache folder, shared by all clones of this repository.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::VERSION;

/// Names a folder with upstream's binaries, to be used instead of a build.
const ASSETS: &str = "KUBEWRIGHT_UPSTREAM_ASSETS";

/// When upstream released [`VERSION`]; the build says so, so that it does not depend on the day.
const RELEASED: &str = "2026-08-20T11:51:43Z";

const PROGRAMS: &[(&str, &str)] = &[
    ("etcd", "./etcd"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

/// The folder with upstream's binaries, built first if need be.
pub fn build() -> Result<PathBuf> {
    if let Some(assets) = env::var_os(ASSETS).filter(|assets| !assets.is_empty()) {
        let assets = PathBuf::from(assets);
        refuse_others(&assets.join("kube-apiserver"))?;
        return Ok(assets);
    }
    let parent = cache_folder()?.join("kubewright").join("upstream");
    fs::create_dir_all(&parent).with_context(|| format!("make {}", parent.display()))?;
    // Two clones must not build the same thing at once; the second finds it done.
    let lock = File::create(parent.join("lock")).context("make the lock file")?;
    lock.lock().context("lock the cache folder")?;

    let target = parent.join(VERSION);
    let recipe = recipe()?;
    if fs::read_to_string(target.join("recipe")).is_ok_and(|built| built == recipe) {
        return Ok(target);
    }
    if !is_there("go") {
        bail!(
            "upstream Kubernetes {VERSION} needs Go to be built from source, or {ASSETS} naming a \
             folder that holds its binaries; there is neither"
        );
    }
    let building = tempfile::Builder::new()
        .prefix("building-")
        .tempdir_in(&parent)
        .with_context(|| format!("make a folder in {}", parent.display()))?;
    for (name, package) in PROGRAMS {
        compile(package, &building.path().join(name))?;
    }
    fs::write(building.path().join("recipe"), &recipe).context("write the recipe")?;
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("remove {}", target.display()))?;
    }
    fs::rename(building.keep(), &target).with_context(|| format!("make {}", target.display()))?;
    Ok(target)
}

fn cache_folder() -> Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME says where the cache folder is")
}

fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream")
}

/// All that decides what the build gives: a build from another recipe is built anew.
fn recipe() -> Result<String> {
    let go_mod = fs::read_to_string(module().join("go.mod")).context("read go.mod")?;
    let pins = ["k8s.io/kubernetes ", "go.etcd.io/etcd/server/v3 "];
    let pinned = |line: &&str| pins.iter().any(|pin| line.contains(pin));
    let pinned: Vec<&str> = go_mod.lines().filter(pinned).map(str::trim).collect();
    Ok(format!("{}\n{}\n", pinned.join("\n"), linker_flags()))
}

fn linker_flags() -> String {
    let mut numbers = VERSION.trim_start_matches('v').split('.');
    let mut number = || numbers.next().expect("a version has three numbers");
    let facts = [
        ("gitVersion", VERSION),
        ("gitMajor", number()),
        ("gitMinor", number()),
        ("gitTreeState", "clean"),
        // The module proxy does not say from which commit a release was cut.
        ("gitCommit", "unknown"),
        ("buildDate", RELEASED),
    ];
    let stamp = |package: &str, (name, value): (&str, &str)| format!("-X {package}.{name}={value}");
    // The first is what programs say of themselves, the second what clients say to servers.
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let stamps = packages.iter().flat_map(|package| facts.map(|fact| stamp(package, fact)));
    ["-s -w".to_owned()].into_iter().chain(stamps).collect::<Vec<_>>().join(" ")
}

/// Builds a program of the Go module.
pub fn compile(package: &str, output: &Path) -> Result<()> {
    eprintln!("building {package}");
    let status = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"])
        .arg(linker_flags())
        .arg("-o")
        .arg(output)
        .arg(package)
        .current_dir(module())
        .env("CGO_ENABLED", "0")
        // The user's own workspace, if there is one around us, is not ours.
        .env("GOWORK", "off")
        .status()
        .context("run go")?;
    if !status.success() {
        bail!("go build {package}: {status}");
    }
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A judge must be upstream's own: the version alone would not tell, since a compatible server
/// says the same. Go writes into each program from which package it was built.
fn refuse_others(apiserver: &Path) -> Result<()> {
    let output = Command::new(apiserver)
        .arg("--version")
        .output()
        .with_context(|| format!("{ASSETS} holds no kube-apiserver that runs"))?;
    let version = String::from_utf8_lossy(&output.stdout);
    if version.trim() != format!("Kubernetes {VERSION}") {
        bail!("{} is {:?}, not Kubernetes {VERSION}", apiserver.display(), version.trim());
    }
    let marks = [b"\xff Go buildinf:".as_slice(), b"path\tk8s.io/kubernetes/cmd/kube-apiserver\n"];
    if !contains_all(apiserver, &marks)? {
        bail!("{} is not upstream's kube-apiserver", apiserver.display());
    }
    Ok(())
}

fn contains_all(file: &Path, marks: &[&[u8]]) -> Result<bool> {
    let context = || format!("read {}", file.display());
    let mut bytes = Vec::new();
    BufReader::new(File::open(file).with_context(context)?)
        .read_to_end(&mut bytes)
        .with_context(context)?;
    Ok(marks.iter().all(|mark| memchr::memmem::find(&bytes, mark).is_some()))
}

/// A program of the folder, or a sentence saying that it is missing.
pub(super) fn program(assets: &Path, name: &str) -> Result<PathBuf> {
    let program = assets.join(OsStr::new(name));
    if !program.is_file() {
        bail!("{} holds no {name}", assets.display());
    }
    Ok(program)
}
