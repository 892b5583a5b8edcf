//! Reference documentation of a kind: a page of Markdown, from its definition.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// A page about a kind: what it is called, its versions, and every field with its type, its default
/// and what is asked of it.
pub fn reference(definition: &CustomResourceDefinition) -> String {
    let (spec, names) = (&definition.spec, &definition.spec.names);
    let mut page = Page(format!("# {}\n\n", names.kind));
    let mut versions = spec.versions.iter().collect::<Vec<_>>();
    // What is stored is what people should write.
    versions.sort_by_key(|version| !version.storage);
    let described = versions.iter().find_map(|it| schema(it)?.description.as_deref());
    if let Some(text) = described {
        page.line(&format!("{}\n", text.trim()));
    }
    let scope = if spec.scope == "Cluster" { "in no namespace" } else { "in a namespace" };
    let short = names.short_names.iter().flatten().map(|name| format!("`{name}`"));
    let short: Vec<_> = short.collect();
    let short =
        if short.is_empty() { String::new() } else { format!(", for short {}", short.join(", ")) };
    page.line(&format!("Objects are {scope}. `kubectl get {}`{short}.\n", names.plural));
    for version in versions {
        page.version(&spec.group, version);
    }
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        writeln!(self.0, "{text}").expect("strings take any text");
    }

    fn version(&mut self, group: &str, version: &CustomResourceDefinitionVersion) {
        self.line(&format!("## `{group}/{}`\n", version.name));
        let states = [
            (!version.served, "It is not served."),
            (version.storage, "Objects are stored in it."),
            (version.deprecated == Some(true), "It is deprecated."),
        ];
        let states: Vec<_> = states.iter().filter(|(is, _)| *is).map(|(_, text)| *text).collect();
        if !states.is_empty() {
            self.line(&format!("{}\n", states.join(" ")));
        }
        if let Some(warning) = &version.deprecation_warning {
            self.line(&format!("> {warning}\n"));
        }
        if let Some(schema) = schema(version) {
            self.object("", schema);
        }
    }

    /// A table of fields, and then one for each field that has fields.
    fn object(&mut self, path: &str, schema: &JSONSchemaProps) {
        let hidden =
            |name: &str| path.is_empty() && matches!(name, "apiVersion" | "kind" | "metadata");
        let fields: Vec<_> =
            schema.properties.iter().flatten().filter(|(name, _)| !hidden(name)).collect();
        if fields.is_empty() {
            return;
        }
        if !path.is_empty() {
            self.line(&format!("### `{path}`\n"));
        }
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let message = rule.message.as_deref().unwrap_or(&rule.rule);
            self.line(&format!("- Rule: {}\n", inline(message)));
        }
        self.line("| field | type | | description |");
        self.line("|---|---|---|---|");
        for (name, field) in &fields {
            let is_required = schema.required.iter().flatten().any(|it| it == *name);
            let notes = notes(field, is_required).join(", ");
            let text = cell(field.description.as_deref().unwrap_or_default());
            self.line(&format!("| `{name}` | {} | {notes} | {text} |", kind(field)));
        }
        self.line("");
        for (name, field) in fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let (field, suffix) = inner(field);
            self.object(&format!("{path}{suffix}"), field);
        }
    }
}

fn schema(version: &CustomResourceDefinitionVersion) -> Option<&JSONSchemaProps> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// What a list or a map is of, and how that is written.
fn inner(schema: &JSONSchemaProps) -> (&JSONSchemaProps, String) {
    let (of, mark) = match (&schema.items, &schema.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(of)), _) => (of, "[]"),
        (_, Some(JSONSchemaPropsOrBool::Schema(of))) => (of, "{}"),
        _ => return (schema, String::new()),
    };
    let (of, rest) = inner(of);
    (of, format!("{mark}{rest}"))
}

fn kind(schema: &JSONSchemaProps) -> String {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".to_owned();
    }
    let word = match (schema.type_.as_deref(), &schema.items, &schema.additional_properties) {
        (_, Some(JSONSchemaPropsOrArray::Schema(of)), _) => format!("list of {}", kind(of)),
        (_, _, Some(JSONSchemaPropsOrBool::Schema(of))) => format!("map of {}", kind(of)),
        (Some(word), ..) => word.to_owned(),
        (None, ..) => "anything".to_owned(),
    };
    match &schema.format {
        Some(format) => format!("{word} ({format})"),
        None => word,
    }
}

fn notes(schema: &JSONSchemaProps, is_required: bool) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(is_required.then(|| "required".to_owned()));
    notes
        .extend(schema.default.as_ref().map(|it| format!("default {}", inline(&it.0.to_string()))));
    let choices: Vec<_> =
        schema.enum_.iter().flatten().map(|it| inline(&it.0.to_string())).collect();
    notes.extend((!choices.is_empty()).then(|| format!("one of {}", choices.join(" "))));
    let bounds = [
        ("at least", schema.minimum),
        ("at most", schema.maximum),
        ("length at least", schema.min_length.map(|it| it as f64)),
        ("length at most", schema.max_length.map(|it| it as f64)),
        ("elements at least", schema.min_items.map(|it| it as f64)),
        ("elements at most", schema.max_items.map(|it| it as f64)),
    ];
    notes.extend(bounds.iter().filter_map(|(word, it)| it.map(|it| format!("{word} {it}"))));
    notes.extend(schema.pattern.as_ref().map(|it| format!("matches {}", inline(it))));
    notes.extend((schema.nullable == Some(true)).then(|| "may be null".to_owned()));
    notes
}

/// As code that a cell of a table can hold.
fn inline(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('\n', " ");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// On one line, without what would end the cell.
fn cell(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace('|', "\\|").replace('<', "&lt;")
}
