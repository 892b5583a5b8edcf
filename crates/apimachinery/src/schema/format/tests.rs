//! The table in `table.json` holds what upstream's validator says of each format and text.

use super::Format;
use crate::schema::Type;

#[test]
fn every_format_accepts_what_it_accepts_upstream() {
    let rows: Vec<(String, String, bool)> =
        serde_json::from_str(include_str!("table.json")).expect("the table is JSON");
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(name, text, accepted)| Format::new(name).accepts(text) != *accepted)
        .map(|(name, text, accepted)| format!("{name} {text:?}: upstream says {accepted}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn a_format_counts_only_for_its_type() {
    let check = |name: &str, type_: Option<Type>, expected: bool| {
        assert_eq!(Format::new(name).is_recognized(type_.as_ref()), expected, "{name} {type_:?}");
    };
    check("date", Some(Type::String), true);
    check("date", None, true);
    check("date", Some(Type::Integer), false);
    check("date-time", Some(Type::String), true);
    check("int32", Some(Type::Integer), true);
    check("int32", Some(Type::Number), false);
    check("double", Some(Type::Number), true);
    check("odd", Some(Type::String), false);
    check("date", Some(Type::Object), false);
}
