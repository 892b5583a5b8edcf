//! Fields of objects that values say.

use kubewright::manifest::{Package, Part};
use serde_json::json;

use super::nested;
use super::template::{Entry, Node};

/// Puts in what values say about an object.
pub(super) fn fill(node: &mut Node, part: Part, package: &Package) {
    labels(node, package);
    match part {
        Part::Crds => keep(node),
        Part::Manager => deployment(node, package),
        Part::Rbac => account(node),
        Part::Monitoring => monitor(node),
        _ => {}
    }
}

fn expression(text: &str) -> Entry {
    Entry::always(Node::Expression(text.to_owned()))
}

/// Whose object it is: the release's.
fn labels(node: &mut Node, package: &Package) {
    let Some(labels) = node.get("metadata").and_then(|it| it.get("labels")) else { return };
    labels.set("app.kubernetes.io/managed-by", expression("{{ .Release.Service }}"));
    labels.set("app.kubernetes.io/instance", expression("{{ .Release.Name | quote }}"));
    let chart = format!("{{{{ include \"{}.chart\" . }}}}", package.name);
    labels.set("helm.sh/chart", expression(&chart));
}

/// A definition that goes takes all objects of its kind with it, so it stays unless told otherwise.
fn keep(node: &mut Node) {
    const KEPT: &str = ".Values.crds.keep";
    const POLICY: &str = "helm.sh/resource-policy";
    let Some(fields) = node.get("metadata").and_then(Node::entries) else { return };
    let policy = |condition| Entry { condition, node: Node::Literal(json!("keep")) };
    let Some((_, annotations)) = fields.iter_mut().find(|(field, _)| field == "annotations") else {
        let alone = Node::Map(vec![(POLICY.to_owned(), policy(None))]);
        return fields.push(("annotations".to_owned(), Entry::when(KEPT, alone)));
    };
    let Entry { condition, node } = annotations;
    let Some(others) = node.entries() else { return };
    others.retain(|(name, _)| name != POLICY);
    // What else there is may be there under a condition of its own.
    if let Some(all) = condition.take() {
        for (_, other) in others.iter_mut() {
            other.condition = Some(match &other.condition {
                Some(own) => format!("and {} {}", nested(&all), nested(own)),
                None => all.clone(),
            });
        }
        *condition = Some(format!("or {} {KEPT}", nested(&all)));
    }
    others.push((POLICY.to_owned(), policy(Some(KEPT.to_owned()))));
}

/// The account has annotations by which clouds know it.
fn account(node: &mut Node) {
    let is_account =
        matches!(node.get("kind"), Some(Node::Literal(kind)) if kind == "ServiceAccount");
    if !is_account {
        return;
    }
    if let Some(metadata) = node.get("metadata") {
        let lines = Node::Lines("{{- toYaml . | nindent $indent }}".to_owned());
        let with = "with .Values.serviceAccount.annotations";
        metadata.set("annotations", Entry::when(with, lines));
    }
}

fn monitor(node: &mut Node) {
    let lines = Node::Lines("{{- toYaml . | nindent $indent }}".to_owned());
    if let Some(labels) = node.get("metadata").and_then(|it| it.get("labels"))
        && let Some(entries) = labels.entries()
    {
        // Prometheus is often told to look for a label of its own.
        let with = Entry::when("with .Values.serviceMonitor.labels", lines);
        entries.push((String::new(), with));
    }
}

fn deployment(node: &mut Node, package: &Package) {
    let Some(spec) = node.get("spec") else { return };
    spec.set("replicas", expression("{{ .Values.replicas }}"));
    let Some(template) = spec.get("template") else { return };
    let lines = |text: &str| Node::Lines(text.to_owned());
    let to_yaml = || lines("{{- toYaml . | nindent $indent }}");
    if let Some(metadata) = template.get("metadata") {
        for key in ["annotations", "labels"] {
            if let Some(entries) = metadata.get(key).and_then(Node::entries) {
                let with = match key {
                    "annotations" => "with .Values.podAnnotations",
                    _ => "with .Values.podLabels",
                };
                entries.push((String::new(), Entry::when(with, to_yaml())));
            }
        }
    }
    let Some(pod) = template.get("spec") else { return };
    for (key, value) in [
        ("imagePullSecrets", "imagePullSecrets"),
        ("nodeSelector", "nodeSelector"),
        ("tolerations", "tolerations"),
        ("affinity", "affinity"),
        ("topologySpreadConstraints", "topologySpreadConstraints"),
    ] {
        pod.set(key, Entry::when(&format!("with .Values.{value}"), to_yaml()));
    }
    let class = Node::Expression("{{ . | quote }}".to_owned());
    pod.set("priorityClassName", Entry::when("with .Values.priorityClassName", class));
    let Some(container) =
        pod.get("containers").and_then(Node::elements).and_then(|it| it.first_mut())
    else {
        return;
    };
    let container = &mut container.node;
    let image = format!("{{{{ include \"{}.image\" . | quote }}}}", package.name);
    container.set("image", expression(&image));
    container.set("imagePullPolicy", expression("{{ .Values.image.pullPolicy | quote }}"));
    let resources = lines("{{- toYaml .Values.resources | nindent $indent }}");
    container.set("resources", Entry::always(resources));
    if let Some(arguments) = container.get("args").and_then(Node::elements) {
        let range = Entry::when("range .Values.extraArguments", lines("- {{ . | quote }}"));
        arguments.push(range);
    }
    match container.get("env").and_then(Node::elements) {
        Some(variables) => {
            variables.push(Entry::when("with .Values.environment", to_yaml()));
        }
        None => container.set("env", Entry::when("with .Values.environment", to_yaml())),
    }
}
