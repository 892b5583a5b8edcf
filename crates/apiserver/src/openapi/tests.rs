//! Documents against upstream's, and how they are asked for.
//!
//! `tests/upstream.txt` has hashes of what upstream published with the same definitions: of the
//! operations of each document, and of each schema, once without descriptions and once the
//! descriptions alone. These differ on purpose and are left out: what parameters and operations
//! are for (our words), descriptions of lists, and what each value of an enum means.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::*;
use crate::document::tests::{definitions, get};

fn api() -> OpenApi {
    OpenApi::new(definitions())
}

fn ask(api: &OpenApi, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
    let now = "2026-11-16T00:19:58Z".parse().unwrap();
    api.answer(Question::new(&get(path, headers)), now).expect("a path of OpenAPI")
}

fn document(api: &OpenApi, path: &str) -> Value {
    let response = ask(api, path, &[]);
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    serde_json::from_slice(response.body()).unwrap()
}

fn short_hash(content: &[u8]) -> String {
    format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(content)[..8]))
}

fn hash_of_facts(value: &Value) -> String {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| name != "description" || !value.is_string());
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = value.clone();
    strip(&mut value);
    value.sort_all_objects();
    short_hash(value.to_string().as_bytes())
}

fn hash_of_texts(value: &Value) -> String {
    fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "description" => {
                            let end = text.find("\n\nPossible enum values").unwrap_or(text.len());
                            texts.push(text[..end].trim_end());
                        }
                        value => collect(value, texts),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    collect(value, &mut texts);
    short_hash(texts.join("\0").as_bytes())
}

/// Kinds that exist in every version say so differently in each document.
fn trim(name: &str, mut schema: Value) -> Value {
    if name.ends_with(".DeleteOptions") || name.ends_with(".WatchEvent") {
        schema.as_object_mut().unwrap().shift_remove("x-kubernetes-group-version-kind");
    }
    schema
}

fn upstream(about: &str) -> BTreeSet<String> {
    let lines = include_str!("tests/upstream.txt").lines();
    lines.filter(|line| line.split(' ').next() == Some(about)).map(str::to_owned).collect()
}

#[track_caller]
fn check(about: &str, ours: BTreeSet<String>) {
    let theirs = upstream(about);
    let unlike: Vec<&String> = ours.symmetric_difference(&theirs).collect();
    assert!(unlike.is_empty(), "ours or upstream's alone:\n{unlike:#?}");
}

fn paths(api: &OpenApi) -> Vec<String> {
    let index = document(api, "/openapi/v3");
    index["paths"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn operations_are_upstreams() {
    let api = api();
    let ours = paths(&api).into_iter().map(|path| {
        let document = document(&api, &format!("/openapi/v3/{path}"));
        format!("paths {path} {}", hash_of_facts(&document["paths"]))
    });
    check("paths", ours.collect());
}

#[test]
fn schemas_are_upstreams() {
    let api = api();
    let mut ours = BTreeSet::new();
    for path in paths(&api) {
        let document = document(&api, &format!("/openapi/v3/{path}"));
        let Some(schemas) = document["components"]["schemas"].as_object() else { continue };
        for (name, schema) in schemas {
            let schema = trim(name, schema.clone());
            let in_our_words = name.ends_with("List")
                || name.ends_with("version.Info")
                || name.contains("kubewright");
            let texts = if in_our_words { "-".to_owned() } else { hash_of_texts(&schema) };
            ours.insert(format!("model {name} {} {texts}", hash_of_facts(&schema)));
        }
    }
    check("model", ours);
}

#[test]
fn the_second_version_says_the_same_in_its_own_way() {
    fn resolve(value: &mut Value, parameters: &Value) {
        match value {
            Value::Object(fields) => {
                let target = fields.get("$ref").and_then(Value::as_str);
                let target = target.and_then(|target| target.strip_prefix("#/parameters/"));
                if let Some(target) = target {
                    *value = parameters[target].clone();
                    return;
                }
                fields.values_mut().for_each(|field| resolve(field, parameters));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| resolve(item, parameters)),
            _ => {}
        }
    }
    let mut document = document(&api(), "/openapi/v2");
    let parameters = document["parameters"].take();
    resolve(&mut document["paths"], &parameters);
    check("v2-paths", [format!("v2-paths {}", hash_of_facts(&document["paths"]))].into());

    let models: Map<String, Value> = document["definitions"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, schema)| (name.clone(), trim(name, schema.clone())))
        .collect();
    let custom = models.iter().filter(|(name, _)| name.contains("kubewright"));
    let custom = custom.map(|(name, schema)| format!("v2-model {name} {}", hash_of_facts(schema)));
    check("v2-model", custom.collect());
    check("v2-models", [format!("v2-models {}", hash_of_facts(&models.into()))].into());
}

#[test]
fn every_field_of_a_container_is_explained() {
    let document = document(&api(), "/openapi/v3/api/v1");
    let schemas = &document["components"]["schemas"];
    let container = &schemas["io.k8s.api.core.v1.Container"];
    assert!(
        container["properties"]
            .as_object()
            .unwrap()
            .values()
            .all(|field| { field["description"].as_str().is_some_and(|text| !text.is_empty()) })
    );
    let protocol = &schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"];
    assert_eq!(
        protocol["description"],
        "Protocol for port. Must be UDP, TCP, or SCTP. Defaults to \"TCP\".\n\n\
         Possible enum values:\n - `\"SCTP\"`\n - `\"TCP\"`\n - `\"UDP\"`"
    );
}

#[test]
fn columns_of_tables_are_described() {
    assert_eq!(
        describe("core/v1.PodSpec", "nodeName").unwrap().split(' ').next(),
        Some("NodeName")
    );
    assert!(describe("meta/v1.ObjectMeta", "name").unwrap().starts_with("Name must be unique"));
    assert_eq!(describe("core/v1.PodSpec", "nothing"), None);
    assert_eq!(describe("core/v1.Nothing", "name"), None);
}

#[test]
fn kinds_of_every_version_say_which() {
    let schema = |path: &str| {
        let document = document(&api(), path);
        document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]
            ["x-kubernetes-group-version-kind"]
            .clone()
    };
    let options = |group: &str, version: &str| json!({"group": group, "kind": "DeleteOptions", "version": version});
    assert_eq!(schema("/openapi/v3/api/v1"), json!([options("", "v1")]));
    assert_eq!(
        schema("/openapi/v3/apis/autoscaling/v2"),
        json!([options("", "v1"), options("autoscaling", "v2")])
    );
}

#[test]
fn an_address_with_a_hash_is_for_ever() {
    let api = api();
    let index = document(&api, "/openapi/v3");
    let url = index["paths"]["version"]["serverRelativeURL"].as_str().unwrap();
    let response = ask(&api, url, &[]);
    assert_eq!(response.status(), StatusCode::OK);
    let hash = url.split_once("?hash=").unwrap().1;
    assert_eq!(document::hash(response.body()), hash);
    let headers = response.headers();
    assert_eq!(headers[ETAG], format!("\"{hash}\""));
    assert_eq!(headers[CACHE_CONTROL], "public, immutable");
    assert_eq!(headers[EXPIRES], "Tue, 16 Nov 2027 00:19:58 UTC");
    assert_eq!(headers[VARY], "Accept");
    assert_eq!(headers[CONTENT_TYPE], "application/json");
}

#[test]
fn an_outdated_hash_is_sent_to_the_new_one() {
    let api = api();
    let response = ask(&api, "/openapi/v3/version?hash=OLD", &[]);
    assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY);
    let url = document(&api, "/openapi/v3")["paths"]["version"]["serverRelativeURL"].clone();
    assert_eq!(response.headers()[LOCATION].to_str().unwrap(), url);
    assert!(response.body().is_empty());
}

#[test]
fn a_known_tag_is_answered_without_a_body() {
    let api = api();
    for path in ["/openapi/v2", "/openapi/v3/api"] {
        let first = ask(&api, path, &[]);
        let tag = first.headers()[ETAG].to_str().unwrap();
        assert!(!first.headers().contains_key(CACHE_CONTROL), "{path}");
        let second = ask(&api, path, &[("if-none-match", tag)]);
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert!(second.body().is_empty(), "{path}");
        assert_eq!(second.headers()[ETAG], tag, "{path}");
        let third = ask(&api, path, &[("if-none-match", "\"other\"")]);
        assert_eq!(third.body(), first.body(), "{path}");
    }
}

#[test]
fn json_comes_first_and_protobuf_when_asked_for() {
    let api = api();
    for path in ["/openapi/v2", "/openapi/v3/api"] {
        let code = |accept| ask(&api, path, &[("accept", accept)]).status().as_u16();
        assert_eq!(code("application/json"), 200, "{path}");
        assert_eq!(code("application/*"), 200, "{path}");
        assert_eq!(code("text/html, */*;q=0.1"), 200, "{path}");
        assert_eq!(code("application/json;as=Table"), 200, "{path}");
        assert_eq!(code("text/html"), 406, "{path}");
    }
    for (path, version) in [("/openapi/v2", "v2"), ("/openapi/v3/api", "v3")] {
        let name = |separator| {
            format!("application/com.github.proto-openapi.spec.{version}{separator}v1.0+protobuf")
        };
        for separator in ["@", "."] {
            let accept = format!("{}, application/json;q=0.5", name(separator));
            let response = ask(&api, path, &[("accept", &accept)]);
            assert_eq!(response.headers()[CONTENT_TYPE].to_str().unwrap(), name("."));
            assert_eq!(response.headers()[ETAG], ask(&api, path, &[]).headers()[ETAG]);
        }
    }
}

#[test]
fn what_is_not_served_has_no_document() {
    let api = api();
    for path in [
        "/openapi/v3/",
        "/openapi/v3/apis/nope/v1",
        "/openapi/v3/apis/docs.kubewright.test",
        "/openapi/v3/apis/docs.kubewright.test/v2alpha1",
    ] {
        let response = ask(&api, path, &[]);
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(response.body().is_empty(), "{path}");
    }
    let mut new = Definition::clone(&definitions()[1]);
    new.status.established = false;
    let api = OpenApi::new(vec![Arc::new(new)]);
    assert!(!paths(&api).iter().any(|path| path.contains("kubewright")));
    let parts = get("/openapi", &[]);
    assert!(api.answer(Question::new(&parts), Timestamp::UNIX_EPOCH).is_none());
}

/// Custom resources of one document do not change the hashes of others.
#[test]
fn a_definition_changes_only_its_own_document() {
    let index = |definitions| document(&OpenApi::new(definitions), "/openapi/v3")["paths"].clone();
    let before = index(Vec::new());
    let after = index(definitions());
    for (path, url) in before.as_object().unwrap() {
        assert_eq!(after[path], *url);
    }
    let mut changed = definitions();
    let mut gauge = Definition::clone(&changed[1]);
    gauge.spec.names.list_kind = "Gauges".to_owned();
    changed[1] = Arc::new(gauge);
    let changed = index(changed);
    let of = |index: &Value, path: &str| index[path]["serverRelativeURL"].clone();
    let (own, other) = ("apis/docs.kubewright.test/v1", "apis/nuts.docs.kubewright.test/v1");
    assert_ne!(of(&changed, own), of(&after, own));
    assert_eq!(of(&changed, other), of(&after, other));
}

/// The samples have every keyword; the bytes are what gnostic makes of them.
#[test]
fn protobuf_is_gnostics() {
    let check = |encode: fn(&Value) -> Vec<u8>, sample: &str, expected: &str| {
        let bytes: Bytes = encode(&serde_json::from_str(sample).unwrap()).into();
        assert_eq!(format!("{bytes:x}"), expected.replace('\n', ""));
    };
    check(protobuf::v2, include_str!("tests/sample.v2.json"), include_str!("tests/sample.v2.hex"));
    check(protobuf::v3, include_str!("tests/sample.v3.json"), include_str!("tests/sample.v3.hex"));
}
