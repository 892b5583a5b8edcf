//! Webhooks that do not convert what they are given, and what becomes of those who ask.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::conversion::{Converter, created, define, definition, one, path, widget};
use super::{Context, expect, revision, same, scenarios, text};
use crate::endpoint::{Answer, Request};
use crate::hook::Reply;

scenarios! { "conversion_failures":
    conversions_are_counted [C16 B1],
    only_labels_and_annotations_can_be_converted [C16],
    a_webhook_that_fails_fails_every_request [C16],
    a_watch_waits_while_a_conversion_fails [C16],
    what_a_webhook_answers_is_checked [C16],
    a_webhook_with_the_wrong_certificate_is_not_asked [C16],
}

/// The refusal of a request for the sake of a conversion from `version`.
fn failure(cx: &Context, version: &str, answer: &Answer, why: &str) -> Result<()> {
    let status = expect(answer, 500)?;
    let message = format!("conversion webhook for {}/{version}, Kind=Widget {why}", cx.group());
    same("message", &status["message"], json!(message))?;
    same("there is no reason", &status["reason"], Value::Null)
}

async fn only_labels_and_annotations_can_be_converted(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    let first = created(&cx, "a", "one:1").await?;
    converter.change_objects(|object| {
        object["metadata"]["labels"] = json!({ "a": "b" });
        object["metadata"]["annotations"] = json!({ "c": "d" });
        object["metadata"]["finalizers"] = json!(["example.com/wait"]);
        object["metadata"]["generation"] = json!(77);
        object["metadata"]["managedFields"] = json!([]);
    });
    let found = cx.get(&one(&cx, "v1", "a")).await?;
    let mut expected = first["metadata"].clone();
    expected["labels"] = json!({ "a": "b" });
    expected["annotations"] = json!({ "c": "d" });
    same("metadata", &found["metadata"], expected)?;

    let uid = text(&first, "/metadata/uid").to_owned();
    let namespace = &cx.namespace;
    let same_name = "returned invalid object: must have the same";
    let cases: Vec<(&str, Value, String)> = vec![
        ("name", json!("other"), format!("{same_name} name: a != other")),
        ("namespace", json!("other"), format!("{same_name} namespace: {namespace} != other")),
        ("uid", json!("other"), format!("{same_name} UID: {uid} != other")),
        (
            "labels",
            json!({ "a": 1 }),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in \
             converted object"
                .to_owned(),
        ),
        (
            "labels",
            json!("a"),
            "returned invalid metadata: invalid metadata.labels of type string in converted object"
                .to_owned(),
        ),
        (
            "labels",
            json!({ "a": "b c" }),
            "returned invalid metadata: metadata.labels: Invalid value: \"b c\": a valid label \
             must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  \
             or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        ),
    ];
    for (field, value, why) in cases {
        converter.change_objects(move |object| object["metadata"][field] = value.clone());
        let answer = cx.send(Request::get(one(&cx, "v1", "a"))).await?;
        failure(&cx, "v2", &answer, &why)?;
    }
    Ok(())
}

async fn a_webhook_that_fails_fails_every_request(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    let mut a = created(&cx, "a", "one:1").await?;
    converter.fail();
    let in_v1 = one(&cx, "v1", "a");
    let why = "failed: not today";
    for request in [
        Request::get(in_v1.clone()),
        Request::get(format!("{in_v1}/status")),
        Request::get(format!("{in_v1}/scale")),
        Request::delete(in_v1.clone()),
    ] {
        failure(&cx, "v2", &cx.send(request).await?, why)?;
    }
    let draft = widget(&cx, "v1", "b", json!({ "hostPort": "two:2" }));
    for request in [
        Request::post(path(&cx, "v1"), &draft),
        Request::post(format!("{}?dryRun=All", path(&cx, "v1")), &draft),
        Request::apply(format!("{}?fieldManager=me", one(&cx, "v1", "b")), &draft),
    ] {
        failure(&cx, "v1", &cx.send(request).await?, why)?;
    }
    a["spec"]["hostPort"] = json!("three:3");
    for request in [
        Request::put(in_v1.clone(), &a),
        Request::merge_patch(in_v1.clone(), &json!({ "spec": { "hostPort": "three:3" } })),
    ] {
        // A server that still knows what the object was converted to fails on the way back.
        let answer = cx.send(request).await?;
        failure(&cx, "v1", &answer, why).or_else(|_| failure(&cx, "v2", &answer, why))?;
    }
    converter.answer_well();
    let found = cx.get(&in_v1).await?;
    same("nothing has changed", &found["spec"], json!({ "hostPort": "one:1" }))?;
    expect(&cx.send(Request::get(one(&cx, "v1", "b"))).await?, 404)?;
    Ok(())
}

async fn a_watch_waits_while_a_conversion_fails(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    let a = created(&cx, "a", "one:1").await?;
    let target = format!("{}?watch=1&resourceVersion={}", path(&cx, "v1"), revision(&a)?);
    let mut watch = cx.watch(target).await?;
    converter.fail();
    let patch = json!({ "spec": { "port": "2" } });
    expect(&cx.send(Request::merge_patch(one(&cx, "v2", "a"), &patch)).await?, 200)?;
    let answer = cx.send(Request::get(one(&cx, "v1", "a"))).await?;
    failure(&cx, "v2", &answer, "failed: not today")?;
    converter.answer_well();
    let event = watch.event().await?;
    same("type", &event["type"], json!("MODIFIED"))?;
    same("spec", &event["object"]["spec"], json!({ "hostPort": "one:2" }))
}

async fn what_a_webhook_answers_is_checked(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    created(&cx, "a", "one:1").await?;
    let in_v1 = one(&cx, "v1", "a");
    let group = cx.group();
    let say = |status: u16, media_type: &'static str, body: &str| {
        let body = body.as_bytes().to_vec();
        converter.answer_with(move |_, _| Reply::new(status, media_type, body.clone()));
    };
    const JSON: &str = "application/json";
    let struct_type = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
                       string \"json:\\\"kind,omitempty\\\"\" }";
    for (status, media_type, body, why) in [
        (
            200,
            JSON,
            "garbage",
            format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal string into \
                 Go value of type {struct_type}"
            ),
        ),
        (
            200,
            JSON,
            "{\"kind\":",
            "couldn't get version/kind; json parse error: unexpected end of JSON input".to_owned(),
        ),
        (
            200,
            JSON,
            "",
            "0-length response with status code: 200 and content type: application/json".to_owned(),
        ),
        (
            200,
            JSON,
            r#"{"kind":"Foo","apiVersion":"apiextensions.k8s.io/v1"}"#,
            "no kind \"Foo\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \
             \"pkg/runtime/scheme.go:111\""
                .to_owned(),
        ),
        (
            500,
            "text/plain",
            "out of order\n",
            "an error on the server (\"out of order\") has prevented the request from succeeding"
                .to_owned(),
        ),
        (404, "text/plain", "no", "the server could not find the requested resource".to_owned()),
    ] {
        say(status, media_type, body);
        let answer = cx.send(Request::get(in_v1.clone())).await?;
        failure(&cx, "v2", &answer, &format!("failed: {why}"))?;
    }

    type Change = fn(&mut Value);
    let twisted: Vec<(Change, String)> = vec![
        (
            |answer| answer["response"]["convertedObjects"] = json!([]),
            "returned 0 objects, expected 1".to_owned(),
        ),
        (
            |answer| {
                let object = answer["response"]["convertedObjects"][0].clone();
                answer["response"]["convertedObjects"] = json!([object, object]);
            },
            "returned 2 objects, expected 1".to_owned(),
        ),
        (|answer| answer["response"] = Value::Null, "failed: no response provided".to_owned()),
        (
            |answer| answer["response"]["result"] = json!({}),
            "failed: response.result.status was '', not 'Success'".to_owned(),
        ),
        (
            |answer| answer["apiVersion"] = json!("apiextensions.k8s.io/v1beta1"),
            "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown \
             conversion"
                .to_owned(),
        ),
        (
            |answer| {
                answer["response"]["convertedObjects"][0]["apiVersion"] = json!("example.com/v9");
            },
            format!(
                "returned invalid object at index 0: invalid groupVersion (expected {group}/v1, \
                 received example.com/v9)"
            ),
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["kind"] = json!("Gadget"),
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)"
                .to_owned(),
        ),
    ];
    for (twist, why) in twisted {
        converter.answer_with(move |_, mut answer| {
            twist(&mut answer);
            Reply::json(&answer)
        });
        failure(&cx, "v2", &cx.send(Request::get(in_v1.clone())).await?, &why)?;
    }

    converter.answer_with(|_, mut answer| {
        answer["response"]["uid"] = json!("another");
        Reply::json(&answer)
    });
    let answer = cx.send(Request::get(in_v1)).await?;
    // A server may also ask for itself.
    let is_told = converter.hook.asked().iter().any(|asked| {
        let uid = text(&asked.review, "/request/uid");
        let why = format!("failed: expected response.uid=\"{uid}\", got \"another\"");
        failure(&cx, "v2", &answer, &why).is_ok()
    });
    ensure!(is_told, "{answer}");
    Ok(())
}

async fn a_webhook_with_the_wrong_certificate_is_not_asked(cx: Context) -> Result<()> {
    let (converter, stranger) = (Converter::start(&[]).await?, Converter::start(&[]).await?);
    let mut config = converter.hook.client_config("/");
    config["caBundle"] = json!(stranger.hook.ca_bundle());
    let webhook = json!({ "clientConfig": config, "conversionReviewVersions": ["v1"] });
    cx.define(&definition(&cx, "v2", webhook)).await?;
    let draft = widget(&cx, "v1", "a", json!({ "hostPort": "one:1" }));
    let status = expect(&cx.send(Request::post(path(&cx, "v1"), &draft)).await?, 500)?;
    let expected = format!(
        "conversion webhook for {}/v1, Kind=Widget failed: Post \
         \"https://127.0.0.1:{}/?timeout=30s\": tls: failed to verify certificate: x509: \
         certificate signed by unknown authority",
        cx.group(),
        converter.hook.port()
    );
    ensure!(text(&status, "/message").starts_with(&expected), "{status}, not {expected}");
    ensure!(converter.hook.asked().is_empty(), "it was asked");
    // What is stored in the version asked for needs nobody.
    let stored = widget(&cx, "v2", "a", json!({ "host": "one" }));
    cx.create(&path(&cx, "v2"), &stored).await?;
    Ok(())
}

async fn conversions_are_counted(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    created(&cx, "a", "one:1").await?;
    converter.fail();
    expect(&cx.send(Request::get(one(&cx, "v1", "a"))).await?, 500)?;
    let definition = format!("widgets.{}", cx.group());
    let page = cx.send(Request::get("/metrics")).await?;
    let page = String::from_utf8_lossy(&page.bytes).into_owned();
    let labels = |from: &str, succeeded: bool, to: &str| {
        format!(
            "crd_name=\"{definition}\",from_version=\"{from}\",succeeded=\"{succeeded}\",\
             to_version=\"{to}\""
        )
    };
    let prefix = "apiserver_crd_conversion_webhook_duration_seconds";
    // How often upstream asks is its own affair.
    for start in [
        format!("{prefix}_bucket{{{},le=\"0.001\"}} ", labels("v1", true, "v2")),
        format!("{prefix}_bucket{{{},le=\"16.384\"}} ", labels("v1", true, "v2")),
        format!("{prefix}_count{{{}}} ", labels("v2", false, "v1")),
        "apiserver_conversion_webhook_request_total{failure_type=\"\",result=\"success\"} ".to_owned(),
        "apiserver_conversion_webhook_request_total{failure_type=\
         \"conversion_webhook_malformed_response_failure\",result=\"failure\"} "
            .to_owned(),
        "apiserver_conversion_webhook_duration_seconds_bucket{failure_type=\"\",result=\"success\",\
         le=\"45\"} "
            .to_owned(),
    ] {
        ensure!(page.lines().any(|line| line.starts_with(&start)), "no line {start}");
    }
    Ok(())
}
