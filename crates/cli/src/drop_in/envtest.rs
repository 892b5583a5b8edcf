//! `kubewright envtest DIR`: a folder of programs that test suites start control planes from.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the programs go; made if it is not there.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Copy this program instead of linking to it, so that the folder can be moved.
    #[arg(long)]
    copy: bool,
}

/// The programs whose place we take.
const OURS: [&str; 2] = ["etcd", "kube-apiserver"];
const KUBECTL: &str = "kubectl";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let own = env::current_exe().context("find this program")?;
    fs::create_dir_all(&args.dir).with_context(|| format!("make {}", args.dir.display()))?;
    let dir = std::path::absolute(&args.dir).context("find the folder")?;
    for name in OURS {
        put(&own, &dir.join(name), args.copy)?;
    }
    let kubectl = dir.join(KUBECTL);
    match find(KUBECTL, &dir) {
        _ if kubectl.exists() => {}
        Some(found) => put(&found, &kubectl, false)?,
        None => eprintln!(
            "no kubectl was found: most suites need none; if yours does, put one in {}",
            dir.display()
        ),
    }
    say!("export KUBEBUILDER_ASSETS={}", quoted(&dir));
    Ok(ExitCode::SUCCESS)
}

/// Puts `program` at `path`, in the place of what we put there before.
fn put(program: &Path, path: &Path, copy: bool) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() || is_ours(path) => {
            fs::remove_file(path).with_context(|| format!("replace {}", path.display()))?;
        }
        Ok(_) => {
            bail!("{} is another program: choose another folder, or remove it", path.display())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("look at {}", path.display())),
    }
    match copy {
        true => fs::copy(program, path).map(drop),
        false => symlink(program, path),
    }
    .with_context(|| format!("put {}", path.display()))
}

/// Whether a file is a copy of this program, of whatever version.
fn is_ours(path: &Path) -> bool {
    let asked = std::process::Command::new(path).arg("--help").output();
    asked.is_ok_and(|answer| answer.stdout.starts_with(b"Kubewright in "))
}

/// The program of this name that a shell would run, outside of `dir`.
fn find(name: &str, dir: &Path) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).map(|path| path.join(name)).find(|path| {
        let executable =
            fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
        executable && path.parent() != Some(dir)
    })
}

/// As a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    match text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c)) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
