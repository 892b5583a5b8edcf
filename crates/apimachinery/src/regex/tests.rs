//! The table in `go.json` holds what Go 1.26 says about each pattern and text.

use serde::Deserialize;

use super::{Error, Reason, Regex};

#[derive(Deserialize)]
struct Row {
    pattern: String,
    text: String,
    #[serde(default)]
    error: String,
    find: Option<Vec<String>>,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(include_str!("go.json")).expect("the table is JSON")
}

#[test]
fn every_pattern_means_what_it_means_in_go() {
    let rows = rows();
    assert!(rows.len() >= 400, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let expected = match row.error.as_str() {
            "" => Ok(row.find.unwrap_or_default()),
            error => Err(error.to_owned()),
        };
        let found = match Regex::new(&row.pattern) {
            Err(error) => Err(error.to_string()),
            Ok(regex) => {
                let all: Vec<_> = regex.find_all(&row.text).map(str::to_owned).collect();
                assert_eq!(regex.is_match(&row.text), !all.is_empty(), "{}", row.pattern);
                assert_eq!(regex.find(&row.text), all.first().map(String::as_str));
                Ok(all)
            }
        };
        if found != expected {
            wrong.push(format!("{} on {:?}: {found:?}, Go: {expected:?}", row.pattern, row.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_error(pattern: &str, reason: Reason) {
    let error = Regex::new(pattern).expect_err("the pattern is refused");
    assert_eq!(error, Error { reason, fragment: pattern.to_owned() });
}

#[test]
fn nesting_is_bounded_as_in_go() {
    let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Regex::new(&nested(999)).expect("just deep enough").is_match("a"));
    check_error(&nested(1000), Reason::NestingDepth);
    check_error(&nested(100_000), Reason::NestingDepth);
    check_error(&"(".repeat(100_000), Reason::MissingParen);
    check_error(&format!("a*{}", "(?i)*".repeat(1000)), Reason::NestingDepth);
}

#[test]
fn a_huge_program_is_refused_instead_of_built() {
    check_error(&format!("(?:{}){{1000}}", "a".repeat(4000)), Reason::Large);
    check_error(&format!("(?:{}){{1000}}", "\\pL".repeat(100)), Reason::Large);
    check_error(&"\\pL".repeat(50_000), Reason::Large);
    check_error(&"a".repeat(1 << 20), Reason::Large);
}

#[test]
fn a_pattern_is_kept_as_written() {
    assert_eq!(Regex::new(r"^\d{2}$").expect("a valid pattern").as_str(), r"^\d{2}$");
}
