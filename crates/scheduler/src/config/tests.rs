//! Configurations that can be used, and why others cannot.

use super::*;

fn configuration(rest: &str) -> String {
    format!("apiVersion: {API_VERSION}\nkind: {KIND}\n{rest}")
}

#[track_caller]
fn check_error(rest: &str, expected: &str) {
    let error = Config::parse(&configuration(rest)).expect_err("it is wrong");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_configuration_that_says_nothing_has_the_default_profile() {
    let config = Config::parse(&configuration("")).expect("a configuration");
    let names: Vec<_> = config.profiles.iter().map(|it| it.scheduler_name.as_deref()).collect();
    assert_eq!(names, [Some("default-scheduler")]);
    assert_eq!((config.backoff_initial(), config.backoff_max()), (BACKOFF_INITIAL, BACKOFF_MAX));
}

#[test]
fn profiles_extenders_and_times_are_read() {
    let config = Config::parse(&configuration(
        "podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 100}
profiles:
- schedulerName: one
  percentageOfNodesToScore: 30
  plugins:
    score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 7}]}
  pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}
- schedulerName: two
extenders:
- {urlPrefix: 'http://localhost:8888/', filterVerb: filter, prioritizeVerb: prioritize, weight: 2, enableHTTPS: false, httpTimeout: 5s, managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}
",
    ))
    .expect("a configuration");
    assert_eq!(config.profiles[0].plugins.score.enabled[0].weight, Some(7));
    assert_eq!(config.profiles[1].scheduler_name.as_deref(), Some("two"));
    assert_eq!(config.extenders[0].managed_resources[0].name, "example.com/gpu");
    assert_eq!(config.backoff_max(), Duration::from_secs(20));
}

#[test]
fn what_makes_no_sense_is_refused() {
    check_error("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value");
    check_error(
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        "profiles[1].schedulerName: Duplicate value: \"a\"",
    );
    check_error(
        "percentageOfNodesToScore: 101",
        "percentageOfNodesToScore: not in valid range [0-100]",
    );
    check_error(
        "podInitialBackoffSeconds: 20",
        "podMaxBackoffSeconds: must be greater than or equal to PodInitialBackoffSeconds",
    );
    check_error(
        "extenders: [{urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://c', bindVerb: b}]",
        "extenders: only one extender can implement bind",
    );
    check_error(
        "extenders: [{urlPrefix: 'http://a', prioritizeVerb: p}]",
        "extenders[0].weight: must have a positive weight applied to it",
    );
    assert!(matches!(
        Config::parse(&configuration("profile: []")),
        Err(ConfigError::Syntax(why)) if why.contains("unknown field `profile`")
    ));
    let other = Config::parse("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: X");
    assert!(matches!(other, Err(ConfigError::Kind { .. })));
}

#[test]
fn a_policy_becomes_plugins_and_nothing_else_is_on() {
    let config = Config::from_policy(
        r#"{"kind": "Policy", "apiVersion": "v1",
            "predicates": [{"name": "GeneralPredicates"}, {"name": "CheckVolumeBinding"},
                {"name": "Zone", "argument": {"labelsPresence": {"labels": ["zone"], "presence": true}}}],
            "priorities": [{"name": "MostRequestedPriority", "weight": 3},
                {"name": "SelectorSpreadPriority", "weight": 1},
                {"name": "EvenPodsSpreadPriority", "weight": 2}],
            "extenders": [{"urlPrefix": "http://localhost", "filterVerb": "f", "httpTimeout": 100000000}],
            "hardPodAffinitySymmetricWeight": 10}"#,
    )
    .expect("a policy");
    let plugins = &config.profiles[0].plugins;
    let names = |selection: &PluginSelection| {
        let names = selection.enabled.iter().map(|plugin| {
            plugin.weight.map_or(plugin.name.clone(), |weight| format!("{}={weight}", plugin.name))
        });
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names(&plugins.filter),
        "NodeUnschedulable TaintToleration NodeName NodeAffinity NodePorts NodeResourcesFit \
         VolumeBinding NodeLabel"
    );
    assert_eq!(names(&plugins.score), "NodeResourcesFit=3 PodTopologySpread=3");
    assert_eq!(names(&plugins.pre_bind), "VolumeBinding");
    assert_eq!(plugins.multi_point.disabled[0].name, "*");
    assert_eq!(config.extenders[0].http_timeout.as_deref(), Some("100000000ns"));
}

#[test]
fn a_policy_that_asks_for_what_is_gone_is_refused() {
    let with = |predicate: &str| {
        let text = format!("{{kind: Policy, apiVersion: v1, predicates: [{predicate}]}}");
        Config::from_policy(&text).expect_err("it is wrong").to_string()
    };
    let unknown = "predicates: \"X\" is not known, or needs an argument that it has not";
    assert_eq!(with("{name: X}"), unknown);
    assert_eq!(with("{name: X, argument: {serviceAffinity: {labels: [zone]}}}"), unknown);
}
