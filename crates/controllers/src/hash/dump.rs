//! A pod template as Go's `spew` prints it, types and all.
//!
//! Amounts that Go keeps in more than 64 bits are printed as if they fitted; nobody has asked for a
//! pod of that size.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;

const TEMPLATE: &str = "v1.PodTemplateSpec";
/// How many decimal digits Go is sure to keep in 64 bits.
const DIGITS_MAX: usize = 18;

/// Go's types by the names that it prints.
static TABLE: LazyLock<HashMap<&'static str, Type>> =
    LazyLock::new(|| read(include_str!("../../data/pod_template.txt")));

enum Type {
    Struct(Vec<Field>),
    /// Another name for something else.
    Named(&'static str),
}

struct Field {
    go: &'static str,
    /// None if its fields are in JSON as if they were the parent's.
    json: Option<&'static str>,
    ty: &'static str,
}

pub(super) fn pod_template(template: &PodTemplateSpec) -> String {
    let value = serde_json::to_value(template).unwrap_or_default();
    let mut out = format!("({TEMPLATE})");
    dump(&mut out, TEMPLATE, &value);
    out
}

fn read(table: &'static str) -> HashMap<&'static str, Type> {
    let mut types = HashMap::new();
    let mut current = "";
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix('\t') {
            let mut words = field.split(' ');
            let (Some(go), Some(json), Some(ty)) = (words.next(), words.next(), words.next())
            else {
                unreachable!("a field has three words")
            };
            let json = (json != "-").then_some(json);
            if let Some(Type::Struct(fields)) = types.get_mut(current) {
                fields.push(Field { go, json, ty });
            }
        } else if let Some((name, other)) = line.split_once(" = ") {
            types.insert(name, Type::Named(other));
        } else {
            types.insert(line, Type::Struct(Vec::new()));
            current = line;
        }
    }
    types
}

/// Writes a value without its type. What is empty is nothing, as it is once it was sent.
fn dump(out: &mut String, ty: &'static str, value: &Value) {
    if let Some(pointed) = ty.strip_prefix('*') {
        return match value {
            Value::Null => out.push_str("<nil>"),
            value => dump(out, pointed, value),
        };
    }
    if let Some(element) = ty.strip_prefix("[]") {
        return match value.as_array().filter(|items| !items.is_empty()) {
            None => out.push_str("<nil>"),
            Some(items) => {
                let items = items.iter().map(|item| ("", item));
                list(out, "[", items, element);
            }
        };
    }
    if let Some((_, element)) = ty.strip_prefix("map[").and_then(|map| map.split_once(']')) {
        return match value.as_object().filter(|entries| !entries.is_empty()) {
            None => out.push_str("<nil>"),
            Some(entries) => {
                let mut entries: Vec<_> =
                    entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                list(out, "map[", entries.into_iter(), element);
            }
        };
    }
    match ty {
        "string" => out.push_str(value.as_str().unwrap_or_default()),
        "bool" => push(out, value.as_bool().unwrap_or_default()),
        "int32" | "int64" => push(out, value.as_i64().unwrap_or_default()),
        "v1.Time" => {
            out.push_str(
                "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}",
            );
        }
        "intstr.IntOrString" => {
            let (kind, number) = (u8::from(value.is_string()), value.as_i64().unwrap_or_default());
            let text = value.as_str().unwrap_or_default();
            let _ = write!(
                out,
                "{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"
            );
        }
        "resource.Quantity" => quantity(out, value.as_str().unwrap_or("0")),
        ty => match TABLE.get(ty) {
            Some(Type::Named(other)) => dump(out, other, value),
            Some(Type::Struct(fields)) => structure(out, fields, value),
            None => out.push_str("<nil>"),
        },
    }
}

fn list<'v>(
    out: &mut String,
    open: &str,
    items: impl Iterator<Item = (&'v str, &'v Value)>,
    element: &'static str,
) {
    out.push_str(open);
    for (position, (key, item)) in items.enumerate() {
        if position > 0 {
            out.push(' ');
        }
        if open == "map[" {
            out.push_str(key);
            out.push(':');
        }
        dump(out, element, item);
    }
    out.push(']');
}

fn structure(out: &mut String, fields: &[Field], value: &Value) {
    out.push('{');
    for (position, field) in fields.iter().enumerate() {
        if position > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{}:({})", field.go, field.ty);
        let inner = match field.json {
            Some(json) => value.get(json).unwrap_or(&Value::Null),
            None => value,
        };
        dump(out, field.ty, inner);
    }
    out.push('}');
}

/// An amount as Go keeps it once it has read it: a number, a power of ten, and the text itself if
/// that is how it would be written again.
fn quantity(out: &mut String, text: &str) {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
    let (number, suffix) = text.split_at(digits_end.unwrap_or(text.len()));
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let shifted = format!("{whole}{fraction}");
    let value: i64 = match shifted.len() <= DIGITS_MAX {
        true => shifted.parse().unwrap_or_default(),
        false => 0,
    };
    let places = i64::try_from(fraction.len()).unwrap_or_default();
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
    let (value, scale, format, is_canonical) = match binary {
        Some(power) => {
            let amount = value.saturating_mul(1_i64 << (10 * (power + 1)));
            (amount, 0, "BinarySI", value & 7 != 0)
        }
        None => {
            let (exponent, format) = decimal(suffix);
            let scale = exponent - places;
            let is_canonical =
                scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0');
            (value, scale, format, is_canonical)
        }
    };
    let (value, kept) = (sign * value, if is_canonical || text == "0" { text } else { "" });
    let _ = write!(
        out,
        "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} \
         d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){kept} \
         Format:(resource.Format){format}}}"
    );
}

/// The power of ten that a suffix stands for, and which way of writing it is.
fn decimal(suffix: &str) -> (i64, &'static str) {
    let exponent = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        suffix => return (suffix[1..].parse().unwrap_or_default(), "DecimalExponent"),
    };
    (exponent, "DecimalSI")
}

fn push(out: &mut String, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}");
}
