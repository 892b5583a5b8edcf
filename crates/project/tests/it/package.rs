//! One model in every form.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::access::Access;
use kubewright::manifest::Package;
use kubewright_apimachinery::yaml;
use kubewright_project::package::{self, About, Files, FolderError, Model, helm, kustomize, olm};
use serde_json::{Value, json};

/// An operator with everything, and words in it that templates would take for their own.
pub(crate) fn pets() -> Model {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "description": "Say {{ .Values.name }} or {{- this }}.\n\nAnd `that`.",
                "properties": {
                    "spec": {
                        "type": "object", "required": ["name"],
                        "description": "What it should be.",
                        "properties": {"name": {"type": "string", "description": "Its name."}},
                    },
                    "status": {"type": "object", "properties": {"age": {"type": "integer"}}},
                },
            }},
        })
    };
    let definition = json!({
        "metadata": {"name": "pets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Pet", "plural": "pets", "singular": "pet", "listKind": "PetList"},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    });
    let webhook = |path: &str| {
        json!({
            "name": "pet.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [{
                "apiGroups": ["example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["pets"],
            }],
            "clientConfig": {"service": {"name": "", "namespace": "", "path": path}},
        })
    };
    let package = Package {
        image: "registry.example.com:5000/pets:1.2.3".to_owned(),
        accesses: vec![Access::owned::<Deployment>()],
        definitions: vec![serde_json::from_value(definition).expect("a definition")],
        converted: vec!["pets.example.com".to_owned()],
        mutating: vec![
            serde_json::from_value(webhook("/mutate-example-com-v1-pet")).expect("a webhook"),
        ],
        validating: vec![
            serde_json::from_value(webhook("/validate-example-com-v1-pet")).expect("a webhook"),
        ],
        ..Package::new("pets")
    };
    let about = About {
        version: "1.2.3".to_owned(),
        description: "Looks after pets".to_owned(),
        authors: vec!["Ann <ann@example.com>".to_owned()],
        license: Some("Apache-2.0".to_owned()),
        ..About::default()
    };
    Model { package, about }
}

fn file<'a>(files: &'a Files, path: &str) -> &'a str {
    let there: Vec<_> = files.keys().collect();
    files.get(Path::new(path)).unwrap_or_else(|| panic!("no {path} in {there:?}"))
}

#[test]
fn equal_models_give_equal_files() {
    let model = pets();
    assert_eq!(helm::render(&model).expect("a chart"), helm::render(&model).expect("a chart"));
    let options = olm::Options::default();
    let bundle = || olm::bundle(&model, &options).expect("a bundle");
    assert_eq!(bundle(), bundle());
}

#[test]
fn one_file_has_everything_but_samples() {
    let stream = package::yaml(&pets().package).expect("rendered");
    let documents = yaml::documents(&stream).expect("documents");
    assert_eq!(documents.len(), 20);
    assert!(!stream.contains("pet-sample"));
}

#[test]
fn kustomize_finds_every_file_that_it_is_told_of() {
    let files = kustomize::render(&pets().package).expect("rendered");
    let mut told = BTreeSet::from([PathBuf::from("kustomization.yaml"), "README.md".into()]);
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with("kustomization.yaml")) {
        let folder = path.parent().expect("a folder");
        let kustomization = yaml::decode(text).expect("YAML").value;
        for resource in kustomization["resources"].as_array().expect("resources") {
            let resource = resource.as_str().expect("a path");
            let path = match resource.strip_prefix("../") {
                Some(beside) => Path::new(beside).join("kustomization.yaml"),
                None if resource.ends_with(".yaml") => folder.join(resource),
                None => folder.join(resource).join("kustomization.yaml"),
            };
            assert!(files.contains_key(&path), "{path:?} of {folder:?}");
            told.insert(path);
        }
    }
    // What an overlay asks for.
    let is_offered =
        |path: &&PathBuf| path.starts_with("components") || path.starts_with("samples");
    let forgotten: Vec<_> =
        files.keys().filter(|path| !told.contains(*path) && !is_offered(path)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
    let base = yaml::decode(file(&files, "base/kustomization.yaml")).expect("YAML").value;
    let image = "registry.example.com:5000/pets";
    assert_eq!(base["images"], json!([{"name": image, "newName": image, "newTag": "1.2.3"}]));
}

#[test]
fn the_chart_asks_only_where_choices_differ() {
    let files = helm::render(&pets()).expect("a chart");
    let manager = file(&files, "templates/manager.yaml");
    for expected in [
        "        {{- if .Values.metrics.enabled }}\n        - --metrics-bind-address=:8443\n        {{- end }}\n",
        "        {{- end }}\n        - --leader-elect\n        - --health-probe-bind-address=:8081\n",
    ] {
        assert!(manager.contains(expected), "{manager}");
    }
    let definition = file(&files, "templates/crds/pets.example.com.yaml");
    let escaped = r#"Say {{ "{{" }} .Values.name }} or {{ "{{" }}- this }}."#;
    assert!(definition.contains(escaped), "{definition}");
    let webhooks = file(&files, "templates/webhooks.yaml");
    assert!(webhooks.contains(r#"namespace: {{ include "pets.namespace" . }}"#), "{webhooks}");
    for (path, text) in &files {
        assert!(!text.contains("namespace-of-the-release"), "{path:?}");
    }
}

#[test]
fn the_bundle_says_what_it_owns_and_may_do() {
    let files = olm::bundle(&pets(), &olm::Options::default()).expect("a bundle");
    let version = file(&files, "bundle/manifests/pets.clusterserviceversion.yaml");
    let version = yaml::decode(version).expect("YAML").value;
    assert_eq!(version["metadata"]["name"], "pets.v1.2.3");
    let spec = &version["spec"];
    let owned = spec["customresourcedefinitions"]["owned"].as_array().expect("kinds");
    let owned: Vec<_> = owned.iter().map(|it| (&it["name"], &it["version"])).collect();
    let name = json!("pets.example.com");
    assert_eq!(owned, [(&name, &json!("v1")), (&name, &json!("v1beta1"))]);
    let hooks = spec["webhookdefinitions"].as_array().expect("webhooks");
    let converts = hooks.iter().find(|it| it["type"] == "ConversionWebhook").expect("one converts");
    assert_eq!(converts["conversionCRDs"], json!(["pets.example.com"]));
    let install = &spec["install"]["spec"];
    let rules = install["clusterPermissions"][0]["rules"].as_array().expect("rules");
    let grants = |resource: &str| rules.iter().any(|rule| rule["resources"][0] == resource);
    assert!(grants("deployments") && grants("tokenreviews"));
    assert!(!grants("secrets"), "certificates are somebody else's");
    let container = &install["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].to_string();
    assert!(arguments.contains("--webhook-cert-path") && !arguments.contains("--metrics-cert"));
    assert_eq!(spec["webhookdefinitions"][1]["webhookPath"], "/validate-example-com-v1-pet");
    let names: Vec<_> = files.keys().map(|path| path.display().to_string()).collect();
    assert!(!names.iter().any(|name| name.contains("serviceaccount")), "{names:?}");
    assert_eq!(olm::image_beside("r:5000/pets:1", "bundle"), "r:5000/pets-bundle:1");
}

/// What the second generation of the lifecycle manager is given: each name leads to the next.
#[test]
fn an_extension_comes_out_of_its_catalog_by_an_account_that_may() {
    let options = olm::Options {
        channels: vec!["stable".to_owned(), "fast".to_owned()],
        bundle_image: "r/pets-bundle:1.2.3".to_owned(),
        catalog_image: "r/pets-catalog:1.2.3".to_owned(),
        replaces: Some("pets.v1.2.2".to_owned()),
        ..olm::Options::default()
    };
    let files = olm::bundle(&pets(), &options).expect("a bundle");
    let objects = |path: &str| -> Vec<Value> {
        let documents = yaml::documents(file(&files, path)).expect("documents");
        documents.into_iter().map(|text| yaml::decode(text).expect("YAML").value).collect()
    };
    let source = objects("v1/cluster-catalog.yaml");
    assert_eq!(source.len(), 1);
    let image = json!({"source": {"type": "Image", "image": {"ref": "r/pets-catalog:1.2.3"}}});
    assert_eq!(source[0]["spec"], image);

    let catalog = objects("catalog/catalog.yaml");
    let entries = json!([{"name": "pets.v1.2.3", "replaces": "pets.v1.2.2"}]);
    let channels: Vec<&Value> =
        catalog.iter().filter(|blob| blob["schema"] == "olm.channel").collect();
    assert_eq!(channels.len(), 2);
    assert!(channels.iter().all(|channel| channel["entries"] == entries), "{channels:?}");
    let bundle = catalog.last().expect("a bundle");
    assert_eq!(bundle["name"], "pets.v1.2.3");
    assert_eq!(bundle["image"], "r/pets-bundle:1.2.3");

    let extension = objects("v1/cluster-extension.yaml");
    let [namespace, account, role, binding, asked] = extension.as_slice() else {
        panic!("{extension:?}")
    };
    assert_eq!(namespace["metadata"], json!({"name": "pets-system"}));
    let installer = json!({"name": "pets-installer", "namespace": "pets-system"});
    assert_eq!(account["metadata"], installer);
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["kind"], account["kind"]);
    assert_eq!(binding["subjects"][0]["name"], installer["name"]);
    assert_eq!(binding["subjects"][0]["namespace"], installer["namespace"]);
    assert_eq!(asked["kind"], "ClusterExtension");
    let expected = json!({
        "namespace": "pets-system",
        "serviceAccount": {"name": "pets-installer"},
        "source": {"sourceType": "Catalog", "catalog": {
            "packageName": "pets", "version": "1.2.3", "channels": ["stable", "fast"],
        }},
    });
    assert_eq!(asked["spec"], expected);
    check_installer(role["rules"].as_array().expect("rules"));
}

/// It may make all that the bundle comes to, and give roles that have more rights than it has.
fn check_installer(rules: &[Value]) {
    let may = |verb: &str, group: &str, resource: &str| {
        rules.iter().any(|rule| {
            let has_verb = |verbs: &Vec<Value>| verbs.iter().any(|it| it == verb);
            rule["apiGroups"][0] == group
                && rule["resources"][0] == resource
                && rule["verbs"].as_array().is_some_and(has_verb)
        })
    };
    for (group, resource) in [
        ("", "secrets"),
        ("", "serviceaccounts"),
        ("", "services"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apps", "deployments"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "roles"),
    ] {
        assert!(may("create", group, resource), "{resource} of {group:?} in {rules:?}");
        assert!(may("delete", group, resource), "{resource} of {group:?} in {rules:?}");
    }
    for resource in ["clusterroles", "roles"] {
        assert!(may("escalate", "rbac.authorization.k8s.io", resource), "{rules:?}");
    }
    assert!(!may("escalate", "apps", "deployments"));
    assert!(may("update", "olm.operatorframework.io", "clusterextensions/finalizers"));
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("chart");
    let files = helm::render(&pets()).expect("a chart");
    package::write(&files, &folder).expect("written");
    fs::write(folder.join("templates/old.yaml"), "").expect("written");
    package::write(&files, &folder).expect("written again");
    assert!(!folder.join("templates/old.yaml").exists(), "what is stale is gone");
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).expect("a folder");
    fs::write(theirs.join("thesis.txt"), "years of work").expect("written");
    let error = package::write(&files, &theirs).expect_err("it is refused");
    assert!(matches!(error, FolderError::Foreign { .. }), "{error}");
    assert!(theirs.join("thesis.txt").exists());
}

/// An object by kind and name, without labels, which each form has its own of.
pub(crate) fn bare(mut object: Value) -> (String, Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let key = format!(
        "{} {}/{}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    );
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("labels");
    }
    (key, object)
}
