//! Names of Rust for names of JSON: fields, variants and types, none of them twice.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span};

/// Words that cannot be names, and those that cannot even be raw.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];
const NEVER: &[&str] = &["crate", "self", "super", "Self", "_", ""];

/// `podIPs` is `pod_ips`, `HTTPRoute` is `http_route`, `x-y.z` is `x_y_z`.
pub(super) fn snake(name: &str) -> String {
    words(name).join("_")
}

/// `podIPs` is `PodIps`, `http-route` is `HttpRoute`.
pub(super) fn pascal(name: &str) -> String {
    let capital = |word: String| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    words(name).into_iter().map(capital).collect()
}

/// The words of a name, in lower case: split where a word begins, an abbreviation ends, or
/// something is neither letter nor digit.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let (mut words, mut word) = (Vec::new(), String::new());
    for (at, &letter) in letters.iter().enumerate() {
        // `·` continues an identifier, but begins none; letters and digits do either.
        if !letter.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + 1).copied();
        let begins = letter.is_uppercase()
            && (before.is_some_and(|it| it.is_lowercase() || it.is_numeric())
                || before.is_some_and(char::is_uppercase)
                    && after.is_some_and(char::is_lowercase)
                    && !is_plural(&letters, at));
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(letter.to_lowercase());
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Whether the letter ends an abbreviation in the plural: the P of `podIPs` and of `podIPsFrom`.
fn is_plural(letters: &[char], at: usize) -> bool {
    letters.get(at + 1) == Some(&'s') && letters.get(at + 2).is_none_or(|it| !it.is_lowercase())
}

/// What serde makes of a field with `rename_all = "camelCase"`.
pub(super) fn camel(field: &str) -> String {
    let (mut name, mut is_next_large) = (String::new(), false);
    for letter in field.chars() {
        match letter {
            '_' => is_next_large = true,
            letter if is_next_large && !name.is_empty() => {
                name.extend(letter.to_uppercase());
                is_next_large = false;
            }
            letter => {
                name.push(letter);
                is_next_large = false;
            }
        }
    }
    name
}

/// Names that are taken in one place.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeSet<String>);

impl Taken {
    pub(super) fn with(names: &[&str]) -> Self {
        Taken(names.iter().map(|&name| name.to_owned()).collect())
    }

    /// A field for this property.
    pub(super) fn field(&mut self, name: &str) -> String {
        self.free(&fitting(snake(name), "field_"), "_")
    }

    /// A variant for this value.
    pub(super) fn variant(&mut self, value: &str) -> String {
        let signs = value.chars().all(|letter| !letter.is_alphanumeric());
        let name = match value {
            "" => "Empty".to_owned(),
            "*" => "Any".to_owned(),
            "=" | "==" => "Equal".to_owned(),
            "!=" => "NotEqual".to_owned(),
            "<" => "Less".to_owned(),
            ">" => "Greater".to_owned(),
            "=~" => "Match".to_owned(),
            "!~" => "NotMatch".to_owned(),
            _ if signs => "Sign".to_owned(),
            _ => pascal(value),
        };
        let name = fitting(name, "Value");
        // Names of types have no underscore but between digits.
        let ends_in_digit = name.ends_with(|last: char| last.is_ascii_digit());
        self.free(&name, if ends_in_digit { "_" } else { "" })
    }

    fn free(&mut self, name: &str, before_number: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}{before_number}{number}"));
        let names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.into_iter().find(|name| !self.0.contains(name)).expect("numbers go on");
        self.0.insert(free.clone());
        free
    }
}

/// With something in front where Rust wants a letter.
fn fitting(name: String, front: &str) -> String {
    match name.chars().next() {
        Some(first) if first.is_alphabetic() => name,
        _ => format!("{front}{name}"),
    }
}

/// The name as a token, raw if it is a word of the language.
pub(super) fn ident(name: &str) -> Ident {
    if NEVER.contains(&name) {
        return Ident::new(&format!("{name}_"), Span::call_site());
    }
    match KEYWORDS.contains(&name) {
        true => Ident::new_raw(name, Span::call_site()),
        false => Ident::new(name, Span::call_site()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_where_people_split_them() {
        for (name, expected) in [
            ("replicas", "replicas"),
            ("podIPs", "pod_ips"),
            ("podIPsFrom", "pod_ips_from"),
            ("clusterIP", "cluster_ip"),
            ("HTTPRoute", "http_route"),
            ("externalURLs", "external_urls"),
            ("iSCSI", "i_scsi"),
            ("x-kubernetes.io/name", "x_kubernetes_io_name"),
            ("$ref", "ref"),
            ("maxRetries2", "max_retries2"),
            ("größe", "größe"),
            ("_", ""),
        ] {
            assert_eq!(snake(name), expected, "{name}");
        }
        assert_eq!(pascal("RollingUpdate"), "RollingUpdate");
        assert_eq!(pascal("in-progress"), "InProgress");
    }

    #[test]
    fn what_serde_makes_of_a_field_is_known() {
        for (field, expected) in
            [("pod_ips", "podIps"), ("a_b_c", "aBC"), ("replicas", "replicas"), ("n_2", "n2")]
        {
            assert_eq!(camel(field), expected);
        }
    }

    #[test]
    fn no_name_is_given_twice_and_all_are_names() {
        let mut taken = Taken::default();
        let fields = ["fooBar", "foo_bar", "type", "self", "2nd", "-", "$"];
        let fields = fields.map(|name| ident(&taken.field(name)).to_string());
        assert_eq!(
            fields,
            ["foo_bar", "foo_bar_2", "r#type", "self_", "field_2nd", "field_", "field__2"]
        );
        let mut taken = Taken::default();
        let values = ["", "*", "A", "a", "10.0", "100", "self", "=~"];
        let values = values.map(|value| ident(&taken.variant(value)).to_string());
        assert_eq!(values, ["Empty", "Any", "A", "A2", "Value100", "Value100_2", "Self_", "Match"]);
    }
}
