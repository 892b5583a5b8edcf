use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(conditions: Value, certificate: Option<Vec<u8>>, expected: &str) {
    let asked = json!({
        "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "request": "", "signerName": "s" },
        "status": { "conditions": conditions },
    });
    let mut asked: CertificateSigningRequest = serde_json::from_value(asked).expect("a request");
    asked.status.get_or_insert_default().certificate = certificate.map(k8s_openapi::ByteString);
    assert_eq!(until(&asked).expect("an end").to_string(), expected);
}

fn condition(kind: &str, minute: u8) -> Value {
    json!({
        "type": kind, "status": "True",
        "lastUpdateTime": format!("2026-01-01T01:{minute:02}:00Z"),
    })
}

/// A certificate that ends at the beginning of this year.
fn certificate(until: i32) -> Option<Vec<u8>> {
    let mut params = CertificateParams::default();
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().expect("a key");
    Some(params.self_signed(&key).expect("signed").pem().into_bytes())
}

#[test]
fn a_request_that_nobody_answers_stays_a_day() {
    check(json!([]), None, "2026-01-02T00:00:00Z");
    check(json!([condition("Approved", 30)]), None, "2026-01-02T01:30:00Z");
}

#[test]
fn a_request_that_was_answered_stays_an_hour() {
    check(json!([condition("Approved", 30)]), certificate(2050), "2026-01-01T02:30:00Z");
    check(json!([condition("Denied", 0)]), None, "2026-01-01T02:00:00Z");
    let both = json!([condition("Approved", 30), condition("Failed", 45)]);
    check(both, None, "2026-01-01T02:45:00Z");
}

#[test]
fn a_request_goes_with_its_certificate() {
    check(json!([condition("Approved", 30)]), certificate(2025), "2025-01-01T00:00:00Z");
}
