//! What is no union, and what the author is told about it. What a union does is tested where it is
//! used.

use quote::quote;

use super::*;

fn check_refused(input: TokenStream, expected: &str) {
    let error = expand(input).expect_err("it is refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_enum_of_structs_and_of_nothing_is_a_union() {
    expand(quote! {
        #[union(tag = "kind")]
        enum Backup {
            None,
            #[union(value = "S3", field = "s3")]
            Bucket(Bucket),
        }
    })
    .expect("it is a union");
}

#[test]
fn an_attribute_that_nobody_knows_is_an_error() {
    check_refused(
        quote! { #[union(tagg = "kind")] enum Backup { None } },
        "only tag can be said here",
    );
    check_refused(
        quote! { enum Backup { #[union(rename = "S3")] Bucket(Bucket) } },
        "only value and field can be said here",
    );
    check_refused(
        quote! { #[union(tag = "a", tag = "b")] enum Backup { None } },
        "this has been said before",
    );
    check_refused(quote! { #[union(tag = "")] enum Backup { None } }, "an empty name is none");
}

#[test]
fn only_one_struct_is_content() {
    let message = "the content of a variant is one struct: `Variant(Content)`";
    check_refused(quote! { enum Backup { Bucket { name: String } } }, message);
    check_refused(quote! { enum Backup { Bucket(String, String) } }, message);
    check_refused(
        quote! { enum Backup { #[union(field = "none")] None } },
        "a variant without content has no field",
    );
}

#[test]
fn only_an_enum_is_a_union() {
    check_refused(quote! { struct Backup; }, "only an enum can be a union");
    check_refused(quote! { enum Backup<T> { Bucket(T) } }, "a union cannot be generic");
    check_refused(quote! { enum Backup {} }, "a union needs variants");
}

#[test]
fn names_are_different() {
    check_refused(
        quote! { enum Backup { A, #[union(value = "A")] B } },
        "there is another \"A\" in this union",
    );
    check_refused(
        quote! { enum Backup { Type(Bucket) } },
        "there is another \"type\" in this union",
    );
}

#[test]
fn words_of_the_language_of_rules_are_escaped() {
    assert_eq!(cel_name("namespace"), "__namespace__");
    assert_eq!(cel_name("rollingUpdate"), "rollingUpdate");
    assert_eq!(cel_text("it's"), r"'it\'s'");
}
