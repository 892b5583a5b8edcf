//! Paths to fields in rules and selectable fields: `.spec.size`, `.spec['a.b'].c`.

use crate::schema::Structural;

/// A path that was found in a schema.
#[derive(Debug)]
pub(in crate::schema) struct FieldPath<'s> {
    /// As it is printed: `spec.size`, `spec.labels[color]`.
    pub(in crate::schema) text: String,
    /// Its first name.
    pub(super) root: String,
    /// The schema at its end, if anything is known about it.
    pub(super) schema: Option<&'s Structural>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum Brackets {
    Allowed,
    Forbidden,
}

/// Follows `path` through `schema`. The error says why that cannot be done.
pub(in crate::schema) fn resolve<'s>(
    path: &str,
    schema: &'s Structural,
    brackets: Brackets,
) -> Result<FieldPath<'s>, String> {
    const END: &str = "unexpected end of JSON path";
    let mut found = FieldPath { text: String::new(), root: String::new(), schema: Some(schema) };
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        match token {
            "." => found.step(tokens.next().ok_or(END)?)?,
            "[" if brackets == Brackets::Forbidden => {
                return Err("array notation is not allowed".to_owned());
            }
            "[" => {
                let token = tokens.next().ok_or(END)?;
                let inner = token
                    .strip_prefix('\'')
                    .and_then(|token| token.strip_suffix('\''))
                    .ok_or_else(|| format!("expected single quoted string but got {token}"))?;
                let name =
                    unescape(inner).map_err(|error| format!("invalid string literal: {error}"))?;
                found.step(&name)?;
                match tokens.next() {
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err(END.to_owned()),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl FieldPath<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const UNKNOWN: &str = "does not refer to a valid field";
        let schema = self.schema.ok_or(UNKNOWN)?;
        if !schema.properties.is_empty() {
            self.schema = Some(schema.properties.get(name).ok_or(UNKNOWN)?);
            if !self.text.is_empty() {
                self.text.push('.');
            }
            self.text.push_str(name);
        } else if schema.additional_properties.is_some() {
            self.schema = schema.additional_schema();
            self.text.push_str(&format!("[{name}]"));
        } else {
            return Err(UNKNOWN.to_owned());
        }
        if self.root.is_empty() {
            name.clone_into(&mut self.root);
        }
        Ok(())
    }
}

/// Splits at `.`, `[` and `]`, which are tokens themselves, except within single quotes.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = rest.as_bytes();
                (1..bytes.len())
                    .find(|&index| bytes[index] == b'\'' && bytes[index - 1] != b'\\')
                    .map_or(rest.len(), |index| index + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match characters.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0C',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0B',
            Some(c @ ('\'' | '\\')) => c,
            Some(other) => return Err(format!("invalid escape char \\{other}")),
            None => '\\',
        });
    }
    Ok(out)
}
