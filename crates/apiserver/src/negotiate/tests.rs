//! What clients accept, and what they get. Upstream's answers, asked from its binary.

use super::*;
use crate::sample;

fn accept(header: &str) -> Accept<'_> {
    Accept::of(header, "", "")
}

fn said(header: &str, endpoint: Endpoint) -> String {
    match accept(header).format(endpoint) {
        Ok(Format { encoding, view, .. }) => format!("{encoding:?} {view:?}"),
        Err(status) => format!("{}: {}", status.code, status.message),
    }
}

fn check(header: &str, expected: &str) {
    let endpoint = Endpoint { custom: false, table: true, collection: false };
    assert_eq!(said(header, endpoint), expected, "{header:?}");
}

fn check_custom(header: &str, expected: &str) {
    let endpoint = Endpoint { custom: true, table: true, collection: false };
    assert_eq!(said(header, endpoint), expected, "{header:?} of a custom resource");
}

#[test]
fn a_client_gets_what_it_prefers() {
    check("", "Json Object");
    check("*/*", "Json Object");
    check("application/yaml", "Yaml Object");
    check("application/vnd.kubernetes.protobuf,application/json", "Protobuf Object");
    check("application/json;q=0.5,application/yaml", "Yaml Object");
    check("text/html, */*;q=0.1", "Json Object");
    check("application/json;pretty=1", "JsonPretty Object");
    check("*, application/yaml", "Yaml Object");
}

#[test]
fn parameters_ask_for_views() {
    let table = "Json Table { version: V1, include: Ok(Metadata) }";
    check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table);
    check("*/*;as=Table;v=v1;g=meta.k8s.io", table);
    check(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "Protobuf PartialObjectMetadata(V1)",
    );
    check(
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
        "Json PartialObjectMetadataList(V1Beta1)",
    );
    // A view that is not known leaves the clause out; so does a table in protobuf.
    check("application/json;as=Chair;v=v1;g=meta.k8s.io,application/json", "Json Object");
    check(
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
        "Json Object",
    );
}

#[test]
fn what_cannot_be_given_is_refused_by_the_router_or_behind_it() {
    check(
        "text/html",
        "406: 406: Not Acceptable\n\nAvailable representations: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    );
    check(
        "application/*",
        "406: 406: Not Acceptable\n\nAvailable representations: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    );
    let only = "406: only the following media types are accepted: application/json, \
                application/yaml, application/vnd.kubernetes.protobuf";
    check("application/json;as=Table;v=v7;g=meta.k8s.io", only);
    check_custom("text/html", only);
    check_custom("application/vnd.kubernetes.protobuf", only);
    check_custom("application/*", "Json Object");
    check_custom(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "Protobuf PartialObjectMetadata(V1)",
    );
}

#[test]
fn collections_say_that_they_stream() {
    let endpoint = Endpoint::of(&sample::resource("", "v1", "configmaps"), true);
    assert_eq!(
        said("text/html", endpoint),
        "406: 406: Not Acceptable\n\nAvailable representations: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch"
    );
    let yaml = accept("application/yaml").format(endpoint).expect("lists come in YAML");
    let refused = yaml.check_stream().expect_err("watches do not");
    assert_eq!(
        refused.message,
        "only the following media types are accepted: application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch"
    );
}

#[test]
fn failures_know_no_views() {
    let check = |header: &str, expected: Encoding| {
        assert_eq!(accept(header).failure(), expected, "{header:?}");
    };
    check("", Encoding::Json);
    check("application/vnd.kubernetes.protobuf", Encoding::Protobuf);
    check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Encoding::Json);
    check("application/json;as=Table;v=v1;g=meta.k8s.io", Encoding::JsonPretty);
    check("text/html", Encoding::JsonPretty);
}

#[test]
fn people_get_lines() {
    let check = |query: &str, agent: &str, expected: bool| {
        let pretty = Accept::of("", agent, query).failure() == Encoding::JsonPretty;
        assert_eq!(pretty, expected, "{query:?} {agent:?}");
    };
    check("", "kubectl/v1.36.4", false);
    check("", "curl/8", true);
    check("pretty=false", "curl/8", false);
    check("pretty=", "curl/8", true);
    check("limit=1&pretty=true", "kubectl/v1.36.4", true);
    check("pretty=yes", "kubectl/v1.36.4", false);
}
