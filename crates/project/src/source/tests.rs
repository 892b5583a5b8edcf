use super::*;

/// An edit gives what is expected, and taken back gives what was.
fn check_module(before: &str, declaration: &str, after: &str) {
    let declared = declare(before, declaration).expect("declared");
    assert_eq!(declared, after);
    assert_eq!(declare(after, declaration).expect("declared"), after, "twice");
    let taken_back = undeclare(after, module_name(declaration)).expect("undeclared");
    assert_eq!(taken_back, before);
}

#[test]
fn the_first_module_comes_before_all_items() {
    check_module(
        "//! What it is.\n\n// Why.\nuse a::b; // here\n",
        "pub mod one;",
        "//! What it is.\n\npub mod one;\n\n// Why.\nuse a::b; // here\n",
    );
    check_module("//! What it is.\n", "pub mod one;", "//! What it is.\n\npub mod one;\n");
}

#[test]
fn another_module_comes_to_its_place() {
    let before =
        "//! It.\n\n// First.\nmod b;\npub mod d; // fourth\n#[cfg(test)]\nmod tests;\n\nuse x;\n";
    check_module(before, "mod a;", &before.replace("// First.", "mod a;\n// First."));
    check_module(before, "mod c;", &before.replace("mod b;\n", "mod b;\nmod c;\n"));
    check_module(before, "mod z;", &before.replace("mod tests;\n", "mod tests;\nmod z;\n"));
    check_module("mod a;\n\nmod z;\n", "mod c;", "mod a;\nmod c;\n\nmod z;\n");
}

#[test]
fn a_module_whose_text_is_in_place_is_left_to_its_author() {
    let refused = undeclare("mod a {\n}\n", "a").expect_err("it is refused");
    assert_eq!(refused.to_string(), "1: `mod a` has its text in place: take it out by hand");
}

/// What an author says of a declaration is seen to be more than what was made.
#[test]
fn what_is_said_of_a_module_belongs_to_it() {
    let check = |text: &str, there: &str, after: &str| {
        assert_eq!(declaration(text, "b").expect("it is Rust").as_deref(), Some(there));
        assert_eq!(undeclare(text, "b").expect("undeclared"), after);
    };
    check("mod a;\nmod b;\nmod c;\n", "mod b;", "mod a;\nmod c;\n");
    let documented = "/// It.\n#[cfg(unix)]\npub mod b;";
    check(&format!("mod a;\n{documented}\n"), documented, "mod a;\n");
    check("mod a;\n// Why.\nmod b; // second\n", "mod b; // second", "mod a;\n// Why.\n");
    check("mod a; mod b; mod c; // three\n", "mod b;", "mod a;  mod c; // three\n");
    assert_eq!(declaration("mod a;\n", "b").expect("it is Rust"), None);
}

/// An edit gives what is expected, and taken back gives what was.
fn check_call(before: &str, call: &str, after: &str) {
    let added = add_call(before, "operator", call).expect("added");
    assert_eq!(added, after);
    let calls = calls(&added).expect("calls");
    let found = calls.iter().find(|it| it.words == without_space(call)).expect("the call");
    assert!(found.is_plain);
    assert_eq!(remove_call(&added, found), before);
}

#[test]
fn a_call_comes_to_the_end_of_the_chain() {
    check_call(
        "fn operator() -> O {\n    O::new(\"ü\")\n}\n",
        ".kind::<a::B>()",
        "fn operator() -> O {\n    O::new(\"ü\")\n        .kind::<a::B>()\n}\n",
    );
    check_call(
        "fn operator() -> O {\n    let o = O::new();\n    o\n        // Why.\n        .a(|| 1)\n}\n",
        ".b()",
        "fn operator() -> O {\n    let o = O::new();\n    o\n        // Why.\n        .a(|| 1)\n        .b()\n}\n",
    );
    check_call(
        "fn operator() -> Result<O, E> {\n    return Ok(O::new()?);\n}\n",
        ".b()",
        "fn operator() -> Result<O, E> {\n    return Ok(O::new()?\n        .b());\n}\n",
    );
}

/// The new call used to get the comment of the one before it, and taken back to take it along.
#[test]
fn comments_stay_with_the_calls_that_they_are_about() {
    for before in [
        "fn operator() -> O {\n    O::new(\"ü\") // it\n\n}\n",
        "fn operator() -> O {\n    O::new()\n        .kind::<X>() // stored\n\n}\n",
        "fn operator() -> O {\n    O::new()\n        .a() /* one */ // two\n\n}\n",
        "fn operator() -> O {\n    O::new() /* on\n    and /* on */ */\n\n}\n",
        "fn operator() -> O {\n    O::new()\n\n    // .later()\n}\n",
    ] {
        let after = match before.split_once("\n\n") {
            Some((head, tail)) => format!("{head}\n        .b()\n\n{tail}"),
            None => unreachable!("it has a place"),
        };
        check_call(before, ".b()", &after);
    }
}

/// The source without the calls of a name, and whether they were plain.
fn without(text: &str, words: &str) -> (String, bool) {
    let (mut text, mut is_plain) = (text.to_owned(), true);
    loop {
        let calls = calls(&text).expect("it is Rust");
        let Some(found) = calls.iter().find(|it| it.words == words) else { break };
        is_plain &= found.is_plain;
        text = remove_call(&text, found);
    }
    (text, is_plain)
}

#[test]
fn what_is_said_of_a_call_goes_with_it_and_nothing_else() {
    let check = |chain: &str, expected: &str, is_plain: bool| {
        let text = |chain: &str| format!("fn operator() -> O {{\n    {chain}\n}}\n");
        assert_eq!(without(&text(chain), ".b()"), (text(expected), is_plain), "{chain}");
    };
    check("o.a().b().c()", "o.a().c()", true);
    check("o\n        .a() // of a\n        .b()", "o\n        .a() // of a", true);
    check(
        "o\n        // Above.\n        .b()\n        .c()",
        "o\n        // Above.\n        .c()",
        true,
    );
    check("o\n        .b() // of b\n        .c()", "o\n        .c()", false);
    check("o\n        .a()\n        .b() /* of b */", "o\n        .a()", false);
    // Said of the line, which stays.
    check("o.a().b() // all", "o.a() // all", true);
    // What follows does not get into a comment.
    check("o // of o\n        .b().c()", "o // of o\n        .c()", true);
    check("return o // of o\n        .b();", "return o // of o\n        ;", true);
    check("o.b(\n        // Within.\n    )", "o", false);
}

#[test]
fn calls_are_found_wherever_they_are() {
    let check = |text: &str, expected: &str| {
        assert_eq!(without(text, ".kind::<a::v1::B>()").0, expected);
    };
    check(
        "fn operator() -> O {\n    let o = O::new().kind::<a::v1::B>();\n    o\n}\n",
        "fn operator() -> O {\n    let o = O::new();\n    o\n}\n",
    );
    check(
        "fn operator() -> O {\n    let mut o = O::new();\n    o = o.kind::<a::v1::B>(); // b\n    o\n}\n",
        "fn operator() -> O {\n    let mut o = O::new();\n    o\n}\n",
    );
    check(
        "fn operator() -> O {\n    let o = O::new();\n    let o = o.kind::<a::v1::B>();\n    o\n}\n",
        "fn operator() -> O {\n    let o = O::new();\n    o\n}\n",
    );
    check(
        "fn operator() -> O {\n    if x() { one().kind::<a::v1::B>() } else { two().kind::<a::v1::B>() }\n}\n",
        "fn operator() -> O {\n    if x() { one() } else { two() }\n}\n",
    );
    check(
        "fn operator() -> O {\n    kinds(O::new())\n}\nfn kinds(o: O) -> O {\n    o.kind::<a::v1::B>()\n}\n",
        "fn operator() -> O {\n    kinds(O::new())\n}\nfn kinds(o: O) -> O {\n    o\n}\n",
    );
    let tests = "mod tests {\n    fn it() {\n        O::new().kind::<a::v1::B>();\n    }\n}\n";
    check(tests, tests);
}

#[test]
fn a_call_is_known_under_any_name_of_what_it_is_about() {
    let check = |uses: &str, call: &str, is_plain: bool| {
        let text = format!("{uses}\nfn operator() -> O {{\n    O::new(){call}\n}}\n");
        let calls = calls(&text).expect("it is Rust");
        let [found] = &calls[..] else { panic!("{text}") };
        assert_eq!(found.words, ".kind::<a::v1::B>()", "{text}");
        assert_eq!(found.is_plain, is_plain, "{text}");
    };
    check("", ".kind::<crate::a::v1::B>()", true);
    check("", ".kind::<self::a::v1::B>()", true);
    check("", ".kind::<\n        a::v1::B,\n    >()", true);
    check("use a::v1::B;", ".kind::<B>()", false);
    check("use crate::a::{self, v1::B as C};", ".kind::<C>()", false);
    check("use a::v1::{self as one};", ".kind::<one::B>()", false);
}

#[test]
fn a_function_that_does_not_end_with_a_chain_is_left_to_its_author() {
    for (text, line) in [
        ("", 1),
        ("fn one() {}\n\nfn two() {}\n", 3),
        ("fn one() {}\n\nfn operator() { a; }\n\nfn two() {}\n", 3),
        ("/// It.\npub fn operator() {\n    match a {}\n}\n", 2),
    ] {
        let refused = add_call(text, "operator", ".b()").expect_err("it is refused").to_string();
        let reason = "there is no `fn operator` that ends with a call: add `.b()` by hand";
        assert_eq!(refused, format!("{line}: {reason}"));
    }
}

#[test]
fn what_is_no_rust_is_refused_with_its_place() {
    let refused = declared("fn a() {}\nfn b( {}\n").expect_err("it is refused").to_string();
    assert!(refused.starts_with("2:"), "{refused}");
}

#[test]
fn kinds_are_found_in_their_attributes() {
    let text = "/// It.\n#[derive(CustomResource)]\n#[kube(group = \"a.b\", version = \"v1\")]\n\
                #[kube(kind = \"C\", namespaced, printcolumn = r#\"{}\"#)]\nstruct CSpec {}\n";
    let kinds = kinds(text).expect("kinds");
    let [found] = &kinds[..] else { panic!("{kinds:?}") };
    assert_eq!((found.group.as_str(), found.version.as_str()), ("a.b", "v1"));
    assert_eq!((found.kind.as_str(), found.namespaced), ("C", true));
    assert_eq!(with_version(text, found, "v2"), text.replace("\"v1\"", "\"v2\""));
}
