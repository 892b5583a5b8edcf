//! The ClusterServiceVersion: what a release is, what it owns, what it may do and how it runs.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kubewright::manifest::{Manifest, Package, Part, Watched};
use serde_json::{Value, json};

use super::super::Model;
use super::super::helm::maintainers;
use super::Options;

const WEBHOOKS_PORT: u16 = 9443;

/// The name of a release.
pub(super) fn name(model: &Model) -> String {
    format!("{}.v{}", model.package.name, model.about.version)
}

pub(super) fn render(
    model: &Model,
    package: &Package,
    manifests: &[Manifest],
    options: &Options,
) -> Value {
    let about = &model.about;
    let display = display_name(&package.name);
    let description = match about.description.as_str() {
        "" => format!("The operator {}", package.name),
        text => text.to_owned(),
    };
    let maintainers: Vec<_> =
        maintainers(about).into_iter().filter(|it| it["email"].is_string()).collect();
    let provider = options
        .provider
        .clone()
        .or_else(|| maintainers.first()?["name"].as_str().map(str::to_owned))
        .unwrap_or_else(|| display.clone());
    let keywords = match about.keywords.as_slice() {
        [] => std::slice::from_ref(&package.name),
        keywords => keywords,
    };
    let mut spec = json!({
        "displayName": display,
        "description": description,
        "version": about.version,
        "minKubeVersion": options.min_kube_version,
        "maturity": "alpha",
        "provider": {"name": provider},
        "keywords": keywords,
        "installModes": install_modes(model),
        "customresourcedefinitions": {"owned": owned(package)},
        "install": {"strategy": "deployment", "spec": {
            "deployments": deployments(package, manifests),
            "clusterPermissions": permissions(package, manifests, "ClusterRole"),
            "permissions": permissions(package, manifests, "Role"),
        }},
        "relatedImages": [{"name": "manager", "image": package.image}],
    });
    let links = [("Home", &about.homepage), ("Source", &about.repository)];
    let links: Vec<_> = links
        .iter()
        .filter_map(|(name, url)| url.as_ref().map(|url| json!({"name": name, "url": url})))
        .collect();
    if !links.is_empty() {
        spec["links"] = json!(links);
    }
    if !maintainers.is_empty() {
        spec["maintainers"] = json!(maintainers);
    }
    if let Some((media_type, data)) = &options.icon {
        spec["icon"] = json!([{"mediatype": media_type, "base64data": data}]);
    }
    if let Some(replaced) = &options.replaces {
        spec["replaces"] = json!(replaced);
    }
    let webhooks = webhooks(model);
    if !webhooks.is_empty() {
        spec["webhookdefinitions"] = json!(webhooks);
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": name(model),
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": examples(manifests),
                "capabilities": "Basic Install",
                "categories": "Integration & Delivery",
                "containerImage": package.image,
                "description": description,
                "operators.operatorframework.io/builder": "kubewright",
            },
        },
        "spec": spec,
    })
}

/// `pet-store` is `Pet Store`.
fn display_name(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    name.split('-').map(capital).collect::<Vec<_>>().join(" ")
}

/// Whoever converts objects does so for the whole cluster.
fn install_modes(model: &Model) -> Value {
    let everywhere =
        model.package.watched == Watched::Everywhere || !model.package.converted.is_empty();
    let mode = |name: &str, is_supported: bool| json!({"type": name, "supported": is_supported});
    json!([
        mode("OwnNamespace", !everywhere),
        mode("SingleNamespace", !everywhere),
        mode("MultiNamespace", !everywhere),
        mode("AllNamespaces", everywhere),
    ])
}

fn examples(manifests: &[Manifest]) -> String {
    let samples = manifests.iter().filter(|it| it.part == Part::Samples).map(|it| &it.object);
    serde_json::to_string_pretty(&samples.collect::<Vec<_>>()).expect("trees are JSON")
}

/// The kinds, in each version that is served.
fn owned(package: &Package) -> Vec<Value> {
    let mut owned = Vec::new();
    for definition in &package.definitions {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let schema = version.schema.as_ref().and_then(|it| it.open_api_v3_schema.as_ref());
            let kind = &definition.spec.names.kind;
            let text = schema.and_then(|it| it.description.clone());
            let field = |name: &str| schema?.properties.as_ref()?.get(name);
            owned.push(json!({
                "name": definition_name(definition),
                "kind": kind,
                "version": version.name,
                "displayName": kind,
                "description": text.unwrap_or_else(|| format!("{kind} of {}", package.name)),
                "resources": resources(package),
                "specDescriptors": descriptors(field("spec")),
                "statusDescriptors": descriptors(field("status")),
            }));
        }
    }
    owned
}

fn definition_name(definition: &CustomResourceDefinition) -> String {
    let spec = &definition.spec;
    let name = definition.metadata.name.clone();
    name.unwrap_or_else(|| format!("{}.{}", spec.names.plural, spec.group))
}

/// What the operator makes, for those who look at one of its objects.
fn resources(package: &Package) -> Vec<Value> {
    let made = package.accesses.iter().filter(|access| access.verbs.contains("create"));
    made.map(|access| json!({"kind": access.kind, "version": access.version, "name": ""})).collect()
}

fn descriptors(schema: Option<&JSONSchemaProps>) -> Vec<Value> {
    let fields = schema.and_then(|it| it.properties.as_ref()).into_iter().flatten();
    let descriptor = |(name, field): (&String, &JSONSchemaProps)| {
        let text = field.description.clone().unwrap_or_default();
        json!({"path": name, "displayName": display_name(name), "description": text})
    };
    fields.map(descriptor).collect()
}

fn deployments(package: &Package, manifests: &[Manifest]) -> Vec<Value> {
    let of = |manifest: &Manifest| {
        let mut spec = manifest.object["spec"].clone();
        let pod = &mut spec["template"]["spec"];
        // Certificates of webhooks are mounted where they are looked for, by whoever installs it.
        if let Some(pod) = pod.as_object_mut() {
            pod.remove("volumes");
        }
        for container in pod["containers"].as_array_mut().into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("volumeMounts");
            }
            let is_mounted = |argument: &Value| {
                argument.as_str().is_some_and(|it| it.starts_with("--metrics-cert-path"))
            };
            if let Some(arguments) = container["args"].as_array_mut() {
                arguments.retain(|argument| !is_mounted(argument));
            }
            if package.watched != Watched::Everywhere {
                container["env"] = json!([{
                    "name": "WATCH_NAMESPACE",
                    "valueFrom": {"fieldRef": {
                        "fieldPath": "metadata.annotations['olm.targetNamespaces']",
                    }},
                }]);
            }
        }
        json!({
            "name": manifest.name(),
            "label": manifest.object["metadata"]["labels"],
            "spec": spec,
        })
    };
    manifests.iter().filter(|it| it.part == Part::Manager).map(of).collect()
}

/// The rules of the operator's own roles of this kind.
fn permissions(package: &Package, manifests: &[Manifest], kind: &str) -> Vec<Value> {
    let binding = format!("{kind}Binding");
    let bound: Vec<&str> = manifests
        .iter()
        .filter(|it| it.kind() == binding)
        .filter_map(|it| it.object["roleRef"]["name"].as_str())
        .collect();
    let rules: Vec<_> = manifests
        .iter()
        .filter(|it| it.kind() == kind && bound.contains(&it.name()))
        .flat_map(|it| it.object["rules"].as_array().cloned().unwrap_or_default())
        .collect();
    if rules.is_empty() {
        return Vec::new();
    }
    vec![json!({"serviceAccountName": package.names().service_account(), "rules": rules})]
}

fn webhooks(model: &Model) -> Vec<Value> {
    let package = &model.package;
    let deployment = package.names().deployment();
    let described = |kind: &str, mut webhook: Value| {
        let name = webhook["name"].clone();
        let path = webhook["clientConfig"]["service"]["path"].clone();
        if let Some(webhook) = webhook.as_object_mut() {
            for unknown in ["name", "clientConfig", "namespaceSelector", "matchConditions"] {
                webhook.remove(unknown);
            }
        }
        webhook["generateName"] = name;
        webhook["type"] = json!(kind);
        webhook["deploymentName"] = json!(deployment);
        webhook["containerPort"] = json!(443);
        webhook["targetPort"] = json!(WEBHOOKS_PORT);
        webhook["webhookPath"] = path;
        webhook
    };
    let mutating =
        package.mutating.iter().map(|it| described("MutatingAdmissionWebhook", json!(it)));
    let validating =
        package.validating.iter().map(|it| described("ValidatingAdmissionWebhook", json!(it)));
    let converting = (!package.converted.is_empty()).then(|| {
        json!({
            "type": "ConversionWebhook",
            "generateName": format!("convert.{}.kubewright.dev", package.name),
            "deploymentName": deployment,
            "containerPort": 443,
            "targetPort": WEBHOOKS_PORT,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "webhookPath": "/convert",
            "conversionCRDs": package.converted,
        })
    });
    mutating.chain(validating).chain(converting).collect()
}
