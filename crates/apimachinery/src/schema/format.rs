//! Formats of strings: what `format: date-time` and its like accept.
//!
//! The list and the verdicts are those of the validator that upstream uses for custom resources,
//! with its peculiarities: `ipv4` takes leading zeros, `byte` refuses the empty string, `duration`
//! takes `3 weeks`. A format that is not in the list is no restriction.

mod address;
mod email;
pub(super) mod moment;
mod number;
pub(super) mod uri;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::Type;
use crate::regex::Regex;

/// The value of `format`, and what it means for strings.
#[derive(Debug, Clone)]
pub struct Format {
    pub name: Box<str>,
    accepts: Option<fn(&str) -> bool>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Format {
    pub fn new(name: &str) -> Self {
        // Dashes do not count: `date-time` is `datetime`.
        Format { name: name.into(), accepts: check(&name.replace('-', "")) }
    }

    /// Whether the string has this format; true for formats nobody knows.
    pub fn accepts(&self, text: &str) -> bool {
        self.accepts.is_none_or(|accepts| accepts(text))
    }

    /// Whether it says anything about values of this type. When it does not, it is ignored and a
    /// definition that has it gets a warning.
    pub fn is_recognized(&self, type_: Option<&Type>) -> bool {
        match type_ {
            None | Some(Type::String) => self.accepts.is_some(),
            Some(Type::Integer) => matches!(&*self.name, "int32" | "int64"),
            Some(Type::Number) => matches!(&*self.name, "float" | "double"),
            _ => false,
        }
    }
}

fn check(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => |text| uri::Uri::parse_request(text).is_ok(),
        "email" => email::is_address,
        "hostname" => is_hostname,
        "ipv4" => address::is_ipv4,
        "ipv6" => address::is_ipv6,
        "cidr" => address::is_cidr,
        "mac" => address::is_mac,
        "uuid" => |text| is_uuid(text, None, false),
        "uuid3" => |text| is_uuid(text, Some(b'3'), false),
        "uuid4" => |text| is_uuid(text, Some(b'4'), true),
        "uuid5" => |text| is_uuid(text, Some(b'5'), true),
        "isbn" => |text| number::is_isbn10(text) || number::is_isbn13(text),
        "isbn10" => number::is_isbn10,
        "isbn13" => number::is_isbn13,
        "creditcard" => number::is_credit_card,
        "ssn" => number::is_social_security,
        "hexcolor" => is_hex_color,
        "rgbcolor" => is_rgb_color,
        "byte" => is_base64,
        "password" => |_| true,
        "date" => moment::is_date,
        "duration" => moment::is_duration,
        "datetime" => moment::is_date_time,
        "k8sshortname" => is_short_name,
        "k8slongname" => is_long_name,
        _ => return None,
    })
}

/// A pattern of ours, in Go's syntax; it is known to compile.
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant that compiles")
}

fn is_hostname(text: &str) -> bool {
    static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)",
            r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}",
            r"([a-zA-Z\p{L}]){2,63})$",
        ))
    });
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

/// Groups of 8-4-4-4-12 hexadecimal digits; each dash may be missing.
fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text.as_bytes();
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((digits, after)) = rest.split_at_checked(length) else { return false };
        let first = digits[0].to_ascii_lowercase();
        let wrong = !digits.iter().all(u8::is_ascii_hexdigit)
            || group == 2 && version.is_some_and(|version| first != version)
            || group == 3 && variant && !matches!(first, b'8' | b'9' | b'a' | b'b');
        if wrong {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    static RGB: LazyLock<Regex> = LazyLock::new(|| {
        let part = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
        pattern(&format!(r"^rgb\({part},{part},{part}\)$"))
    });
    RGB.is_match(text)
}

fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    !digits.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_name_segment(text)
}

fn is_long_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_name_segment)
}

fn is_name_segment(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}
