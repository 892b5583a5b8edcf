//! The life of named clusters, besides their start: `down`, `clusters`, `kubeconfig`, `reset`,
//! `snapshot`, `restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use kubewright_cluster::control::{self, Command};
use kubewright_cluster::home::{DEFAULT_NAME, Found, Hold, Home, check_name};
use kubewright_cluster::run;

use crate::up::runtime;

/// Which cluster is meant.
#[derive(clap::Args)]
pub(crate) struct Which {
    #[arg(value_parser = parse_name, default_value = DEFAULT_NAME)]
    name: String,
    /// The same, as `up` takes it.
    #[arg(long = "name", id = "named", value_name = "NAME", value_parser = parse_name)]
    #[arg(conflicts_with = "name")]
    named: Option<String>,
}

impl Which {
    fn name(&self) -> &str {
        self.named.as_deref().unwrap_or(&self.name)
    }
}

#[derive(clap::Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    which: Which,
    /// Also delete its objects and its certificates.
    #[arg(long)]
    delete: bool,
}

#[derive(clap::Args)]
pub(crate) struct ClustersArgs {
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(clap::Args)]
pub(crate) struct KubeconfigArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(clap::Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(clap::Args)]
pub(crate) struct SnapshotArgs {
    /// Must not exist.
    file: PathBuf,
    #[arg(long, value_parser = parse_name, default_value = DEFAULT_NAME)]
    name: String,
}

#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// What `snapshot` wrote.
    file: PathBuf,
    /// A cluster, running or not; one that does not exist will, after `up`.
    #[arg(long, value_parser = parse_name, default_value = DEFAULT_NAME)]
    name: String,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

pub(crate) fn down(args: &DownArgs) -> Result<ExitCode> {
    let home = home()?;
    let Found { record, running } = find(&home, args.which.name())?;
    let name = &record.name;
    if running {
        control::tell(&record.control, &Command::Stop)
            .with_context(|| format!("stop the cluster; its process is {}", record.pid))?;
        Hold::wait(&home.dir(name)?)?;
    }
    runtime()?.block_on(run::clear(&home, &record, args.delete))?;
    match (running, args.delete) {
        (true, false) => say!("cluster {name:?} has stopped"),
        (false, false) => say!("cluster {name:?} was not running"),
        (_, true) => say!("cluster {name:?} is gone"),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn list(args: &ClustersArgs) -> Result<ExitCode> {
    let clusters = home()?.clusters()?;
    if args.output == Output::Json {
        say!("{}", serde_json::to_string_pretty(&clusters).context("encode the list")?);
        return Ok(ExitCode::SUCCESS);
    }
    if clusters.is_empty() {
        say!("there are no clusters; `kubewright up` starts one");
    }
    for Found { record, running } in clusters {
        let state = if running { "running" } else { "stopped" };
        say!("{}\t{state}\t{}\t{}", record.name, record.server, record.store);
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn kubeconfig(args: &KubeconfigArgs) -> Result<ExitCode> {
    let home = home()?;
    let name = args.which.name();
    find(&home, name)?;
    let path = run::kubeconfig_path(&home.dir(name)?);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn reset(args: &ResetArgs) -> Result<ExitCode> {
    let home = home()?;
    let Found { record, running } = find(&home, args.which.name())?;
    match running {
        true => control::tell(&record.control, &Command::Reset)?,
        false => run::reset(&home, &record)?,
    }
    say!("cluster {:?} is as new", record.name);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn snapshot(args: &SnapshotArgs) -> Result<ExitCode> {
    let Found { record, running } = find(&home()?, &args.name)?;
    if !running {
        let name = &record.name;
        return Err(anyhow!(
            "cluster {name:?} is not running: `kubewright up --name {name}` first"
        ));
    }
    // The cluster's process has another idea of where it is.
    let path = std::path::absolute(&args.file).context("find the file")?;
    if path.exists() {
        return Err(anyhow!("{} is there already: name another file", args.file.display()));
    }
    control::tell(&record.control, &Command::Snapshot { path })?;
    say!("wrote {}", args.file.display());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<ExitCode> {
    let home = home()?;
    let path = std::path::absolute(&args.file).context("find the file")?;
    match home.find(&args.name)? {
        Some(Found { record, running: true }) => {
            control::tell(&record.control, &Command::Restore { path })?;
        }
        _ => run::restore(&home, &args.name, &path)?,
    }
    say!("cluster {:?} has the objects of {}", args.name, args.file.display());
    Ok(ExitCode::SUCCESS)
}

/// The name of a cluster, or why it is none.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

pub(crate) fn home() -> Result<Home> {
    Home::of_user(std::env::var_os("XDG_DATA_HOME"), std::env::home_dir())
        .context("find a place for clusters: set HOME or XDG_DATA_HOME")
}

pub(crate) fn find(home: &Home, name: &str) -> Result<Found> {
    home.find(name)?
        .ok_or_else(|| anyhow!("there is no cluster {name:?}: `kubewright clusters` lists them"))
}
