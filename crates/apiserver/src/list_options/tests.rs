//! Queries, and what is said about them. Upstream's answers, asked from its binary.

use super::*;
use crate::sample;

fn parse(query: &str) -> Result<ListOptions, Box<Status>> {
    ListOptions::parse(&Query::parse(Some(query)), &sample::resource("", "v1", "configmaps"), "")
}

fn check_refused(query: &str, code: i32, message: &str) {
    let refusal = parse(query).expect_err("it is refused");
    assert_eq!((refusal.code, refusal.message.as_str()), (code, message), "{query}");
}

#[test]
fn numbers_and_selectors_must_be_readable() {
    check_refused("limit=abc", 400, "strconv.ParseInt: parsing \"abc\": invalid syntax");
    check_refused("timeoutSeconds=", 400, "strconv.ParseInt: parsing \"\": invalid syntax");
    check_refused(
        "limit=99999999999999999999",
        400,
        "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
    );
    check_refused(
        "labelSelector=a%3D%3D%3Db",
        400,
        "unable to parse requirement: found '=', expected: identifier",
    );
    check_refused("fieldSelector=foo", 400, "invalid selector: 'foo'; can't understand 'foo'");
    assert_eq!(parse("limit=1&limit=abc").expect("the first counts").limit, Some(1));
    assert_eq!(parse("limit=-5").expect("it is a number").limit, None);
}

#[test]
fn options_that_contradict_each_other_are_invalid() {
    let invalid = |query: &str, why: &str| {
        check_refused(query, 422, &format!("ListOptions.meta.k8s.io \"\" is invalid: {why}"));
    };
    invalid(
        "resourceVersionMatch=Exact",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless \
         resourceVersion is provided",
    );
    invalid(
        "resourceVersionMatch=foo&resourceVersion=1&continue=abc&sendInitialEvents=1",
        "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is \
         provided, resourceVersionMatch: Unsupported value: \"foo\": supported values: \"Exact\", \
         \"NotOlderThan\", \"\", sendInitialEvents: Forbidden: sendInitialEvents is forbidden for \
         list]",
    );
    invalid(
        "watch=1&resourceVersionMatch=Exact",
        "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless \
         sendInitialEvents is provided, resourceVersionMatch: Unsupported value: \"Exact\": \
         supported values: \"NotOlderThan\"]",
    );
    invalid(
        "watch=1&sendInitialEvents=true",
        "resourceVersionMatch: Forbidden: sendInitialEvents requires setting \
         resourceVersionMatch to NotOlderThan",
    );
}

#[test]
fn a_watch_from_anywhere_begins_with_what_is_there() {
    let check = |query: &str, expected: Option<bool>| {
        assert_eq!(parse(query).expect("it is valid").send_initial_events, expected, "{query}");
    };
    check("watch=1", Some(true));
    check("watch", Some(true));
    check("watch=true&resourceVersion=0", Some(true));
    check("watch=1&resourceVersion=5", None);
    check("watch=false", None);
    check("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", Some(false));
}

#[test]
fn a_name_in_the_path_is_a_selector() {
    let check = |query: &str, expected: Result<Option<&str>, &str>| {
        let resource = sample::resource("", "v1", "configmaps");
        let options = ListOptions::parse(&Query::parse(Some(query)), &resource, "a");
        let found = options.as_ref().map(|options| options.selection.name());
        assert_eq!(found.map_err(|refusal| refusal.message.as_str()), expected, "{query}");
    };
    check("", Ok(Some("a")));
    check("fieldSelector=metadata.name%3Da", Ok(Some("a")));
    let mismatch = "fieldSelector metadata.name doesn't match requested name";
    check("fieldSelector=metadata.name%3Db", Err(mismatch));
    check("fieldSelector=metadata.namespace%3Db", Err(mismatch));
}

#[test]
fn versions_are_numbers() {
    let check = |text: &str, expected: Result<u64, &str>| {
        let found = version(text).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    };
    check("", Ok(0));
    check("0", Ok(0));
    check("17", Ok(17));
    check(
        "+1",
        Err("resourceVersion: Invalid value: \"+1\": strconv.ParseUint: parsing \"+1\": invalid \
             syntax"),
    );
    check(
        "99999999999999999999",
        Err(
            "resourceVersion: Invalid value: \"99999999999999999999\": strconv.ParseUint: parsing \
             \"99999999999999999999\": value out of range",
        ),
    );
}

#[test]
fn exports_are_no_longer_supported() {
    let refusal = GetOptions::parse(&Query::parse(Some("export=1"))).expect_err("it is refused");
    assert_eq!(
        refusal.message,
        "the export parameter, deprecated since v1.14, is no longer supported"
    );
    assert_eq!(GetOptions::parse(&Query::parse(Some("export=false"))), Ok(GetOptions::default()));
}
