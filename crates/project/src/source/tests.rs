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

fn check_call(before: &str, call: &str, after: &str) {
    let added = add_call(before, "operator", call).expect("added");
    assert_eq!(added, after);
    let calls = calls(&added, "operator").expect("calls");
    let last = calls.last().expect("a call");
    assert_eq!(last.words, without_space(call));
    assert_eq!(remove_call(&added, last), before);
}

#[test]
fn a_call_comes_to_the_end_of_the_chain() {
    check_call(
        "fn operator() -> O {\n    O::new(\"ü\") // it\n}\n",
        ".kind::<a::B>()",
        "fn operator() -> O {\n    O::new(\"ü\")\n        .kind::<a::B>() // it\n}\n",
    );
    check_call(
        "fn operator() -> O {\n    let o = O::new();\n    o\n        // Why.\n        .a(|| 1)\n}\n",
        ".b()",
        "fn operator() -> O {\n    let o = O::new();\n    o\n        // Why.\n        .a(|| 1)\n        .b()\n}\n",
    );
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
