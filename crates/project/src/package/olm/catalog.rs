//! A file-based catalog that has the bundle, and what asks the second generation of the lifecycle
//! manager for it: a ClusterExtension, with an account that may install what it consists of.

use std::collections::BTreeSet;

use kubewright::manifest::{Manifest, Package, Part};
use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

use super::super::folder::MARK;
use super::super::{Files, Model};
use super::{Options, csv};

pub(super) fn render(
    model: &Model,
    package: &Package,
    manifests: &[Manifest],
    options: &Options,
) -> Files {
    let stream = |objects: &[Value]| {
        let texts: Vec<_> = objects.iter().map(yaml::to_string).collect();
        format!("{MARK}{}", texts.join("---\n"))
    };
    let mut files = Files::new();
    files.insert("catalog/catalog.yaml".into(), stream(&catalog(model, package, options)));
    files.insert(
        "catalog.Dockerfile".into(),
        format!(
            "{MARK}FROM scratch\n\nLABEL operators.operatorframework.io.index.configs.v1=/configs\n\
             COPY catalog /configs/{}\n",
            package.name
        ),
    );
    let source = json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": format!("{}-catalog", package.name)},
        "spec": {"source": {"type": "Image", "image": {"ref": options.catalog_image}}},
    });
    files.insert("v1/cluster-catalog.yaml".into(), stream(&[source]));
    let extension = extension(model, package, manifests, options);
    files.insert("v1/cluster-extension.yaml".into(), stream(&extension));
    files
}

fn catalog(model: &Model, package: &Package, options: &Options) -> Vec<Value> {
    let (name, release) = (&package.name, csv::name(model));
    let mut blobs = vec![json!({
        "schema": "olm.package",
        "name": name,
        "defaultChannel": options.channels.first(),
        "description": model.about.description,
    })];
    let mut entry = json!({"name": release});
    if let Some(replaced) = &options.replaces {
        entry["replaces"] = json!(replaced);
    }
    blobs.extend(options.channels.iter().map(|channel| {
        json!({"schema": "olm.channel", "package": name, "name": channel, "entries": [entry]})
    }));
    let kinds = package.definitions.iter().flat_map(|definition| {
        let served = definition.spec.versions.iter().filter(|version| version.served);
        served.map(|version| {
            json!({"type": "olm.gvk", "value": {
                "group": definition.spec.group,
                "kind": definition.spec.names.kind,
                "version": version.name,
            }})
        })
    });
    let release_of = json!({"type": "olm.package", "value": {
        "packageName": name,
        "version": model.about.version,
    }});
    blobs.push(json!({
        "schema": "olm.bundle",
        "package": name,
        "name": release,
        "image": options.bundle_image,
        "properties": kinds.chain([release_of]).collect::<Vec<_>>(),
        "relatedImages": [
            {"name": "", "image": options.bundle_image},
            {"name": "manager", "image": package.image},
        ],
    }));
    blobs
}

fn extension(
    model: &Model,
    package: &Package,
    manifests: &[Manifest],
    options: &Options,
) -> Vec<Value> {
    let (name, namespace) = (&package.name, &package.namespace);
    let account = format!("{name}-installer");
    let rbac = "rbac.authorization.k8s.io";
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": namespace},
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": account},
            "rules": installer_rules(model, manifests),
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
        json!({
            "apiVersion": "olm.operatorframework.io/v1",
            "kind": "ClusterExtension",
            "metadata": {"name": name},
            "spec": {
                "namespace": namespace,
                "serviceAccount": {"name": account},
                "source": {"sourceType": "Catalog", "catalog": {
                    "packageName": name,
                    "version": model.about.version,
                    "channels": options.channels,
                }},
            },
        }),
    ]
}

/// What whoever installs the bundle must be allowed to do. Names of roles are made when it is
/// installed, so rights are on kinds; and whoever gives roles must have their rights, or may
/// escalate.
fn installer_rules(model: &Model, manifests: &[Manifest]) -> Vec<Value> {
    let mut kinds: BTreeSet<(String, String)> = manifests
        .iter()
        .filter(|it| !matches!(it.part, Part::Samples | Part::Namespace | Part::Certificates))
        .map(|it| {
            let version = it.object["apiVersion"].as_str().unwrap_or_default();
            let group = version.split_once('/').map_or("", |(group, _)| group);
            (group.to_owned(), plural(it.kind()))
        })
        .collect();
    if model.package.is_called() {
        // Certificates of webhooks are kept in Secrets.
        kinds.insert((String::new(), "secrets".to_owned()));
    }
    let mut rules = vec![json!({
        "apiGroups": ["olm.operatorframework.io"],
        "resources": ["clusterextensions/finalizers"],
        "verbs": ["update"],
        "resourceNames": [model.package.name],
    })];
    rules.extend(kinds.into_iter().map(|(group, plural)| {
        let mut verbs = vec!["create", "delete", "get", "list", "patch", "update", "watch"];
        if plural == "roles" || plural == "clusterroles" {
            verbs.extend(["bind", "escalate"]);
        }
        json!({"apiGroups": [group], "resources": [plural], "verbs": verbs})
    }));
    rules
}

/// Of the kinds that manifests have.
fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    match word.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{word}s"),
    }
}
