use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;

use super::*;

fn read<T: DeserializeOwned>(text: &str) -> T {
    let value = yaml::decode(text).unwrap_or_else(|error| panic!("{error}")).value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
}

/// What an init container may have left.
const FILE: &str = "# made by hand\n\n  A='one' # the first\nB= 'two'\nC='three
and four'\n";

fn sources() -> Sources {
    let map = read("metadata: {name: m}\ndata: {COLOUR: blue, size: '3'}");
    let secret = read("metadata: {name: s}\ndata: {pass: aHVudGVy}");
    let services = [
        "metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443}]}",
        "metadata: {name: my-db, namespace: d}
spec: {clusterIP: 10.96.0.9, ports: [{port: 5432, protocol: TCP}]}",
        "metadata: {name: far, namespace: other}
spec: {clusterIP: 10.96.0.8, ports: [{port: 1}]}",
        "metadata: {name: headless, namespace: d}
spec: {clusterIP: None, ports: [{port: 1}]}",
    ];
    Sources {
        config_maps: BTreeMap::from([("m".to_owned(), map)]),
        secrets: BTreeMap::from([("s".to_owned(), secret)]),
        services: services.map(read).into(),
        server: Some(("127.0.0.1".to_owned(), 6443)),
        addresses: vec!["127.1.2.3".parse().expect("an address")],
        host: "127.0.0.1".parse().ok(),
        files: [("v", "a/env", Ok(FILE)), ("v", "gone", Err("No such file"))]
            .map(|(volume, path, text): (&str, &str, Result<&str, &str>)| {
                let text = text.map(str::to_owned).map_err(str::to_owned);
                ((volume.to_owned(), path.to_owned()), text)
            })
            .into(),
        capacity: read("{cpu: '4', memory: 8Gi, ephemeral-storage: 100Gi, hugepages-2Mi: 2Mi}"),
    }
}

fn check(container: &str, expected: &str) {
    let pod: Pod = read(
        "metadata: {name: p, namespace: d, uid: u, labels: {app: web}}
spec: {nodeName: 'n', containers: []}",
    );
    let container: Container = read(container);
    let told = match environment(&pod, &container, &sources()) {
        Ok(environment) => {
            let links = ["KUBERNETES_", "MY_DB_"];
            let own = environment
                .into_iter()
                .filter(|(name, _)| !links.iter().any(|link| name.starts_with(link)));
            own.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        Err(missing) => missing.to_string(),
    };
    assert_eq!(told, expected);
}

#[test]
fn variables_come_from_where_the_container_says() {
    check(
        "{name: a, env: [{name: A, value: x}, {name: B, value: $(A)-$(NONE)-$$(A)}]}",
        "A=x B=x-$(NONE)-$(A)",
    );
    check(
        "{name: a, envFrom: [{prefix: P_, configMapRef: {name: m}}, {secretRef: {name: s}}]}",
        "P_COLOUR=blue P_size=3 pass=hunter",
    );
    check(
        "{name: a, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: size}}}, \
        {name: B, valueFrom: {secretKeyRef: {name: s, key: pass}}}]}",
        "A=3 B=hunter",
    );
    check(
        "{name: a, env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, \
        {name: B, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}]}",
        "A=127.1.2.3 B=web",
    );
    check(
        "{name: a, resources: {limits: {cpu: 1500m, memory: 1Gi}}, env: [\
        {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, \
        {name: B, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]}",
        "A=2 B=1024",
    );
}

#[test]
fn a_container_without_a_limit_may_use_what_its_node_has() {
    check(
        "{name: a, resources: {limits: {cpu: '0'}, requests: {memory: 1Gi}}, env: [\
        {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, \
        {name: B, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}, \
        {name: C, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage}}}, \
        {name: D, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi}}}, \
        {name: E, valueFrom: {resourceFieldRef: {resource: requests.cpu}}}]}",
        "A=4 B=8192 C=107374182400 D=0 E=0",
    );
}

#[test]
fn a_container_without_a_limit_may_use_what_its_pod_may() {
    let pod: Pod = read(
        "metadata: {name: p, namespace: d}
spec: {containers: [], resources: {limits: {memory: 2Gi}}}",
    );
    let container: Container = read(
        "{name: a, env: [\
        {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, \
        {name: B, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]}",
    );
    let found = environment(&pod, &container, &sources()).expect("nothing is missing");
    assert_eq!((found["A"].as_str(), found["B"].as_str()), ("4", "2147483648"));
}

#[test]
fn what_is_missing_is_named_unless_it_is_optional() {
    check("{name: a, envFrom: [{configMapRef: {name: none}}]}", "configmap \"none\" not found");
    check(
        "{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}",
        "couldn't find key k in Secret d/s",
    );
    check(
        "{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, \
        optional: true}}}]}",
        "",
    );
}

#[test]
fn services_of_the_namespace_are_found_by_variables() {
    let pod: Pod = read("metadata: {name: p, namespace: d}\nspec: {containers: []}");
    let found = environment(&pod, &Container::default(), &sources()).expect("nothing is missing");
    assert_eq!(found["KUBERNETES_SERVICE_HOST"], "127.0.0.1");
    assert_eq!(found["KUBERNETES_SERVICE_PORT_HTTPS"], "6443");
    assert_eq!(found["MY_DB_SERVICE_HOST"], "10.96.0.9");
    assert_eq!(found["MY_DB_PORT"], "tcp://10.96.0.9:5432");
    assert_eq!(found["MY_DB_PORT_5432_TCP_ADDR"], "10.96.0.9");
    assert!(!found.keys().any(|name| name.starts_with("FAR") || name.starts_with("HEADLESS")));
}

#[test]
fn a_path_is_made_of_values_that_are_there() {
    let variables = [("A", "x"), ("EMPTY", "")];
    let variables: BTreeMap<String, String> =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(expand_all("a/$(A)", &variables), Ok("a/x".to_owned()));
    let missing = "missing value for EMPTY, NONE";
    let refused = expand_all("$(NONE)/$(EMPTY)/$(A)", &variables);
    assert_eq!(refused, Err(missing.to_owned()));
}

#[test]
fn values_come_from_files_of_volumes() {
    let file = |key: &str, path: &str, optional: bool| {
        format!(
            "name: c\nenv: [{{name: X, valueFrom: {{fileKeyRef: {{volumeName: v, path: {path}, \
             key: {key}, optional: {optional}}}}}}}]"
        )
    };
    check(&file("A", "a/env", false), "X=one");
    check(&file("C", "a/env", false), "X=three\nand four");
    check(&file("B", "a/env", true), "");
    check(&file("D", "a/env", true), "");
    check(&file("D", "a/env", false), "environment variable key \"D\" not found in file \"a/env\"");
    check(&file("A", "gone", true), "couldn't parse env file: No such file");
}

#[test]
fn only_what_a_shell_reads_the_same_is_taken_from_files() {
    let check = |text: &str, expected: &str| {
        let told = file::variable(text, "A").unwrap_err();
        let told = told.trim_start_matches("invalid environment variable format ");
        assert_eq!(told, expected, "{text}");
    };
    check("A", "at line 1: missing '='");
    check("='x'", "at line 1: empty variable name");
    check("\nA ='x'", "at line 2: whitespace before '=' is not allowed");
    check("A=x", "at line 1: value must be enclosed in single quotes");
    check("A='x'y", "at line 1: unexpected content after closing quote");
    check("A='x\ny", "starting at line 1: unclosed single quote");
}

/// Lines were quoted as Rust quotes them, which programs that read Go's do not know.
#[test]
fn maps_of_the_downward_api_are_quoted_as_go_quotes() {
    let annotations = BTreeMap::from([("a".to_owned(), "bell \u{7} é \" \u{ad}".to_owned())]);
    let mut pod = Pod::default();
    pod.metadata.annotations = Some(annotations);
    let text = pod_field(&pod, "metadata.annotations", &Sources::default());
    assert_eq!(text.as_deref(), Ok(r#"a="bell \a é \" \u00ad""#));
}
