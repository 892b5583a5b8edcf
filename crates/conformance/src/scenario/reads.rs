//! Gets and lists: versions, exactness, pages and selectors.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Context, OURS, expect, names, pod, refused, revision, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "reads":
    versions_of_all_objects_are_one_rising_number [R1],
    a_list_is_at_least_as_new_as_its_items [R1 R8],
    a_list_can_be_asked_at_an_exact_version [R2],
    a_list_can_be_asked_not_older_than_a_version [R2],
    a_page_at_a_version_is_exact [R2 R3],
    a_version_that_is_still_to_come_times_out [R2],
    contradictory_list_options_are_invalid [R2],
    a_version_that_is_no_number_is_a_bad_request [R2],
    pages_show_one_moment [R3],
    pages_say_how_much_is_left [R3],
    a_continue_token_names_version_and_place [R3],
    a_continue_token_names_the_namespace_too [R3],
    a_continue_token_without_version_goes_on_with_what_is_there [R3],
    a_broken_continue_token_is_a_bad_request [R3],
    labels_select [R4],
    a_broken_label_selector_is_a_bad_request [R4],
    names_select_as_fields [R4],
    events_are_selected_by_what_they_are_about [R4],
    fields_of_their_own_select_some_kinds [R4],
    an_unknown_field_cannot_select [R4],
}

async fn versions_of_all_objects_are_one_rising_number(cx: Context) -> Result<()> {
    let first = revision(&cx.config_map("one").await?)?;
    let secret = json!({ "metadata": { "name": "two" } });
    let second = revision(&cx.create(&cx.core("secrets"), &secret).await?)?;
    let third = revision(&cx.config_map("three").await?)?;
    ensure!(first < second && second < third, "{first}, {second}, {third} do not rise");
    Ok(())
}

async fn a_list_is_at_least_as_new_as_its_items(cx: Context) -> Result<()> {
    let empty = cx.get(&cx.core("configmaps?labelSelector=nobody")).await?;
    same("items", &empty["items"], json!([]))?;
    let before = revision(&empty)?;
    let created = revision(&cx.config_map("one").await?)?;
    let list = cx.get(&cx.core("configmaps")).await?;
    same("kind", &list["kind"], json!("ConfigMapList"))?;
    ensure!(before < created && created <= revision(&list)?, "{before}, {created}, {list}");
    // Items of a built-in list do not repeat what the list says.
    same("kind of an item", &list["items"][0]["kind"], Value::Null)?;
    same("apiVersion of an item", &list["items"][0]["apiVersion"], Value::Null)
}

async fn a_list_can_be_asked_at_an_exact_version(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let then = cx.get(&cx.core(&format!("configmaps?{OURS}"))).await?;
    cx.config_map("two").await?;
    let target = format!(
        "configmaps?{OURS}&resourceVersionMatch=Exact&resourceVersion={}",
        revision(&then)?
    );
    let exact = cx.get(&cx.core(&target)).await?;
    ensure!(names(&exact) == ["one"], "{:?}", names(&exact));
    same("version", &exact["metadata"]["resourceVersion"], json!(revision(&then)?.to_string()))
}

async fn a_list_can_be_asked_not_older_than_a_version(cx: Context) -> Result<()> {
    let version = revision(&cx.config_map("one").await?)?;
    for matching in ["", "&resourceVersionMatch=NotOlderThan"] {
        let target = format!("configmaps?resourceVersion={version}{matching}");
        let list = cx.get(&cx.core(&target)).await?;
        ensure!(names(&list).contains(&"one"), "{:?}", names(&list));
        ensure!(revision(&list)? >= version, "{} is older than {version}", revision(&list)?);
    }
    let object = cx.get(&cx.core(&format!("configmaps/one?resourceVersion={version}"))).await?;
    same("name", &object["metadata"]["name"], json!("one"))?;
    cx.get(&cx.core("configmaps?resourceVersion=0")).await?;
    Ok(())
}

async fn a_page_at_a_version_is_exact(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    let then = cx.get(&cx.core("secrets")).await?;
    expect(&cx.send(Request::delete(cx.core("secrets/a"))).await?, 200)?;
    // A limit asks for what was, and its absence for what is now.
    let target = format!("secrets?resourceVersion={}", revision(&then)?);
    let page = cx.get(&cx.core(&format!("{target}&limit=2"))).await?;
    ensure!(names(&page) == ["a", "b"], "{:?}", names(&page));
    same("version", &json!(revision(&page)?), json!(revision(&then)?))?;
    let newer = format!("{target}&limit=2&resourceVersionMatch=NotOlderThan");
    let newer = cx.get(&cx.core(&newer)).await?;
    ensure!(revision(&newer)? >= revision(&then)?, "{newer}");
    let any = cx.get(&cx.core("secrets?resourceVersion=0&limit=2")).await?;
    ensure!(!names(&any).is_empty(), "{any}");
    Ok(())
}

async fn a_version_that_is_still_to_come_times_out(cx: Context) -> Result<()> {
    for matching in ["", "&resourceVersionMatch=Exact"] {
        let target = cx.core(&format!("configmaps?resourceVersion=999999999999{matching}"));
        let answer = cx.send(Request::get(target)).await?;
        same("retry-after", &json!(answer.header("retry-after")), json!("1"))?;
        let status = expect(&answer, 504)?;
        same("reason", &status["reason"], json!("Timeout"))?;
        let message = text(&status, "/message");
        let start = "Timeout: Too large resource version: 999999999999, current: ";
        ensure!(message.starts_with(start), "{message}");
        same(
            "details",
            &status["details"],
            json!({
                "causes": [{
                    "reason": "ResourceVersionTooLarge",
                    "message": "Too large resource version",
                }],
                "retryAfterSeconds": 1,
            }),
        )?;
    }
    Ok(())
}

async fn contradictory_list_options_are_invalid(cx: Context) -> Result<()> {
    let cases = [
        (
            "resourceVersionMatch=Exact",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersion=5&resourceVersionMatch=Some",
            "Unsupported value: \"Some\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
    ];
    for (query, cause) in cases {
        let answer = cx.send(Request::get(cx.core(&format!("configmaps?{query}")))).await?;
        let message =
            format!("ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: {cause}");
        let status = refused(&answer, 422, "Invalid", &message)?;
        same("kind", &status["details"]["kind"], json!("ListOptions"))?;
        same("cause", &status["details"]["causes"][0]["message"], json!(cause))?;
        same("field", &status["details"]["causes"][0]["field"], json!("resourceVersionMatch"))?;
    }
    Ok(())
}

async fn a_version_that_is_no_number_is_a_bad_request(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get(cx.core("configmaps?resourceVersion=new"))).await?;
    let message = "invalid resource version: resourceVersion: Invalid value: \"new\": \
                   strconv.ParseUint: parsing \"new\": invalid syntax";
    refused(&answer, 400, "BadRequest", message)?;
    let answer = cx.send(Request::get(cx.core("configmaps?limit=some"))).await?;
    let message = "strconv.ParseInt: parsing \"some\": invalid syntax";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn five_secrets(cx: &Context) -> Result<()> {
    for name in ["a", "b", "c", "d", "e"] {
        let labels = json!({ "group": "five" });
        let secret = json!({ "metadata": { "name": name, "labels": labels } });
        cx.create(&cx.core("secrets"), &secret).await?;
    }
    Ok(())
}

async fn pages_show_one_moment(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    let first = cx.get(&cx.core("secrets?limit=2")).await?;
    ensure!(names(&first) == ["a", "b"], "{:?}", names(&first));
    let late = json!({ "metadata": { "name": "bb" } });
    cx.create(&cx.core("secrets"), &late).await?;
    expect(&cx.send(Request::delete(cx.core("secrets/e"))).await?, 200)?;

    let token = text(&first, "/metadata/continue");
    let second = cx.get(&cx.core(&format!("secrets?limit=2&continue={token}"))).await?;
    ensure!(names(&second) == ["c", "d"], "{:?}", names(&second));
    let token = text(&second, "/metadata/continue");
    let third = cx.get(&cx.core(&format!("secrets?limit=2&continue={token}"))).await?;
    ensure!(names(&third) == ["e"], "{:?}", names(&third));
    same("continue", &third["metadata"]["continue"], Value::Null)?;
    for page in [&second, &third] {
        same(
            "version",
            &page["metadata"]["resourceVersion"],
            first["metadata"]["resourceVersion"].clone(),
        )?;
    }
    Ok(())
}

async fn pages_say_how_much_is_left(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    let first = cx.get(&cx.core("secrets?limit=2")).await?;
    same("remaining", &first["metadata"]["remainingItemCount"], json!(3))?;
    let token = text(&first, "/metadata/continue");
    let second = cx.get(&cx.core(&format!("secrets?limit=2&continue={token}"))).await?;
    same("remaining", &second["metadata"]["remainingItemCount"], json!(1))?;
    // With a selector the server does not count ahead.
    let selected = cx.get(&cx.core("secrets?limit=2&labelSelector=group%3Dfive")).await?;
    ensure!(!text(&selected, "/metadata/continue").is_empty(), "no continue");
    same("remaining", &selected["metadata"]["remainingItemCount"], Value::Null)
}

async fn a_continue_token_names_version_and_place(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    let page = cx.get(&cx.core("secrets?limit=2")).await?;
    let token = URL_SAFE_NO_PAD.decode(text(&page, "/metadata/continue")).context("decode")?;
    let token: Value = serde_json::from_slice(&token)?;
    same(
        "token",
        &token,
        json!({
            "v": "meta.k8s.io/v1",
            "rv": revision(&page)?,
            "start": "/b\u{0}",
        }),
    )?;
    let target = format!(
        "secrets?limit=2&continue={}&resourceVersion={}",
        text(&page, "/metadata/continue"),
        revision(&page)?
    );
    let answer = cx.send(Request::get(cx.core(&target))).await?;
    let message = "specifying resource version is not allowed when using continue";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_continue_token_names_the_namespace_too(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    let first = cx.get("/api/v1/secrets?labelSelector=group%3Dfive&limit=1").await?;
    let decode = |page: &Value| -> Result<Value> {
        let token = URL_SAFE_NO_PAD.decode(text(page, "/metadata/continue")).context("decode")?;
        Ok(serde_json::from_slice(&token)?)
    };
    let item = &first["items"][0];
    let place =
        format!("/{}/{}\u{0}", text(item, "/metadata/namespace"), text(item, "/metadata/name"));
    let token = json!({ "v": "meta.k8s.io/v1", "rv": revision(&first)?, "start": place });
    same("token", &decode(&first)?, token)
}

async fn a_continue_token_without_version_goes_on_with_what_is_there(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    let first = cx.get(&cx.core("secrets?limit=2")).await?;
    expect(&cx.send(Request::delete(cx.core("secrets/d"))).await?, 200)?;
    // This is what the server offers when the version of a token has expired.
    let token = json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": "b\u{0}" });
    let token = URL_SAFE_NO_PAD.encode(token.to_string());
    let rest = cx.get(&cx.core(&format!("secrets?limit=9&continue={token}"))).await?;
    ensure!(names(&rest) == ["c", "e"], "{:?}", names(&rest));
    ensure!(revision(&rest)? > revision(&first)?, "the rest is as old as the first page");
    Ok(())
}

async fn a_broken_continue_token_is_a_bad_request(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get(cx.core("secrets?continue=%7B%7D"))).await?;
    let status = expect(&answer, 400)?;
    same("reason", &status["reason"], json!("BadRequest"))?;
    let message = text(&status, "/message");
    ensure!(message.starts_with("invalid continue token: "), "{message}");
    Ok(())
}

async fn labels_select(cx: Context) -> Result<()> {
    for (name, labels) in [
        ("a", json!({ "tier": "web", "env": "test" })),
        ("b", json!({ "tier": "web", "env": "live" })),
        ("c", json!({ "tier": "data" })),
        ("d", json!({})),
    ] {
        let secret = json!({ "metadata": { "name": name, "labels": labels } });
        cx.create(&cx.core("secrets"), &secret).await?;
    }
    for (selector, expected) in [
        ("tier=web", vec!["a", "b"]),
        ("tier==web", vec!["a", "b"]),
        ("tier!=web", vec!["c", "d"]),
        ("tier in (web,data)", vec!["a", "b", "c"]),
        ("env notin (test)", vec!["b", "c", "d"]),
        ("env", vec!["a", "b"]),
        ("!env", vec!["c", "d"]),
        ("tier=web,env!=test", vec!["b"]),
        ("tier=", vec![]),
    ] {
        let query: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
        let list = cx.get(&cx.core(&format!("secrets?labelSelector={query}"))).await?;
        ensure!(names(&list) == expected, "{selector} selects {:?}", names(&list));
    }
    Ok(())
}

async fn a_broken_label_selector_is_a_bad_request(cx: Context) -> Result<()> {
    for (selector, message) in [
        ("a%3Db%3Dc", "found '=', expected: ',' or 'end of string'"),
        ("a+in+(", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
    ] {
        let target = cx.core(&format!("secrets?labelSelector={selector}"));
        refused(&cx.send(Request::get(target)).await?, 400, "BadRequest", message)?;
    }
    Ok(())
}

async fn names_select_as_fields(cx: Context) -> Result<()> {
    five_secrets(&cx).await?;
    for (selector, expected) in [
        ("metadata.name%3Db".to_owned(), vec!["b"]),
        ("metadata.name%21%3Db".to_owned(), vec!["a", "c", "d", "e"]),
        (format!("metadata.namespace%3D{}", cx.namespace), vec!["a", "b", "c", "d", "e"]),
        ("metadata.namespace%3Dother".to_owned(), vec![]),
        ("type%3DOpaque,metadata.name%3Dc".to_owned(), vec!["c"]),
        ("type%3Dkubernetes.io/tls".to_owned(), vec![]),
    ] {
        let list = cx.get(&cx.core(&format!("secrets?fieldSelector={selector}"))).await?;
        ensure!(names(&list) == expected, "{selector} selects {:?}", names(&list));
    }
    Ok(())
}

async fn events_are_selected_by_what_they_are_about(cx: Context) -> Result<()> {
    for (name, reason) in [("first", "Started"), ("second", "Stopped")] {
        let event = json!({
            "metadata": { "name": name },
            "involvedObject": { "kind": "Pod", "namespace": cx.namespace, "name": "pod" },
            "reason": reason,
            "type": "Normal",
        });
        cx.create(&cx.core("events"), &event).await?;
    }
    for (selector, expected) in [
        ("involvedObject.name%3Dpod,reason%3DStopped", vec!["second"]),
        ("involvedObject.kind%3DPod,type%3DNormal", vec!["first", "second"]),
        ("involvedObject.kind%3DNode", vec![]),
    ] {
        let list = cx.get(&cx.core(&format!("events?fieldSelector={selector}"))).await?;
        ensure!(names(&list) == expected, "{selector} selects {:?}", names(&list));
    }
    Ok(())
}

async fn fields_of_their_own_select_some_kinds(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let mut pod = pod("one");
    pod["spec"]["nodeName"] = json!("nowhere");
    cx.create(&cx.core("pods"), &pod).await?;
    let status = json!({ "status": { "podIP": "192.0.2.7", "podIPs": [{ "ip": "192.0.2.7" }] } });
    expect(&cx.send(Request::merge_patch(cx.core("pods/one/status"), &status)).await?, 200)?;
    let select = async |collection: &str, selector: &str| -> Result<Value> {
        let query: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
        cx.get(&format!("{collection}?fieldSelector={query}")).await
    };
    let pods = cx.core("pods");
    for (selector, is_selected) in [
        ("spec.nodeName=nowhere", true),
        ("spec.nodeName!=nowhere", false),
        ("spec.nodeName=", false),
        ("spec.restartPolicy=Always", true),
        ("spec.schedulerName=default-scheduler", true),
        ("spec.serviceAccountName=default", true),
        ("spec.hostNetwork=false", true),
        ("status.phase=Pending", true),
        ("status.phase!=Pending", false),
        ("status.podIP=192.0.2.7", true),
        // Known, and empty for every pod.
        ("status.podIPs=192.0.2.7", false),
        ("status.nominatedNodeName=", true),
    ] {
        let found = select(&pods, selector).await?;
        ensure!((names(&found) == ["one"]) == is_selected, "{selector} selects {found}");
    }
    let cluster = [
        ("/api/v1/nodes", "spec.unschedulable=false"),
        ("/api/v1/namespaces", "status.phase=Active"),
        ("/apis/batch/v1/jobs", "status.successful=1"),
        ("/apis/certificates.k8s.io/v1/certificatesigningrequests", "spec.signerName=a.b/c"),
        ("/api/v1/events", "involvedObject.fieldPath=a,reportingComponent=b,source=c"),
        ("/apis/events.k8s.io/v1/events", "regarding.name=a,reportingController=b"),
        ("/api/v1/services", "spec.clusterIP=None,spec.type=ClusterIP"),
        ("/api/v1/replicationcontrollers", "status.replicas=7"),
        ("/apis/resource.k8s.io/v1/resourceslices", "spec.nodeName=a,spec.driver=b"),
    ];
    for (collection, selector) in cluster {
        select(collection, selector).await?;
    }
    let answer = cx.send(Request::get(format!("{pods}?fieldSelector=spec.hostname%3Da"))).await?;
    let status = expect(&answer, 400)?;
    same("message", &status["message"], json!("field label not supported: spec.hostname"))
}

async fn an_unknown_field_cannot_select(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get(cx.core("configmaps?fieldSelector=data.key%3Dx"))).await?;
    let message = "\"data.key\" is not a known field selector: only \"metadata.name\", \
                   \"metadata.namespace\"";
    refused(&answer, 400, "BadRequest", message)?;
    let answer = cx.send(Request::get(cx.core("configmaps?fieldSelector=metadata.name"))).await?;
    let message = "invalid selector: 'metadata.name'; can't understand 'metadata.name'";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}
