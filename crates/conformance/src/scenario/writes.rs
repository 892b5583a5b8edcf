//! Creates and updates: what the server adds, keeps and refuses.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, any_schema, config_map, expect, refused, revision, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "writes":
    a_create_fills_in_what_is_the_servers [U1],
    a_generated_name_has_five_plain_characters [U1],
    a_name_must_be_given_and_be_valid [U1],
    the_namespace_of_body_and_url_must_agree [U1],
    a_namespace_must_be_there [U1],
    a_new_object_has_no_version [U1],
    a_body_of_another_kind_is_refused [U1],
    an_update_at_an_old_version_conflicts [U2],
    an_update_without_version_overwrites [U2],
    a_custom_resource_is_never_overwritten_blindly [U2],
    an_update_cannot_change_name_or_uid [U2],
    an_update_of_nothing_is_not_found [U2],
    an_update_says_which_object_it_means [U2],
    an_update_may_create_a_lease [U2],
    metadata_that_is_the_servers_survives_an_update [U2],
    a_dry_run_stores_nothing [U5],
    a_dry_run_is_all_or_nothing [U5],
    a_dry_run_takes_no_addresses [U5 B4],
    unknown_fields_are_warned_about_by_default [U6],
    unknown_fields_are_errors_when_strict [U6],
    unknown_fields_can_be_ignored [U6],
    a_spec_change_raises_the_generation [U7],
    the_generation_of_a_custom_resource_ignores_metadata_and_status [U7 C9],
    kinds_without_spec_have_no_generation [U7],
    spec_and_status_are_written_apart [U8],
    metadata_may_be_written_with_a_status [U8],
    a_deployment_is_scaled_through_its_scale [U8],
    every_workload_has_a_scale [U8],
    a_scale_is_checked [U8 B3],
    annotations_are_bounded [U12],
    a_timeout_must_be_a_duration [U12],
    an_object_must_fit_into_the_storage [U12],
    config_is_bounded [U12 B3],
}

async fn a_create_fills_in_what_is_the_servers(cx: Context) -> Result<()> {
    let mut given = config_map("one");
    given["metadata"]["uid"] = json!("mine");
    given["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    given["metadata"]["generation"] = json!(7);
    given["metadata"]["selfLink"] = json!("/mine");
    given["metadata"]["managedFields"] = json!([{ "manager": "mine", "operation": "Update" }]);
    let created = cx.create(&cx.core("configmaps"), &given).await?;
    let metadata = &created["metadata"];
    let uid = text(metadata, "/uid");
    ensure!(uid.len() == 36 && uid.as_bytes()[14] == b'4', "uid {uid} is no random UUID");
    let born: jiff::Timestamp = text(metadata, "/creationTimestamp").parse()?;
    ensure!(born.subsec_nanosecond() == 0 && born.as_second() > 1_500_000_000, "born at {born}");
    same("namespace", &metadata["namespace"], json!(cx.namespace))?;
    same("selfLink", &metadata["selfLink"], Value::Null)?;
    let entry = &metadata["managedFields"][0];
    same("manager", &entry["manager"], json!("kubewright-conformance"))?;
    same("operation", &entry["operation"], json!("Update"))?;
    same("fields", &entry["fieldsV1"], json!({ "f:data": { ".": {}, "f:key": {} } }))?;
    same("stored", &cx.get(&cx.core("configmaps/one")).await?, created.clone())
}

async fn a_generated_name_has_five_plain_characters(cx: Context) -> Result<()> {
    let long = "x".repeat(100);
    for prefix in ["short-", &long] {
        let object = json!({ "metadata": { "generateName": prefix } });
        let created = cx.create(&cx.core("configmaps"), &object).await?;
        same("generateName", &created["metadata"]["generateName"], json!(prefix))?;
        let name = text(&created, "/metadata/name");
        let kept = &prefix[..prefix.len().min(58)];
        let suffix = name.strip_prefix(kept).with_context(|| format!("{name} loses {kept}"))?;
        let plain = "bcdfghjklmnpqrstvwxz2456789";
        ensure!(suffix.len() == 5 && suffix.chars().all(|char| plain.contains(char)), "{name}");
    }
    Ok(())
}

async fn a_name_must_be_given_and_be_valid(cx: Context) -> Result<()> {
    let nameless = json!({ "metadata": {} });
    let answer = cx.send(Request::post(cx.core("configmaps"), &nameless)).await?;
    let cause = "Required value: name or generateName is required";
    let message = format!("ConfigMap \"\" is invalid: metadata.name: {cause}");
    let status = refused(&answer, 422, "Invalid", &message)?;
    same(
        "details",
        &status["details"],
        json!({
            "kind": "ConfigMap",
            "causes": [{ "reason": "FieldValueRequired", "message": cause, "field": "metadata.name" }],
        }),
    )?;
    let answer = cx.send(Request::post(cx.core("configmaps"), &config_map("Bad_Name"))).await?;
    let message = "ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a \
                   lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                   characters, '-' or '.', and must start and end with an alphanumeric character \
                   (e.g. 'example.com', regex used for validation is \
                   '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn the_namespace_of_body_and_url_must_agree(cx: Context) -> Result<()> {
    let mut elsewhere = config_map("one");
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let answer = cx.send(Request::post(cx.core("configmaps"), &elsewhere)).await?;
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_namespace_must_be_there(cx: Context) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}-absent/configmaps", cx.namespace);
    let answer = cx.send(Request::post(path, &config_map("one"))).await?;
    let message = format!("namespaces \"{}-absent\" not found", cx.namespace);
    refused(&answer, 404, "NotFound", &message)?;
    Ok(())
}

async fn a_new_object_has_no_version(cx: Context) -> Result<()> {
    let mut versioned = config_map("one");
    versioned["metadata"]["resourceVersion"] = json!("5");
    let status = expect(&cx.send(Request::post(cx.core("configmaps"), &versioned)).await?, 500)?;
    let message = "resourceVersion should not be set on objects to be created";
    same("message", &status["message"], json!(message))?;
    // Only where it would be stored: a trial goes through with it.
    let path = format!("{}?dryRun=All", cx.core("configmaps"));
    let tried = expect(&cx.send(Request::post(path, &versioned)).await?, 201)?;
    same("version", &tried["metadata"]["resourceVersion"], json!("5"))?;
    versioned["metadata"]["name"] = json!("Not_One");
    let wrong = cx.send(Request::post(cx.core("configmaps"), &versioned)).await?;
    expect(&wrong, 422).map(drop)
}

async fn a_body_of_another_kind_is_refused(cx: Context) -> Result<()> {
    let mut other = config_map("one");
    other["kind"] = json!("Secret");
    let status = expect(&cx.send(Request::post(cx.core("configmaps"), &other)).await?, 400)?;
    let start = "Secret in version \"v1\" cannot be handled as a ConfigMap: ";
    ensure!(text(&status, "/message").starts_with(start), "{}", status["message"]);
    let mut other = config_map("one");
    other["apiVersion"] = json!("v2");
    let status = expect(&cx.send(Request::post(cx.core("configmaps"), &other)).await?, 400)?;
    let start = "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: ";
    ensure!(text(&status, "/message").starts_with(start), "{}", status["message"]);
    Ok(())
}

/// What every write at an old version is told.
pub(super) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

async fn an_update_at_an_old_version_conflicts(cx: Context) -> Result<()> {
    let old = cx.config_map("one").await?;
    let mut new = old.clone();
    new["data"]["key"] = json!("new");
    let new = expect(&cx.send(Request::put(cx.core("configmaps/one"), &new)).await?, 200)?;
    ensure!(revision(&new)? > revision(&old)?, "the version did not rise");
    let answer = cx.send(Request::put(cx.core("configmaps/one"), &old)).await?;
    let message = format!("Operation cannot be fulfilled on configmaps \"one\": {MODIFIED}");
    let status = refused(&answer, 409, "Conflict", &message)?;
    same("details", &status["details"], json!({ "name": "one", "kind": "configmaps" }))
}

async fn an_update_without_version_overwrites(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let replacement = json!({ "metadata": { "name": "one" }, "data": { "other": "data" } });
    let answer = cx.send(Request::put(cx.core("configmaps/one"), &replacement)).await?;
    same("data", &expect(&answer, 200)?["data"], json!({ "other": "data" }))
}

async fn a_custom_resource_is_never_overwritten_blindly(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let widget = cx.widget("one", json!({}));
    cx.create(&cx.widget_path(), &widget).await?;
    let answer = cx.send(Request::put(format!("{}/one", cx.widget_path()), &widget)).await?;
    let message = format!(
        "widgets.{} \"one\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
         specified for an update",
        cx.group()
    );
    refused(&answer, 422, "Invalid", &message)?;
    Ok(())
}

async fn an_update_cannot_change_name_or_uid(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    let answer = cx.send(Request::put(cx.core("configmaps/one"), &config_map("two"))).await?;
    let message = "the name of the object (two) does not match the name on the URL (one)";
    refused(&answer, 400, "BadRequest", message)?;
    let mut other = config_map("one");
    other["metadata"]["uid"] = json!("another");
    let status = expect(&cx.send(Request::put(cx.core("configmaps/one"), &other)).await?, 409)?;
    let end = format!(
        "Precondition failed: UID in precondition: another, UID in object meta: {}",
        text(&one, "/metadata/uid")
    );
    ensure!(text(&status, "/message").ends_with(&end), "{}", status["message"]);
    Ok(())
}

async fn an_update_of_nothing_is_not_found(cx: Context) -> Result<()> {
    let answer = cx.send(Request::put(cx.core("configmaps/one"), &config_map("one"))).await?;
    refused(&answer, 404, "NotFound", "configmaps \"one\" not found")?;
    Ok(())
}

async fn an_update_says_which_object_it_means(cx: Context) -> Result<()> {
    let put = |body: Value| Request::put(cx.core("configmaps/absent"), &body);
    let message = "the name of the object (other) does not match the name on the URL (absent)";
    refused(&cx.send(put(config_map("other"))).await?, 400, "BadRequest", message)?;
    let message = "the name of the object (absent based on URL) was undeterminable: name must be \
                   provided";
    let nameless = json!({ "metadata": {} });
    refused(&cx.send(put(nameless)).await?, 400, "BadRequest", message)?;
    let mut elsewhere = config_map("absent");
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    refused(&cx.send(put(elsewhere)).await?, 400, "BadRequest", message)?;
    Ok(())
}

async fn an_update_may_create_a_lease(cx: Context) -> Result<()> {
    let lease = json!({ "metadata": { "name": "one" }, "spec": { "holderIdentity": "me" } });
    let path = cx.apis("coordination.k8s.io/v1", "leases/one");
    let created = expect(&cx.send(Request::put(path.clone(), &lease)).await?, 201)?;
    same("holder", &created["spec"]["holderIdentity"], json!("me"))?;
    // Once it is there, it is not overwritten blindly.
    expect(&cx.send(Request::put(path.clone(), &lease)).await?, 422)?;
    same("object", &expect(&cx.send(Request::put(path, &created)).await?, 200)?, created)?;
    Ok(())
}

async fn metadata_that_is_the_servers_survives_an_update(cx: Context) -> Result<()> {
    let created = cx.config_map("one").await?;
    let mut update = created.clone();
    update["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    update["metadata"]["labels"] = json!({ "a": "b" });
    let updated = expect(&cx.send(Request::put(cx.core("configmaps/one"), &update)).await?, 200)?;
    let old = &created["metadata"]["creationTimestamp"];
    same("creationTimestamp", &updated["metadata"]["creationTimestamp"], old.clone())?;
    same("labels", &updated["metadata"]["labels"], json!({ "a": "b" }))?;
    let mut update = updated;
    update["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let answer = cx.send(Request::put(cx.core("configmaps/one"), &update)).await?;
    let message = "ConfigMap \"one\" is invalid: metadata.deletionTimestamp: Invalid value: \
                   \"2001-01-01T00:00:00Z\": field is immutable";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_dry_run_stores_nothing(cx: Context) -> Result<()> {
    let path = cx.core("configmaps?dryRun=All");
    let created = expect(&cx.send(Request::post(path, &config_map("one"))).await?, 201)?;
    ensure!(!text(&created, "/metadata/uid").is_empty(), "no uid");
    same("version", &created["metadata"]["resourceVersion"], Value::Null)?;
    expect(&cx.send(Request::get(cx.core("configmaps/one"))).await?, 404)?;

    let stored = cx.config_map("one").await?;
    let patch = json!({ "data": { "key": "other" } });
    let patch = Request::merge_patch(cx.core("configmaps/one?dryRun=All"), &patch);
    same("data", &expect(&cx.send(patch).await?, 200)?["data"], json!({ "key": "other" }))?;
    expect(&cx.send(Request::delete(cx.core("configmaps/one?dryRun=All"))).await?, 200)?;
    same("stored", &cx.get(&cx.core("configmaps/one")).await?, stored)
}

async fn a_dry_run_is_all_or_nothing(cx: Context) -> Result<()> {
    let path = cx.core("configmaps?dryRun=Some");
    let answer = cx.send(Request::post(path, &config_map("one"))).await?;
    let message = "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \
                   [\"Some\"]: supported values: \"All\"";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_dry_run_takes_no_addresses(cx: Context) -> Result<()> {
    let service = |name: &str| {
        json!({ "metadata": { "name": name }, "spec": {
            "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30999 }],
        } })
    };
    // Twice the same port, and a service that has both only in the end.
    for _ in 0..2 {
        let tried = cx.create(&cx.core("services?dryRun=All"), &service("tried")).await?;
        same("port", &tried["spec"]["ports"][0]["nodePort"], json!(30999))?;
        ensure!(!text(&tried, "/spec/clusterIP").is_empty(), "{tried}");
        let address =
            format!("/apis/networking.k8s.io/v1/ipaddresses/{}", text(&tried, "/spec/clusterIP"));
        expect(&cx.send(Request::get(address)).await?, 404)?;
    }
    cx.create(&cx.core("services"), &service("real")).await?;
    expect(&cx.send(Request::delete(cx.core("services/real"))).await?, 200)?;
    Ok(())
}

/// A body with two unknown fields and one that comes twice.
fn careless_deployment() -> &'static str {
    r#"{"metadata":{"name":"one","foo":1},"spec":{"replicas":1,"replicas":2,
        "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
        "spec":{"containers":[{"name":"c","image":"i","imag":"x"}]}}}}"#
}

const COMPLAINTS: [&str; 3] = [
    "unknown field \"metadata.foo\"",
    "duplicate field \"spec.replicas\"",
    "unknown field \"spec.template.spec.containers[0].imag\"",
];

async fn post_careless(cx: &Context, query: &str) -> Result<crate::endpoint::Answer> {
    let path = cx.apis("apps/v1", &format!("deployments?{query}"));
    cx.send(Request::post(path, &json!({})).body(careless_deployment())).await
}

async fn unknown_fields_are_warned_about_by_default(cx: Context) -> Result<()> {
    for query in ["dryRun=All", "dryRun=All&fieldValidation=Warn"] {
        let answer = post_careless(&cx, query).await?;
        same("warnings", &json!(answer.warnings()), json!(COMPLAINTS))?;
        // The last of two wins.
        same("replicas", &expect(&answer, 201)?["spec"]["replicas"], json!(2))?;
    }
    Ok(())
}

async fn unknown_fields_are_errors_when_strict(cx: Context) -> Result<()> {
    let answer = post_careless(&cx, "fieldValidation=Strict").await?;
    let message = format!(
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: {}",
        COMPLAINTS.join(", ")
    );
    refused(&answer, 400, "BadRequest", &message)?;
    let answer = post_careless(&cx, "fieldValidation=Some").await?;
    let message = "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \
                   \"Some\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn unknown_fields_can_be_ignored(cx: Context) -> Result<()> {
    let answer = post_careless(&cx, "dryRun=All&fieldValidation=Ignore").await?;
    same("warnings", &json!(answer.warnings()), json!([]))?;
    expect(&answer, 201)?;
    Ok(())
}

fn deployment(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    })
}

async fn a_spec_change_raises_the_generation(cx: Context) -> Result<()> {
    let created = cx.create(&cx.apis("apps/v1", "deployments"), &deployment("one")).await?;
    same("generation", &created["metadata"]["generation"], json!(1))?;
    let patch = async |patch: Value| -> Result<Value> {
        let path = cx.apis("apps/v1", "deployments/one");
        let patched = expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
        Ok(patched["metadata"]["generation"].clone())
    };
    same(
        "after labels",
        &patch(json!({ "metadata": { "labels": { "x": "y" } } })).await?,
        json!(1),
    )?;
    same("after spec", &patch(json!({ "spec": { "minReadySeconds": 5 } })).await?, json!(2))?;
    same("after nothing", &patch(json!({ "spec": { "minReadySeconds": 5 } })).await?, json!(2))
}

async fn the_generation_of_a_custom_resource_ignores_metadata_and_status(
    cx: Context,
) -> Result<()> {
    let mut definition = cx.widgets(any_schema());
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    cx.define(&definition).await?;
    let one = format!("{}/one", cx.widget_path());
    let created = cx.create(&cx.widget_path(), &cx.widget("one", json!({ "a": 1 }))).await?;
    same("generation", &created["metadata"]["generation"], json!(1))?;
    for (path, patch, generation) in [
        (one.clone(), json!({ "metadata": { "labels": { "x": "y" } } }), 1),
        (format!("{one}/status"), json!({ "status": { "b": 1 } }), 1),
        (one.clone(), json!({ "spec": { "a": 2 } }), 2),
        // Whatever is neither metadata nor status counts, even outside spec.
        (one, json!({ "other": true }), 3),
    ] {
        let patched = expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
        same(&patch.to_string(), &patched["metadata"]["generation"], json!(generation))?;
    }
    Ok(())
}

async fn kinds_without_spec_have_no_generation(cx: Context) -> Result<()> {
    same("of a ConfigMap", &cx.config_map("one").await?["metadata"]["generation"], Value::Null)?;
    let secret = cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": "one" } })).await?;
    same("of a Secret", &secret["metadata"]["generation"], Value::Null)?;
    let account = json!({ "metadata": { "name": "one" } });
    let account = cx.create(&cx.core("serviceaccounts"), &account).await?;
    same("of a ServiceAccount", &account["metadata"]["generation"], Value::Null)
}

async fn spec_and_status_are_written_apart(cx: Context) -> Result<()> {
    // A kind whose status no controller writes.
    let ingresses = cx.apis("networking.k8s.io/v1", "ingresses");
    let backend = |port: u16| json!({ "service": { "name": "a", "port": { "number": port } } });
    let balancer = |address: &str| json!({ "loadBalancer": { "ingress": [{ "ip": address }] } });
    let mut ingress = json!({
        "metadata": { "name": "one" },
        "spec": { "ingressClassName": "none", "defaultBackend": backend(1) },
        "status": balancer("192.0.2.1"),
    });
    let created = cx.create(&ingresses, &ingress).await?;
    same("status on create", &created["status"], json!({ "loadBalancer": {} }))?;

    ingress["spec"]["defaultBackend"] = backend(2);
    ingress["metadata"]["labels"] = json!({ "a": "b" });
    ingress["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let answer = cx.send(Request::put(format!("{ingresses}/one/status"), &ingress)).await?;
    let updated = expect(&answer, 200)?;
    same("status", &updated["status"], balancer("192.0.2.1"))?;
    same("spec through status", &updated["spec"]["defaultBackend"], backend(1))?;

    ingress["status"] = balancer("192.0.2.9");
    ingress["metadata"]["resourceVersion"] = updated["metadata"]["resourceVersion"].clone();
    let answer = cx.send(Request::put(format!("{ingresses}/one"), &ingress)).await?;
    let updated = expect(&answer, 200)?;
    same("spec", &updated["spec"]["defaultBackend"], backend(2))?;
    same("status through spec", &updated["status"], balancer("192.0.2.1"))
}

async fn a_deployment_is_scaled_through_its_scale(cx: Context) -> Result<()> {
    let created = cx.create(&cx.apis("apps/v1", "deployments"), &deployment("one")).await?;
    let path = cx.apis("apps/v1", "deployments/one/scale");
    let mut scale = cx.get(&path).await?;
    same(
        "scale",
        &scale,
        json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": "one",
                "namespace": cx.namespace,
                "uid": created["metadata"]["uid"],
                "resourceVersion": scale["metadata"]["resourceVersion"],
                "creationTimestamp": created["metadata"]["creationTimestamp"],
            },
            "spec": {},
            "status": { "replicas": 0, "selector": "a=b" },
        }),
    )?;
    scale["spec"]["replicas"] = json!(2);
    scale["metadata"].as_object_mut().context("no metadata")?.remove("resourceVersion");
    let scaled = expect(&cx.send(Request::put(path, &scale)).await?, 200)?;
    same("replicas", &scaled["spec"]["replicas"], json!(2))?;
    let deployment = cx.get(&cx.apis("apps/v1", "deployments/one")).await?;
    same("replicas", &deployment["spec"]["replicas"], json!(2))
}

async fn metadata_may_be_written_with_a_status(cx: Context) -> Result<()> {
    let written = async |path: String| -> Result<Value> {
        let metadata = json!({ "labels": { "a": "b" }, "annotations": { "a": "b" } });
        let patch = json!({ "metadata": metadata });
        let answer = cx.send(Request::merge_patch(format!("{path}/status"), &patch)).await?;
        let metadata = expect(&answer, 200)?["metadata"].clone();
        Ok(json!([metadata["labels"], metadata["annotations"]["a"]]))
    };
    let ingresses = cx.apis("networking.k8s.io/v1", "ingresses");
    let backend = json!({ "service": { "name": "a", "port": { "number": 1 } } });
    let spec = json!({ "ingressClassName": "none", "defaultBackend": backend });
    cx.create(&ingresses, &json!({ "metadata": { "name": "one" }, "spec": spec })).await?;
    same("ingress", &written(format!("{ingresses}/one")).await?, json!([{ "a": "b" }, "b"]))?;
    // Labels of workloads say which they are, so a controller's report does not change them.
    let deployments = cx.apis("apps/v1", "deployments");
    cx.create(&deployments, &deployment("one")).await?;
    same("deployment", &written(format!("{deployments}/one")).await?, json!([null, "b"]))
}

async fn every_workload_has_a_scale(cx: Context) -> Result<()> {
    let spec = deployment("one")["spec"].clone();
    let mut stateful = spec.clone();
    stateful["serviceName"] = json!("a");
    let mut plain = spec.clone();
    plain["selector"] = json!({ "a": "b" });
    for (collection, spec) in [
        (cx.apis("apps/v1", "deployments"), spec.clone()),
        (cx.apis("apps/v1", "replicasets"), spec),
        (cx.apis("apps/v1", "statefulsets"), stateful),
        (cx.core("replicationcontrollers"), plain),
    ] {
        cx.create(&collection, &json!({ "metadata": { "name": "one" }, "spec": spec })).await?;
        let path = format!("{collection}/one/scale");
        let scale = cx.get(&path).await?;
        same("selector", &scale["status"]["selector"], json!("a=b"))?;
        let patch = json!({ "spec": { "replicas": 1 } });
        let scaled = expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 200)?;
        same("kind", &scaled["kind"], json!("Scale"))?;
        same("replicas", &scaled["spec"]["replicas"], json!(1))?;
        let object = cx.get(&format!("{collection}/one")).await?;
        same("replicas", &object["spec"]["replicas"], json!(1))?;
        same("generation", &object["metadata"]["generation"], json!(2))?;
    }
    Ok(())
}

async fn a_scale_is_checked(cx: Context) -> Result<()> {
    let deployments = cx.apis("apps/v1", "deployments");
    cx.create(&deployments, &deployment("one")).await?;
    let path = format!("{deployments}/one/scale");
    let patch = json!({ "spec": { "replicas": -1 } });
    let message = "Scale.autoscaling \"one\" is invalid: spec.replicas: Invalid value: -1: must be \
                   greater than or equal to 0";
    let answer = cx.send(Request::merge_patch(&path, &patch)).await?;
    refused(&answer, 422, "Invalid", message)?;
    let put = |metadata: Value| {
        Request::put(path.clone(), &json!({ "metadata": metadata, "spec": { "replicas": 1 } }))
    };
    let message = "the name of the object (two) does not match the name on the URL (one)";
    refused(&cx.send(put(json!({ "name": "two" }))).await?, 400, "BadRequest", message)?;
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    let elsewhere = json!({ "name": "one", "namespace": "elsewhere" });
    refused(&cx.send(put(elsewhere)).await?, 400, "BadRequest", message)?;
    let message = format!("Operation cannot be fulfilled on deployments.apps \"one\": {MODIFIED}");
    let old = json!({ "name": "one", "resourceVersion": "1" });
    refused(&cx.send(put(old)).await?, 409, "Conflict", &message)?;
    let message = "the server could not find the requested resource";
    let answer = cx.send(Request::get(cx.apis("apps/v1", "daemonsets/one/scale"))).await?;
    refused(&answer, 404, "NotFound", message)?;
    Ok(())
}

async fn annotations_are_bounded(cx: Context) -> Result<()> {
    let mut large = config_map("one");
    large["metadata"]["annotations"] = json!({ "a": "x".repeat(256 * 1024) });
    let answer = cx.send(Request::post(cx.core("configmaps"), &large)).await?;
    let message = "ConfigMap \"one\" is invalid: metadata.annotations: Too long: may not be more \
                   than 262144 bytes";
    refused(&answer, 422, "Invalid", message)?;
    large["metadata"]["annotations"] = json!({ "a": "x".repeat(256 * 1024 - 1) });
    cx.create(&cx.core("configmaps"), &large).await?;
    Ok(())
}

async fn a_timeout_must_be_a_duration(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get(cx.core("configmaps?timeout=soon"))).await?;
    let message = "invalid timeout specified in the request URL - time: invalid duration \"soon\"";
    refused(&answer, 400, "BadRequest", message)?;
    cx.get(&cx.core("configmaps?timeout=10s")).await?;
    Ok(())
}

async fn an_object_must_fit_into_the_storage(cx: Context) -> Result<()> {
    let template = |name: &str, bytes: usize| {
        let container = json!({ "name": "a", "image": "a", "args": ["x".repeat(bytes)] });
        json!({ "metadata": { "name": name }, "template": { "spec": { "containers": [container] } } })
    };
    let templates = cx.core("podtemplates");
    cx.create(&templates, &template("fits", 1_400_000)).await?;
    let answer = cx.send(Request::post(&templates, &template("large", 1_700_000))).await?;
    let message = json!("etcdserver: request is too large");
    same("create", &expect(&answer, 500)?["message"], message.clone())?;
    let more = json!({ "metadata": { "annotations": { "a": "x".repeat(250_000) } } });
    let answer = cx.send(Request::merge_patch(format!("{templates}/fits"), &more)).await?;
    same("update", &expect(&answer, 500)?["message"], message)
}

async fn config_is_bounded(cx: Context) -> Result<()> {
    let large = "x".repeat((1 << 20) + 1);
    let map = json!({ "metadata": { "name": "one" }, "data": { "a": large } });
    let answer = cx.send(Request::post(cx.core("configmaps"), &map)).await?;
    let message = "ConfigMap \"one\" is invalid: []: Too long: may not be more than 1048576 bytes";
    refused(&answer, 422, "Invalid", message)?;
    let secret = json!({ "metadata": { "name": "one" }, "stringData": { "a": large } });
    let answer = cx.send(Request::post(cx.core("secrets"), &secret)).await?;
    let message = "Secret \"one\" is invalid: data: Too long: may not be more than 1048576 bytes";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}
