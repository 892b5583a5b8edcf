//! Packages for the Operator Lifecycle Manager: a bundle of the form `registry+v1`, which both its
//! generations install, a catalog that has it, and what the second generation is asked with.
//!
//! The lifecycle manager makes some of what other forms bring along: the account, the roles, the
//! certificates of webhooks and their configurations. So the bundle is rendered as if certificates
//! came from outside, and what is left is described in the ClusterServiceVersion (`csv`).

mod catalog;
mod csv;

use kubewright::manifest::{Certificates, Manifest, Package, Part, RenderError, Watched};
use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

use super::folder::MARK;
use super::kustomize::image_and_tag;
use super::{Files, Model};

/// What a bundle is told beside the model.
#[derive(Debug, Clone)]
pub struct Options {
    /// The first is the default one.
    pub channels: Vec<String>,
    /// The image that the bundle will be in.
    pub bundle_image: String,
    /// The image that the catalog will be in.
    pub catalog_image: String,
    /// The release that this one replaces, such as `pets.v1.2.2`.
    pub replaces: Option<String>,
    /// A picture: its media type, and its bytes in base64.
    pub icon: Option<(String, String)>,
    /// Who provides it; else the first author.
    pub provider: Option<String>,
    /// The oldest Kubernetes that it runs on.
    pub min_kube_version: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            channels: vec!["stable".to_owned()],
            bundle_image: "bundle:latest".to_owned(),
            catalog_image: "catalog:latest".to_owned(),
            replaces: None,
            icon: None,
            provider: None,
            min_kube_version: "1.25.0".to_owned(),
        }
    }
}

/// The bundle, the catalog, and the objects for the second generation.
///
/// # Errors
/// The package contradicts itself.
pub fn bundle(model: &Model, options: &Options) -> Result<Files, RenderError> {
    let package = prepared(&model.package);
    let manifests = package.render()?;
    let mut files = Files::new();
    let document = |object: &Value| format!("{MARK}{}", yaml::to_string(object));
    let version = csv::render(model, &package, &manifests, options);
    let name = format!("bundle/manifests/{}.clusterserviceversion.yaml", package.name);
    files.insert(name.into(), document(&version));
    for manifest in manifests.iter().filter(|it| is_brought(it)) {
        let name = match manifest.part {
            Part::Crds => manifest.name().to_owned(),
            _ => format!("{}-{}", manifest.kind().to_lowercase(), manifest.name()),
        };
        let mut object = manifest.object.clone();
        // It is installed where somebody says.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        files.insert(format!("bundle/manifests/{name}.yaml").into(), document(&object));
    }
    let annotations = annotations(&package, options);
    files.insert("bundle/metadata/annotations.yaml".into(), document(&annotations));
    files.insert("bundle/tests/scorecard/config.yaml".into(), document(&scorecard()));
    files.insert("bundle.Dockerfile".into(), dockerfile(&annotations));
    files.extend(catalog::render(model, &package, &manifests, options));
    Ok(files)
}

/// The package as the lifecycle manager runs it.
fn prepared(package: &Package) -> Package {
    Package {
        certificates: Certificates::CertManager,
        // Definitions are told who converts their objects when it is known.
        converted: Vec::new(),
        watched: match package.watched {
            Watched::Everywhere => Watched::Everywhere,
            // In which namespaces it looks is decided where it is installed.
            Watched::Home | Watched::Namespaces(_) => Watched::Home,
        },
        ..package.clone()
    }
}

/// Whether the bundle has the object beside the ClusterServiceVersion: definitions, roles for people
/// and the Service of the metrics.
fn is_brought(manifest: &Manifest) -> bool {
    match manifest.part {
        Part::Crds | Part::Metrics => true,
        Part::Monitoring | Part::Dashboards | Part::NetworkPolicy => true,
        Part::Rbac => manifest.kind() == "ClusterRole" && is_offered(manifest.name()),
        _ => false,
    }
}

/// Whether a role is for people to give to people.
fn is_offered(name: &str) -> bool {
    ["-admin-role", "-editor-role", "-viewer-role", "-metrics-reader"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn annotations(package: &Package, options: &Options) -> Value {
    json!({"annotations": {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": package.name,
        "operators.operatorframework.io.bundle.channels.v1": options.channels.join(","),
        "operators.operatorframework.io.bundle.channel.default.v1":
            options.channels.first().cloned().unwrap_or_default(),
        "operators.operatorframework.io.metrics.builder": "kubewright",
        "operators.operatorframework.io.metrics.mediatype.v1": "metrics+v1",
        "operators.operatorframework.io.test.mediatype.v1": "scorecard+v1",
        "operators.operatorframework.io.test.config.v1": "tests/scorecard/",
    }})
}

fn dockerfile(annotations: &Value) -> String {
    let labels = annotations["annotations"].as_object().into_iter().flatten();
    let labels: String = labels
        .map(|(key, value)| format!("LABEL {key}={}\n", value.as_str().unwrap_or_default()))
        .collect();
    format!(
        "{MARK}FROM scratch\n\n{labels}\nCOPY bundle/manifests /manifests/\n\
         COPY bundle/metadata /metadata/\nCOPY bundle/tests/scorecard /tests/scorecard/\n"
    )
}

/// What operator-sdk's scorecard is to look at: the bundle itself, nothing that runs.
fn scorecard() -> Value {
    const IMAGE: &str = "quay.io/operator-framework/scorecard-test:v1.42.0";
    let test = |suite: &str, name: &str| {
        json!({
            "entrypoint": ["scorecard-test", name],
            "image": IMAGE,
            "labels": {"suite": suite, "test": format!("{name}-test")},
        })
    };
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "stages": [{"parallel": true, "tests": [
            test("basic", "basic-check-spec"),
            test("olm", "olm-bundle-validation"),
            test("olm", "olm-crds-have-validation"),
            test("olm", "olm-crds-have-resources"),
            test("olm", "olm-spec-descriptors"),
            test("olm", "olm-status-descriptors"),
        ]}],
    })
}

/// The image of a bundle or a catalog, beside that of the operator.
pub fn image_beside(image: &str, word: &str) -> String {
    let (name, tag) = image_and_tag(image);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    format!("{name}-{word}:{}", tag.unwrap_or("latest"))
}

/// A picture as the ClusterServiceVersion has it.
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
