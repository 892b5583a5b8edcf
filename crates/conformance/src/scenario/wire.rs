//! Version, health, discovery, OpenAPI and errors: what a client learns before it does anything.

use anyhow::{Context as _, Result, ensure};
use http::header::{ACCEPT, IF_NONE_MATCH};
use serde_json::{Value, json};

use super::{Context, PATIENCE, config_map, expect, names, refused, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "wire":
    version_names_the_release [W1],
    health_can_be_asked_by_anyone [W2],
    health_can_leave_checks_out [W2],
    legacy_discovery_lists_groups_and_versions [W3],
    legacy_discovery_describes_each_resource [W3],
    the_groups_of_the_release_are_served [W3],
    an_unknown_group_or_resource_is_not_found [W3 W7],
    aggregated_discovery_holds_everything_in_two_answers [W4],
    aggregated_discovery_is_cached_by_etag [W4],
    aggregated_discovery_falls_back_to_the_next_form [W4],
    openapi_v3_lists_documents_by_hash [W5],
    openapi_v3_redirects_to_the_right_hash [W5],
    openapi_v3_tells_kubectl_how_to_patch [W5],
    openapi_v3_speaks_protobuf [W5],
    openapi_v2_is_one_cached_document [W6],
    an_absent_object_is_not_found [W7],
    a_refusal_comes_in_yaml [W7],
    a_taken_name_is_a_conflict [W7],
    a_method_that_is_not_there_is_refused [W7],
    an_unknown_media_type_is_not_acceptable [W7],
    a_body_that_is_no_json_is_a_bad_request [W7],
    a_body_of_more_than_three_mebibytes_is_refused [W7 U12],
    every_answer_names_its_audit_and_priority [W12],
    a_long_answer_is_compressed_when_asked [W12],
    answers_are_indented_for_people [W12],
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn version_names_the_release(cx: Context) -> Result<()> {
    let anonymous = cx.endpoint.without_credentials();
    let version = expect(&anonymous.send(&Request::get("/version")).await?, 200)?;
    let keys: Vec<&str> =
        version.as_object().context("no object")?.keys().map(String::as_str).collect();
    let expected = [
        "major",
        "minor",
        "emulationMajor",
        "emulationMinor",
        "minCompatibilityMajor",
        "minCompatibilityMinor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    ensure!(keys == expected, "keys are {keys:?}");
    for key in ["major", "emulationMajor", "minCompatibilityMajor"] {
        same(key, &version[key], json!("1"))?;
    }
    same("minor", &version["minor"], json!("36"))?;
    same("emulationMinor", &version["emulationMinor"], json!("36"))?;
    same("minCompatibilityMinor", &version["minCompatibilityMinor"], json!("35"))?;
    ensure!(text(&version, "/gitVersion").starts_with("v1.36."), "{}", version["gitVersion"]);
    Ok(())
}

async fn health_can_be_asked_by_anyone(cx: Context) -> Result<()> {
    let anonymous = cx.endpoint.without_credentials();
    // A busy server may not hear from its storage in time, once or twice.
    let well = async |target: String| {
        anonymous.poll(&Request::get(target), PATIENCE, |answer| answer.status == 200).await
    };
    for check in ["healthz", "livez", "readyz"] {
        let answer = well(format!("/{check}")).await?;
        ensure!(answer.bytes == b"ok", "{check}: {answer}");
        same("content type", &json!(answer.content_type()), json!("text/plain; charset=utf-8"))?;
        let verbose = well(format!("/{check}?verbose")).await?;
        let lines = String::from_utf8(verbose.bytes)?;
        ensure!(lines.starts_with("[+]ping ok\n"), "{check}: {lines}");
        ensure!(lines.ends_with(&format!("{check} check passed\n")), "{check}: {lines}");
        let single = cx.send(Request::get(format!("/{check}/ping"))).await?;
        ensure!(single.status == 200 && single.bytes == b"ok", "{check}/ping: {single}");
    }
    Ok(())
}

async fn health_can_leave_checks_out(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get("/readyz?verbose&exclude=ping&exclude=nonsense")).await?;
    let lines = String::from_utf8(answer.bytes)?;
    ensure!(lines.starts_with("[+]ping excluded: ok\n"), "{lines}");
    let warning = "warn: some health checks cannot be excluded: no matches for \"nonsense\"";
    ensure!(lines.contains(warning), "{lines}");
    Ok(())
}

async fn legacy_discovery_lists_groups_and_versions(cx: Context) -> Result<()> {
    let core = cx.get("/api").await?;
    same("kind", &core["kind"], json!("APIVersions"))?;
    same("versions", &core["versions"], json!(["v1"]))?;

    let groups = cx.get("/apis").await?;
    same("kind", &groups["kind"], json!("APIGroupList"))?;
    let groups = groups["groups"].as_array().context("no groups")?;
    let group_names: Vec<&str> = groups.iter().map(|group| text(group, "/name")).collect();
    // Upstream's own order, which kubectl shows and resolves short names by.
    let first = ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"];
    ensure!(group_names.starts_with(&first), "groups are {group_names:?}");
    let apps = json!({
        "name": "apps",
        "versions": [{ "groupVersion": "apps/v1", "version": "v1" }],
        "preferredVersion": { "groupVersion": "apps/v1", "version": "v1" },
    });
    ensure!(groups.contains(&apps), "no {apps} in /apis");
    let autoscaling = groups.iter().find(|group| group["name"] == "autoscaling");
    let preferred = &autoscaling.context("no autoscaling")?["preferredVersion"]["version"];
    same("preferred version of autoscaling", preferred, json!("v2"))?;

    let mut group = cx.get("/apis/apps").await?;
    let fields = group.as_object_mut().context("no object")?;
    ensure!(fields.remove("kind") == Some(json!("APIGroup")), "not an APIGroup");
    ensure!(fields.remove("apiVersion") == Some(json!("v1")), "not in v1");
    same("/apis/apps", &group, apps)
}

async fn legacy_discovery_describes_each_resource(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get("/api/v1")).await?;
    // Clients compare text here, so the order of keys counts.
    let config_maps = concat!(
        r#"{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","#,
        r#""verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"#,
        r#""shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="}"#,
    );
    let list: Value = answer.json()?;
    same("kind", &list["kind"], json!("APIResourceList"))?;
    same("groupVersion", &list["groupVersion"], json!("v1"))?;
    ensure!(list.to_string().contains(config_maps), "no {config_maps}");
    let bindings = concat!(
        r#"{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","#,
        r#""verbs":["create"]}"#,
    );
    ensure!(list.to_string().contains(bindings), "no {bindings}");

    let apps = cx.get("/apis/apps/v1").await?.to_string();
    let scale = concat!(
        r#"{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","#,
        r#""version":"v1","kind":"Scale","verbs":["get","patch","update"]}"#,
    );
    ensure!(apps.contains(scale), "no {scale}");
    let deployments =
        r#""shortNames":["deploy"],"categories":["all"],"storageVersionHash":"8aSe+NMegvE="}"#;
    ensure!(apps.contains(deployments), "no {deployments}");
    Ok(())
}

async fn the_groups_of_the_release_are_served(cx: Context) -> Result<()> {
    let groups = cx.get("/apis").await?;
    let groups = groups["groups"].as_array().context("no groups")?;
    let built_in = groups.iter().filter(|group| {
        let name = text(group, "/name");
        !name.contains('.') || name.ends_with(".k8s.io")
    });
    let versions = built_in.flat_map(|group| group["versions"].as_array().into_iter().flatten());
    let versions: Vec<&str> = versions.map(|version| text(version, "/groupVersion")).collect();
    let expected = [
        "apiregistration.k8s.io/v1",
        "apps/v1",
        "events.k8s.io/v1",
        "authentication.k8s.io/v1",
        "authorization.k8s.io/v1",
        "autoscaling/v2",
        "autoscaling/v1",
        "batch/v1",
        "certificates.k8s.io/v1",
        "networking.k8s.io/v1",
        "policy/v1",
        "rbac.authorization.k8s.io/v1",
        "storage.k8s.io/v1",
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "scheduling.k8s.io/v1",
        "coordination.k8s.io/v1",
        "node.k8s.io/v1",
        "discovery.k8s.io/v1",
        "resource.k8s.io/v1",
        "flowcontrol.apiserver.k8s.io/v1",
    ];
    ensure!(versions == expected, "versions are {versions:?}");
    Ok(())
}

async fn an_unknown_group_or_resource_is_not_found(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get("/apis/nobody.example.com")).await?;
    ensure!(answer.status == 404 && answer.bytes == b"404 page not found\n", "{answer}");
    let message = "the server could not find the requested resource";
    let answer = cx.send(Request::get("/api/v1/nonsense")).await?;
    refused(&answer, 404, "NotFound", message)?;
    Ok(())
}

async fn aggregated_discovery_holds_everything_in_two_answers(cx: Context) -> Result<()> {
    let core = cx.send(Request::get("/api").accept(AGGREGATED)).await?;
    same("content type", &json!(core.content_type()), json!(AGGREGATED))?;
    let core = expect(&core, 200)?;
    same("kind", &core["kind"], json!("APIGroupDiscoveryList"))?;
    same("apiVersion", &core["apiVersion"], json!("apidiscovery.k8s.io/v2"))?;
    let version = &core["items"][0]["versions"][0];
    same("version", &version["version"], json!("v1"))?;
    same("freshness", &version["freshness"], json!("Current"))?;
    let resources = version["resources"].as_array().context("no resources")?;
    let pods =
        resources.iter().find(|resource| resource["resource"] == "pods").context("no pods")?;
    same("scope", &pods["scope"], json!("Namespaced"))?;
    same(
        "responseKind",
        &pods["responseKind"],
        json!({ "group": "", "version": "", "kind": "Pod" }),
    )?;
    same("shortNames", &pods["shortNames"], json!(["po"]))?;
    let exec = pods["subresources"].as_array().context("no subresources")?;
    let exec = exec.iter().find(|subresource| subresource["subresource"] == "exec");
    same("verbs of exec", &exec.context("no exec")?["verbs"], json!(["create", "get"]))?;

    let groups = cx.send(Request::get("/apis").accept(AGGREGATED)).await?;
    same("content type", &json!(groups.content_type()), json!(AGGREGATED))?;
    let groups = expect(&groups, 200)?;
    let first = ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"];
    ensure!(names(&groups).starts_with(&first), "groups are {:?}", names(&groups));
    Ok(())
}

async fn aggregated_discovery_is_cached_by_etag(cx: Context) -> Result<()> {
    // The core group does not change under us, as `/apis` does when a definition comes or goes.
    let first = cx.send(Request::get("/api").accept(AGGREGATED)).await?;
    let etag = first.header("etag");
    ensure!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2, "etag is {etag:?}");
    same("vary", &json!(first.header("vary")), json!("Accept"))?;
    let again = Request::get("/api").accept(AGGREGATED).header(IF_NONE_MATCH, etag);
    let again = cx.send(again).await?;
    ensure!(again.status == 304 && again.bytes.is_empty(), "{again}");
    let other = Request::get("/api").accept(AGGREGATED).header(IF_NONE_MATCH, "\"other\"");
    expect(&cx.send(other).await?, 200)?;
    Ok(())
}

async fn aggregated_discovery_falls_back_to_the_next_form(cx: Context) -> Result<()> {
    let unknown = "application/json;g=apidiscovery.k8s.io;v=v99;as=APIGroupDiscoveryList";
    let both = format!("{unknown},application/json");
    let legacy = expect(&cx.send(Request::get("/apis").accept(&both)).await?, 200)?;
    same("kind", &legacy["kind"], json!("APIGroupList"))?;
    let alone = cx.send(Request::get("/apis").header(ACCEPT, unknown)).await?;
    ensure!(alone.status == 406, "{alone}");
    // The version from before is not served any more, and a profile is no other document.
    let before = AGGREGATED.replace("v=v2", "v=v2beta1");
    ensure!(cx.send(Request::get("/apis").accept(&before)).await?.status == 406, "{before}");
    let answer = cx.send(Request::get("/api?profile=nopeer").accept(AGGREGATED)).await?;
    same("kind", &expect(&answer, 200)?["kind"], json!("APIGroupDiscoveryList"))?;
    Ok(())
}

async fn openapi_v3_url(cx: &Context, group_version: &str) -> Result<String> {
    let index = cx.get("/openapi/v3").await?;
    let url = index["paths"][group_version]["serverRelativeURL"].as_str();
    Ok(url.with_context(|| format!("{group_version} is not listed"))?.to_owned())
}

async fn openapi_v3_lists_documents_by_hash(cx: Context) -> Result<()> {
    let url = openapi_v3_url(&cx, "apis/apps/v1").await?;
    ensure!(url.starts_with("/openapi/v3/apis/apps/v1?hash="), "{url}");
    let answer = cx.send(Request::get(url)).await?;
    same("cache-control", &json!(answer.header("cache-control")), json!("public, immutable"))?;
    ensure!(!answer.header("expires").is_empty(), "no Expires");
    let document = expect(&answer, 200)?;
    same("openapi", &document["openapi"], json!("3.0.0"))?;
    let deployment = "io.k8s.api.apps.v1.Deployment";
    let kinds = &document["components"]["schemas"][deployment]["x-kubernetes-group-version-kind"];
    same("kinds", kinds, json!([{ "group": "apps", "kind": "Deployment", "version": "v1" }]))
}

async fn openapi_v3_redirects_to_the_right_hash(cx: Context) -> Result<()> {
    let right = openapi_v3_url(&cx, "apis/apps/v1").await?;
    let answer = cx.send(Request::get("/openapi/v3/apis/apps/v1?hash=WRONG")).await?;
    ensure!(answer.status == 301, "{answer}");
    same("location", &json!(answer.header("location")), json!(right))
}

async fn openapi_v3_tells_kubectl_how_to_patch(cx: Context) -> Result<()> {
    let document = cx.get(&openapi_v3_url(&cx, "api/v1").await?).await?;
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    let kind = &patch["x-kubernetes-group-version-kind"];
    same("kind", kind, json!({ "group": "", "version": "v1", "kind": "Pod" }))?;
    let forms = patch["requestBody"]["content"].as_object().context("no content")?;
    for form in
        ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]
    {
        ensure!(forms.contains_key(&format!("application/{form}")), "no {form}");
    }
    let parameters = patch["parameters"].as_array().context("no parameters")?;
    for wanted in ["dryRun", "fieldManager", "fieldValidation", "force"] {
        ensure!(parameters.iter().any(|parameter| parameter["name"] == wanted), "no {wanted}");
    }
    let containers = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
        ["containers"];
    same("merge key", &containers["x-kubernetes-patch-merge-key"], json!("name"))?;
    same("merge strategy", &containers["x-kubernetes-patch-strategy"], json!("merge"))?;
    same("list type", &containers["x-kubernetes-list-type"], json!("map"))?;
    same("list keys", &containers["x-kubernetes-list-map-keys"], json!(["name"]))
}

async fn openapi_v3_speaks_protobuf(cx: Context) -> Result<()> {
    let url = openapi_v3_url(&cx, "apis/apps/v1").await?;
    let wanted = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let answer = cx.send(Request::get(url).accept(wanted)).await?;
    ensure!(answer.status == 200, "{}", answer.status);
    // `@` may not stand in a media type, so the answer names it with a dot.
    let named = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    same("content type", &json!(answer.content_type()), json!(named))?;
    // Field 1 of the document is its version.
    ensure!(answer.bytes.starts_with(b"\x0a\x053.0.0"), "not an OpenAPI 3.0.0 document");
    Ok(())
}

async fn openapi_v2_is_one_cached_document(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get("/openapi/v2")).await?;
    let etag = answer.header("etag").to_owned();
    let document = expect(&answer, 200)?;
    same("swagger", &document["swagger"], json!("2.0"))?;
    let pod = &document["definitions"]["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"];
    same("kinds", pod, json!([{ "group": "", "kind": "Pod", "version": "v1" }]))?;
    let services = &document["definitions"]["io.k8s.api.core.v1.ServiceList"];
    same(
        "description",
        &services["properties"]["items"]["description"],
        json!("List of services"),
    )?;
    for (name, words) in [
        ("fieldSelector", "the list of returned objects by their fields"),
        ("labelSelector", "the list of returned objects by their labels"),
        ("watch", "Watch for changes to the described resources"),
    ] {
        let parameters = document["parameters"].as_object().into_iter().flatten();
        let told = parameters.filter(|(_, parameter)| parameter["name"] == name);
        let mut told = told.map(|(_, parameter)| text(parameter, "/description"));
        ensure!(told.any(|told| told.contains(words)), "{name}: {words:?} is not said");
    }
    // Another scenario's definition may change the document between two questions.
    let again = async || -> Result<(u16, u16)> {
        let etag = cx.send(Request::get("/openapi/v2")).await?.header("etag").to_owned();
        let same = Request::get("/openapi/v2").header(IF_NONE_MATCH, &etag);
        let other = Request::get("/openapi/v2").header(IF_NONE_MATCH, "\"other\"");
        Ok((cx.send(same).await?.status, cx.send(other).await?.status))
    };
    let mut statuses = again().await?;
    for _ in 0..20 {
        if statuses == (304, 200) {
            break;
        }
        statuses = again().await?;
    }
    ensure!(!etag.is_empty() && statuses == (304, 200), "{etag:?}: {statuses:?}");
    let wanted = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = cx.send(Request::get("/openapi/v2").accept(wanted)).await?;
    let named = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    same("content type", &json!(answer.content_type()), json!(named))?;
    ensure!(answer.bytes.starts_with(b"\x0a\x032.0"), "not an OpenAPI 2.0 document");
    Ok(())
}

async fn an_absent_object_is_not_found(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get(cx.core("configmaps/absent"))).await?;
    same(
        "the whole answer",
        &expect(&answer, 404)?,
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "configmaps \"absent\" not found",
            "reason": "NotFound",
            "details": { "name": "absent", "kind": "configmaps" },
            "code": 404,
        }),
    )?;
    // Outside the core group the details name the group, and so does the message.
    let answer = cx.send(Request::get(cx.apis("apps/v1", "deployments/absent"))).await?;
    let message = "deployments.apps \"absent\" not found";
    let status = refused(&answer, 404, "NotFound", message)?;
    let details = json!({ "name": "absent", "group": "apps", "kind": "deployments" });
    same("details", &status["details"], details)
}

async fn a_refusal_comes_in_yaml(cx: Context) -> Result<()> {
    let get = Request::get(cx.core("configmaps/absent")).accept("application/yaml");
    let answer = cx.send(get).await?;
    same("content type", &json!(answer.content_type()), json!("application/yaml"))?;
    let expected = "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: absent\nkind: \
                    Status\nmessage: configmaps \"absent\" not found\nmetadata: {}\nreason: \
                    NotFound\nstatus: Failure\n";
    ensure!(answer.status == 404 && answer.bytes == expected.as_bytes(), "{answer}");
    Ok(())
}

async fn a_taken_name_is_a_conflict(cx: Context) -> Result<()> {
    cx.config_map("taken").await?;
    let answer = cx.send(Request::post(cx.core("configmaps"), &config_map("taken"))).await?;
    let status = refused(&answer, 409, "AlreadyExists", "configmaps \"taken\" already exists")?;
    same("details", &status["details"], json!({ "name": "taken", "kind": "configmaps" }))
}

async fn a_method_that_is_not_there_is_refused(cx: Context) -> Result<()> {
    let message = "the server does not allow this method on the requested resource";
    let answer = cx.send(Request::post(cx.core("configmaps/one"), &config_map("one"))).await?;
    refused(&answer, 405, "MethodNotAllowed", message)?;
    let answer = cx.send(Request::merge_patch(cx.core("configmaps"), &json!({}))).await?;
    refused(&answer, 405, "MethodNotAllowed", message)?;
    Ok(())
}

async fn an_unknown_media_type_is_not_acceptable(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let answer = cx.send(Request::get(cx.core("configmaps/one")).accept("text/html")).await?;
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, \
                   application/yaml, application/vnd.kubernetes.protobuf";
    refused(&answer, 406, "NotAcceptable", message)?;
    let patch = Request::merge_patch(cx.core("configmaps/one"), &json!({}));
    let answer = cx.send(patch.content_type("application/nonsense")).await?;
    refused(&answer, 415, "UnsupportedMediaType", "415: Unsupported Media Type")?;
    let post = Request::post(cx.core("configmaps"), &config_map("two"));
    let answer = cx.send(post.content_type("application/nonsense")).await?;
    let message = "the body of the request was in an unknown format - accepted media types \
                   include: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    refused(&answer, 415, "UnsupportedMediaType", message)?;
    Ok(())
}

async fn a_body_that_is_no_json_is_a_bad_request(cx: Context) -> Result<()> {
    let broken = Request::post(cx.core("configmaps"), &json!({})).body("{\"metadata\":");
    let message = "the object provided is unrecognized (must be of type ConfigMap): couldn't get \
                   version/kind; json parse error: unexpected end of JSON input ({\"metadata\":)";
    refused(&cx.send(broken).await?, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_body_of_more_than_three_mebibytes_is_refused(cx: Context) -> Result<()> {
    let body = vec![b' '; 3 * 1024 * 1024 + 1];
    let large = Request::post(cx.core("configmaps"), &json!({})).body(body);
    let message = "Request entity too large: limit is 3145728";
    refused(&cx.send(large).await?, 413, "RequestEntityTooLarge", message)?;
    Ok(())
}

async fn every_answer_names_its_audit_and_priority(cx: Context) -> Result<()> {
    for target in [cx.core("configmaps"), cx.core("configmaps/absent")] {
        let answer = cx.send(Request::get(target)).await?;
        same("cache-control", &json!(answer.header("cache-control")), json!("no-cache, private"))?;
        for name in
            ["audit-id", "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"]
        {
            let value = answer.header(name);
            ensure!(value.len() == 36, "{name} is no uid: {value:?}");
        }
    }
    Ok(())
}

async fn a_long_answer_is_compressed_when_asked(cx: Context) -> Result<()> {
    let encoding = |request: Request| request.header(http::header::ACCEPT_ENCODING, "gzip");
    let mut long = config_map("long");
    long["data"]["key"] = "x".repeat(256 * 1024).into();
    cx.create(&cx.core("configmaps"), &long).await?;
    let answer = cx.send(encoding(Request::get(cx.core("configmaps/long")))).await?;
    same("encoding", &json!(answer.header("content-encoding")), json!("gzip"))?;
    ensure!(answer.bytes.len() < 128 * 1024, "{} bytes", answer.bytes.len());
    cx.config_map("short").await?;
    let answer = cx.send(encoding(Request::get(cx.core("configmaps/short")))).await?;
    same("encoding", &json!(answer.header("content-encoding")), json!(""))
}

async fn answers_are_indented_for_people(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let get = async |query: &str, agent: &str| -> Result<bool> {
        let request = Request::get(cx.core(&format!("configmaps/one{query}")));
        let answer = cx.send(request.header(http::header::USER_AGENT, agent)).await?;
        Ok(answer.bytes.starts_with(b"{\n  \"kind\": \"ConfigMap\",\n"))
    };
    let found = [
        get("", "kubectl/v1.36.4").await?,
        get("?pretty=true", "kubectl/v1.36.4").await?,
        get("", "curl/8.0").await?,
        get("?pretty=0", "curl/8.0").await?,
        get("", "Mozilla/5.0").await?,
    ];
    ensure!(found == [false, true, true, false, true], "{found:?}");
    Ok(())
}
