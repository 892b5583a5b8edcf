//! Reads `data/types.txt`.
//!
//! One line per kind, named type and field. The lines of a struct's fields follow it, in Go's order:
//! name, number in protobuf, Go type and facts, separated by tabs. The file is ours, so a line that
//! cannot be read is a bug.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, OnceLock};

use super::{Field, Kind, Patch, SchemaOr, Topology, Ty, Type, TypeId};

pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::parse(include_str!("../../data/types.txt")));

/// The kind of this name. Kinds of `meta/v1` that travel in every version (options, `Status`,
/// `WatchEvent`) are found in each that has kinds of its own.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    let table = &*TABLE;
    let found = table.index.get(&(group, version, kind)).or_else(|| {
        let everywhere = table.index.get(&("", "v1", kind))?;
        let ty = table.kinds[*everywhere].ty();
        let travels = ty.name.starts_with(META) && table.versions.contains(&(group, version));
        travels.then_some(everywhere)
    })?;
    Some(&table.kinds[*found])
}

/// Every kind, in the order of group, version and name.
pub fn kinds() -> &'static [Kind] {
    &TABLE.kinds
}

/// The struct of this package and name, as in `k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta`.
pub fn type_named(name: &str) -> Option<&'static Type> {
    match TABLE.names.get(name)? {
        Named::Struct(id) => Some(id.get()),
        Named::Alias(_) => None,
    }
}

const META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.";

#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    index: HashMap<(&'static str, &'static str, &'static str), usize>,
    /// The groups and versions of all kinds.
    versions: HashSet<(&'static str, &'static str)>,
    names: HashMap<&'static str, Named>,
}

/// What a name in the file stands for.
#[derive(Debug)]
enum Named {
    Struct(TypeId),
    /// Another Go type, as in `type PodPhase string`.
    Alias(&'static str),
}

/// A struct, whose fields are read when somebody asks for them: most servers never see most kinds.
#[derive(Debug)]
struct Row {
    name: &'static str,
    atomic: bool,
    /// The lines of its fields.
    lines: &'static str,
    read: OnceLock<Type>,
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let mut names = HashMap::new();
        let mut rows = Vec::new();
        let mut kind_lines = Vec::new();
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            if let Some(line) = line.strip_prefix("kind ") {
                kind_lines.push(line);
            } else if let Some(declaration) = line.strip_prefix("type ") {
                let (name, of) = declaration.split_once(' ').expect("a type has a name");
                let Some(facts) = of.strip_prefix("struct") else {
                    names.insert(name, Named::Alias(of));
                    continue;
                };
                let lines;
                (lines, rest) = after.split_at(fields_end(after));
                names.insert(name, Named::Struct(TypeId(rows.len() as u32)));
                let (atomic, read) = (facts == " atomic", OnceLock::new());
                rows.push(Row { name, atomic, lines, read });
            }
        }
        let kinds: Vec<Kind> = kind_lines.iter().map(|line| parse_kind(line, &names)).collect();
        let name = |kind: &Kind| (kind.group, kind.version, kind.kind);
        let index = kinds.iter().enumerate().map(|(at, kind)| (name(kind), at)).collect();
        let versions = kinds.iter().map(|kind| (kind.group, kind.version)).collect();
        Self { rows, kinds, index, versions, names }
    }

    /// The struct of this number.
    pub(super) fn get(&'static self, TypeId(number): TypeId) -> &'static Type {
        let row = &self.rows[number as usize];
        row.read.get_or_init(|| row.parse(&self.names))
    }

    /// What a named Go type that is no struct stands for.
    pub(super) fn alias(&self, name: &str) -> Option<&'static str> {
        match self.names.get(name)? {
            Named::Alias(of) => Some(of),
            Named::Struct(_) => None,
        }
    }
}

/// Where the lines of fields end that a text begins with.
fn fields_end(text: &str) -> usize {
    let is_field = |line: &&str| line.starts_with('\t');
    text.split_inclusive('\n').take_while(is_field).map(str::len).sum()
}

impl Row {
    fn parse(&self, names: &HashMap<&'static str, Named>) -> Type {
        let mut fields: Vec<Field> =
            self.lines.lines().map(|line| parse_field(&line[1..], names)).collect();
        let mut member = 0;
        for field in &mut fields {
            field.member = member;
            member += field.inlined().map_or(1, |inner| inner.members.len() as u32);
        }
        // The table lives as long as the program.
        let fields: &'static [Field] = fields.leak();
        let mut members = Vec::with_capacity(member as usize);
        for field in fields {
            match field.inlined() {
                Some(inner) => members.extend(&*inner.members),
                None => members.push(field),
            }
        }
        let mut by_name: Box<[(&str, u32)]> =
            members.iter().enumerate().map(|(at, field)| (field.json, at as u32)).collect();
        by_name.sort_unstable_by_key(|(name, _)| (name.len(), *name));
        let mut by_number: Box<[(u32, u32)]> = fields
            .iter()
            .enumerate()
            .filter_map(|(at, field)| Some((field.proto?, at as u32)))
            .collect();
        by_number.sort_unstable();
        Type {
            name: self.name,
            fields,
            atomic: self.atomic,
            members: members.into(),
            by_name,
            by_number,
        }
    }
}

fn parse_kind(line: &'static str, names: &HashMap<&'static str, Named>) -> Kind {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("a kind is a version, a name and a type");
    let (group, version) = split_api_version(word());
    let kind = word();
    match names[word()] {
        Named::Struct(ty) => Kind { group, version, kind, ty },
        Named::Alias(_) => panic!("kind {kind} is not a struct"),
    }
}

pub(super) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn parse_field(line: &'static str, names: &HashMap<&'static str, Named>) -> Field {
    let mut columns = line.split('\t');
    let mut column = || columns.next().expect("a field is a name, a number and a type");
    let (json, number, go) = (column(), column(), column());
    let inline = json == "-";
    let mut field = Field {
        json: if inline { "" } else { json },
        proto: number.parse().ok(),
        ty: parse_ty(go.strip_prefix('*').unwrap_or(go), names),
        go,
        pointer: go.starts_with('*'),
        omitempty: false,
        omitzero: false,
        inline,
        wrapped: false,
        required: false,
        patch: Patch::default(),
        topology: Topology::Unmarked,
        enum_values: Vec::new(),
        default: None,
        member: 0,
    };
    for fact in columns {
        let (name, value) = fact.split_once('=').unwrap_or((fact, ""));
        match name {
            "omitempty" => field.omitempty = true,
            "omitzero" => field.omitzero = true,
            "wrapped" => field.wrapped = true,
            "required" => field.required = true,
            "patch" => parse_strategies(&mut field.patch, value),
            "key" => field.patch.merge_key = Some(value),
            "list" | "map" => field.topology = parse_topology(value),
            "keys" => field.topology = Topology::Map(value.split(',').collect()),
            "enum" => field.enum_values = value.split(',').collect(),
            "default" => {
                field.default = Some(serde_json::from_str(value).expect("defaults are JSON"));
            }
            _ => panic!("unknown fact {fact}"),
        }
    }
    field
}

fn parse_strategies(patch: &mut Patch, strategies: &str) {
    for strategy in strategies.split(',') {
        match strategy {
            "merge" => patch.merge = true,
            "replace" => patch.replace = true,
            "retainKeys" => patch.retain_keys = true,
            _ => panic!("unknown patch strategy {strategy}"),
        }
    }
}

fn parse_topology(marker: &str) -> Topology {
    match marker {
        "atomic" => Topology::Atomic,
        "granular" => Topology::Granular,
        "set" => Topology::Set,
        // Its keys are the next fact of the line.
        "map" => Topology::Map(Vec::new()),
        _ => panic!("unknown list or map type {marker}"),
    }
}

fn parse_ty(go: &'static str, names: &HashMap<&'static str, Named>) -> Ty {
    if go == "[]uint8" {
        return Ty::Bytes;
    }
    if let Some(element) = go.strip_prefix("[]") {
        return Ty::List(Box::new(parse_ty(element, names)));
    }
    if let Some((_, element)) = go.strip_prefix("map[").and_then(|map| map.split_once(']')) {
        return Ty::Map(Box::new(parse_ty(element, names)));
    }
    if let Some(named) = names.get(go) {
        return match named {
            Named::Struct(id) => Ty::Struct(*id),
            Named::Alias(of) => parse_ty(of, names),
        };
    }
    match go {
        "bool" => Ty::Bool,
        "int32" => Ty::Int32,
        "int64" => Ty::Int64,
        "float64" => Ty::Float64,
        "string" => Ty::String,
        "any" => Ty::Json,
        _ => parse_special(go, names),
    }
}

/// The types whose JSON is not what their Go fields say.
fn parse_special(go: &'static str, names: &HashMap<&'static str, Named>) -> Ty {
    let (package, name) = go.rsplit_once('.').expect("special types have packages");
    let or = |or: SchemaOr| {
        let schema = format!("{package}.JSONSchemaProps");
        match names[schema.as_str()] {
            Named::Struct(id) => Ty::SchemaOr(or, id),
            Named::Alias(_) => panic!("{schema} is not a struct"),
        }
    };
    match name {
        "Time" => Ty::Time,
        "MicroTime" => Ty::MicroTime,
        "Duration" => Ty::Duration,
        "Quantity" => Ty::Quantity,
        "IntOrString" => Ty::IntOrString,
        "RawExtension" => Ty::RawExtension,
        "FieldsV1" => Ty::FieldsV1,
        "JSON" => Ty::Json,
        "JSONSchemaPropsOrArray" => or(SchemaOr::Schemas),
        "JSONSchemaPropsOrBool" => or(SchemaOr::Bool),
        "JSONSchemaPropsOrStringArray" => or(SchemaOr::Strings),
        _ => panic!("unknown type {go}"),
    }
}
