//! A base for Kustomize: a folder for each part, and one that brings them together.
//!
//! What not every cluster can have is a component, which an overlay adds: Prometheus' ServiceMonitor,
//! the NetworkPolicy, Grafana's dashboard.

use std::collections::BTreeMap;
use std::path::Path;

use kubewright::manifest::{Manifest, Package, Part, RenderError};
use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

use super::Files;
use super::folder::MARK;

/// The folder: `kubectl apply -k base`, or an overlay that begins with it.
///
/// # Errors
/// The package contradicts itself.
pub fn render(package: &Package) -> Result<Files, RenderError> {
    let all = Package {
        network_policy: true,
        service_monitor: true,
        dashboards: true,
        ..package.clone()
    };
    let mut parts: BTreeMap<&str, Vec<Manifest>> = BTreeMap::new();
    for manifest in all.render()? {
        parts.entry(folder(manifest.part)).or_default().push(manifest);
    }
    let mut files = Files::new();
    for (folder, manifests) in &parts {
        let names: Vec<_> = manifests.iter().map(file_name).collect();
        for (name, manifest) in names.iter().zip(manifests) {
            let text = format!("{MARK}{}", yaml::to_string(&manifest.object));
            files.insert(Path::new(folder).join(name), text);
        }
        let mut kustomization = match folder.starts_with("components/") {
            true => json!({
                "apiVersion": "kustomize.config.k8s.io/v1alpha1",
                "kind": "Component",
            }),
            false => json!({
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
            }),
        };
        kustomization["resources"] = json!(names);
        insert(&mut files, folder, &kustomization);
    }
    let is_installed =
        |folder: &&&str| !(folder.starts_with("components/") || **folder == "samples");
    let resources: Vec<_> =
        parts.keys().filter(is_installed).map(|folder| format!("../{folder}")).collect();
    let (image, tag) = image_and_tag(&package.image);
    let mut replaced = json!({"name": image, "newName": image});
    if let Some(tag) = tag {
        replaced["newTag"] = json!(tag);
    }
    let base = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
        "images": [replaced],
    });
    insert(&mut files, "base", &base);
    files.insert("README.md".into(), readme(package));
    // By which the folder is known again.
    files.insert("kustomization.yaml".into(), {
        let root = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["base"],
        });
        format!("{MARK}{}", yaml::to_string(&root))
    });
    Ok(files)
}

fn insert(files: &mut Files, folder: &str, kustomization: &Value) {
    let path = Path::new(folder).join("kustomization.yaml");
    files.insert(path, format!("{MARK}{}", yaml::to_string(kustomization)));
}

fn folder(part: Part) -> &'static str {
    match part {
        Part::Namespace => "namespace",
        Part::Crds => "crds",
        Part::Rbac => "rbac",
        Part::Metrics => "metrics",
        Part::Manager => "manager",
        Part::Certificates => "certificates",
        Part::Webhooks => "webhooks",
        Part::NetworkPolicy => "components/network-policy",
        Part::Monitoring => "components/service-monitor",
        Part::Dashboards => "components/dashboards",
        Part::Samples => "samples",
    }
}

fn file_name(manifest: &Manifest) -> String {
    let namespace = manifest.namespace().map(|it| format!("-{it}")).unwrap_or_default();
    // Only those of an operator in several namespaces have namesakes.
    let namespace = if manifest.part == Part::Rbac { namespace } else { String::new() };
    format!("{}-{}{namespace}.yaml", manifest.kind().to_lowercase(), manifest.name())
}

/// The repository of an image and its tag. A port is no tag, and a digest stays where it is.
pub(super) fn image_and_tag(image: &str) -> (&str, Option<&str>) {
    if image.contains('@') {
        return (image, None);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, None),
    }
}

fn readme(package: &Package) -> String {
    let name = &package.name;
    format!(
        "{MARK}\n`kubectl apply -k .` installs {name}. An overlay of yours changes it:\n\n\
         ```yaml\nresources: [../base]\nnamespace: elsewhere\ncomponents:\n\
         - ../components/network-policy\n- ../components/service-monitor\n\
         - ../components/dashboards\nimages:\n- name: {}\n  newTag: v2\n```\n",
        image_and_tag(&package.image).0
    )
}
