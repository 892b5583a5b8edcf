//! Reading one document into a tree.

use std::collections::{HashMap, HashSet};
use std::fmt;

use base64::Engine as _;
use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::complaint::Mistake;
use super::scalar::Scalar;
use crate::json::{self, DEPTH_MAX, Decoded, go_quote, strict::Violation};

/// Why a document is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The line is 0 where upstream names none.
    #[error("yaml: {}{problem}", Line(*.line))]
    Syntax { line: usize, problem: String },
    /// Well-formed, but it says something that cannot be had. Upstream's words.
    #[error("yaml: {0}")]
    Meaning(String),
    /// Fine as YAML, but a number or a key in it is none that JSON has.
    #[error("{0}")]
    NotJson(String),
}

/// How much text aliases may add up to. Upstream counts only nodes; a long text under an alias
/// repeated a thousand times is one node each time.
const ALIASED_BYTES_MAX: usize = 16 << 20;

/// How much text may be kept for aliases to come, beyond twice the document. Anchors within anchors
/// keep the same text once for each; upstream keeps pointers, so it has no such bound.
const ANCHORED_BYTES_MAX: usize = 1 << 20;

/// Reads the first document of a text; none at all is null.
///
/// Of keys given twice the last wins; one complaint names all of them, as upstream words it. Time
/// and memory are bounded by the length of the text and
/// by the bounds on aliases, most of which are upstream's.
pub fn decode(text: &str) -> Result<Decoded, DecodeError> {
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut composer = Composer {
        text,
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        nodes: 0,
        aliased_nodes: 0,
        aliased_bytes: 0,
        anchored_bytes: 0,
        complaints: Vec::new(),
        not_json: None,
        open_lines: Vec::new(),
    };
    let value = composer.document()?;
    if let Some(problem) = composer.not_json {
        return Err(DecodeError::NotJson(problem));
    }
    let violations = match composer.complaints.is_empty() {
        true => Vec::new(),
        false => {
            let lines = composer.complaints.join("\n  ");
            vec![Violation::Yaml(format!("yaml: unmarshal errors:\n  {lines}"))]
        }
    };
    Ok(Decoded { value, violations })
}

struct Composer<'a> {
    text: &'a str,
    events: Parser<'a, granit_parser::StrInput<'a>>,
    /// What is under each anchor, by the number the parser gives it; `None` while being read.
    anchors: HashMap<usize, Option<Node>>,
    nodes: usize,
    aliased_nodes: usize,
    aliased_bytes: usize,
    anchored_bytes: usize,
    complaints: Vec<String>,
    /// The first thing that JSON does not have; told when all else is well.
    not_json: Option<String>,
    /// Where the collections begin that are being read, from one.
    open_lines: Vec<usize>,
}

/// Where a mistake is, as a message begins with it.
struct Line(usize);

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(formatter, "line {line}: "),
        }
    }
}

/// A value with what it costs to have it once more.
#[derive(Clone)]
struct Node {
    value: Value,
    kind: Kind,
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// What a node was in YAML, as far as it decides about keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Null,
    Bool,
    Int,
    /// Too large for a key upstream.
    Uint,
    Float,
    /// Infinity or no number; the value is its text.
    NotFinite,
    Text,
    /// A plain `<<`: as a key, it merges.
    Merge,
    Sequence,
    Mapping,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), DecodeError> {
        loop {
            match self.events.next_event() {
                Some(Ok((Event::StreamStart | Event::Comment(..), _))) => {}
                Some(Ok(event)) => return Ok(event),
                Some(Err(error)) => {
                    let marker = error.marker();
                    let mistake = Mistake {
                        info: &error.info(),
                        line: marker.line(),
                        offset: marker.byte_offset().unwrap_or_default(),
                        within: self.open_lines.last().copied(),
                        text: self.text,
                    };
                    let (line, problem) = mistake.told();
                    return Err(DecodeError::Syntax { line, problem });
                }
                None => return Ok((Event::StreamEnd, Span::default())),
            }
        }
    }

    fn document(&mut self) -> Result<Value, DecodeError> {
        loop {
            match self.next()? {
                (Event::DocumentStart(..), _) => {}
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Value::Null),
                (event, span) => {
                    let root = self.node(event, span, 1)?;
                    // The end of the document. Upstream does not look whether the line goes on.
                    self.next()?;
                    return Ok(self.json_value(root));
                }
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, DecodeError> {
        self.nodes += 1;
        if depth > DEPTH_MAX {
            let (line, problem) = (span.start.line(), "exceeded max depth".to_owned());
            return Err(DecodeError::Syntax { line, problem });
        }
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, scalar(&text, style, tag.as_deref())?)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(anchor, span);
                let node = self.sequence(depth)?;
                self.open_lines.pop();
                (anchor, node)
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(anchor, span);
                let node = self.mapping(depth)?;
                self.open_lines.pop();
                (anchor, node)
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            Event::UnresolvedAlias(name) => {
                return Err(DecodeError::Meaning(format!("unknown anchor '{name}' referenced")));
            }
            _ => {
                let (line, problem) = (span.start.line(), "did not find expected node".to_owned());
                return Err(DecodeError::Syntax { line, problem });
            }
        };
        // The parser numbers anchors from one.
        if anchor > 0 {
            self.anchored_bytes += node.bytes;
            if self.anchored_bytes > ANCHORED_BYTES_MAX + 2 * self.text.len() {
                return Err(excessive_aliasing());
            }
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(node)
    }

    fn open(&mut self, anchor: usize, span: Span) {
        self.open_lines.push(span.start.line());
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node, DecodeError> {
        let Some(Some(node)) = self.anchors.get(&anchor) else {
            let token = span.start.byte_offset().zip(span.end.byte_offset());
            let name = token.and_then(|(start, end)| self.text.get(start..end));
            let name = name.unwrap_or_default().trim_start_matches('*');
            return Err(DecodeError::Meaning(format!("anchor '{name}' value contains itself")));
        };
        self.nodes += node.nodes;
        self.aliased_nodes += node.nodes;
        self.aliased_bytes += node.bytes;
        let share = self.aliased_nodes as f64 / self.nodes as f64;
        let is_excessive =
            self.aliased_nodes > 100 && self.nodes > 1000 && share > aliased_share_max(self.nodes);
        if is_excessive || self.aliased_bytes > ALIASED_BYTES_MAX {
            return Err(excessive_aliasing());
        }
        if depth + node.depth > DEPTH_MAX {
            let (line, problem) = (span.start.line(), "exceeded max depth".to_owned());
            return Err(DecodeError::Syntax { line, problem });
        }
        Ok(node.clone())
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, DecodeError> {
        let mut whole = Node::empty(Kind::Sequence);
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                (event, span) => {
                    let item = self.node(event, span, depth + 1)?;
                    whole.grow(&item);
                    items.push(self.json_value(item));
                }
            }
        }
        whole.value = Value::Array(items);
        Ok(whole)
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, DecodeError> {
        let mut whole = Node::empty(Kind::Mapping);
        let mut fields = Map::new();
        let mut seen = HashSet::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => break,
                (event, span) => self.node(event, span, depth + 1)?,
            };
            let (event, span) = self.next()?;
            let line = span.start.line();
            let value = self.node(event, span, depth + 1)?;
            whole.grow(&key);
            whole.grow(&value);
            if key.kind == Kind::Merge {
                for (name, value) in merged(value)? {
                    let key = (Kind::Text, name);
                    self.set(&mut fields, &mut seen, key, value, line);
                }
                continue;
            }
            let name = self.key_text(&key)?;
            let value = self.json_value(value);
            self.set(&mut fields, &mut seen, (key.kind, name), value, line);
        }
        whole.value = Value::Object(fields);
        Ok(whole)
    }

    /// The line is that of the value, as in upstream's complaint.
    fn set(
        &mut self,
        fields: &mut Map<String, Value>,
        seen: &mut HashSet<(Kind, String)>,
        (kind, name): (Kind, String),
        value: Value,
        line: usize,
    ) {
        if !seen.insert((kind, name.clone())) && self.complaints.len() < 100 {
            let printed = if kind == Kind::Text { go_quote(&name) } else { name.clone() };
            self.complaints.push(format!("line {line}: key {printed} already set in map"));
        }
        fields.insert(name, value);
    }

    /// A value that is not a key.
    fn json_value(&mut self, node: Node) -> Value {
        if node.kind != Kind::NotFinite {
            return node.value;
        }
        let name = match infinite_key(&node.value) {
            ".inf" => "+Inf",
            "-.inf" => "-Inf",
            _ => "NaN",
        };
        self.not_json.get_or_insert_with(|| format!("json: unsupported value: {name}"));
        Value::Null
    }

    /// What a key is called in JSON.
    fn key_text(&mut self, key: &Node) -> Result<String, DecodeError> {
        match (&key.value, key.kind) {
            (value, Kind::NotFinite) => Ok(infinite_key(value).to_owned()),
            (Value::String(text), _) => Ok(text.clone()),
            (Value::Bool(value), _) => Ok(value.to_string()),
            // Upstream prints floats in keys with the precision of 32 bits.
            (Value::Number(number), Kind::Float) => {
                let single = number.as_f64().unwrap_or_default() as f32;
                let shortest: f64 = single.to_string().parse().unwrap_or_default();
                Ok(json::go_float(shortest))
            }
            (Value::Number(number), Kind::Int) => Ok(number.to_string()),
            (Value::Array(_) | Value::Object(_), _) => {
                let printed = go_syntax(&key.value);
                Err(DecodeError::Meaning(format!("invalid map key: {printed}")))
            }
            (value, _) => {
                let (kind, printed) = match value {
                    Value::Null => ("%!s(<nil>)", "<nil>".to_owned()),
                    other => ("uint64", json::to_string(other)),
                };
                let problem = format!("unsupported map key of type: {kind}, key: {printed}");
                self.not_json.get_or_insert(problem);
                Ok(String::new())
            }
        }
    }
}

fn excessive_aliasing() -> DecodeError {
    DecodeError::Meaning("document contains excessive aliasing".to_owned())
}

impl Node {
    fn empty(kind: Kind) -> Self {
        Node { value: Value::Null, kind, nodes: 1, bytes: 1, depth: 1 }
    }

    fn grow(&mut self, part: &Node) {
        self.nodes += part.nodes;
        self.bytes += part.bytes;
        self.depth = self.depth.max(part.depth + 1);
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, DecodeError> {
    let core = tag.and_then(Tag::core_suffix);
    let is_text = match (tag, core) {
        (None, _) => style != ScalarStyle::Plain,
        (Some(_), Some("str")) => true,
        (Some(tag), _) if tag.suffix() == "binary" => return binary(text),
        (Some(_), Some(_)) => false,
        // Tags of somebody else's leave the text as it is.
        (Some(_), None) => true,
    };
    let is_merge = text == "<<" && tag.is_none() && style == ScalarStyle::Plain;
    let mut read = if is_text { Scalar::Text } else { Scalar::of_plain(text) };
    if let Some(wanted) = core.filter(|core| *core != "str") {
        read = match read {
            Scalar::Int(value) if wanted == "float" => Scalar::Float(value as f64),
            read if read.tag() == wanted => read,
            read => {
                let found = read.tag();
                let problem = format!("cannot decode !!{found} `{text}` as a !!{wanted}");
                return Err(DecodeError::Meaning(problem));
            }
        };
    }
    let kind = match read {
        _ if is_merge => Kind::Merge,
        Scalar::Null => Kind::Null,
        Scalar::Bool(_) => Kind::Bool,
        Scalar::Int(_) => Kind::Int,
        Scalar::Uint(_) => Kind::Uint,
        Scalar::Float(_) => Kind::Float,
        Scalar::Timestamp | Scalar::Text => Kind::Text,
    };
    let value = match read.to_value(text) {
        Some(value) => value,
        None => return Ok(Node { value: Value::from(text), ..Node::empty(Kind::NotFinite) }),
    };
    Ok(Node { value, bytes: 1 + text.len(), ..Node::empty(kind) })
}

/// A value as Go's `%#v` prints what its YAML reader made of it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{}:{}", go_quote(key), go_syntax(value)))
                .collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", fields.join(", "))
        }
        other => json::to_string(other),
    }
}

/// How a number that is not finite is written as a key.
fn infinite_key(value: &Value) -> &'static str {
    match value.as_str().unwrap_or_default() {
        text if text.to_ascii_lowercase().ends_with("nan") => ".nan",
        text if text.starts_with('-') => "-.inf",
        _ => ".inf",
    }
}

/// Bytes as base64. What is no Unicode in them does not survive JSON.
fn binary(text: &str) -> Result<Node, DecodeError> {
    let compact: String = text.split_ascii_whitespace().collect();
    let bytes = base64::prelude::BASE64_STANDARD.decode(compact).map_err(|_| {
        DecodeError::Meaning("!!binary value contains invalid base64 data".to_owned())
    })?;
    let value = Value::from(String::from_utf8_lossy(&bytes).into_owned());
    Ok(Node { value, bytes: 1 + text.len(), ..Node::empty(Kind::Text) })
}

/// The fields that a merge brings, in the order in which they are set.
fn merged(value: Node) -> Result<Vec<(String, Value)>, DecodeError> {
    let refuse = || {
        let problem = "map merge requires map or sequence of maps as the value";
        DecodeError::Meaning(problem.to_owned())
    };
    match value.value {
        Value::Object(fields) => Ok(fields.into_iter().collect()),
        Value::Array(items) => {
            let mut all = Vec::new();
            // Backwards, because the first of them has the last word.
            for item in items.into_iter().rev() {
                let Value::Object(fields) = item else { return Err(refuse()) };
                all.extend(fields);
            }
            Ok(all)
        }
        _ => Err(refuse()),
    }
}

/// How much of a document may come of aliases: nearly all of a small one, little of a large one.
fn aliased_share_max(nodes: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let place = (nodes as f64 - SMALL) / (LARGE - SMALL);
    0.99 - 0.89 * place.clamp(0.0, 1.0)
}
