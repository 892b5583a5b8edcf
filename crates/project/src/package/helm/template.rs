//! YAML with conditions and expressions in it: a tree, and how it is written as a template.
//!
//! Text that comes from the package is written as it is read: braces that Helm would take for its
//! own are escaped here, and nowhere else.

use kubewright_apimachinery::yaml;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// As it is.
    Literal(Value),
    /// An expression that gives one value, with its braces.
    Expression(String),
    /// An expression that gives lines of YAML; `$indent` stands for how far they are indented.
    Lines(String),
    /// An entry without a key gives entries itself.
    Map(Vec<(String, Entry)>),
    List(Vec<Entry>),
    /// The first whose condition holds, or the last.
    OneOf(Vec<(String, Value)>),
}

/// A node that is there under a condition, or always.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) condition: Option<String>,
    pub(super) node: Node,
}

impl Entry {
    pub(super) fn always(node: Node) -> Self {
        Entry { condition: None, node }
    }

    pub(super) fn when(condition: &str, node: Node) -> Self {
        Entry { condition: Some(condition.to_owned()), node }
    }
}

impl Node {
    /// The entries of a map, a literal one included.
    pub(super) fn entries(&mut self) -> Option<&mut Vec<(String, Entry)>> {
        if let Node::Literal(Value::Object(map)) = self {
            let entry = |(key, value): (&String, &Value)| {
                (key.clone(), Entry::always(Node::Literal(value.clone())))
            };
            *self = Node::Map(map.iter().map(entry).collect());
        }
        match self {
            Node::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The elements of a list, a literal one included.
    pub(super) fn elements(&mut self) -> Option<&mut Vec<Entry>> {
        if let Node::Literal(Value::Array(list)) = self {
            let element = |value: &Value| Entry::always(Node::Literal(value.clone()));
            *self = Node::List(list.iter().map(element).collect());
        }
        match self {
            Node::List(elements) => Some(elements),
            _ => None,
        }
    }

    pub(super) fn get(&mut self, key: &str) -> Option<&mut Node> {
        let entries = self.entries()?;
        entries.iter_mut().find(|(it, _)| it == key).map(|(_, entry)| &mut entry.node)
    }

    /// Puts an entry in, in the place of one that is called so.
    pub(super) fn set(&mut self, key: &str, entry: Entry) {
        let entries = self.entries().expect("fields are put into maps");
        match entries.iter_mut().find(|(it, _)| it == key) {
            Some((_, known)) => *known = entry,
            None => entries.push((key.to_owned(), entry)),
        }
    }
}

/// A document of a template, under a condition if there is one.
pub(super) fn document(node: &Node, condition: Option<&str>) -> String {
    let body = format!("---\n{}", lines(node, 0).join("\n"));
    match condition {
        Some(condition) => format!("{{{{- if {condition} }}}}\n{body}\n{{{{- end }}}}\n"),
        None => body + "\n",
    }
}

/// The lines of a node that stands by itself, indented.
fn lines(node: &Node, indent: usize) -> Vec<String> {
    let space = " ".repeat(indent);
    match node {
        Node::Literal(value) => {
            let text = escaped(&yaml::to_string(value));
            text.lines()
                .map(|line| if line.is_empty() { String::new() } else { format!("{space}{line}") })
                .collect()
        }
        Node::Expression(text) => vec![format!("{space}{text}")],
        Node::Lines(text) => {
            vec![format!("{space}{}", text.replace("$indent", &indent.to_string()))]
        }
        Node::Map(entries) => entries
            .iter()
            .flat_map(|(key, entry)| conditional(entry, indent, |node| keyed(key, node, indent)))
            .collect(),
        Node::List(elements) => {
            elements
                .iter()
                .flat_map(|entry| {
                    conditional(entry, indent, |node| {
                        // Expressions that give elements begin them by themselves.
                        if matches!(node, Node::Lines(_)) {
                            return lines(node, indent);
                        }
                        let mut inner = lines(node, indent + 2);
                        if let Some(first) = inner.first_mut() {
                            *first = format!("{space}- {}", first.trim_start());
                        }
                        inner
                    })
                })
                .collect()
        }
        Node::OneOf(alternatives) => vec![format!("{space}{}", one_of(alternatives))],
    }
}

fn keyed(key: &str, node: &Node, indent: usize) -> Vec<String> {
    if key.is_empty() {
        return lines(node, indent);
    }
    let space = " ".repeat(indent);
    let key = escaped(yaml::to_string(&Value::String(key.to_owned())).trim_end());
    match node {
        Node::Literal(value) => {
            // As the encoder writes a map of one key.
            let text = yaml::to_string(&serde_json::json!({ "k": value }));
            let text = escaped(&text);
            let rest = text.strip_prefix('k').expect("the key is first");
            let text = format!("{key}{rest}");
            text.lines()
                .map(|line| if line.is_empty() { String::new() } else { format!("{space}{line}") })
                .collect()
        }
        Node::Expression(text) => vec![format!("{space}{key}: {text}")],
        Node::OneOf(alternatives) => vec![format!("{space}{key}: {}", one_of(alternatives))],
        // Lists stand below their key, not to the right of it.
        Node::List(_) => [vec![format!("{space}{key}:")], lines(node, indent)].concat(),
        Node::Map(_) | Node::Lines(_) => {
            [vec![format!("{space}{key}:")], lines(node, indent + 2)].concat()
        }
    }
}

fn conditional(entry: &Entry, indent: usize, body: impl Fn(&Node) -> Vec<String>) -> Vec<String> {
    let space = " ".repeat(indent);
    let body = body(&entry.node);
    match &entry.condition {
        None => body,
        Some(condition) => {
            let word = if is_statement(condition) { "" } else { "if " };
            let begin = vec![format!("{space}{{{{- {word}{condition} }}}}")];
            [begin, body, vec![format!("{space}{{{{- end }}}}")]].concat()
        }
    }
}

/// Whether it is more than a condition.
fn is_statement(condition: &str) -> bool {
    ["with ", "range "].iter().any(|word| condition.starts_with(word))
}

fn one_of(alternatives: &[(String, Value)]) -> String {
    let mut text = String::new();
    for (at, (condition, value)) in alternatives.iter().enumerate() {
        let question = match at {
            0 => format!("if {condition}"),
            at if at + 1 == alternatives.len() => "else".to_owned(),
            _ => format!("else if {condition}"),
        };
        let value = escaped(&value.to_string());
        text.push_str(&format!("{{{{ {question} }}}}{value}"));
    }
    text + "{{ end }}"
}

/// Text that Helm leaves alone.
fn escaped(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trees_become_templates() {
        let node = Node::Map(vec![
            ("a".to_owned(), Entry::always(Node::Literal(json!({"b": [1, "{{ x }}"]})))),
            ("c".to_owned(), Entry::when(".Values.c", Node::Expression("{{ .Values.c }}".into()))),
            (
                "d".to_owned(),
                Entry::always(Node::List(vec![
                    Entry::always(Node::Literal(json!("one"))),
                    Entry::when(".Values.d", Node::Literal(json!({"k": "v", "l": "w"}))),
                ])),
            ),
            (
                "e".to_owned(),
                Entry::always(Node::Lines("{{- toYaml . | nindent $indent }}".into())),
            ),
        ]);
        assert_eq!(
            document(&node, Some(".Values.all")),
            r#"{{- if .Values.all }}
---
a:
  b:
  - 1
  - '{{ "{{" }} x }}'
{{- if .Values.c }}
c: {{ .Values.c }}
{{- end }}
d:
- one
{{- if .Values.d }}
- k: v
  l: w
{{- end }}
e:
  {{- toYaml . | nindent 2 }}
{{- end }}
"#
        );
    }
}
