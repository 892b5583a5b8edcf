//! What things may be called: names, label keys and values, ports, variables, keys.
//!
//! Each check gives everything that is wrong with a text, in upstream's words, or nothing. Where
//! upstream counts the same limit once in "characters" and once in "bytes", both are bytes, and
//! the words differ here as they do there.

pub mod object_meta;

use crate::field::{Error, Path};

/// The longest DNS label.
pub const LABEL_BYTES_MAX: usize = 63;
/// The longest DNS subdomain, and so the longest name of most objects.
pub const SUBDOMAIN_BYTES_MAX: usize = 253;

/// How a kind of object wants its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The rule of most kinds, and of every custom resource.
    Subdomain,
    /// Namespaces, for instance.
    Label,
    /// A label that starts with a letter.
    Label1035,
    /// Anything that can be one segment of a path: roles, for instance.
    PathSegment,
}

impl Rule {
    /// What is wrong with a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Rule::Subdomain => dns1123_subdomain(name),
            Rule::Label => dns1123_label(name),
            Rule::Label1035 => dns1035_label(name),
            Rule::PathSegment => path_segment(name),
        }
    }

    /// What is wrong with a `generateName`: more is going to be appended, so it may end in a
    /// dash.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        if self == Rule::PathSegment {
            return path_segment_prefix(prefix);
        }
        match prefix.strip_suffix('-') {
            // Upstream puts a letter in the place of the dash and of the character before it.
            Some(stem) if !stem.is_empty() && stem.is_ascii() => {
                self.check(&format!("{}a", &stem[..stem.len() - 1]))
            }
            _ => self.check(prefix),
        }
    }
}

/// The letters and digits that names are made up from; no vowels, so no words.
pub const GENERATED_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many of them follow a `generateName`.
pub const GENERATED_SUFFIX_LENGTH: usize = 5;

/// The name that comes of a `generateName` and a suffix chosen at random: the base is cut so that
/// the whole is a DNS label.
pub fn generate(base: &str, suffix: &str) -> String {
    let end = base.floor_char_boundary(LABEL_BYTES_MAX - GENERATED_SUFFIX_LENGTH);
    format!("{}{suffix}", &base[..end])
}

const LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORMAT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// A lower-case DNS label, which may start with a digit.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, LABEL_BYTES_MAX);
    if !is_label(value) {
        errors.push(match is_subdomain(value) {
            true => "must not contain dots".to_owned(),
            false => format_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character",
                LABEL_FORMAT,
                &["my-name", "123-abc"],
            ),
        });
    }
    errors
}

/// Lower-case DNS labels between dots.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = too_long(value, SUBDOMAIN_BYTES_MAX);
    errors.extend(subdomain_format(value));
    errors
}

fn subdomain_format(value: &str) -> Option<String> {
    (!is_subdomain(value)).then(|| {
        format_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_FORMAT,
            &["example.com"],
        )
    })
}

/// A subdomain whose labels may hold underscores, and start with one.
pub fn dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let is_underscored = |label: &str| {
        let rest = label.strip_prefix('_').unwrap_or(label);
        is_enclosed(rest, is_lower_alphanumeric, |c| is_lower_alphanumeric(c) || b"-_".contains(&c))
    };
    let mut errors = too_long(value, SUBDOMAIN_BYTES_MAX);
    if !value.split('.').all(is_underscored) {
        errors.push(format_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    errors
}

/// A lower-case DNS label that starts with a letter.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut errors = too_long(value, LABEL_BYTES_MAX);
    if !is_label(value) || !value.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(format_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// `*.` and a subdomain.
pub fn wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = too_long(value, SUBDOMAIN_BYTES_MAX);
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        errors.push(format_error(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
             end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN_FORMAT}"),
            &["*.example.com"],
        ));
    }
    errors
}

/// A qualified name, as the key of a label: `app`, `example.com/app`.
pub fn label_key(value: &str) -> Vec<String> {
    const FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                         and end with an alphanumeric character";
    let format = || format_error(WORDS, FORMAT, &["MyName", "my.name", "123-abc"]);

    let mut errors = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let length = too_long_in_bytes(prefix, SUBDOMAIN_BYTES_MAX);
                let problems = length.into_iter().chain(subdomain_format(prefix));
                errors.extend(problems.map(|problem| format!("prefix part {problem}")));
            }
            name
        }
        _ => {
            let format = format();
            return vec![format!(
                "a valid label key {format} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    }
    errors.extend(
        too_long_in_bytes(name, LABEL_BYTES_MAX).map(|problem| format!("name part {problem}")),
    );
    if !is_label_text(name) {
        errors.push(format!("name part {}", format()));
    }
    errors
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors: Vec<_> = too_long_in_bytes(value, LABEL_BYTES_MAX).into_iter().collect();
    if !value.is_empty() && !is_label_text(value) {
        errors.push(format_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// A name that can be one segment of a path. It may be empty, and as long as it likes.
pub fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => path_segment_prefix(name),
    }
}

/// The beginning of a [`path_segment`].
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    let banned = ["/", "%"].into_iter().filter(|text| name.contains(text));
    banned.map(|text| format!("may not contain '{text}'")).collect()
}

/// The name of a port, as the registry of service names has them.
pub fn port_name(port: &str) -> Vec<String> {
    let mut errors = too_long(port, 15);
    if port.is_empty() || !port.bytes().all(|c| is_lower_alphanumeric(c) || c == b'-') {
        errors.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !port.bytes().any(|c| c.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if port.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if port.starts_with('-') || port.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// The number of a port.
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number between two bounds, both included.
pub fn in_range(value: i64, min: i64, max: i64) -> Vec<String> {
    match (min..=max).contains(&value) {
        true => Vec::new(),
        false => vec![format!("must be between {min} and {max}, inclusive")],
    }
}

/// The name of an environment variable, as it was before any printable ASCII was let in.
pub fn env_var_name(value: &str) -> Vec<String> {
    let is_part = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    let mut errors = Vec::new();
    let starts_ill = value.bytes().next().is_none_or(|c| c.is_ascii_digit());
    if starts_ill || !value.bytes().all(is_part) {
        errors.push(format_error(
            "a valid environment variable name must consist of alphabetic characters, digits, \
             '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    errors.extend(directory_change(value));
    errors
}

/// The name of an environment variable.
pub fn relaxed_env_var_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.is_empty() {
        errors.push("environment variable name must be non-empty".to_owned());
    }
    if !value.bytes().all(|c| (b' '..=b'~').contains(&c) && c != b'=') {
        errors.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    errors
}

/// A key of a config map or of a secret: it becomes the name of a file.
pub fn config_map_key(value: &str) -> Vec<String> {
    let is_part = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    let mut errors = too_long(value, SUBDOMAIN_BYTES_MAX);
    if value.is_empty() || !value.bytes().all(is_part) {
        errors.push(format_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    errors.extend(directory_change(value));
    errors
}

/// An identifier of the C language.
pub fn c_identifier(value: &str) -> Vec<String> {
    let is_part = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    let starts_well = value.bytes().next().is_some_and(|c| is_part(c) && !c.is_ascii_digit());
    if starts_well && value.bytes().all(is_part) {
        return Vec::new();
    }
    vec![format_error(
        "a valid C identifier must start with alphabetic character or '_', followed by a string \
         of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The name of an HTTP header.
pub fn http_header_name(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-') {
        return Vec::new();
    }
    vec![format_error(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// Digits and a percent sign.
pub fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) {
        return Vec::new();
    }
    vec![format_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// A domain of at least three labels, as the names of signers and the like have.
pub fn fully_qualified(path: &Path<'_>, name: &str) -> Vec<Error> {
    if name.is_empty() {
        return vec![Error::required(path, "")];
    }
    let problems = dns1123_subdomain(name);
    if !problems.is_empty() {
        return vec![Error::invalid(path, name, problems.join(","))];
    }
    match name.split('.').count() {
        0..3 => vec![Error::invalid(
            path,
            name,
            "should be a domain with at least three segments separated by dots",
        )],
        _ => Vec::new(),
    }
}

/// `acme.io/foo`: a domain, a slash and a path.
pub fn domain_prefixed_path(path: &Path<'_>, value: &str) -> Vec<Error> {
    if value.is_empty() {
        return vec![Error::required(path, "")];
    }
    let Some((host, rest)) =
        value.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        return vec![Error::invalid(
            path,
            value,
            "must be a domain-prefixed path (such as \"acme.io/foo\")",
        )];
    };
    let mut errors: Vec<_> = dns1123_subdomain(host)
        .into_iter()
        .map(|problem| Error::invalid(path, host, problem))
        .collect();
    let is_part = |c: u8| c.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&c);
    if !rest.bytes().all(is_part) {
        let problem = format_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push(Error::invalid(path, rest, problem));
    }
    errors
}

/// A text, the pattern it breaks, and texts that would do.
pub(crate) fn format_error(words: &str, format: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{words} (regex used for validation is '{format}')");
    }
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{format}')", examples.join(" or "))
}

fn too_long(value: &str, bytes_max: usize) -> Vec<String> {
    match value.len() > bytes_max {
        true => vec![format!("must be no more than {bytes_max} characters")],
        false => Vec::new(),
    }
}

fn too_long_in_bytes(value: &str, bytes_max: usize) -> Option<String> {
    (value.len() > bytes_max).then(|| format!("must be no more than {bytes_max} bytes"))
}

/// A file of this name would be somewhere else.
fn directory_change(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn is_lower_alphanumeric(c: u8) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_label(value: &str) -> bool {
    is_enclosed(value, is_lower_alphanumeric, |c| is_lower_alphanumeric(c) || c == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_label_text(value: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    is_enclosed(value, |c| c.is_ascii_alphanumeric(), is_inner)
}

/// Whether all is `inner`, and the ends are `end`.
fn is_enclosed(value: &str, end: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => end(first) && end(last) && bytes.iter().all(|&c| inner(c)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
