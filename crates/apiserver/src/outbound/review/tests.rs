use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use kubewright_apimachinery::gvk::GroupVersionKind;
use serde_json::json;

use super::{post, read, whole_seconds};
use crate::outbound::Line;
use crate::outbound::tests::{Site, authority, issued};
use crate::sample::store;

/// What is said of an answer of this code, media type and body to a ConversionReview of v1.
fn check(code: u16, media_type: &str, body: &str, expected: &str) {
    let asked = GroupVersionKind::new("apiextensions.k8s.io", "v1", "ConversionReview");
    let mut answer = Response::new(Bytes::copy_from_slice(body.as_bytes()));
    *answer.status_mut() = code.try_into().expect("a code");
    if !media_type.is_empty() {
        answer.headers_mut().insert(CONTENT_TYPE, media_type.parse().expect("a media type"));
    }
    let said = match read(&asked, &answer) {
        Ok(reviewed) => reviewed.said.to_string(),
        Err(unread) => unread.why,
    };
    assert_eq!(said, expected, "{code} {body}");
}

const JSON: &str = "application/json";

#[test]
fn a_review_is_read_whatever_its_media_type() {
    let review = r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}"#;
    let said = "apiextensions.k8s.io/v1, Kind=ConversionReview";
    for media_type in ["", JSON, "text/plain", "application/anything"] {
        check(200, media_type, review, said);
    }
    check(200, JSON, "kind: ConversionReview\napiVersion: apiextensions.k8s.io/v1", said);
    check(200, JSON, "{}", "/, Kind=");
    check(200, JSON, "null", "/, Kind=");
}

/// Recorded from upstream, which says the same of its conversions.
#[test]
fn what_is_no_review_is_refused_in_the_words_of_upstreams_client() {
    let no_object = |found: &str| {
        format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
             value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
             string \"json:\\\"kind,omitempty\\\"\" }}"
        )
    };
    let parse = "couldn't get version/kind; json parse error: ";
    check(200, JSON, "garbage", &no_object("string"));
    check(200, JSON, "[]", &no_object("array"));
    check(200, JSON, "1", &no_object("number"));
    check(200, JSON, r#"{"a":1"#, &format!("{parse}unexpected end of JSON input"));
    check(
        200,
        JSON,
        r#"{"kind":"ConversionReview","apiVersion":1}"#,
        &format!(
            "{parse}json: cannot unmarshal number into Go struct field .apiVersion of type string"
        ),
    );
    check(
        200,
        JSON,
        r#"{"kind":"Foo","apiVersion":"apiextensions.k8s.io/v1"}"#,
        "no kind \"Foo\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \
         \"pkg/runtime/scheme.go:111\"",
    );
    check(
        200,
        JSON,
        r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1"}"#,
        "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    );
    check(
        200,
        JSON,
        r#"{"kind":"Status","apiVersion":"v1"}"#,
        "converting (v1.Status) to (v1.ConversionReview): unknown conversion",
    );
    check(
        200,
        JSON,
        r#"{"response":{"convertedObjects":{"a":1}}}"#,
        "json: cannot unmarshal object into Go struct field \
         ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
    );
    check(
        200,
        JSON,
        "",
        "0-length response with status code: 200 and content type: application/json",
    );
}

#[test]
fn an_answer_that_is_no_success_says_why() {
    let text = "some text\n";
    check(404, "text/plain", text, "the server could not find the requested resource");
    check(
        500,
        "text/plain",
        text,
        "an error on the server (\"some text\") has prevented the request from succeeding",
    );
    check(
        500,
        JSON,
        r#"{"kind":"ConversionReview"}"#,
        "an error on the server (\"unknown\") has prevented the request from succeeding",
    );
    check(403, "", text, "some text");
    check(401, "", text, "the server has asked for the client to provide credentials");
    check(
        500,
        JSON,
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not today"}"#,
        "not today",
    );
}

#[test]
fn seconds_are_not_cut() {
    assert_eq!(whole_seconds(Duration::from_millis(1001)), "2s");
    assert_eq!(whole_seconds(Duration::from_secs(30)), "30s");
    assert_eq!(whole_seconds(Duration::from_secs(60)), "1m0s");
}

/// Adding it to the time of day was a panic.
#[tokio::test]
async fn a_webhook_that_wants_to_be_asked_in_a_million_years_is_given_up() {
    const LATER: &str = "HTTP/1.1 503 Service Unavailable\r\n\
                         retry-after: 18446744073709551615\r\ncontent-length: 0\r\n\r\n";
    let authority = authority("ours");
    let pair = issued(&authority, &["127.0.0.1"], |_| {});
    let site = Site::start(&pair, &[&[LATER, LATER]]).await;
    let config = json!({
        "url": format!("https://{}/hook", site.address),
        "caBundle": BASE64_STANDARD.encode(authority.pem()),
    });
    let line = Line::of_client_config(store(), &config).expect("a line");
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"});
    let answer = post(&line, &review, Duration::from_millis(500)).await;
    assert_eq!(answer.map_err(|unread| unread.code).expect_err("it says nothing"), 503);
}
