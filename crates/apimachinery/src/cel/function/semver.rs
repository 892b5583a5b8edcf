//! Versions as `semver.org` has them.

use std::cmp::Ordering;
use std::sync::Arc;

use super::strings::text;
use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Val};
use crate::json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre_release: Vec<Identifier>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    /// Less than any text.
    Number(u64),
    Text(String),
}

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    const S: &str = "kubernetes.Semver";
    table.global("semver", "string_to_semver", &format!("string -> {S}"), Typed(to_semver));
    table.global(
        "semver",
        "string_bool_to_semver",
        &format!("string, bool -> {S}"),
        Typed(to_semver),
    );
    table.global("isSemver", "is_semver_string", "string -> bool", Typed(is_semver));
    table.global("isSemver", "is_semver_string_bool", "string, bool -> bool", Typed(is_semver));
    let mut member = |name: &'static str, id: &'static str, signature: &str, body| {
        table.member(name, id, &signature.replace('S', S), Typed(body));
    };
    member("isGreaterThan", "semver_is_greater_than", "S, S -> bool", |args| {
        Ok(Val::Bool(order(args)?.is_gt()))
    });
    member("isLessThan", "semver_is_less_than", "S, S -> bool", |args| {
        Ok(Val::Bool(order(args)?.is_lt()))
    });
    member("compareTo", "semver_compare_to", "S, S -> int", |args| {
        Ok(Val::Int(order(args)? as i64))
    });
    member("major", "semver_major", "S -> int", |args| number(args, |version| version.major));
    member("minor", "semver_minor", "S -> int", |args| number(args, |version| version.minor));
    member("patch", "semver_patch", "S -> int", |args| number(args, |version| version.patch));
}

impl Version {
    /// Reads a version; the error is worded as the library that upstream uses words it.
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre_release) = match rest.split_once('-') {
            Some((patch, pre_release)) => (patch, Some(pre_release)),
            None => (rest, None),
        };
        let version = Version {
            major: element(major, "Major")?,
            minor: element(minor, "Minor")?,
            patch: element(patch, "Patch")?,
            pre_release: match pre_release {
                Some(text) => text.split('.').map(identifier).collect::<Result<_, _>>()?,
                None => Vec::new(),
            },
        };
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(is_identifier) {
                let quoted = json::go_quote(part);
                return Err(format!("Invalid character(s) found in build meta data {quoted}"));
            }
        }
        Ok(version)
    }

    /// The same, for versions that are written with a `v`, leading zeros, or fewer parts.
    fn parse_tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.len() > 1) {
            let bare = part.trim_start_matches('0');
            *part = match bare.starts_with(|c: char| c.is_ascii_digit()) {
                true => bare.to_owned(),
                false => format!("0{bare}"),
            };
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Version::parse(&parts.join("."))
    }

    pub(in crate::cel) fn compare(&self, other: &Version) -> Ordering {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            // A version without a pre-release comes after those with one.
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (false, false) => self.pre_release.cmp(&other.pre_release),
                (a, b) => a.cmp(&b),
            }
        })
    }
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn element(text: &str, name: &str) -> Result<u64, String> {
    let quoted = json::go_quote(text);
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        let name = name.to_lowercase();
        return Err(format!("Invalid character(s) found in {name} number {quoted}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {quoted}"));
    }
    text.parse().map_err(|_| match text {
        "" => format!("strconv.ParseUint: parsing {quoted}: invalid syntax"),
        _ => format!("strconv.ParseUint: parsing {quoted}: value out of range"),
    })
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    let quoted = json::go_quote(text);
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {quoted}"
            ));
        }
        return text
            .parse()
            .map(Identifier::Number)
            .map_err(|_| format!("strconv.ParseUint: parsing {quoted}: value out of range"));
    }
    match text.bytes().all(is_identifier) {
        true => Ok(Identifier::Text(text.to_owned())),
        false => Err(format!("Invalid character(s) found in prerelease {quoted}")),
    }
}

fn read(args: &[Val<'_>]) -> Result<Result<Version, String>, Failure> {
    let text = text(args, 0)?;
    Ok(match args.get(1) {
        Some(Val::Bool(true)) => Version::parse_tolerant(text),
        _ => Version::parse(text),
    })
}

fn to_semver<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    read(args)?.map(|version| Val::Semver(Arc::new(version))).map_err(Failure::new)
}

fn is_semver<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(read(args)?.is_ok()))
}

fn version<'a>(args: &'a [Val<'_>], at: usize) -> Result<&'a Version, Failure> {
    match args.get(at) {
        Some(Val::Semver(version)) => Ok(version),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn order(args: &[Val<'_>]) -> Result<Ordering, Failure> {
    Ok(version(args, 0)?.compare(version(args, 1)?))
}

fn number<'v>(args: &[Val<'v>], part: fn(&Version) -> u64) -> Outcome<'v> {
    Ok(Val::Int(part(version(args, 0)?) as i64))
}
