//! What a chart is beside its templates: its name, its values with their schema, its helpers.

use kubewright::manifest::Package;
use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

use super::super::folder::MARK;
use super::super::kustomize::image_and_tag;
use super::super::{About, Model};

pub(super) fn chart(model: &Model) -> String {
    let Model { package, about } = model;
    let description = match about.description.as_str() {
        "" => format!("The operator {}", package.name),
        text => text.to_owned(),
    };
    let mut chart = json!({
        "apiVersion": "v2",
        "name": package.name,
        "description": description,
        "type": "application",
        "version": about.version,
        "appVersion": about.version,
    });
    if let Some(home) = about.homepage.as_ref().or(about.repository.as_ref()) {
        chart["home"] = json!(home);
    }
    if !about.keywords.is_empty() {
        chart["keywords"] = json!(about.keywords);
    }
    let maintainers = maintainers(about);
    if !maintainers.is_empty() {
        chart["maintainers"] = json!(maintainers);
    }
    format!("{MARK}{}", yaml::to_string(&chart))
}

/// `Name <mail>` as Cargo has it.
pub(in crate::package) fn maintainers(about: &About) -> Vec<Value> {
    let maintainer = |author: &String| match author.split_once('<') {
        Some((name, mail)) => {
            json!({"name": name.trim(), "email": mail.trim_end_matches('>').trim()})
        }
        None => json!({"name": author.trim()}),
    };
    about.authors.iter().map(maintainer).collect()
}

/// One value: where it is, what it is, and what it is for.
struct Setting {
    path: &'static str,
    default: Value,
    about: &'static str,
    schema: Value,
}

fn settings(package: &Package) -> Vec<Setting> {
    let (repository, tag) = image_and_tag(&package.image);
    let setting = |path, default, about, schema| Setting { path, default, about, schema };
    let switch = |path, default: bool, about| {
        setting(path, json!(default), about, json!({"type": "boolean"}))
    };
    let text = |path, default: &str, about| {
        setting(path, json!(default), about, json!({"type": "string"}))
    };
    let map = |path, about| setting(path, json!({}), about, json!({"type": "object"}));
    let list = |path, about| setting(path, json!([]), about, json!({"type": "array"}));
    let mut settings = vec![
        text("image.repository", repository, "The image to run"),
        text("image.tag", tag.unwrap_or_default(), "Else the version of the chart"),
        text("image.digest", "", "`sha256:…`, in the place of a tag"),
        setting(
            "image.pullPolicy",
            json!("IfNotPresent"),
            "When it is pulled",
            json!({"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}),
        ),
        setting(
            "replicas",
            json!(package.replicas),
            "How many pods run",
            json!({"type": "integer", "minimum": 0}),
        ),
        setting(
            "resources",
            json!({
                "limits": {"cpu": "500m", "memory": "128Mi"},
                "requests": {"cpu": "10m", "memory": "64Mi"},
            }),
            "What a pod may use",
            json!({"type": "object"}),
        ),
        text("namespaceOverride", "", "Where it runs, if not where the release is"),
        switch("crds.enabled", true, "Whether the chart brings the definitions"),
        switch(
            "crds.keep",
            true,
            "Whether definitions, and all objects of their kinds, stay when the release goes",
        ),
        switch("metrics.enabled", package.metrics, "Whether metrics are served"),
        switch("serviceMonitor.enabled", false, "Whether Prometheus' operator reads the metrics"),
        map("serviceMonitor.labels", "Labels by which Prometheus finds it"),
        switch("dashboards.enabled", false, "Whether there is a dashboard for Grafana"),
        switch("networkPolicy.enabled", false, "Whether only connections with business are let in"),
        switch(
            "certManager.enabled",
            package.certificates == kubewright::manifest::Certificates::CertManager,
            "Whether cert-manager makes certificates; else the operator makes its own",
        ),
    ];
    if package.is_called() {
        settings.push(switch(
            "webhooks.enabled",
            true,
            "Whether the API server asks the operator; without, nothing is checked or converted",
        ));
    }
    settings.extend([
        map("serviceAccount.annotations", "By which clouds know the account"),
        list("extraArguments", "Arguments for the operator"),
        list("environment", "Variables for the operator, as containers have them"),
        list("imagePullSecrets", "Secrets to pull the image with"),
        map("podAnnotations", "Annotations of the pods"),
        map("podLabels", "Labels of the pods"),
        map("nodeSelector", "Nodes to run on"),
        list("tolerations", "Taints to bear"),
        map("affinity", "Nodes and pods to be near to, or far from"),
        list("topologySpreadConstraints", "How pods are spread"),
        text("priorityClassName", "", "How important the pods are"),
    ]);
    settings
}

pub(super) fn values(package: &Package) -> String {
    let mut text = MARK.to_owned();
    let mut group = "";
    for setting in settings(package) {
        let (parent, key) = match setting.path.split_once('.') {
            Some((parent, key)) => (parent, key),
            None => ("", setting.path),
        };
        if parent != group && !parent.is_empty() {
            text.push_str(&format!("\n{parent}:\n"));
        } else if parent.is_empty() {
            text.push('\n');
        }
        group = parent;
        let space = if parent.is_empty() { "" } else { "  " };
        let value = yaml::to_string(&json!({ key: setting.default }));
        text.push_str(&format!("{space}# {}.\n", setting.about));
        for line in value.lines() {
            text.push_str(&format!("{space}{line}\n"));
        }
    }
    text
}

/// So that a value that is misspelt is told, not ignored.
pub(super) fn schema(package: &Package) -> String {
    let object = || json!({"type": "object", "additionalProperties": false, "properties": {}});
    let mut schema = object();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    // Helm itself gives these to a chart that another one uses.
    schema["properties"]["global"] = json!({"type": "object"});
    for setting in settings(package) {
        let mut described = setting.schema;
        described["description"] = json!(setting.about);
        match setting.path.split_once('.') {
            Some((parent, key)) => {
                let parent = &mut schema["properties"][parent];
                if parent.is_null() {
                    *parent = object();
                }
                parent["properties"][key] = described;
            }
            None => schema["properties"][setting.path] = described,
        }
    }
    serde_json::to_string_pretty(&schema).expect("trees are JSON") + "\n"
}

pub(super) fn helpers(name: &str) -> String {
    format!(
        r#"{{{{- define "{name}.namespace" -}}}}
{{{{- default .Release.Namespace .Values.namespaceOverride -}}}}
{{{{- end -}}}}

{{{{- define "{name}.chart" -}}}}
{{{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}}}
{{{{- end -}}}}

{{{{- define "{name}.image" -}}}}
{{{{- if .Values.image.digest -}}}}
{{{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}}}
{{{{- else -}}}}
{{{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}}}
{{{{- end -}}}}
{{{{- end -}}}}
"#
    )
}

pub(super) fn notes(package: &Package) -> String {
    let (name, deployment) = (&package.name, package.names().deployment());
    format!(
        "{name} is installed. See how it starts:\n\n  kubectl --namespace {{{{ include \
         \"{name}.namespace\" . }}}} rollout status deployment/{deployment}\n"
    )
}
