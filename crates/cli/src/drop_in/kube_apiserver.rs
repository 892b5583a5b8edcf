//! In kube-apiserver's place.

mod table;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kubewright_apiserver::authn::token::Lifetimes;
use kubewright_apiserver::connect;
use kubewright_cluster::drop_in::apiserver::{self, Limits, Mode, Oldest, Options, PluginSet};
use kubewright_cluster::{FrontProxy, Names, Terms, audit, etcd};

use super::flag::{self, Dialect, FlagError, Given, boolean};
use crate::up;
use table::TABLE;

/// What upstream's answers to `--version`, so that nobody takes it for another version.
const VERSION: &str = "v1.36.4";
/// Says which controllers run, where no flag does.
const CONTROLLERS: &str = "KUBEWRIGHT_CONTROLLERS";
const LETTERS: [(char, &str); 2] = [('v', "v"), ('h', "help")];
/// An etcd may be started a little later than its server.
const ETCD_PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(args: Vec<String>) -> ExitCode {
    let given = match read(args) {
        Ok(given) => given,
        Err(error) => return fail(&error.into()),
    };
    if given.switch("help") == Some(true) {
        print!("{INTRODUCTION}{}", flag::help(TABLE));
        return ExitCode::SUCCESS;
    }
    match given.text("version") {
        Some("raw") => return print_version(),
        Some(text) if boolean(text) == Some(true) => return print_version(),
        _ => {}
    }
    match options(&given).and_then(|options| serve(&given, options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn print_version() -> ExitCode {
    say!("Kubernetes {VERSION}");
    ExitCode::SUCCESS
}

const INTRODUCTION: &str = "\
Kubewright in kube-apiserver's place: the Kubernetes API, on the etcd that it is told of.

No controllers run unless --controllers or KUBEWRIGHT_CONTROLLERS names some.

Usage:
  kube-apiserver [flags]
";

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("Error: {error:#}");
    ExitCode::FAILURE
}

fn read(args: Vec<String>) -> Result<Given, FlagError> {
    flag::parse(Dialect::Pflag, TABLE, &LETTERS, args)
}

fn serve(given: &Given, options: Options) -> Result<()> {
    let verbosity = given.number(Dialect::Pflag, "v")?.unwrap_or_default();
    // From this level on upstream logs requests.
    up::log(verbosity >= 3);
    up::keep_pages_small();
    for warning in &given.warnings {
        tracing::warn!("{warning}");
    }
    up::runtime()?.block_on(apiserver::run(options, || {}))
}

fn options(given: &Given) -> Result<Options> {
    if let [word, ..] = given.rest.as_slice() {
        bail!("\"kube-apiserver\" does not take any arguments, got [{word:?}]");
    }
    require(given)?;
    let path = |name: &str| given.text(name).map(PathBuf::from);
    let bind = address(given, "bind-address")?.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let port = match given.number(Dialect::Pflag, "secure-port")? {
        None => 6443,
        Some(port) => u16::try_from(port).ok().filter(|port| *port > 0).with_context(|| {
            format!("--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0")
        })?,
    };
    let certificate = match (path("tls-cert-file"), path("tls-private-key-file")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => bail!("--tls-cert-file and --tls-private-key-file must be set together"),
    };
    let controllers = match given.text("controllers") {
        Some(list) => list.to_owned(),
        None => std::env::var(CONTROLLERS).unwrap_or_default(),
    };
    Ok(Options {
        bind: SocketAddr::new(bind, port),
        etcd: etcd(given)?,
        cert_dir: path("cert-dir").unwrap_or_else(|| "/var/run/kubernetes".into()),
        certificate,
        client_ca: path("client-ca-file"),
        static_tokens: path("token-auth-file"),
        signing_key: path("service-account-signing-key-file").context("find the signing key")?,
        token_keys: given.list("service-account-key-file").into_iter().map(Into::into).collect(),
        front_proxy: front_proxy(given),
        proxy_client: match (path("proxy-client-cert-file"), path("proxy-client-key-file")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => bail!("--proxy-client-cert-file and --proxy-client-key-file must be set together"),
        },
        kubelet_client: match (path("kubelet-client-certificate"), path("kubelet-client-key")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                bail!("--kubelet-client-certificate and --kubelet-client-key must be set together")
            }
        },
        kubelet_ca: path("kubelet-certificate-authority"),
        controllers: Names::parse(&controllers).context("choose controllers")?,
        audit: audit(given)?,
        limits: limits(given)?,
        terms: terms(given)?,
    })
}

/// What nobody can do without, in upstream's words.
fn require(given: &Given) -> Result<()> {
    let mut missing = Vec::new();
    if given.list("etcd-servers").is_empty() {
        missing.push("--etcd-servers must be specified");
    }
    if given.list("service-account-issuer").is_empty() {
        missing.push("service-account-issuer is a required flag");
    }
    if given.list("service-account-key-file").is_empty() {
        missing.push(
            "either `--service-account-key-file` or `--service-account-signing-endpoint` must be \
             set",
        );
    }
    if !given.has("service-account-signing-key-file") || !given.has("service-account-issuer") {
        missing.push(
            "--service-account-signing-key-file and --service-account-issuer are required flags",
        );
    }
    match missing.as_slice() {
        [] => Ok(()),
        [one] => Err(anyhow!("{one}")),
        many => Err(anyhow!("[{}]", many.join(", "))),
    }
}

fn etcd(given: &Given) -> Result<etcd::Config> {
    let endpoints = given.list("etcd-servers").into_iter().map(|server| {
        // Upstream takes a host and a port, too.
        if server.contains("://") { server } else { format!("http://{server}") }
    });
    if let Some(prefix) =
        given.text("etcd-prefix").filter(|prefix| prefix.trim_matches('/') != "registry")
    {
        bail!("--etcd-prefix {prefix:?} is not supported here: keys begin with /registry");
    }
    let mut config = etcd::Config::new(String::new());
    config.endpoints = endpoints.collect();
    config.patience = ETCD_PATIENCE;
    config.tls = up::etcd_tls(
        given.text("etcd-cafile").map(Path::new),
        given.text("etcd-certfile").map(Path::new),
        given.text("etcd-keyfile").map(Path::new),
    )?;
    if let Some(interval) = given.duration(Dialect::Pflag, "etcd-compaction-interval")? {
        // Nothing means that nobody compacts.
        config.compaction_interval = Some(interval).filter(|interval| !interval.is_zero());
    }
    Ok(config)
}

fn terms(given: &Given) -> Result<Terms> {
    let modes = modes(given)?;
    let allows_all = modes.contains(&Mode::AlwaysAllow);
    let mut terms = Terms {
        // As upstream: whoever is nobody cannot be allowed everything.
        anonymous: given.switch("anonymous-auth").unwrap_or(true) && !allows_all,
        modes,
        issuers: given.list("service-account-issuer"),
        keys_url: keys_url(given)?,
        audiences: given.list("api-audiences"),
        admission: PluginSet::named(
            &given.list("enable-admission-plugins"),
            &given.list("disable-admission-plugins"),
        )?,
        advertised: address(given, "advertise-address")?.filter(|ip| !ip.is_unspecified()),
        kubelets: connect::Access::default(),
        token_lifetimes: lifetimes(given)?,
        allows_privileged: given.switch("allow-privileged").unwrap_or(false),
        oldest_tls: oldest_tls(given)?,
        ..Terms::default()
    };
    let address_types = given.list("kubelet-preferred-address-types");
    if !address_types.is_empty() {
        terms.kubelets.address_types = address_types;
    }
    if let Some(ranges) = given.text("service-cluster-ip-range") {
        terms.service_cidrs = ranges.split(',').map(|range| range.trim().to_owned()).collect();
        if let Some(wrong) = terms.service_cidrs.iter().find(|range| !is_network(range)) {
            bail!("service-cluster-ip-range invalid CIDR address: {wrong}");
        }
    }
    if let Some(range) = given.text("service-node-port-range") {
        terms.node_ports = ports(range)?;
    }
    if let Some(version) = reported(given)? {
        terms.version = version;
    }
    Ok(terms)
}

/// Where others are told to find the keys that verify tokens.
fn keys_url(given: &Given) -> Result<Option<String>> {
    const FLAG: &str = "service-account-jwks-uri";
    let Some(url) = given.text(FLAG) else { return Ok(None) };
    ensure!(url.starts_with("https://"), "{FLAG} requires https scheme, parsed as: {url}");
    Ok(Some(url.to_owned()))
}

/// How long tokens of service accounts last.
fn lifetimes(given: &Given) -> Result<Lifetimes> {
    const LONGEST: RangeInclusive<Duration> =
        Duration::from_secs(60 * 60)..=Duration::from_secs(1 << 32);
    let longest = given.duration(Dialect::Pflag, "service-account-max-token-expiration")?;
    let longest = longest.filter(|longest| !longest.is_zero());
    if longest.is_some_and(|longest| !LONGEST.contains(&longest)) {
        bail!("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds");
    }
    Ok(Lifetimes {
        are_extended: given.switch("service-account-extend-token-expiration").unwrap_or(true),
        seconds_max: longest.and_then(|longest| i64::try_from(longest.as_secs()).ok()),
    })
}

fn oldest_tls(given: &Given) -> Result<Oldest> {
    match given.text("tls-min-version") {
        None | Some("VersionTLS12") => Ok(Oldest::Tls12),
        Some("VersionTLS13") => Ok(Oldest::Tls13),
        // Upstream would serve clients that nobody should serve any more.
        Some(old @ ("VersionTLS10" | "VersionTLS11")) => {
            bail!("--tls-min-version {old} is not supported here: use VersionTLS12 or VersionTLS13")
        }
        Some(unknown) => bail!("unknown tls version {unknown:?}"),
    }
}

/// What the server is told to say of its version: the release that it behaves as, with a suffix.
fn reported(given: &Given) -> Result<Option<String>, FlagError> {
    let Some(text) = given.text("version").filter(|text| boolean(text) != Some(false)) else {
        return Ok(None);
    };
    let wrong = |why| Err(flag::invalid(Dialect::Pflag, "version", text, why));
    if !text.starts_with('v') {
        return wrong(format!("strconv.ParseBool: parsing {text:?}: invalid syntax"));
    }
    let suffix = text.strip_prefix(VERSION);
    let Some(suffix) = suffix.filter(|rest| rest.is_empty() || rest.starts_with(['-', '+'])) else {
        return wrong(format!(
            "version {text:?} must match major/minor/patch of default version {VERSION:?}"
        ));
    };
    if !is_version_suffix(suffix) {
        return wrong(format!(
            "could not parse pre-release/metadata ({suffix}) in version {text:?}"
        ));
    }
    Ok(Some(text.to_owned()))
}

/// `-rc.1+build`, or either, or neither.
fn is_version_suffix(text: &str) -> bool {
    let is_list = |text: &str| {
        let is_word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        text.split('.').all(is_word)
    };
    let (release, build) = match text.split_once('+') {
        Some((release, build)) => (release, Some(build)),
        None => (text, None),
    };
    let is_release = release.is_empty() || release.strip_prefix('-').is_some_and(is_list);
    is_release && build.is_none_or(is_list)
}

fn modes(given: &Given) -> Result<Vec<Mode>> {
    let named = given.list("authorization-mode");
    if named.is_empty() {
        return Ok(vec![Mode::AlwaysAllow]);
    }
    let mut modes = Vec::new();
    for name in &named {
        match name.as_str() {
            "RBAC" => modes.push(Mode::Rbac),
            "AlwaysAllow" => modes.push(Mode::AlwaysAllow),
            "Node" => modes.push(Mode::Node),
            "ABAC" | "Webhook" | "AlwaysDeny" => bail!(
                "authorization-mode {name:?} is not supported here: use RBAC, Node or AlwaysAllow"
            ),
            _ => bail!("authorization-mode {name:?} is not a valid mode"),
        }
    }
    Ok(modes)
}

fn limits(given: &Given) -> Result<Limits> {
    let mut limits = Limits::default();
    let count = |name: &str| given.number(Dialect::Pflag, name);
    if let Some(max) = count("max-requests-inflight")? {
        limits.read_only_max = usize::try_from(max)?;
    }
    if let Some(max) = count("max-mutating-requests-inflight")? {
        limits.mutating_max = usize::try_from(max)?;
    }
    if let Some(max) = count("http2-max-streams-per-connection")?.filter(|max| *max > 0) {
        limits.streams_max = u32::try_from(max)?;
    }
    if let Some(max) = given.duration(Dialect::Pflag, "request-timeout")? {
        limits.request_max = max;
    }
    Ok(limits)
}

fn front_proxy(given: &Given) -> Option<FrontProxy> {
    let or = |name: &str, usual: &str| match given.list(name) {
        list if list.is_empty() => vec![usual.to_owned()],
        list => list,
    };
    Some(FrontProxy {
        ca: given.text("requestheader-client-ca-file")?.to_owned(),
        client: None,
        uid_headers: given.list("requestheader-uid-headers"),
        allowed_names: given.list("requestheader-allowed-names"),
        username_headers: or("requestheader-username-headers", "x-remote-user"),
        group_headers: or("requestheader-group-headers", "x-remote-group"),
        extra_prefixes: or("requestheader-extra-headers-prefix", "x-remote-extra-"),
    })
}

fn audit(given: &Given) -> Result<Option<audit::Config>> {
    let (Some(policy), Some(log)) = (given.text("audit-policy-file"), given.text("audit-log-path"))
    else {
        return Ok(None);
    };
    let count = |name: &str| anyhow::Ok(given.number(Dialect::Pflag, name)?.unwrap_or_default());
    let output = match log {
        "-" => audit::Output::Stdout,
        path => audit::Output::File {
            path: std::path::absolute(path).context("find the audit log")?,
            rotation: audit::Rotation {
                // What upstream does when it is told nothing.
                bytes_max: match count("audit-log-maxsize")? {
                    0 => 100 << 20,
                    megabytes => megabytes << 20,
                },
                kept_max: usize::try_from(count("audit-log-maxbackup")?)?,
                age_max: Duration::from_hours(24 * count("audit-log-maxage")?),
            },
        },
    };
    let text = std::fs::read_to_string(policy)
        .with_context(|| format!("read the audit policy {policy}"))?;
    let policy =
        audit::Policy::parse(&text).with_context(|| format!("use the audit policy {policy}"))?;
    Ok(Some(audit::Config { policy, output }))
}

fn address(given: &Given, name: &str) -> Result<Option<IpAddr>, FlagError> {
    let Some(text) = given.text(name) else { return Ok(None) };
    let why = || format!("failed to parse IP: {text:?}");
    text.parse().map(Some).map_err(|_| flag::invalid(Dialect::Pflag, name, text, why()))
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let width = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u32>().is_ok_and(|bits| bits <= width)
}

/// `30000-32767`, or as upstream also takes it, `30000+2767`.
fn ports(text: &str) -> Result<RangeInclusive<u16>> {
    let wrong = || {
        anyhow!(
            "invalid argument {text:?} for \"--service-node-port-range\" flag: unable to parse port range: {text}"
        )
    };
    let number = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
    let (first, last) = match (text.split_once('-'), text.split_once('+')) {
        (Some((first, last)), _) => (number(first)?, number(last)?),
        (None, Some((first, more))) => {
            let first = number(first)?;
            (first, first.checked_add(number(more)?).ok_or_else(wrong)?)
        }
        (None, None) => (number(text)?, number(text)?),
    };
    match first <= last {
        true => Ok(first..=last),
        false => Err(wrong()),
    }
}
