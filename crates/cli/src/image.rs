//! `kubewright image`: images for pods, from files and not from registries.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use kubewright_cluster::home::DEFAULT_NAME;
use kubewright_cluster::load_images;
use serde_json::json;

use crate::cluster::{Output, home, parse_name};
use crate::up::runtime;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Give images to the container runtime of a cluster; nothing is pulled.
    Load(LoadArgs),
}

#[derive(clap::Args)]
pub(crate) struct LoadArgs {
    /// What `docker save` writes, or OCI's layout in a tar file, compressed by gzip or not; `-` is
    /// standard input.
    file: PathBuf,
    #[arg(long, value_parser = parse_name, default_value = DEFAULT_NAME)]
    name: String,
    /// Give them to the container runtime at this socket, such as that of a `kubewright node`.
    #[arg(long, value_name = "SOCKET", conflicts_with = "name")]
    socket: Option<PathBuf>,
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Load(args) => load(args),
    }
}

fn load(args: &LoadArgs) -> Result<ExitCode> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => socket_of(&args.name)?,
    };
    let spool;
    let path: &Path = match args.file.as_os_str() == "-" {
        true => {
            spool = receive()?;
            spool.path()
        }
        false => &args.file,
    };
    let loaded = give(&socket, path)?;
    match args.output {
        Output::Json => say!("{}", json!({"loaded": loaded})),
        Output::Text => loaded.iter().for_each(|image| say!("loaded {image}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the container runtime of a running cluster listens.
pub(crate) fn socket_of(name: &str) -> Result<PathBuf> {
    let found = home()?.find(name)?;
    let found = found.filter(|found| found.running).ok_or_else(|| {
        anyhow!("cluster {name:?} is not running: `kubewright clusters` lists those there are")
    })?;
    found.record.cri.with_context(|| {
        format!(
            "give images to cluster {name:?}: it has no container runtime; start it with `--node \
             cri=SOCKET`"
        )
    })
}

/// Gives the images of an archive to a container runtime, and says what they are called.
pub(crate) fn give(socket: &Path, archive: &Path) -> Result<Vec<String>> {
    eprintln!("giving images to the container runtime at {}", socket.display());
    // Only names when it is over, and for how long something may take it for unfinished.
    let now = Timestamp::now();
    Ok(runtime()?.block_on(load_images(socket, archive, now))?)
}

/// Things are looked up in archives, which is possible in files only.
fn receive() -> Result<tempfile::NamedTempFile> {
    eprintln!("reading images from standard input");
    let mut file = tempfile::NamedTempFile::new().context("make a file")?;
    io::copy(&mut io::stdin().lock(), &mut file).context("read standard input")?;
    file.flush().context("write a file")?;
    Ok(file)
}
