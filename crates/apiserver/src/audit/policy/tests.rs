//! Policies, and what they say of requests. Complaints are kube-apiserver's.

use http::Method;

use super::*;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: ["system:apiserver"]}
- {level: None, nonResourceURLs: ["/healthz*", "/version"]}
- {level: Metadata, resources: [{group: "", resources: [secrets, "secrets/*"]}]}
- {level: Request, verbs: [create], resources: [{group: "*", resources: ["*/scale"]}]}
- level: RequestResponse
  resources: [{group: "", resources: [configmaps], resourceNames: [a]}]
  omitStages: [ResponseStarted]
  omitManagedFields: false
- {level: Metadata, resources: [{group: "", resources: ["pods/log"]}]}
- {level: Request, resources: [{group: batch}]}
- {level: Metadata, namespaces: [""]}
- {level: Request, userGroups: [staff], namespaces: [dev]}
- {level: Metadata, verbs: [delete]}
"#;

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = Policy::parse(POLICY).expect("it is sound");
    let check = |user: &str, line: &str, expected: Level| {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let method: Method = method.parse().expect("a method");
        let user = User::new(user, (user == "ann").then(|| "staff".to_owned()));
        let target = Target::parse(&method, path, false, None);
        assert_eq!(policy.judge(Some(&user), &target).level, expected, "{} {line}", user.name);
    };
    check("system:apiserver", "GET /api/v1/namespaces/a/secrets/b", Level::None);
    check("bob", "GET /healthz/ping", Level::None);
    check("bob", "DELETE /version", Level::None);
    check("bob", "DELETE /version/x", Level::Metadata);
    check("bob", "GET /version/x", Level::None);
    check("bob", "GET /api/v1/namespaces/a/secrets/b", Level::Metadata);
    check("bob", "GET /api/v1/namespaces/a/secrets", Level::Metadata);
    check("bob", "GET /api/v1/namespaces/a/secrets/b/status", Level::Metadata);
    check("bob", "GET /apis/x.io/v1/namespaces/a/secrets/b", Level::None);
    check("bob", "POST /apis/apps/v1/namespaces/a/deployments/b/scale", Level::Request);
    check("bob", "GET /apis/apps/v1/namespaces/a/deployments/b/scale", Level::None);
    check("bob", "POST /apis/apps/v1/namespaces/a/deployments", Level::None);
    check("bob", "GET /api/v1/namespaces/x/configmaps/a", Level::RequestResponse);
    check("bob", "GET /api/v1/namespaces/x/configmaps/a/status", Level::None);
    check("bob", "GET /api/v1/namespaces/x/configmaps/b", Level::None);
    check("bob", "GET /api/v1/namespaces/x/pods/a/log", Level::Metadata);
    check("bob", "GET /api/v1/namespaces/x/pods/a", Level::None);
    check("bob", "GET /apis/batch/v1/namespaces/x/jobs/a/status", Level::Request);
    check("bob", "GET /api/v1/nodes", Level::Metadata);
    check("bob", "GET /api/v1/pods", Level::Metadata);
    check("bob", "GET /api/v1/namespaces/x", Level::None);
    check("bob", "GET /api/v1/namespaces/dev/pods", Level::None);
    check("ann", "GET /api/v1/namespaces/dev/pods", Level::Request);
    check("ann", "GET /api/v1/namespaces/other/pods", Level::None);
}

#[test]
fn nobody_is_no_user_and_in_no_group() {
    let policy = Policy::parse(POLICY).expect("it is sound");
    let judge = |path: &str| policy.judge(None, &Target::parse(&Method::GET, path, false, None));
    assert_eq!(judge("/api/v1/namespaces/dev/pods").level, Level::None);
    assert_eq!(judge("/api/v1/namespaces/dev/secrets").level, Level::Metadata);
}

#[test]
fn a_rule_adds_to_what_is_omitted_and_decides_on_managed_fields() {
    let policy = Policy::parse(POLICY).expect("it is sound");
    let judge = |path: &str| policy.judge(None, &Target::parse(&Method::GET, path, false, None));
    let own = judge("/api/v1/namespaces/x/configmaps/a");
    assert!(!own.wants(Stage::RequestReceived) && !own.wants(Stage::ResponseStarted));
    assert!(own.wants(Stage::ResponseComplete) && own.wants(Stage::Panic));
    assert!(!own.omit_managed_fields);
    let secrets = judge("/api/v1/namespaces/x/secrets/a");
    assert!(!secrets.wants(Stage::RequestReceived) && secrets.wants(Stage::ResponseStarted));
    assert!(secrets.omit_managed_fields);
}

#[test]
fn everything_may_be_json() {
    let text =
        r#"{"kind": "Policy", "apiVersion": "audit.k8s.io/v1", "rules": [{"level": "Metadata"}]}"#;
    let target = Target::parse(&Method::GET, "/", false, None);
    let policy = Policy::parse(text).expect("it is sound");
    assert_eq!(policy.judge(None, &target).level, Level::Metadata);
}

#[test]
fn fields_that_mean_nothing_are_passed_over() {
    let text =
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nbar: 1\nrules: [{level: Metadata, foo: 1}]";
    assert!(Policy::parse(text).is_ok());
}

#[test]
fn a_bad_policy_is_told_where_it_is_bad() {
    let check = |rest: &str, expected: &str| {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rest}");
        let error = Policy::parse(&text).expect_err("it is bad");
        assert_eq!(error.to_string(), expected);
    };
    check("", "loaded illegal policy with 0 rules: `rules: [{level: Metadata}]` logs everything");
    check("rules: [{}]", "rules[0].level: Required value");
    check(
        "rules: [{level: All, omitStages: [Done]}]\nomitStages: [x]",
        "[omitStages[0]: Invalid value: \"x\": allowed stages are \
         RequestReceived,ResponseStarted,ResponseComplete,Panic, rules[0].level: Unsupported \
         value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \
         \"RequestResponse\", rules[0].omitStages[0]: Invalid value: \"Done\": allowed stages are \
         RequestReceived,ResponseStarted,ResponseComplete,Panic]",
    );
    check(
        "rules: [{level: None, nonResourceURLs: [a, '/*/b', '/a**', '']}]",
        "[rules[0].nonResourceURLs[0]: Invalid value: \"a\": non-resource URL rules must begin \
         with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: \"/*/b\": non-resource \
         URL wildcards '*' must be the final character of the rule, rules[0].nonResourceURLs[2]: \
         Invalid value: \"/a**\": non-resource URL wildcards '*' must be the final character of \
         the rule, rules[0].nonResourceURLs[3]: Invalid value: \"\": non-resource URL rules must \
         begin with a '/' character]",
    );
    check(
        "rules: [{level: None, nonResourceURLs: ['*'], namespaces: [a]}]",
        "rules[0].nonResourceURLs: Invalid value: [\"*\"]: rules cannot apply to both regular \
         resources and non-resource URLs",
    );
    check(
        "rules: [{level: None, resources: [{resourceNames: [a]}, {group: a/v1, resources: [x]}]}]",
        "[rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires \
         at least one resource, rules[0].resources.group: Invalid value: \"a/v1\": a lowercase \
         RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
         must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
         validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]",
    );
}

#[test]
fn what_has_another_shape_is_told_in_gos_words() {
    let check = |rest: &str, expected: &str| {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rest}");
        let error = Policy::parse(&text).expect_err("it is bad").to_string();
        assert_eq!(error, format!("failed decoding: json: cannot unmarshal {expected}"));
    };
    check(
        "rules: {level: None}",
        "object into Go struct field Policy.rules of type []v1.PolicyRule",
    );
    check(
        "rules: [{level: 3}]",
        "number into Go struct field PolicyRule.rules.level of type v1.Level",
    );
    check(
        "rules: [{level: None, verbs: get}]",
        "string into Go struct field PolicyRule.rules.verbs of type []string",
    );
    check(
        "rules: [{level: None, verbs: [1]}]",
        "number into Go struct field PolicyRule.rules.verbs of type string",
    );
    check(
        "rules: [{level: None, resources: [pods]}]",
        "string into Go struct field PolicyRule.rules.resources of type v1.GroupResources",
    );
    check(
        "rules: [{level: None, omitManagedFields: x}]",
        "string into Go struct field PolicyRule.rules.omitManagedFields of type bool",
    );
}

#[test]
fn a_file_of_something_else_is_told_how_to_begin() {
    let check = |text: &str, found: &str| {
        let error = Policy::parse(text).expect_err("it is none").to_string();
        let next = "begin it with `apiVersion: audit.k8s.io/v1` and `kind: Policy`";
        assert_eq!(error, format!("it says {found}: {next}"));
    };
    check("apiVersion: v1\nkind: ConfigMap", r#""v1" "ConfigMap""#);
    check("apiVersion: audit.k8s.io/v1beta1\nkind: Policy", r#""audit.k8s.io/v1beta1" "Policy""#);
    check("", r#""" """#);
    let list = Policy::parse("[]").expect_err("it is none").to_string();
    assert_eq!(list, "failed decoding: array is no policy");
}
