//! Every document against upstream's. Its entity tags are hashes of what it says, so an equal tag
//! is an equal document.

use http::StatusCode;
use kubewright_apimachinery::proto;

use super::*;
use crate::document::tests::{definitions, get};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn discovery(definitions: Vec<Arc<Definition>>) -> Discovery {
    let server = Server {
        address: "192.0.2.2:16443".to_owned(),
        paths: vec!["/version".to_owned(), "/healthz".to_owned()],
    };
    Discovery::new(Arc::new(server), definitions, Arc::default())
}

fn ask(discovery: &Discovery, path: &str, headers: &[(&str, &str)]) -> Answer {
    discovery.answer(Question::new(&get(path, headers))).expect("a path of discovery")
}

fn text(discovery: &Discovery, path: &str) -> String {
    let body = ask(discovery, path, &[]).unwrap().into_body();
    String::from_utf8(body.to_vec()).unwrap()
}

#[track_caller]
fn check_tag(definitions: Vec<Arc<Definition>>, path: &str, expected: &str) {
    let discovery = discovery(definitions);
    let response = ask(&discovery, path, &[("accept", AGGREGATED)]).unwrap();
    assert_eq!(response.headers()[ETAG], format!("\"{expected}\""));
}

#[test]
fn aggregated_documents_are_upstreams() {
    check_tag(
        Vec::new(),
        "/api",
        "4D7E1BED90B364BC86049DD9E636494980AEF65B7F8CFAA267616FA062B514A8\
         A3CC2C2851CC9337B8D28B4C80960E2353DE5E0B152E87CC223E02EA3C5C37AC",
    );
    check_tag(
        Vec::new(),
        "/apis",
        "A74552DF419C4697E3A22F67B8FE55FD8F2CC33F6134FF206B16341598294CDE\
         9896C7F67B2819217E6BB70E74F97FCC864DDFCDB02FDA565699CC7D6E3CC377",
    );
}

#[test]
fn custom_resources_are_aggregated_as_upstream_does() {
    check_tag(
        definitions(),
        "/apis",
        "872A5B26BCA760BD3D13FFEC3A380C25D457A64EDEAC566DD677A955BB43137F\
         D8856FA74E6E1D582B6A3454A00395B4D67E9B014D7AE77B32AB9427EFFE9FDF",
    );
}

/// `tests/upstream.txt` has hashes of upstream's answers in JSON and protobuf.
#[test]
fn documents_of_groups_and_versions_are_upstreams() {
    let discovery = discovery(Vec::new());
    let hash = |path: &str, accept: &str| {
        let body = ask(&discovery, path, &[("accept", accept)]).unwrap().into_body();
        format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(body)[..8]))
    };
    for line in include_str!("tests/upstream.txt").lines() {
        let path = line.split(' ').next().unwrap();
        let json = hash(path, "application/json");
        let protobuf = hash(path, "application/vnd.kubernetes.protobuf");
        assert_eq!(format!("{path} {json} {protobuf}"), line);
    }
}

#[test]
fn the_legacy_group_tells_where_the_server_is() {
    assert_eq!(
        text(&discovery(Vec::new()), "/api/"),
        "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":\
         [{\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":\"192.0.2.2:16443\"}]}\n"
    );
}

#[test]
fn a_definition_is_listed_with_its_parts() {
    assert_eq!(
        text(&discovery(definitions()), "/apis/docs.kubewright.test/v1"),
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\
         \"groupVersion\":\"docs.kubewright.test/v1\",\"resources\":[\
         {\"name\":\"gauges\",\"singularName\":\"gauge\",\"namespaced\":false,\"kind\":\"Gauge\",\
         \"verbs\":[\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"create\",\
         \"update\",\"watch\"],\"storageVersionHash\":\"ebjx5kTl++c=\"},\
         {\"name\":\"widgets\",\"singularName\":\"widget\",\"namespaced\":true,\
         \"kind\":\"Widget\",\"verbs\":[\"delete\",\"deletecollection\",\"get\",\"list\",\
         \"patch\",\"create\",\"update\",\"watch\"],\"shortNames\":[\"wd\",\"wdg\"],\
         \"categories\":[\"all\",\"parts\"],\"storageVersionHash\":\"9dXg15kaeoM=\"},\
         {\"name\":\"widgets/status\",\"singularName\":\"\",\"namespaced\":true,\
         \"kind\":\"Widget\",\"verbs\":[\"get\",\"patch\",\"update\"]},\
         {\"name\":\"widgets/scale\",\"singularName\":\"\",\"namespaced\":true,\
         \"group\":\"autoscaling\",\"version\":\"v1\",\"kind\":\"Scale\",\
         \"verbs\":[\"get\",\"patch\",\"update\"]}]}\n"
    );
}

#[test]
fn served_versions_make_a_group_and_the_steadiest_is_preferred() {
    let discovery = discovery(definitions());
    assert_eq!(
        text(&discovery, "/apis/docs.kubewright.test"),
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"docs.kubewright.test\",\
         \"versions\":[{\"groupVersion\":\"docs.kubewright.test/v1\",\"version\":\"v1\"},\
         {\"groupVersion\":\"docs.kubewright.test/v1beta1\",\"version\":\"v1beta1\"}],\
         \"preferredVersion\":{\"groupVersion\":\"docs.kubewright.test/v1\",\
         \"version\":\"v1\"}}\n"
    );
    let groups: Value = serde_json::from_str(&text(&discovery, "/apis")).unwrap();
    let groups: Vec<&Value> = groups["groups"].as_array().unwrap().iter().collect();
    let names = groups.iter().map(|group| group["name"].as_str().unwrap());
    // By the names of their APIServices: `v1.docs…` comes before `v1beta2.alpha.docs…`.
    assert_eq!(
        names.skip(groups.len() - 4).collect::<Vec<_>>().join(" "),
        "flowcontrol.apiserver.k8s.io docs.kubewright.test nuts.docs.kubewright.test \
         alpha.docs.kubewright.test"
    );
}

#[test]
fn a_definition_that_is_going_can_be_read_and_removed() {
    let mut gone = Definition::clone(&definitions()[1]);
    gone.metadata.insert("deletionTimestamp".to_owned(), "2026-01-01T00:00:00Z".into());
    let list = text(&discovery(vec![Arc::new(gone)]), "/apis/docs.kubewright.test/v1");
    assert!(list.contains(
        "\"verbs\":[\"delete\",\"deletecollection\",\"get\",\"list\",\"watch\"],\"storage"
    ));
}

#[test]
fn a_definition_that_is_not_established_is_not_listed() {
    let mut new = Definition::clone(&definitions()[1]);
    new.status.established = false;
    let discovery = discovery(vec![Arc::new(new)]);
    let page = ask(&discovery, "/apis/docs.kubewright.test", &[]).unwrap();
    assert_eq!(page.status(), StatusCode::NOT_FOUND);
}

#[test]
fn a_known_tag_is_answered_without_a_body() {
    let discovery = discovery(Vec::new());
    let first = ask(&discovery, "/apis", &[("accept", AGGREGATED)]).unwrap();
    let tag = first.headers()[ETAG].to_str().unwrap();
    let headers = [("accept", AGGREGATED), ("if-none-match", tag)];
    let second = ask(&discovery, "/apis", &headers).unwrap();
    assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
    assert!(second.body().is_empty());
    for (name, value) in [(ETAG, tag), (VARY, "Accept"), (CACHE_CONTROL, "public")] {
        assert_eq!(second.headers()[&name], value);
        assert_eq!(first.headers()[name], value);
    }
    assert_eq!(first.headers()[CONTENT_TYPE], AGGREGATED);
    assert!(!second.headers().contains_key(CONTENT_TYPE));
}

#[test]
fn clients_fall_back_to_what_is_served() {
    let discovery = discovery(Vec::new());
    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    // client-go asks for three things at once.
    let accept = format!("{AGGREGATED},{old},application/json");
    let response = ask(&discovery, "/apis", &[("accept", &accept)]).unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], AGGREGATED);
    let accept = format!("{old},application/json");
    let response = ask(&discovery, "/apis", &[("accept", &accept)]).unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    assert_eq!(ask(&discovery, "/apis", &[("accept", old)]).unwrap_err().code, 406);
    // Only two paths have an aggregated form.
    let status = ask(&discovery, "/api/v1", &[("accept", AGGREGATED)]).unwrap_err();
    assert_eq!(status.code, 406);
}

#[test]
fn protobuf_says_the_same_as_json() {
    let discovery = discovery(definitions());
    let protobuf = AGGREGATED.replace("application/json", "application/vnd.kubernetes.protobuf");
    let response = ask(&discovery, "/apis", &[("accept", &protobuf)]).unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], protobuf);
    let json = ask(&discovery, "/apis", &[("accept", AGGREGATED)]).unwrap();
    let json: Value = serde_json::from_slice(json.body()).unwrap();
    assert_eq!(proto::decode(response.body()).unwrap(), json);
}

#[test]
fn what_is_not_served_is_not_found() {
    let discovery = discovery(definitions());
    for path in ["/api/v2", "/apis/apps/v9"] {
        let status = ask(&discovery, path, &[]).unwrap_err();
        assert_eq!(status.message, "the server could not find the requested resource", "{path}");
    }
    for path in ["/apis/nope", "/apis/nope/v1", "/apis/docs.kubewright.test/v2alpha1"] {
        let page = ask(&discovery, path, &[]).unwrap();
        assert_eq!(page.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(page.body(), "404 page not found\n");
    }
    for path in ["/api/v1/pods", "/apis/apps/v1/deployments", "/version", "/healthz"] {
        assert!(discovery.answer(Question::new(&get(path, &[]))).is_none(), "{path}");
    }
}

#[test]
fn the_router_of_built_in_versions_is_strict() {
    let discovery = discovery(definitions());
    let code = |path: &str, accept: &str| {
        ask(&discovery, path, &[("accept", accept)]).map_or_else(|status| status.code, |_| 200)
    };
    assert_eq!(code("/api/v1", "application/*"), 406);
    assert_eq!(code("/apis/apps", "application/*"), 200);
    assert_eq!(code("/apis/docs.kubewright.test/v1", "application/*"), 200);
    let (parts, ()) = http::Request::post("/api/v1").body(()).unwrap().into_parts();
    let status = discovery.answer(Question::new(&parts)).unwrap().unwrap_err();
    assert_eq!(status.code, 405);
}

#[test]
fn the_root_lists_every_path() {
    let root: Value = serde_json::from_str(&text(&discovery(definitions()), "/")).unwrap();
    let paths: Vec<&str> =
        root["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(paths.is_sorted());
    for path in ["/api", "/apis", "/apis/", "/apis/docs.kubewright.test/v1beta1", "/healthz"] {
        assert!(paths.contains(&path), "{path}");
    }
    assert!(!paths.contains(&"/apis/docs.kubewright.test/v2alpha1"));
}
