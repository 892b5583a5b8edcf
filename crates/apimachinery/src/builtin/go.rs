//! How Go names types and places in its errors.

use std::fmt;

use super::table::TABLE;
use super::{Field, Ty, Type};

/// Where a value stands, as Go tells it: the struct that is nearest, and the names on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the nearest struct; empty for a value that is in none.
    pub in_struct: String,
    /// Names in JSON, and the Go names of inlined structs, joined by dots. Positions in lists and
    /// keys of maps are not told.
    pub path: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_struct.as_str() {
            "" => f.write_str("value"),
            in_struct => write!(f, "struct field {in_struct}.{}", self.path),
        }
    }
}

impl Place {
    /// The place of something whose place is told from within this one.
    pub(super) fn around(self, inner: &Place) -> Place {
        match inner.path.as_str() {
            "" => self,
            path => Place { path: format!("{}.{path}", self.path), ..self },
        }
    }
}

/// A step from a struct to one of its members.
pub(super) struct Frame<'a> {
    pub(super) outer: Option<&'a Frame<'a>>,
    pub(super) ty: &'static Type,
    pub(super) member: usize,
}

impl Frame<'_> {
    pub(super) fn place(&self) -> Place {
        let mut names = Vec::new();
        let mut frame = Some(self);
        while let Some(step) = frame {
            let mut way = Vec::new();
            names_to(step.ty, step.member, &mut way);
            names.extend(way.into_iter().rev());
            frame = step.outer;
        }
        names.reverse();
        Place { in_struct: self.ty.short_name().to_owned(), path: names.join(".") }
    }
}

/// The names from a struct to a member of its JSON. An inlined struct is named after its type.
fn names_to(ty: &'static Type, member: usize, names: &mut Vec<&'static str>) {
    let starts_before = |field: &&Field| field.member as usize <= member;
    let field = ty.fields.iter().take_while(starts_before).last();
    match field.expect("a member belongs to a field") {
        Field { inline: true, ty: Ty::Struct(inner), member: start, .. } => {
            names.push(inner.get().short_name());
            names_to(inner.get(), member - *start as usize, names);
        }
        field => names.push(field.json),
    }
}

/// The Go type of the elements of a list or map.
pub(super) fn element(go: &'static str) -> &'static str {
    if let Some(element) = go.strip_prefix("[]") {
        return element;
    }
    match go.strip_prefix("map[").and_then(|map| map.split_once(']')) {
        Some((_, element)) => element,
        None => element(TABLE.alias(go).expect("a type that is not built from others has a name")),
    }
}

/// A Go type as errors show it: packages by their last names.
pub(super) fn display(go: &str) -> String {
    if let Some(element) = go.strip_prefix("[]") {
        return format!("[]{}", display(element));
    }
    if let Some((key, element)) = go.strip_prefix("map[").and_then(|map| map.split_once(']')) {
        return format!("map[{}]{}", display(key), display(element));
    }
    match go.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None if go == "any" => "interface {}".to_owned(),
        None => go.to_owned(),
    }
}
