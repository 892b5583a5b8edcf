//! Definitions to speak of, and the rules of negotiation.

use std::sync::Arc;

use http::Request;
use kubewright_apimachinery::schema::crd::{self, Definition};
use kubewright_apimachinery::yaml;
use serde_json::json;

use super::*;

/// Definitions as they are once established. Upstream's answers to the same ones are what the
/// tests of each document expect.
pub(crate) fn definitions() -> Vec<Arc<Definition>> {
    yaml::documents(include_str!("tests/definitions.yaml"))
        .unwrap()
        .into_iter()
        .map(|text| {
            let mut definition = yaml::decode(text).unwrap().value;
            crd::default(&mut definition);
            definition["status"] = json!({
                "acceptedNames": definition["spec"]["names"],
                "conditions": [{"type": "Established", "status": "True"}],
            });
            Arc::new(Definition::parse(&definition).unwrap())
        })
        .collect()
}

/// What a GET asks, with these headers.
pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[track_caller]
fn check(accept: &str, expected: Option<Encoding>) {
    let parts = get("/", &[("accept", accept)]);
    assert_eq!(Question::new(&parts).plain_encoding().ok(), expected, "{accept}");
}

#[test]
fn a_document_comes_in_the_first_form_that_it_has() {
    check("", Some(Encoding::Json));
    check("application/*", Some(Encoding::Json));
    check("application/json;q=0.5, application/vnd.kubernetes.protobuf", Some(Encoding::Protobuf));
    check("text/html, application/yaml;q=0.1", Some(Encoding::Yaml));
    check("application/json;as=Table;g=meta.k8s.io;v=v1, application/yaml", Some(Encoding::Yaml));
    check("application/json;pretty=1", Some(Encoding::JsonPretty));
    check("application/json;sv=v1", None);
    check("text/html", None);
}
