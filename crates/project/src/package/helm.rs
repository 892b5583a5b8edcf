//! A Helm chart.
//!
//! Whether there are webhooks, who makes certificates and whether metrics are served changes objects
//! in many places. The chart does not repeat the renderer's knowledge of where: the package is
//! rendered once for every choice, and what differs becomes a condition (`merge`). Fields with a
//! value of their own (image, replicas, resources …) are put in by `fields`. Names stay as they
//! are, since the operator looks for its objects by them; it is installed once per cluster.

mod fields;
mod merge;
mod template;
mod values;

use std::collections::BTreeMap;

use kubewright::manifest::{Certificates, Manifest, Package, Part, RenderError};
use serde_json::Value;

use self::merge::{Choice, Condition, Variants};
use self::template::Node;
pub(super) use self::values::maintainers;
use super::folder::MARK;
use super::{Files, Model};

/// Stands for the namespace until templates are written. No operator can be called so.
const NAMESPACE: &str = "namespace-of-the-release";

/// The files of the chart.
///
/// # Errors
/// The package contradicts itself.
pub fn render(model: &Model) -> Result<Files, RenderError> {
    let name = &model.package.name;
    let mut files = Files::new();
    files.insert("Chart.yaml".into(), values::chart(model));
    files.insert("values.yaml".into(), values::values(&model.package));
    files.insert("values.schema.json".into(), values::schema(&model.package));
    files.insert(".helmignore".into(), format!("{MARK}.git\n*.tgz\n"));
    files.insert("templates/_helpers.tpl".into(), values::helpers(name));
    files.insert("templates/NOTES.txt".into(), values::notes(&model.package));
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (part, object, condition, node) in objects(&model.package)? {
        let file = match part {
            Part::Crds => format!("crds/{}", object.name()),
            part => file(part).to_owned(),
        };
        let text = template::document(&node, condition.as_deref());
        let text = text.replace(NAMESPACE, &format!("{{{{ include \"{name}.namespace\" . }}}}"));
        texts.entry(file).or_default().push(text);
    }
    for (file, texts) in texts {
        files.insert(format!("templates/{file}.yaml").into(), texts.concat());
    }
    Ok(files)
}

fn file(part: Part) -> &'static str {
    match part {
        Part::Namespace | Part::Samples | Part::Crds => "",
        Part::Rbac => "rbac",
        Part::Metrics => "metrics",
        Part::Manager => "manager",
        Part::Certificates => "certificates",
        Part::Webhooks => "webhooks",
        Part::NetworkPolicy => "network-policy",
        Part::Monitoring => "service-monitor",
        Part::Dashboards => "dashboards",
    }
}

/// The choices that the values offer; those that change nothing come to nothing.
const CHOICES: [(&str, Choice); 3] = [
    ("webhooks", Choice(".Values.webhooks.enabled")),
    ("cert-manager", Choice(".Values.certManager.enabled")),
    ("metrics", Choice(".Values.metrics.enabled")),
];

/// The package as it is when this is chosen and that is not.
fn chosen(package: &Package, bits: usize) -> Package {
    let is_chosen = |name: &str| {
        let at = CHOICES.iter().position(|(it, _)| *it == name).expect("it is one of them");
        bits & (1 << at) != 0
    };
    let mut package = Package {
        namespace: NAMESPACE.to_owned(),
        metrics: is_chosen("metrics"),
        certificates: match is_chosen("cert-manager") {
            true => Certificates::CertManager,
            false => Certificates::SelfMade,
        },
        network_policy: true,
        service_monitor: true,
        dashboards: true,
        ..package.clone()
    };
    if package.is_called() && !is_chosen("webhooks") {
        package.mutating.clear();
        package.validating.clear();
        package.converted.clear();
        package.arguments.push("--webhook-bind-address=0".to_owned());
    }
    package
}

type Object = (Part, Manifest, Option<String>, Node);

/// Every object that some choice has, with the condition under which it is there.
fn objects(package: &Package) -> Result<Vec<Object>, RenderError> {
    let choices: Vec<Choice> = CHOICES.iter().map(|(_, choice)| *choice).collect();
    let count = 1 << choices.len();
    let mut order: Vec<Manifest> = Vec::new();
    let mut found: BTreeMap<(String, String, Option<String>), BTreeMap<usize, Value>> =
        BTreeMap::new();
    // With everything chosen first, so that the order is that of the fullest.
    for bits in (0..count).rev() {
        for manifest in chosen(package, bits).render()? {
            if matches!(manifest.part, Part::Namespace | Part::Samples) {
                continue;
            }
            let key = key(&manifest);
            let variants = found.entry(key).or_default();
            if variants.is_empty() {
                order.push(manifest.clone());
            }
            variants.insert(bits, manifest.object);
        }
    }
    let variants = Variants { choices, all: (0..count).collect() };
    let objects = order.into_iter().map(|manifest| {
        let rendered = &found[&key(&manifest)];
        let there = rendered.keys().copied().collect();
        let condition = variants.condition(&there, &variants.all);
        let mut node = variants.merge(rendered);
        fields::fill(&mut node, manifest.part, package);
        let condition = with_part(manifest.part, condition);
        (manifest.part, manifest, condition, node)
    });
    Ok(objects.collect())
}

fn key(manifest: &Manifest) -> (String, String, Option<String>) {
    let namespace = manifest.namespace().map(str::to_owned);
    (manifest.kind().to_owned(), manifest.name().to_owned(), namespace)
}

/// With the switch that a whole part has.
fn with_part(part: Part, condition: Condition) -> Option<String> {
    let switch = match part {
        Part::Crds => Some(".Values.crds.enabled"),
        Part::NetworkPolicy => Some(".Values.networkPolicy.enabled"),
        Part::Monitoring => Some(".Values.serviceMonitor.enabled"),
        Part::Dashboards => Some(".Values.dashboards.enabled"),
        _ => None,
    };
    match (switch, condition.expression()) {
        (Some(switch), Some(condition)) => Some(format!("and {switch} {}", nested(&condition))),
        (Some(switch), None) => Some(switch.to_owned()),
        (None, condition) => condition,
    }
}

/// An expression as an argument of another.
fn nested(expression: &str) -> String {
    if expression.contains(' ') { format!("({expression})") } else { expression.to_owned() }
}
