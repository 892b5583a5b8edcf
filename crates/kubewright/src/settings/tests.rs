//! What files, variables and flags say, and what becomes of it.

use std::fs;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    settings: Layer,
}

/// Settings of a file, variables as `NAME=value`, and flags.
fn load(file: &str, variables: &[&str], flags: &[&str]) -> Result<Settings, SettingsError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("settings.yaml");
    fs::write(&path, file).expect("written");
    let path = path.to_str().expect("text").to_owned();
    let flags = ["operator", "--config", &path].into_iter().chain(flags.iter().copied());
    let arguments = Arguments::try_parse_from(flags).expect("flags");
    Settings::load(&arguments.settings, |name| {
        let mut pairs = variables.iter().filter_map(|variable| variable.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
    })
}

/// What is said of a file, without the folder that it is in.
fn check_refused(file: &str, variables: &[&str], expected: &str) {
    let error = load(file, variables, &[]).expect_err("it is refused").to_string();
    let error = match error.split_once("settings.yaml") {
        Some((_, rest)) => format!("settings.yaml{rest}"),
        None => error,
    };
    assert_eq!(error, expected);
}

#[test]
fn defaults_are_those_that_go_users_know() {
    let settings = Settings::default();
    let election = &settings.leader_election;
    let times = [election.lease_duration, election.renew_deadline, election.retry_period];
    assert_eq!(times.map(|time| time.as_secs()), [15, 10, 2]);
    assert_eq!(election.wanted, None);
    let Settings { metrics, probes, webhooks, .. } = &settings;
    assert_eq!([&metrics.bind, probes].map(ToString::to_string), [":8443", ":8081"]);
    // Beside a cluster it is another.
    assert_eq!(webhooks.bind, None);
    assert_eq!(crate::webhook::Server::BIND.to_string(), ":9443");
    assert!(metrics.secure && !settings.http2 && settings.namespaces.is_empty());
    assert_eq!(settings.graceful_shutdown, None);
    assert_eq!(settings.cache_sync_timeout, Duration::from_secs(120));
    assert_eq!(settings.logs, Logs { level: "info".to_owned(), format: LogFormat::Text });
}

#[test]
fn flags_go_before_variables_before_the_file_before_defaults() {
    let file = "logLevel: file\ncacheSyncTimeout: 10s\nnamespace: [a, b]\n";
    let variables = ["KUBEWRIGHT_LOG_LEVEL=variable", "KUBEWRIGHT_CACHE_SYNC_TIMEOUT=20s"];
    let settings = load(file, &variables, &["--log-level=flag"]).expect("settings");
    assert_eq!(settings.logs.level, "flag");
    assert_eq!(settings.cache_sync_timeout, Duration::from_secs(20));
    assert_eq!(settings.namespaces, ["a", "b"]);
    assert_eq!(settings.graceful_shutdown, None);
}

#[test]
fn every_setting_can_be_in_a_file() {
    let file = "\
kubeconfig: /config
namespace: a,b
leaderElect: true
leaderElectResourceName: lock
leaderElectResourceNamespace: locks
leaderElectLeaseDuration: 30s
leaderElectRenewDeadline: 20s
leaderElectRetryPeriod: 4s
metricsBindAddress: 127.0.0.1:9000
metricsSecure: false
metricsCertPath: /metrics
healthProbeBindAddress: \"0\"
webhookBindAddress: :9444
webhookUrlHost: laptop.example.com
webhookCertPath: /webhooks
enableHttp2: true
protobuf: true
gracefulShutdownTimeout: 1m
cacheSyncTimeout: 1m30s
logLevel: debug
logFormat: json
otlpEndpoint: http://127.0.0.1:4317
";
    let settings = load(file, &[], &[]).expect("settings");
    let election = LeaderElection {
        wanted: Some(true),
        name: Some("lock".to_owned()),
        namespace: Some("locks".to_owned()),
        lease_duration: Duration::from_secs(30),
        renew_deadline: Duration::from_secs(20),
        retry_period: Duration::from_secs(4),
    };
    assert_eq!(settings.leader_election, election);
    assert_eq!(settings.namespaces, ["a", "b"]);
    assert_eq!(settings.metrics.bind.to_string(), "127.0.0.1:9000");
    assert!(!settings.metrics.secure && settings.http2 && settings.protobuf);
    assert_eq!(settings.metrics.certificates, Some(PathBuf::from("/metrics")));
    assert_eq!(settings.probes, Bind::Nowhere);
    assert_eq!(settings.webhooks.bind, Some(Bind::Port(9444)));
    assert_eq!(settings.webhooks.url_host.as_deref(), Some("laptop.example.com"));
    assert_eq!(settings.webhooks.certificates, Some(PathBuf::from("/webhooks")));
    assert_eq!(settings.graceful_shutdown, Some(Duration::from_secs(60)));
    assert_eq!(settings.cache_sync_timeout, Duration::from_secs(90));
    assert_eq!(settings.logs, Logs { level: "debug".to_owned(), format: LogFormat::Json });
    assert_eq!(settings.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4317"));
    assert_eq!(settings.kubeconfig, Some(PathBuf::from("/config")));
}

#[test]
fn flags_that_are_true_or_false_need_no_value() {
    let wanted = |flags: &[&str]| load("", &[], flags).expect("settings").leader_election.wanted;
    assert_eq!(wanted(&[]), None);
    assert_eq!(wanted(&["--leader-elect"]), Some(true));
    assert_eq!(wanted(&["--leader-elect=false"]), Some(false));
}

#[test]
fn a_host_is_a_name_or_an_address() {
    let host = |flag: &str| {
        let settings = load("", &[], &[flag]).expect("settings");
        settings.webhooks.url_host.expect("a host")
    };
    assert_eq!(host("--webhook-url-host=host.docker.internal"), "host.docker.internal");
    assert_eq!(host("--webhook-url-host=172.18.0.1"), "172.18.0.1");
    assert_eq!(host("--webhook-url-host=[fe80::1]"), "fe80::1");
}

#[test]
fn variables_that_others_agreed_on_are_known() {
    let variables = [
        "WATCH_NAMESPACE=a,b",
        "RUST_LOG=kube=debug",
        "KUBEWRIGHT_OTLP_ENDPOINT=http://a",
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://b",
    ];
    let settings = load("", &variables, &[]).expect("settings");
    assert_eq!(settings.namespaces, ["a", "b"]);
    assert_eq!(settings.logs.level, "kube=debug");
    assert_eq!(settings.otlp_endpoint.as_deref(), Some("http://a"));
}

#[test]
fn an_empty_variable_says_nothing() {
    let settings = load("", &["WATCH_NAMESPACE=", "KUBEWRIGHT_LEADER_ELECT="], &[]);
    let settings = settings.expect("settings");
    assert!(settings.namespaces.is_empty());
    assert_eq!(settings.leader_election.wanted, None);
}

#[test]
fn a_key_that_nobody_knows_is_refused_with_its_line_and_what_was_meant() {
    check_refused(
        "logLevel: debug\n# Go's name.\nleader-elekt: true\n",
        &[],
        "settings.yaml:3: there is no setting \"leader-elekt\"; is \"leaderElect\" meant?",
    );
    check_refused("kind: Settings\n", &[], "settings.yaml:1: there is no setting \"kind\"");
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_its_place() {
    for (file, expected) in [
        ("cacheSyncTimeout: soon\n", "\"soon\" is no duration such as 30s, 1m30s or 500ms"),
        ("metricsBindAddress: everywhere\n", "an address such as :8443"),
        ("leaderElect: maybe\n", "bool"),
        ("webhookUrlHost: https://laptop\n", "no host such as 192.168.1.5"),
        ("logLevel: a\nlogLevel: b\n", "duplicate"),
    ] {
        let error = load(file, &[], &[]).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("settings.yaml") && error.contains("line"), "{error}");
    }
}

#[test]
fn a_variable_that_does_not_fit_is_refused_by_name() {
    check_refused(
        "",
        &["KUBEWRIGHT_LOG_FORMAT=xml"],
        "read the variable KUBEWRIGHT_LOG_FORMAT: invalid value 'xml' for '--log-format <FORMAT>'",
    );
}

#[test]
fn a_leader_must_notice_in_time_that_it_is_none() {
    for file in [
        "leaderElectLeaseDuration: 10s\n",
        "leaderElectRetryPeriod: 9s\n",
        "leaderElectRetryPeriod: 0s\n",
    ] {
        let error = load(file, &[], &[]).expect_err("it is refused");
        assert!(matches!(error, SettingsError::Election { .. }), "{file}");
    }
}

#[test]
fn an_author_has_settings_of_their_own() {
    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shop {
        currency: String,
    }
    let settings =
        load("logLevel: debug\noperator:\n  currency: EUR\n", &[], &[]).expect("settings");
    assert_eq!(settings.own::<Shop>().expect("settings"), Shop { currency: "EUR".to_owned() });
    let settings = load("", &[], &[]).expect("settings");
    assert_eq!(settings.own::<Shop>().expect("settings"), Shop::default());
    let settings = load("operator:\n  curency: EUR\n", &[], &[]).expect("settings");
    let error = settings.own::<Shop>().expect_err("a key that nobody knows").to_string();
    assert!(
        error.ends_with(":2: there is no setting \"curency\"; is \"currency\" meant?"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let flags = Layer { config: Some(PathBuf::from("/nowhere.yaml")), ..Layer::default() };
    let error = Settings::load(&flags, |_| None).expect_err("there is no file");
    assert_eq!(error.to_string(), "read /nowhere.yaml");
}

#[test]
fn one_replica_works_or_all_of_them_do() {
    let sharded = |flags: &[&str]| load("", &[], flags).map(|settings| settings.sharded);
    assert_eq!(sharded(&[]).expect("settings"), None);
    assert_eq!(sharded(&["--sharded"]).expect("settings"), Some(true));
    assert_eq!(sharded(&["--sharded", "--leader-elect=false"]).expect("settings"), Some(true));
    let refused = sharded(&["--sharded", "--leader-elect"]).expect_err("not both");
    assert!(matches!(refused, SettingsError::Coordination), "{refused}");
}
