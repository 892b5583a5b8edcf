//! Gets and lists of a store in memory.

use http_body_util::BodyExt;
use kubewright_apimachinery::proto;
use kubewright_apimachinery::table::Include;
use kubewright_store::Expect;
use serde_json::{Value, json};

use super::*;
use crate::encode;
use crate::negotiate::{Encoding, MetaVersion, View};
use crate::query;
use crate::sample;

struct Lab {
    store: Store,
    encoder: Encoder,
    resource: Arc<Resource>,
}

impl Lab {
    /// A store that holds these ConfigMaps.
    async fn with(names: &[&str]) -> Self {
        let store = sample::store();
        let resource = sample::resource("", "v1", "configmaps");
        for name in names {
            sample::put(&store, &resource, &sample::config_map(name)).await;
        }
        Lab { encoder: sample::encoder(&store), store, resource }
    }

    fn reader<'a>(&'a self, format: &'a Format) -> Reader<'a> {
        let Lab { store, encoder, resource } = self;
        Reader { store, encoder, resource, namespace: Some("default"), format }
    }

    async fn answer(&self, query: &str, format: &Format) -> Response<Body> {
        let query = query::Query::parse(Some(query));
        let listed = match ListOptions::parse(&query, &self.resource, "") {
            Ok(options) => self.reader(format).list(&options).await,
            Err(refusal) => Err(refusal),
        };
        listed.unwrap_or_else(|refusal| encode::failure(&refusal, format.failure))
    }

    async fn list(&self, query: &str) -> Value {
        let answer = self.answer(query, &Format::JSON).await;
        let text = sample::text(answer.into_body()).await;
        serde_json::from_str(&text).expect("it is JSON")
    }

    async fn names(&self, query: &str) -> Vec<String> {
        let list = self.list(query).await;
        let items = list["items"].as_array().unwrap_or_else(|| panic!("{query}: {list}"));
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        items.iter().map(name).collect()
    }

    async fn check_names(&self, query: &str, expected: &[&str]) {
        assert_eq!(self.names(query).await, expected, "{query}");
    }

    async fn check_refused(&self, query: &str, code: i64, message: &str) -> Value {
        let status = self.list(query).await;
        assert_eq!((&status["code"], &status["message"]), (&json!(code), &json!(message)));
        status
    }
}

#[tokio::test]
async fn a_list_says_its_kind_and_its_items_do_not() {
    let lab = Lab::with(&["a"]).await;
    let answer = lab.answer("", &Format::JSON).await;
    assert_eq!(
        sample::text(answer.into_body()).await,
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"2\"},\
         \"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"uid-a\",\
         \"resourceVersion\":\"2\",\"creationTimestamp\":\"2026-11-16T00:00:00Z\"},\
         \"data\":{\"of\":\"a\"}}]}\n"
    );
    let empty = lab.answer("labelSelector=x", &Format::JSON).await;
    assert_eq!(
        sample::text(empty.into_body()).await,
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"2\"},\
         \"items\":[]}\n"
    );
}

#[tokio::test]
async fn a_list_of_custom_resources_has_the_order_of_a_map() {
    let store = sample::store();
    let resource = sample::widgets(
        "v1",
        "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]",
    );
    let widget = sample::object(
        "{kind: Widget, apiVersion: example.com/v1, metadata: {generation: 1, name: w, \
         namespace: default, uid: u}}",
    );
    sample::put(&store, &resource, &widget).await;
    let lab = Lab { encoder: sample::encoder(&store), store, resource };
    let answer = lab.answer("", &Format::JSON).await;
    assert_eq!(
        sample::text(answer.into_body()).await,
        "{\"apiVersion\":\"example.com/v1\",\"items\":[{\"apiVersion\":\"example.com/v1\",\
         \"kind\":\"Widget\",\"metadata\":{\"generation\":1,\"name\":\"w\",\
         \"namespace\":\"default\",\"resourceVersion\":\"2\",\"uid\":\"u\"}}],\
         \"kind\":\"WidgetList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"2\"}}\n"
    );
}

#[tokio::test]
async fn pages_show_one_moment() {
    let lab = Lab::with(&["a", "b", "c", "d", "e"]).await;
    let first = lab.list("limit=2").await;
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    let decoded = Token::parse(token).expect("it is a token");
    assert_eq!(decoded, Token { revision: 6, start: "b\0".to_owned() });

    sample::put(&lab.store, &lab.resource, &sample::config_map("bb")).await;
    let key = lab.resource.key(Some("default"), "e");
    lab.store.delete(&key, Expect::Anything).await.expect("it is there");
    lab.check_names(&format!("limit=2&continue={token}"), &["c", "d"]).await;
    let second = lab.list(&format!("limit=2&continue={token}")).await;
    assert_eq!(second["metadata"]["resourceVersion"], "6");
    let token = second["metadata"]["continue"].as_str().expect("there is more");
    let third = lab.list(&format!("limit=2&continue={token}")).await;
    assert_eq!(third["items"][0]["metadata"]["name"], "e");
    assert_eq!(third["metadata"], json!({"resourceVersion": "6"}));

    let anytime = Token { revision: -1, start: "b\0".to_owned() };
    lab.check_names(&format!("continue={anytime}"), &["bb", "c", "d"]).await;
    let exactly_there = Token { revision: -1, start: "c".to_owned() };
    lab.check_names(&format!("continue={exactly_there}"), &["c", "d"]).await;
}

#[tokio::test]
async fn a_page_of_what_is_selected_does_not_count_ahead() {
    let lab = Lab::with(&["a", "b", "c"]).await;
    let page = lab.list("limit=1&fieldSelector=metadata.name!%3Da").await;
    assert_eq!(page["items"][0]["metadata"]["name"], "b");
    assert_eq!(page["metadata"]["remainingItemCount"], Value::Null);
    assert_ne!(page["metadata"]["continue"], Value::Null);
    // Any version will do, and then there are no pages.
    lab.check_names("limit=1&resourceVersion=0", &["a", "b", "c"]).await;
    lab.check_names("limit=1&resourceVersion=2", &["a"]).await;
}

#[tokio::test]
async fn broken_tokens_are_refused_in_upstreams_words() {
    let lab = Lab::with(&["a"]).await;
    let check = async |token: &str, why: &str| {
        use base64::Engine as _;
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token);
        let message = format!("invalid continue token: continue key is not valid: {why}");
        lab.check_refused(&format!("limit=1&continue={token}"), 400, &message).await;
    };
    check("i", "invalid character 'i' looking for beginning of value").await;
    check(
        r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#,
        "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
    )
    .await;
    check(
        r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#,
        "encoded start key empty (version meta.k8s.io/v1)",
    )
    .await;
    check(r#"{"v":"x","rv":5,"start":"a"}"#, "server does not recognize this encoded version x")
        .await;
    check(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../a"}"#, "../a").await;
    check(
        r#"{"v":1}"#,
        "json: cannot unmarshal number into Go struct field continueToken.v of type string",
    )
    .await;
    let token = Token { revision: 2, start: "a\0".to_owned() };
    lab.check_refused(
        &format!("continue={token}&resourceVersion=2"),
        400,
        "specifying resource version is not allowed when using continue",
    )
    .await;
}

#[tokio::test]
async fn an_exact_version_is_the_state_of_that_moment() {
    let lab = Lab::with(&["a", "b", "c"]).await;
    lab.check_names("resourceVersion=3&resourceVersionMatch=Exact", &["a", "b"]).await;
    lab.check_names("resourceVersion=3&resourceVersionMatch=NotOlderThan", &["a", "b", "c"]).await;
    lab.check_names("resourceVersion=3&limit=9", &["a", "b"]).await;
    lab.check_names(
        "resourceVersion=3&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Dc",
        &[],
    )
    .await;
    let list = lab.list("resourceVersion=3&resourceVersionMatch=Exact").await;
    assert_eq!(list["metadata"]["resourceVersion"], "3");
    lab.check_refused(
        "resourceVersion=abc",
        400,
        "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: \
         parsing \"abc\": invalid syntax",
    )
    .await;
}

#[tokio::test]
async fn a_version_that_is_not_kept_any_more_has_expired() {
    let store = sample::forgetful_store();
    let lab = Lab { encoder: sample::encoder(&store), store, ..Lab::with(&[]).await };
    for name in ["a", "b", "c", "d"] {
        sample::put(&lab.store, &lab.resource, &sample::config_map(name)).await;
    }
    let too_old = "The resourceVersion for the provided list is too old.";
    lab.check_refused("resourceVersion=2&resourceVersionMatch=Exact", 410, too_old).await;
    lab.check_refused("resourceVersion=2&limit=1", 410, too_old).await;

    let token = Token { revision: 2, start: "/b\0".to_owned() };
    let status = lab.list(&format!("limit=1&continue={token}")).await;
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    let onward = status["metadata"]["continue"].as_str().expect("there is a way to go on");
    assert_eq!(Token::parse(onward), Ok(Token { revision: -1, start: "b\0".to_owned() }));
    lab.check_names(&format!("continue={onward}"), &["c", "d"]).await;
}

#[test]
fn all_lists_have_metadata_and_items_under_the_same_numbers() {
    let lists = kubewright_apimachinery::builtin::kinds()
        .iter()
        .filter(|kind| kind.kind.ends_with("List") && kind.ty().field("items").is_some());
    for list in lists {
        let name = |number: u32| list.ty().numbered(number).map(|field| field.json);
        assert_eq!((name(1), name(2)), (Some("metadata"), Some("items")), "{}", list.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_come_times_out() {
    let lab = Lab::with(&["a"]).await;
    let status = lab
        .check_refused(
            "resourceVersion=99",
            504,
            "Timeout: Too large resource version: 99, current: 2",
        )
        .await;
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_comes_is_waited_for() {
    let lab = Lab::with(&["a"]).await;
    let write = async {
        tokio::task::yield_now().await;
        sample::put(&lab.store, &lab.resource, &sample::config_map("b")).await;
    };
    let (names, ()) = tokio::join!(lab.names("resourceVersion=3"), write);
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn get_finds_by_name() {
    let lab = Lab::with(&["a"]).await;
    let get = async |name: &str, version: &str| {
        let options = GetOptions { resource_version: version.to_owned() };
        match lab.reader(&Format::JSON).get(name, &options).await {
            Ok(answer) => {
                let text = sample::text(answer.into_body()).await;
                serde_json::from_str::<Value>(&text).expect("it is JSON")
            }
            Err(status) => serde_json::to_value(&status).expect("it is JSON"),
        }
    };
    assert_eq!(get("a", "").await["metadata"]["resourceVersion"], "2");
    assert_eq!(get("a", "2").await["data"], json!({"of": "a"}));
    assert_eq!(get("z", "0").await["message"], "configmaps \"z\" not found");
    assert_eq!(
        get("a", "abc").await,
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \
                        \"abc\": invalid syntax",
            "code": 500,
        })
    );
}

#[tokio::test]
async fn a_long_list_comes_in_pieces_and_is_the_same() {
    let names: Vec<String> = (0..3000).map(|n| format!("n{n:04}")).collect();
    let lab = Lab::with(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let format = Format { encoding, ..Format::JSON };
        let mut body = lab.answer("", &format).await.into_body();
        assert!(matches!(body, Body::Stream(_)));
        let (mut bytes, mut pieces) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            bytes.extend(frame.expect("it cannot fail").into_data().expect("there are only data"));
            pieces += 1;
        }
        assert!(pieces > 2, "{pieces}");
        let list: Value = match encoding {
            Encoding::Protobuf => proto::decode(&bytes).expect("it is protobuf"),
            _ => serde_json::from_slice(&bytes).expect("it is JSON"),
        };
        let items = list["items"].as_array().expect("it is a list");
        assert!(items.iter().map(|item| &item["metadata"]["name"]).eq(&names));
        assert_eq!(list["metadata"]["resourceVersion"], "3001");
    }
}

#[tokio::test]
async fn a_short_list_has_a_length() {
    let lab = Lab::with(&["a"]).await;
    let body = lab.answer("", &Format::JSON).await.into_body();
    assert!(http_body::Body::size_hint(&body).exact().is_some());
}

#[tokio::test]
async fn lists_have_views() {
    let lab = Lab::with(&["a", "b"]).await;
    let view = async |view: View, encoding: Encoding| {
        let format = Format { encoding, view, failure: Encoding::Json };
        let body = lab.answer("limit=1", &format).await.into_body();
        let bytes = body.collect().await.expect("it cannot fail").to_bytes();
        match encoding {
            Encoding::Protobuf => proto::decode(&bytes).expect("it is protobuf"),
            _ => serde_json::from_slice(&bytes).expect("it is JSON"),
        }
    };
    let partial = View::PartialObjectMetadataList(MetaVersion::V1);
    let json = view(partial.clone(), Encoding::Json).await;
    assert_eq!(json["kind"], "PartialObjectMetadataList");
    assert_eq!(json["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(json["items"][0]["metadata"]["name"], "a");
    assert_eq!(json["metadata"]["remainingItemCount"], 1);
    let protobuf = view(partial, Encoding::Protobuf).await;
    assert_eq!(protobuf["metadata"], json["metadata"]);
    assert_eq!(protobuf["items"][0]["metadata"], json["items"][0]["metadata"]);

    let refused = view(View::PartialObjectMetadata(MetaVersion::V1), Encoding::Json).await;
    assert_eq!(
        refused["message"],
        "you requested PartialObjectMetadata, but the requested object is a list \
         (*core.ConfigMapList)"
    );
    let include = Ok(Include::Object);
    let table = view(View::Table { version: MetaVersion::V1, include }, Encoding::Json).await;
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1, "0s"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "ConfigMap");
    assert_eq!(table["metadata"], json["metadata"]);
}
