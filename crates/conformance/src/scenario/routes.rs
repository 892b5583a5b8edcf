//! Which paths there are, which methods they take, and what stands behind the odd ones.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::{Context, PATIENCE, any_schema, expect, names, pod, refused, same, scenarios};
use crate::endpoint::Request;

scenarios! { "routes":
    a_path_takes_only_its_methods [W7],
    objects_of_all_namespaces_are_not_deleted_at_once [W7 U9],
    custom_resources_are_asked_by_verb [W7 C5],
    routed_documents_are_only_got [W3 W7],
    components_are_asked_how_they_are [B1],
    a_log_is_asked_for_sensibly [B1 W7],
    a_proxy_leads_to_a_name_with_scheme_and_port [B1 W7],
    checks_of_health_have_names [W2],
    results_of_checks_are_counted [W2],
}

/// Sends requests, each `METHOD path`, and expects a code of each.
async fn check(cx: &Context, prefix: &str, table: &[(&str, u16)]) -> Result<()> {
    for (line, code) in table {
        let (method, path) = line.split_once(' ').unwrap_or_default();
        let method = Method::from_bytes(method.as_bytes())?;
        let answer = cx.send(Request::new(method, format!("{prefix}{path}"))).await?;
        ensure!(answer.status == *code, "{line}: expected {code}, got {answer}");
    }
    Ok(())
}

async fn a_path_takes_only_its_methods(cx: Context) -> Result<()> {
    let table = [
        ("HEAD pods", 405),
        ("HEAD pods/x", 405),
        ("HEAD pods/x/log", 405),
        ("HEAD pods/x/proxy", 404),
        ("OPTIONS pods/x/proxy", 404),
        ("OPTIONS pods/x", 405),
        ("POST pods/x", 405),
        ("GET pods/x/binding", 405),
        ("GET pods/x/nothing", 404),
        ("GET pods/x/status/more", 404),
        ("GET bindings", 405),
        ("GET bindings/x", 404),
        ("GET nodes", 404),
        ("GET nodes/x", 404),
        ("GET namespaces", 404),
        ("GET namespaces/default", 404),
        ("DELETE namespaces/default?dryRun=All", 404),
    ];
    check(&cx, &cx.core(""), &table).await?;
    let table = [
        ("HEAD pods", 405),
        ("POST pods", 405),
        ("GET pods/x", 404),
        ("OPTIONS pods/x", 404),
        ("GET bindings", 404),
        ("HEAD namespaces/default", 405),
        ("POST watch/pods", 405),
        ("GET watch/pods/x", 404),
        ("GET watch/componentstatuses", 404),
        ("GET proxy/nodes/x", 404),
        ("FOO nothing", 404),
    ];
    check(&cx, "/api/v1/", &table).await?;
    let table = [("GET subjectaccessreviews", 405), ("GET subjectaccessreviews/x", 404)];
    check(&cx, "/apis/authorization.k8s.io/v1/", &table).await
}

async fn objects_of_all_namespaces_are_not_deleted_at_once(cx: Context) -> Result<()> {
    cx.config_map("a").await?;
    let label = "labelSelector=nobody%3Dhas-this";
    let answer = cx.send(Request::delete(format!("/api/v1/configmaps?{label}"))).await?;
    let message = "the server does not allow this method on the requested resource";
    refused(&answer, 405, "MethodNotAllowed", message)?;
    let answer = cx.send(Request::delete(format!("{}?{label}", cx.core("configmaps")))).await?;
    expect(&answer, 200)?;
    Ok(())
}

async fn custom_resources_are_asked_by_verb(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("a", json!({}))).await?;
    let table = [
        ("HEAD ", 200),
        ("HEAD /a", 200),
        ("HEAD /b", 404),
        ("PUT ", 400),
        ("POST /a", 400),
        ("GET /a/nothing", 404),
        ("OPTIONS /a/nothing", 404),
    ];
    check(&cx, &cx.widget_path(), &table).await?;
    let everywhere = format!("/apis/{}/v1/widgets", cx.group());
    for (line, code) in [("HEAD ", 200), ("POST ", 404), ("DELETE ", 404), ("GET /a", 404)] {
        check(&cx, &everywhere, &[(line, code)]).await?;
    }
    // Nobody is there, not even to say so in JSON.
    let page = cx.send(Request::delete(everywhere)).await?;
    same("page", &json!(String::from_utf8_lossy(&page.bytes)), json!("404 page not found\n"))?;

    let answer = cx.send(Request::new(Method::OPTIONS, cx.widget_path())).await?;
    let message = format!(" is not supported on resources of kind \"widgets.{}\"", cx.group());
    refused(&answer, 405, "MethodNotAllowed", &message)?;
    let answer = cx.send(Request::new(Method::PUT, cx.widget_path())).await?;
    refused(&answer, 400, "BadRequest", "name must be provided")?;
    Ok(())
}

async fn routed_documents_are_only_got(cx: Context) -> Result<()> {
    let table = [
        ("HEAD /version", 405),
        ("HEAD /api", 405),
        ("HEAD /api/v1", 405),
        ("HEAD /apis/apps/v1", 405),
        ("HEAD /apis/apiregistration.k8s.io", 405),
        ("POST /.well-known/openid-configuration", 405),
        ("HEAD /openid/v1/jwks", 405),
        ("HEAD /apis", 200),
        ("HEAD /apis/apps", 200),
        ("HEAD /openapi/v3", 200),
        ("HEAD /healthz", 200),
        ("POST /healthz", 200),
        ("GET /index.html", 200),
    ];
    check(&cx, "", &table).await
}

async fn components_are_asked_how_they_are(cx: Context) -> Result<()> {
    let path = "/api/v1/componentstatuses";
    let answer = cx.send(Request::get(path)).await?;
    let warnings = vec!["v1 ComponentStatus is deprecated in v1.19+".to_owned()];
    ensure!(answer.warnings() == warnings, "warnings: {:?}", answer.warnings());
    let list = expect(&answer, 200)?;
    same("kind", &list["kind"], json!("ComponentStatusList"))?;
    same("no version, since nothing is stored", &list["metadata"], json!({}))?;
    // Also those that nobody hears of.
    for name in ["controller-manager", "etcd-0", "scheduler"] {
        ensure!(names(&list).contains(&name), "{list}");
    }

    let healthy = json!([{ "type": "Healthy", "status": "True", "message": "ok" }]);
    let storage = cx.get(&format!("{path}/etcd-0")).await?;
    let expected = json!({
        "kind": "ComponentStatus", "apiVersion": "v1",
        "metadata": { "name": "etcd-0" }, "conditions": healthy,
    });
    same("etcd-0", &storage, expected)?;
    let one = cx.get(&format!("{path}?fieldSelector=metadata.name%3Detcd-0")).await?;
    same("items", &json!(names(&one)), json!(["etcd-0"]))?;
    let none = cx.get(&format!("{path}?labelSelector=a%3Db")).await?;
    same("items", &none["items"], json!([]))?;

    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let target = format!("{path}?fieldSelector=metadata.name%3Detcd-0");
    let table = expect(&cx.send(Request::get(target).accept(table)).await?, 200)?;
    same("cells", &table["rows"][0]["cells"], json!(["etcd-0", "Healthy", "ok", ""]))?;

    let answer = cx.send(Request::get(format!("{path}/nobody"))).await?;
    refused(&answer, 404, "NotFound", "componentstatus \"nobody\" not found")?;
    let answer = cx.send(Request::new(Method::POST, path)).await?;
    ensure!(answer.warnings().is_empty(), "a warning of what is not there");
    expect(&answer, 405).map(drop)
}

async fn a_log_is_asked_for_sensibly(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&cx.core("pods"), &pod("p")).await?;
    let log = |query: &str| Request::get(cx.core(&format!("pods/p/log?{query}")));
    for query in ["", "follow=x", "sinceTime=", "tailLines=0", "container="] {
        let answer = cx.send(log(query)).await?;
        ensure!(answer.status == 204, "{query}: {answer}");
    }
    let table = [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=5&sinceTime=2020-01-01T00:00:00Z",
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("stream=All", "stream: Forbidden: may not be specified"),
    ];
    for (query, why) in table {
        let message = format!("PodLogOptions \"p\" is invalid: {why}");
        refused(&cx.send(log(query)).await?, 422, "Invalid", &message)?;
    }
    let table = [
        ("tailLines=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "sinceTime=x",
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
    ];
    for (query, message) in table {
        refused(&cx.send(log(query)).await?, 400, "BadRequest", message)?;
    }
    let answer = cx.send(Request::get(cx.core("pods/p/portforward?ports=x"))).await?;
    let message = "cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_proxy_leads_to_a_name_with_scheme_and_port(cx: Context) -> Result<()> {
    let service = json!({
        "metadata": { "name": "s" },
        "spec": { "ports": [{ "name": "web", "port": 80 }], "clusterIP": "None" },
    });
    cx.create(&cx.core("services"), &service).await?;
    for name in ["ftp:s:80", "a:b:c:d", ":s"] {
        let answer = cx.send(Request::get(cx.core(&format!("services/{name}/proxy")))).await?;
        let message = format!("invalid service request {name:?}");
        refused(&answer, 400, "BadRequest", &message)?;
    }
    for name in ["http:none:80", "none:80", "none", "https:none:"] {
        let answer = cx.send(Request::get(cx.core(&format!("services/{name}/proxy")))).await?;
        refused(&answer, 404, "NotFound", "services \"none\" not found")?;
    }
    let answer = cx.send(Request::get(cx.core("pods/ftp:p:80/proxy"))).await?;
    refused(&answer, 400, "BadRequest", "invalid pod request \"ftp:p:80\"")?;
    Ok(())
}

async fn checks_of_health_have_names(cx: Context) -> Result<()> {
    for (path, is_there) in [
        ("/readyz/informer-sync", true),
        ("/livez/informer-sync", false),
        ("/readyz/shutdown", true),
        ("/healthz/autoregister-completion", true),
        ("/livez/poststarthook/storage-readiness", true),
        ("/livez/poststarthook/rbac/bootstrap-roles", true),
        ("/livez/poststarthook/nothing", false),
    ] {
        let answer = cx.send(Request::get(path)).await?;
        let expected = if is_there { 200 } else { 404 };
        ensure!(answer.status == expected, "{path}: {answer}");
    }
    let root = cx.get("/").await?;
    let paths = root["paths"].as_array().cloned().unwrap_or_default();
    ensure!(paths.contains(&json!("/readyz/informer-sync")), "not listed");
    ensure!(paths.contains(&json!("/metrics/slis")), "not listed");
    Ok(())
}

async fn results_of_checks_are_counted(cx: Context) -> Result<()> {
    expect_text(&cx, "/livez", "ok").await?;
    let count = "kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"livez\"} ";
    let request = Request::get("/metrics/slis");
    let page = cx
        .endpoint
        .poll(&request, PATIENCE, |answer| String::from_utf8_lossy(&answer.bytes).contains(count));
    let page = String::from_utf8_lossy(&page.await?.bytes).into_owned();
    let state = "kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1\n";
    ensure!(page.contains(state), "no {state} in {page}");
    ensure!(page.contains("# TYPE kubernetes_healthcheck gauge\n"), "{page}");
    ensure!(page.contains("# TYPE process_start_time_seconds gauge\n"), "{page}");
    Ok(())
}

async fn expect_text(cx: &Context, path: &str, expected: &str) -> Result<()> {
    let answer = cx.send(Request::get(path)).await?;
    let body: Value = json!(String::from_utf8_lossy(&answer.bytes));
    same(path, &body, json!(expected))
}
