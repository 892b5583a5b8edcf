//! The `Accept` header.

/// One of the media types that a client takes, with its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// The value of a parameter; empty when it is not given. The last one counts.
    pub fn parameter(&self, name: &str) -> &'a str {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    /// Whether it asks for nothing but a media type: no other kind of object, no server version.
    pub fn is_plain(&self) -> bool {
        let transforms = |(name, _): &(&str, &str)| matches!(*name, "as" | "g" | "v");
        !self.parameters.iter().any(transforms) && self.is_served()
    }

    /// Whether its stream and server version are ones that documents come in.
    pub fn is_served(&self) -> bool {
        matches!(self.parameter("stream"), "" | "watch") && self.parameter("sv").is_empty()
    }

    /// Whether a media type without parameters is one of those meant.
    pub fn names(&self, media_type: &str) -> bool {
        let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, ""));
        match (self.kind, self.subtype) {
            ("*", "*") => true,
            (own, "*") => own == kind,
            (own, sub) => own == kind && sub == subtype,
        }
    }
}

/// The clauses of a header, best first. What cannot be read is left out.
pub(super) fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(clause).collect();
    clauses.sort_by(|a, b| {
        let rank = |clause: &Clause<'_>| (clause.kind == "*", clause.subtype == "*");
        b.quality.total_cmp(&a.quality).then_with(|| rank(a).cmp(&rank(b)))
    });
    clauses
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';');
    let media_type = parts.next()?.trim();
    let (kind, subtype) = match media_type.split_once('/') {
        Some((kind, subtype)) => (kind.trim(), subtype.trim()),
        None if media_type == "*" => ("*", "*"),
        None => return None,
    };
    if subtype.is_empty() || subtype.contains('/') {
        return None;
    }
    let mut clause = Clause { kind, subtype, quality: 1.0, parameters: Vec::new() };
    for part in parts {
        match part.split_once('=') {
            Some((name, value)) if name.trim() == "q" => {
                clause.quality = value.trim().parse().unwrap_or(0.0);
            }
            Some((name, value)) if !value.is_empty() && !value.contains('=') => {
                clause.parameters.push((name.trim(), value.trim()));
            }
            _ => {}
        }
    }
    Some(clause)
}
