//! Packages against what is rendered of them.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;

use super::*;

fn definition(group: &str) -> CustomResourceDefinition {
    from(json!({
        "metadata": {"name": format!("pets.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Pet", "plural": "pets", "singular": "pet", "listKind": "PetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "required": ["name", "species", "legs", "owners"],
                    "properties": {
                        "name": {"type": "string"},
                        "species": {"type": "string", "enum": ["dog", "cat"]},
                        "legs": {"type": "integer", "minimum": 2},
                        "owners": {"type": "array", "minItems": 1, "items": {
                            "type": "object",
                            "required": ["since"],
                            "properties": {"since": {"type": "string", "format": "date-time"}},
                        }},
                        "nickname": {"type": "string"},
                    },
                }}}},
            }],
        },
    }))
}

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("fits its type")
}

fn webhook(path: &str) -> Value {
    json!({
        "name": "pet.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": "", "namespace": "", "path": path}},
    })
}

fn pets() -> Package {
    Package {
        image: "pets:1".to_owned(),
        accesses: vec![Access::owned::<Deployment>(), Access::read::<Namespace>()],
        definitions: vec![definition("example.com")],
        ..Package::new("pets")
    }
}

/// With everything that is called from outside.
fn called() -> Package {
    Package {
        converted: vec!["pets.example.com".to_owned()],
        mutating: vec![from(webhook("/mutate-example-com-v1-pet"))],
        validating: vec![from(webhook("/validate-example-com-v1-pet"))],
        ..pets()
    }
}

fn render(package: &Package) -> Vec<Manifest> {
    package.render().expect("it is rendered")
}

/// The object of this kind and name.
fn object(package: &Package, kind: &str, name: &str) -> Value {
    let manifests = render(package);
    let found = manifests.into_iter().find(|it| it.kind() == kind && it.name() == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}")).object
}

/// Each object as `kind namespace/name`.
fn check(package: &Package, expected: &[&str]) {
    let line = |manifest: &Manifest| {
        let namespace = manifest.namespace().map(|namespace| format!("{namespace}/"));
        format!("{} {}{}", manifest.kind(), namespace.unwrap_or_default(), manifest.name())
    };
    let lines: Vec<_> = render(package).iter().map(line).collect();
    assert_eq!(lines, expected);
}

fn check_yaml(object: &Value, expected: &str) {
    assert_eq!(yaml::to_string(object), expected);
}

#[test]
fn an_operator_has_the_objects_that_kubebuilder_gives_it() {
    check(
        &called(),
        &[
            "Namespace pets-system",
            "CustomResourceDefinition pets.example.com",
            "ServiceAccount pets-system/pets-controller-manager",
            "Role pets-system/pets-leader-election-role",
            "Role pets-system/pets-manager-role",
            "ClusterRole pets-manager-role",
            "ClusterRole pets-metrics-auth-role",
            "ClusterRole pets-metrics-reader",
            "ClusterRole pets-pet-admin-role",
            "ClusterRole pets-pet-editor-role",
            "ClusterRole pets-pet-viewer-role",
            "RoleBinding pets-system/pets-leader-election-rolebinding",
            "RoleBinding pets-system/pets-manager-rolebinding",
            "ClusterRoleBinding pets-manager-rolebinding",
            "ClusterRoleBinding pets-metrics-auth-rolebinding",
            "Service pets-system/pets-controller-manager-metrics-service",
            "Service pets-system/pets-webhook-service",
            "Deployment pets-system/pets-controller-manager",
            "MutatingWebhookConfiguration pets-mutating-webhook-configuration",
            "ValidatingWebhookConfiguration pets-validating-webhook-configuration",
            "Pet pet-sample",
        ],
    );
}

#[test]
fn what_an_operator_does_not_do_it_has_no_objects_for() {
    let package = Package {
        namespace: "default".to_owned(),
        coordination: Coordination::None,
        metrics: false,
        ..Package::new("small")
    };
    check(
        &package,
        &[
            "ServiceAccount default/small-controller-manager",
            "ClusterRole small-manager-role",
            "ClusterRoleBinding small-manager-rolebinding",
            "Deployment default/small-controller-manager",
        ],
    );
}

#[test]
fn an_operator_of_one_namespace_has_rights_in_no_other() {
    let package = Package { watched: Watched::Home, metrics: false, ..pets() };
    let role = object(&package, "Role", "pets-manager-role");
    let resources = |role: &Value| {
        let rules = role["rules"].as_array().expect("rules").iter();
        rules.map(|rule| rule["resources"][0].clone()).collect::<Vec<_>>()
    };
    assert_eq!(resources(&role), ["deployments", "events"]);
    // Namespaces are in no namespace.
    assert_eq!(resources(&object(&package, "ClusterRole", "pets-manager-role")), ["namespaces"]);
    assert_eq!(object(&package, "Role", "pets-pet-editor-role")["kind"], "Role");
    let deployment = object(&package, "Deployment", "pets-controller-manager");
    let variable = &deployment["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_eq!(variable["name"], "WATCH_NAMESPACE");
}

#[test]
fn an_operator_of_some_namespaces_has_a_role_in_each() {
    let package = Package {
        watched: Watched::Namespaces(vec!["shop".to_owned(), "lab".to_owned()]),
        accesses: vec![Access::read::<ConfigMap>(), Access::read::<Deployment>().at_home()],
        definitions: Vec::new(),
        coordination: Coordination::None,
        metrics: false,
        ..pets()
    };
    check(
        &package,
        &[
            "Namespace pets-system",
            "ServiceAccount pets-system/pets-controller-manager",
            "Role lab/pets-manager-role",
            "Role pets-system/pets-manager-role",
            "Role shop/pets-manager-role",
            "RoleBinding lab/pets-manager-rolebinding",
            "RoleBinding pets-system/pets-manager-rolebinding",
            "RoleBinding shop/pets-manager-rolebinding",
            "Deployment pets-system/pets-controller-manager",
        ],
    );
}

#[test]
fn the_deployment_is_restricted_and_has_time_to_stop() {
    check_yaml(
        &object(&pets(), "Deployment", "pets-controller-manager")["spec"]["template"],
        "\
metadata:
  annotations:
    kubectl.kubernetes.io/default-container: manager
  labels:
    app.kubernetes.io/name: pets
    control-plane: controller-manager
spec:
  containers:
  - args:
    - run
    - --metrics-bind-address=:8443
    - --leader-elect
    - --health-probe-bind-address=:8081
    - --graceful-shutdown-timeout=30s
    image: pets:1
    livenessProbe:
      httpGet:
        path: /healthz
        port: 8081
      initialDelaySeconds: 15
      periodSeconds: 20
    name: manager
    ports:
    - containerPort: 8081
      name: health
      protocol: TCP
    - containerPort: 8443
      name: metrics
      protocol: TCP
    readinessProbe:
      httpGet:
        path: /readyz
        port: 8081
      initialDelaySeconds: 5
      periodSeconds: 10
    resources:
      limits:
        cpu: 500m
        memory: 128Mi
      requests:
        cpu: 10m
        memory: 64Mi
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop:
        - ALL
      readOnlyRootFilesystem: true
  securityContext:
    runAsNonRoot: true
    seccompProfile:
      type: RuntimeDefault
  serviceAccountName: pets-controller-manager
  terminationGracePeriodSeconds: 40
",
    );
}

#[test]
fn an_admin_of_a_kind_may_do_everything_with_it() {
    check_yaml(
        &object(&pets(), "ClusterRole", "pets-pet-admin-role")["rules"],
        "\
- apiGroups:
  - example.com
  resources:
  - pets
  verbs:
  - '*'
- apiGroups:
  - example.com
  resources:
  - pets/status
  verbs:
  - get
",
    );
}

#[test]
fn namesakes_of_different_groups_are_told_apart() {
    let package = Package {
        definitions: vec![definition("shop.example.com"), definition("lab.example.com")],
        ..pets()
    };
    object(&package, "ClusterRole", "pets-shop-pet-viewer-role");
    object(&package, "ClusterRole", "pets-lab-pet-viewer-role");
}

#[test]
fn webhooks_are_called_at_the_service() {
    let object =
        object(&called(), "MutatingWebhookConfiguration", "pets-mutating-webhook-configuration");
    check_yaml(
        &object["webhooks"][0]["clientConfig"],
        "\
service:
  name: pets-webhook-service
  namespace: pets-system
  path: /mutate-example-com-v1-pet
url: null
",
    );
}

#[test]
fn cert_manager_is_asked_for_certificates_and_to_spread_their_authority() {
    let package = Package { certificates: Certificates::CertManager, ..called() };
    let certificate = object(&package, "Certificate", "pets-serving-cert");
    check_yaml(
        &certificate["spec"],
        "\
dnsNames:
- pets-webhook-service.pets-system.svc
- pets-webhook-service.pets-system.svc.cluster.local
issuerRef:
  kind: Issuer
  name: pets-selfsigned-issuer
secretName: pets-webhook-server-cert
",
    );
    for (kind, name) in [
        ("CustomResourceDefinition", "pets.example.com"),
        ("MutatingWebhookConfiguration", "pets-mutating-webhook-configuration"),
        ("ValidatingWebhookConfiguration", "pets-validating-webhook-configuration"),
    ] {
        let annotations = &object(&package, kind, name)["metadata"]["annotations"];
        let expected = "pets-system/pets-serving-cert";
        assert_eq!(annotations["cert-manager.io/inject-ca-from"], expected, "{kind}");
    }
    let pod =
        &object(&package, "Deployment", "pets-controller-manager")["spec"]["template"]["spec"];
    let arguments = pod["containers"][0]["args"].as_array().expect("arguments");
    let path = "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs";
    assert!(arguments.contains(&json!(path)));
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "pets-webhook-server-cert");
    // It makes none itself, so it may not write Secrets.
    let manifests = render(&package);
    let has_role =
        manifests.iter().any(|it| it.kind() == "Role" && it.name() == "pets-manager-role");
    assert!(!has_role);
}

#[test]
fn a_sample_has_what_its_schema_requires() {
    check_yaml(
        &object(&pets(), "Pet", "pet-sample")["spec"],
        "\
legs: 2
name: sample
owners:
- since: \"2030-01-01T00:00:00Z\"
species: dog
",
    );
    let given = json!({
        "apiVersion": "example.com/v1",
        "kind": "Pet",
        "metadata": {"name": "thor", "labels": {"app.kubernetes.io/name": "thor"}},
    });
    let package = Package { samples: vec![given], ..pets() };
    let samples: Vec<_> =
        render(&package).into_iter().filter(|it| it.part == Part::Samples).collect();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].object["metadata"]["labels"]["app.kubernetes.io/name"], "thor");
}

#[test]
fn a_name_that_no_service_could_have_is_refused() {
    for name in ["", "Pets", "4pets", "pets.example", "a-name-of-twenty-nine-letters"] {
        let error = Package::new(name).render().expect_err(name);
        assert!(matches!(error, RenderError::Name { .. }), "{name}");
    }
    render(&Package::new("a-name-of-twentyeight-letter"));
}

#[test]
fn what_is_converted_must_be_defined() {
    let package = Package { converted: vec!["cats.example.com".to_owned()], ..pets() };
    let error = package.render().expect_err("no such definition");
    assert_eq!(
        error.to_string(),
        "convert \"cats.example.com\", which is none of the operator's definitions"
    );
}

#[test]
fn a_definition_that_a_cluster_would_refuse_is_not_rendered() {
    let mut definition = definition("example.com");
    definition.spec.versions[0].storage = false;
    let package = Package { definitions: vec![definition], ..pets() };
    let error = package.render().expect_err("nothing is stored");
    assert!(matches!(error, RenderError::Definition(_)), "{error}");
}

#[test]
fn arguments_choose_parts_and_names() {
    let options = Options {
        namespace: Some("zoo".to_owned()),
        image: Some("registry.example.com/pets:2".to_owned()),
        only: vec![Part::Namespace, Part::Metrics],
        ..Options::default()
    };
    let mut out = Vec::new();
    options.run(pets(), &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    let documents = yaml::documents(&text).expect("documents");
    let kinds = documents.iter().map(|document| yaml::decode(document).expect("YAML").value);
    let kinds: Vec<_> = kinds.map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["Namespace", "Service"]);
    assert!(!text.contains("pets-system"));
}

#[test]
fn samples_are_written_only_where_they_are_not_applied() {
    let mut out = Vec::new();
    Options::default().run(pets(), &mut out).expect("written");
    assert!(!String::from_utf8_lossy(&out).contains("pet-sample"));
}

#[test]
fn a_folder_has_a_file_for_each_object_and_none_that_is_stale() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { output: Some(folder.path().to_owned()), ..Options::default() };
    let paths = |place: PathBuf| {
        let entries = fs::read_dir(place).expect("a folder");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("text");
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
    };
    options.run(pets(), &mut Vec::new()).expect("written");
    assert!(
        paths(folder.path().to_owned())
            .contains(&"clusterrole-pets-pet-admin-role.yaml".to_owned())
    );
    assert_eq!(paths(folder.path().join("samples")), ["pet-pet-sample.yaml"]);

    fs::write(folder.path().join("kustomization.yaml"), "resources: []\n").expect("written");
    let less = Package {
        definitions: Vec::new(),
        metrics: false,
        coordination: Coordination::None,
        ..pets()
    };
    options.run(less, &mut Vec::new()).expect("written");
    assert_eq!(
        paths(folder.path().to_owned()),
        [
            "clusterrole-pets-manager-role.yaml",
            "clusterrolebinding-pets-manager-rolebinding.yaml",
            "deployment-pets-controller-manager.yaml",
            "kustomization.yaml",
            "namespace-pets-system.yaml",
            "samples",
            "serviceaccount-pets-controller-manager.yaml",
        ],
    );
    assert!(paths(folder.path().join("samples")).is_empty());
}

/// Whoever has it open reads on in what it was, so there is no moment with half of it.
#[test]
fn a_file_of_a_folder_is_replaced_and_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { output: Some(folder.path().to_owned()), ..Options::default() };
    let count = || fs::read_dir(folder.path()).expect("a folder").count();
    options.run(pets(), &mut Vec::new()).expect("written");
    let n_files = count();
    let path = folder.path().join("deployment-pets-controller-manager.yaml");
    let was = fs::read_to_string(&path).expect("a text");
    let open = fs::File::open(&path).expect("it is there");
    let other = Package { image: "pets:2".to_owned(), ..pets() };
    options.run(other, &mut Vec::new()).expect("written");
    assert_eq!(std::io::read_to_string(open).expect("a text"), was);
    assert_eq!(fs::read_to_string(&path).expect("a text"), was.replace("pets:1", "pets:2"));
    assert_eq!(count(), n_files, "nothing unfinished is left");
}

#[test]
fn replicas_agree_as_the_operator_says() {
    let arguments = |coordination| {
        let package = Package { coordination, ..pets() };
        let deployment = object(&package, "Deployment", "pets-controller-manager");
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string()
    };
    assert!(arguments(Coordination::Leader).contains("--leader-elect"));
    assert!(arguments(Coordination::Shards).contains("--sharded"));
    assert!(!arguments(Coordination::None).contains("--leader-elect"));
    let package = Package { coordination: Coordination::Shards, ..pets() };
    let role = object(&package, "Role", "pets-leader-election-role");
    assert_eq!(role["rules"][0]["resources"][0], "leases");
}

#[test]
fn what_watches_an_operator_is_there_if_asked_for() {
    let package =
        Package { network_policy: true, service_monitor: true, dashboards: true, ..called() };
    let policy = object(&package, "NetworkPolicy", "pets-controller-manager");
    check_yaml(
        &policy["spec"]["ingress"],
        "\
- ports:
  - port: 8081
    protocol: TCP
  - port: 9443
    protocol: TCP
- from:
  - namespaceSelector:
      matchLabels:
        metrics: enabled
  ports:
  - port: 8443
    protocol: TCP
",
    );
    let monitor = object(&package, "ServiceMonitor", "pets-controller-manager-metrics-monitor");
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(endpoint["tlsConfig"], json!({"insecureSkipVerify": true}));
    let package = Package { certificates: Certificates::CertManager, ..package };
    let monitor = object(&package, "ServiceMonitor", "pets-controller-manager-metrics-monitor");
    assert_eq!(
        monitor["spec"]["endpoints"][0]["tlsConfig"]["serverName"],
        "pets-controller-manager-metrics-service.pets-system.svc"
    );
    let map = object(&package, "ConfigMap", "pets-dashboard");
    let text = map["data"]["pets.json"].as_str().expect("a dashboard");
    let dashboard: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(dashboard["title"], "pets operator");
}

#[test]
fn dashboards_ask_for_metrics_that_there_are() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = crate::metrics::Metrics::new(&mut registry);
    let (queue, name) = (std::sync::Arc::default(), "pets");
    metrics.of(name, &queue, 1);
    crate::webhook::Metrics::new(&mut registry);
    crate::connect::Metrics::new(&mut registry);
    crate::serve::Process::register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("metrics");
    // What nobody asked for yet is not told.
    let silent = [
        "kubewright_cache_objects",
        "kubewright_cache_bytes",
        "kubewright_cache_watches",
        "leader_election_master_status",
        "controller_runtime_webhook_latency_seconds",
        "controller_runtime_webhook_requests",
        "controller_runtime_webhook_requests_in_flight",
        "rest_client_requests",
    ];
    let told = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next());
    let there: Vec<_> = told.chain(silent).collect();

    let dashboard = dashboard(&called());
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut count = 0;
    for target in targets {
        let expression = target["expr"].as_str().expect("an expression");
        let asked = expression.split_once("{job=").expect("of one job").0;
        let metric = asked.rsplit(['(', ' ']).next().expect("a metric");
        let family = metric.trim_end_matches("_total").trim_end_matches("_bucket");
        assert!(there.contains(&family), "{metric} is no metric; there are {there:?}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

#[test]
fn a_package_survives_as_a_document() {
    let package = Package { watched: Watched::Namespaces(vec!["a".to_owned()]), ..called() };
    let read = Package::from_model(&package.to_model()).expect("it is understood");
    assert_eq!(render(&read), render(&package));
    let other = package.to_model().replace(MODEL, "kubewright.dev/package/v9");
    let error = Package::from_model(&other).expect_err("it is of another form");
    assert!(matches!(error, ModelError::Form { .. }), "{error}");
}

#[test]
fn pages_about_kinds_that_are_no_more_go_and_those_of_others_stay() {
    let place = tempfile::tempdir().expect("a folder");
    let there = || {
        let entries = fs::read_dir(place.path()).expect("a list");
        let names = entries.map(|it| it.expect("an entry").file_name().into_string());
        let mut names: Vec<String> = names.map(|it| it.expect("a text")).collect();
        names.sort();
        names
    };
    fs::write(place.path().join("mine.md"), "# Mine\n").expect("written");
    let two = vec![definition("example.com"), definition("example.org")];
    let package = Package { definitions: two, ..pets() };
    write_pages(&package, place.path()).expect("written");
    assert_eq!(there(), ["mine.md", "pets.example.com.md", "pets.example.org.md"]);
    let package = Package { definitions: vec![definition("example.org")], ..package };
    write_pages(&package, place.path()).expect("written");
    assert_eq!(there(), ["mine.md", "pets.example.org.md"]);
}

#[test]
fn a_page_about_a_kind_has_every_field() {
    let mut definition = definition("example.com");
    let version = &mut definition.spec.versions[0];
    let schema = version.schema.as_mut().and_then(|it| it.open_api_v3_schema.as_mut());
    schema.expect("a schema").description = Some("An animal.".to_owned());
    assert_eq!(
        reference(&definition),
        "\
# Pet

An animal.

Objects are in a namespace. `kubectl get pets`.

## `example.com/v1`

Objects are stored in it.

| field | type | | description |
|---|---|---|---|
| `spec` | object |  |  |

### `spec`

| field | type | | description |
|---|---|---|---|
| `legs` | integer | required, at least 2 |  |
| `name` | string | required |  |
| `nickname` | string |  |  |
| `owners` | list of object | required, elements at least 1 |  |
| `species` | string | required, one of `\"dog\"` `\"cat\"` |  |

### `spec.owners[]`

| field | type | | description |
|---|---|---|---|
| `since` | string (date-time) | required |  |

"
    );
}
