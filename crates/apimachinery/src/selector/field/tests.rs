use proptest::prelude::*;

use super::*;

fn check(text: &str, expected: &str) {
    let found = match Selector::parse(text) {
        Ok(selector) => selector.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_selector_prints_sorted_and_escaped() {
    check("", "");
    check(",,", "");
    check("b=2,a==1", "a=1,b=2");
    check("a!=1,a=", "a!=1,a=");
    check(r"a=x\,y\=z\\", r"a=x\,y\=z\\");
    check("a b = c ", "a b = c ");
}

#[test]
fn nonsense_is_refused_in_upstreams_words() {
    check("foo", "invalid selector: 'foo'; can't understand 'foo'");
    check("a=1,foo,b", "invalid selector: 'a=1,foo,b'; can't understand 'b'");
    check(r"a=x\b", r"invalid field selector: invalid escape sequence: \b");
    check(r"a=x\", r"invalid field selector: invalid escape sequence: \");
    check("a=b=c", "invalid field selector: unescaped character in value: 61");
    check("a===c", "invalid field selector: unescaped character in value: 61");
}

#[test]
fn a_missing_field_is_empty() {
    let fields = |field: &str| if field == "a" { "1" } else { "" };
    for holds in ["", "a=1", "a!=2", "b=", "b!=1", "a=1,b="] {
        assert!(Selector::parse(holds).unwrap().matches(fields), "{holds}");
    }
    for fails in ["a=2", "a!=1", "b=1", "b!="] {
        assert!(!Selector::parse(fails).unwrap().matches(fields), "{fails}");
    }
    let selector = Selector::parse("a=1,b!=2").unwrap();
    assert_eq!((selector.exact("a"), selector.exact("b")), (Some("1"), None));
}

#[test]
fn a_kind_knows_its_fields() {
    let selector = Selector::parse("foo=1,metadata.name=2").unwrap();
    assert_eq!(
        selector.only(&["metadata.name"]).unwrap_err().to_string(),
        "field label not supported: foo"
    );
    assert_eq!(
        selector.only_metadata().unwrap_err().to_string(),
        r#""foo" is not a known field selector: only "metadata.name", "metadata.namespace""#
    );
    let of_kind = UnsupportedField::LabelOfKind {
        kind: GroupVersionKind::new("resource.k8s.io", "v1", "ResourceSlice"),
        field: "foo".to_owned(),
    };
    assert_eq!(
        of_kind.to_string(),
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: foo"
    );
    let renamed = selector.convert(|field, value| match field.as_str() {
        "foo" => Ok((String::new(), String::new())),
        "metadata.name" => Ok(("name".to_owned(), value)),
        _ => Err(()),
    });
    assert_eq!(renamed.unwrap().to_string(), "name=2");
}

proptest! {
    #[test]
    fn any_value_survives_escaping(value in any::<String>()) {
        let text = format!("a={}", escape(&value));
        let selector = Selector::parse(&text).unwrap();
        prop_assert_eq!(&selector.terms[0].value, &value);
        prop_assert_eq!(selector.to_string(), text);
    }
}
