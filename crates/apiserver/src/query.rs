//! The query of a request, read as upstream reads it.

use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::Status;

use crate::refusal::Refusal;

/// Names and values in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        // Go passes over what has a semicolon, which once stood between pairs.
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.contains(';'));
        let pairs = pairs.flat_map(|pair| form_urlencoded::parse(pair.as_bytes()));
        Query(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The first value of a name; an empty one counts as not given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.first(name).filter(|value| !value.is_empty())
    }

    /// The first value of a name; empty when there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.first(name).unwrap_or_default()
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.first(name) else { return Ok(None) };
        parse_int(text).map(Some).map_err(|why| Box::new(Status::bad_request(why)))
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(other, _)| other == name);
        named.map(|(_, value)| value.as_str())
    }

    /// A flag. Whatever is neither `0` nor `false` in any case of letters is true, as upstream has
    /// it.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.first(name)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }
}

/// Reads a whole number, or says in Go's words why it is none.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {why}", go_quote(text))
    })
}
