//! In etcd's place.

mod table;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_cluster::drop_in::etcd::{self, Options, Tls, VERSION};

use super::flag::{self, Dialect, FlagError, Given};
use crate::up;
use table::TABLE;

pub(super) fn run(args: Vec<String>) -> ExitCode {
    let given = match read(args) {
        Ok(given) => given,
        Err(error) => {
            // As Go has it: what is wrong, then how it is done.
            eprint!("{error}\n{INTRODUCTION}{}", flag::help(TABLE));
            return ExitCode::from(2);
        }
    };
    if given.switch("help").or(given.switch("h")) == Some(true) {
        print!("{INTRODUCTION}{}", flag::help(TABLE));
        return ExitCode::SUCCESS;
    }
    if given.switch("version") == Some(true) {
        say!("etcd Version: {VERSION}\nKubewright Version: {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    match options(&given).and_then(|options| serve(&given, options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

const INTRODUCTION: &str = "\
Kubewright in etcd's place: the v3 API of an etcd of one member.

Usage:

  etcd [flags]

A flag can also be given as a variable: --data-dir as ETCD_DATA_DIR.
";

fn read(args: Vec<String>) -> Result<Given, FlagError> {
    let mut given = flag::parse(Dialect::Go, TABLE, &[], args)?;
    given.fill(TABLE, |name| {
        let variable = format!("ETCD_{}", name.to_uppercase().replace('-', "_"));
        std::env::var(variable).ok()
    })?;
    Ok(given)
}

fn serve(given: &Given, options: Options) -> Result<()> {
    up::log(given.text("log-level") == Some("debug"));
    up::keep_pages_small();
    for warning in &given.warnings {
        tracing::warn!("{warning}");
    }
    up::runtime()?.block_on(etcd::run(options))
}

fn options(given: &Given) -> Result<Options> {
    if let [word, ..] = given.rest.as_slice() {
        bail!("{word:?} is not a valid flag");
    }
    if given.has("listen-client-urls") && !given.has("advertise-client-urls") {
        bail!("--advertise-client-urls is required when --listen-client-urls is set explicitly");
    }
    if given.list("initial-cluster").len() > 1 {
        bail!("--initial-cluster names several members: there is only this one here");
    }
    let or = |name: &str, usual: &str| match given.list(name) {
        list if list.is_empty() => vec![usual.to_owned()],
        list => list,
    };
    let urls = or("listen-client-urls", "http://localhost:2379");
    let mut listen = Vec::new();
    for url in &urls {
        listen.extend(addresses(url)?);
    }
    listen.sort_unstable();
    listen.dedup();
    let name = given.text("name").unwrap_or("default").to_owned();
    let number = |name: &str, usual: usize| {
        let given = given.number(Dialect::Go, name)?;
        anyhow::Ok(given.map(usize::try_from).transpose()?.unwrap_or(usual))
    };
    let interval = match given.duration(Dialect::Go, "watch-progress-notify-interval")? {
        Some(interval) => Some(interval),
        None => given.duration(Dialect::Go, "experimental-watch-progress-notify-interval")?,
    };
    Ok(Options {
        data_dir: given.text("data-dir").map_or_else(|| format!("{name}.etcd").into(), Into::into),
        listen,
        tls: tls(given, &urls)?,
        client_urls: or("advertise-client-urls", "http://localhost:2379"),
        peer_urls: or("initial-advertise-peer-urls", "http://localhost:2380"),
        sync: given.switch("unsafe-no-fsync") != Some(true),
        request_bytes_max: number("max-request-bytes", 3 << 19)?,
        txn_ops_max: number("max-txn-ops", 128)?,
        progress_interval: interval
            .filter(|interval| !interval.is_zero())
            .unwrap_or(Duration::from_mins(10)),
        name,
    })
}

/// Where a URL says to listen. A name may stand for an address of each family.
fn addresses(url: &str) -> Result<Vec<SocketAddr>> {
    let place = url.strip_prefix("http://").or(url.strip_prefix("https://"));
    let place = place.map(|place| place.trim_end_matches('/'));
    let Some(place) = place.filter(|place| place.contains(':')) else {
        bail!("{url:?} is no place to listen: use http://HOST:PORT or https://HOST:PORT");
    };
    let found = place.to_socket_addrs().with_context(|| format!("find {url}"))?;
    // Upstream listens on the first address, those of version 4 before others.
    let mut found = Vec::from_iter(found);
    found.sort_unstable();
    found.truncate(1);
    Ok(found)
}

fn tls(given: &Given, urls: &[String]) -> Result<Option<Tls>> {
    let read =
        |path: PathBuf| std::fs::read(&path).with_context(|| format!("read {}", path.display()));
    let path = |name: &str| given.text(name).map(PathBuf::from);
    let secured = urls.iter().filter(|url| url.starts_with("https://")).count();
    if secured == 0 {
        return Ok(None);
    }
    if secured < urls.len() {
        bail!("--listen-client-urls has URLs with and without TLS: choose one");
    }
    let (Some(certificate), Some(key)) = (path("cert-file"), path("key-file")) else {
        bail!("--listen-client-urls has https: give --cert-file and --key-file");
    };
    // A bundle alone says whom to trust, and asks nobody.
    let verifies = given.switch("client-cert-auth") == Some(true);
    let client_ca = path("trusted-ca-file").filter(|_| verifies).map(read).transpose()?;
    if verifies && client_ca.is_none() {
        bail!("--client-cert-auth needs --trusted-ca-file");
    }
    Ok(Some(Tls { certificate: read(certificate)?, key: read(key)?, client_ca }))
}
