use serde_json::{Value, json};

use super::*;
use crate::field::Path;
use crate::fixtures;
use crate::json;

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

#[test]
fn a_status_prints_as_upstream_prints_it() {
    let status = Status::not_found(&GroupResource::new("apps", "deployments"), "web");
    assert_eq!(
        json::to_string(&serde_json::to_value(&status).unwrap()),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#
    );
}

#[test]
fn a_status_of_somebody_else_survives() {
    let text = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "no", "reason": "OutOfCoffee", "details": {"uid": "x"}, "code": 418,
    });
    let status: Status = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(status.reason, Reason::Other("OutOfCoffee".to_owned()));
    assert_eq!(serde_json::to_value(&status).unwrap(), text);
}

#[test]
fn several_errors_stand_in_brackets_each_once() {
    let (a, b) = (Path::new("a"), Path::new("b"));
    let kind = GroupKind::new("", "Pod");
    let required = field::Error::required(&a, "");
    let forbidden = field::Error::forbidden(&b, "no");
    let message = |errors: &[field::Error]| Status::invalid(&kind, "p", errors).message;
    assert_eq!(message(&[]), r#"Pod "p" is invalid"#);
    assert_eq!(
        message(&[required.clone(), required.clone()]),
        r#"Pod "p" is invalid: a: Required value"#
    );
    let errors = [required.clone(), forbidden, required];
    assert_eq!(message(&errors), r#"Pod "p" is invalid: [a: Required value, b: Forbidden: no]"#);
    let causes = Status::invalid(&kind, "p", &errors).details.unwrap().causes;
    assert_eq!(causes.len(), 3, "causes are not made distinct");
    assert_eq!(causes[1].reason, "FieldValueForbidden");
}

#[test]
fn each_failure_has_upstreams_words() {
    let check = |status: Status, code, reason, message: &str| {
        assert_eq!((status.code, status.reason, status.message.as_str()), (code, reason, message));
    };
    check(
        Status::already_exists(&pods(), "p"),
        409,
        Reason::AlreadyExists,
        r#"pods "p" already exists"#,
    );
    check(
        Status::generate_name_conflict(&pods(), "p-1", 1),
        409,
        Reason::AlreadyExists,
        r#"pods "p-1" already exists, the server was not able to generate a unique name for the object"#,
    );
    check(
        Status::modified(&pods(), "p"),
        409,
        Reason::Conflict,
        r#"Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to the latest version and try again"#,
    );
    check(
        Status::forbidden(&GroupResource::default(), "", "no"),
        403,
        Reason::Forbidden,
        "forbidden: no",
    );
    check(Status::forbidden(&pods(), "", "no"), 403, Reason::Forbidden, "pods is forbidden: no");
    check(
        Status::forbidden(&pods(), "p", "no"),
        403,
        Reason::Forbidden,
        r#"pods "p" is forbidden: no"#,
    );
    check(Status::unauthorized(""), 401, Reason::Unauthorized, "not authorized");
    check(Status::gone("old"), 410, Reason::Gone, "old");
    check(Status::expired("old"), 410, Reason::Expired, "old");
    check(
        Status::server_timeout(&pods(), "list", 2),
        500,
        Reason::ServerTimeout,
        "The list operation against pods could not be completed at this time, please try again.",
    );
    check(
        Status::request_entity_too_large("limit is 3145728"),
        413,
        Reason::RequestEntityTooLarge,
        "Request entity too large: limit is 3145728",
    );
    check(
        Status::method_not_supported(&pods(), "create"),
        405,
        Reason::MethodNotAllowed,
        r#"create is not supported on resources of kind "pods""#,
    );
    check(
        Status::not_acceptable(&["application/json", "application/yaml"]),
        406,
        Reason::NotAcceptable,
        "only the following media types are accepted: application/json, application/yaml",
    );
    check(
        Status::unsupported_media_type(&["application/json"]),
        415,
        Reason::UnsupportedMediaType,
        "the body of the request was in an unknown format - accepted media types include: application/json",
    );
    check(
        Status::internal_error("boom"),
        500,
        Reason::InternalError,
        "Internal error occurred: boom",
    );
    check(
        Status::generic(502, "GET", "bad gateway"),
        502,
        Reason::InternalError,
        r#"an error on the server ("bad gateway") has prevented the request from succeeding"#,
    );
    check(
        Status::generic(418, "GET", ""),
        418,
        Reason::Unknown,
        "the server responded with the status code 418 but did not return more information",
    );
}

#[test]
fn a_revision_from_the_future_is_named_in_a_cause() {
    let status = Status::resource_version_too_large(9, 1, 1);
    assert_eq!(status.message, "Timeout: Too large resource version: 9, current: 1");
    assert!(status.has_cause("ResourceVersionTooLarge"));
    assert!(!status.has_cause("FieldManagerConflict"));
}

#[test]
fn a_refused_body_is_shown_by_its_beginning() {
    let check = |body: &[u8], expected: &str| {
        let status = Status::unrecognized("Pod", "why", body);
        assert_eq!(
            status.message,
            format!("the object provided is unrecognized (must be of type Pod): why ({expected})")
        );
    };
    check(b"", "<empty>");
    check(b"{}", "{}");
    check(b"xyz", "78797a");
    check(br#"{"apiVersion":"v1","kind":"ConfigMap"}"#, r#"{"apiVersion":"v1","kind":"Con ..."#);
}

#[test]
fn upstream_answers_the_same() {
    for case in fixtures::load("status") {
        for step in case.steps {
            let Some(make) = step.request.more.get("make") else { continue };
            let status = serde_json::to_value(made(make)).unwrap();
            assert_eq!(Some(&status), step.answer.body.as_ref(), "{make}");
            assert_eq!(status["code"], step.answer.status, "{make}");
        }
    }
}

/// The status that a case names by constructor and arguments.
fn made(make: &Value) -> Status {
    let (constructor, with) = make.as_object().unwrap().iter().next().unwrap();
    let text = |n: usize| with[n].as_str().unwrap();
    let resource = || GroupResource::new(text(0), text(1));
    match constructor.as_str() {
        "notFound" => Status::not_found(&resource(), text(2)),
        "alreadyExists" => Status::already_exists(&resource(), text(2)),
        "modified" => Status::modified(&resource(), text(2)),
        "generic" => Status::generic(with[0].as_u64().unwrap() as u16, text(1), text(2)),
        "unsupportedMediaType" => {
            let types = with.as_array().unwrap().iter().filter_map(Value::as_str);
            Status::unsupported_media_type(&types.collect::<Vec<_>>())
        }
        "badRequest" => Status::bad_request(with.as_str().unwrap()),
        "invalid" => {
            let errors: Vec<_> = with[3].as_array().unwrap().iter().map(field_error).collect();
            Status::invalid(&GroupKind::new(text(0), text(1)), text(2), &errors)
        }
        other => panic!("no constructor is called {other}"),
    }
}

fn field_error(error: &Value) -> field::Error {
    let text = |n: usize| error[n].as_str().unwrap();
    let path = Path::new(text(1));
    match text(0) {
        "Invalid" => field::Error::invalid(&path, text(2), text(3)),
        "NotSupported" => {
            let supported = error[3].as_array().unwrap().iter().filter_map(Value::as_str);
            field::Error::not_supported(&path, text(2), &supported.collect::<Vec<_>>())
        }
        other => panic!("no error is called {other}"),
    }
}
