//! Server-side apply as clients meet it; its semantics in depth are settled by recordings.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, any_schema, expect, refused, revision, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "apply":
    an_apply_creates_and_owns [U4],
    an_apply_of_the_same_changes_nothing [U4],
    an_apply_against_another_owner_conflicts [U4],
    force_takes_the_fields_over [U4],
    a_field_no_longer_applied_is_removed [U4],
    two_may_own_the_same_value [U4],
    an_update_takes_ownership_of_what_it_changes [U4],
    an_apply_needs_a_manager_and_no_managed_fields [U4],
    an_apply_must_fit_the_schema [U4],
    what_was_merged_is_in_normal_form [U4 B3],
    what_was_merged_must_fit_its_type [U4 B3],
    applied_metadata_of_a_custom_resource_is_in_normal_form [U4 C7],
    an_apply_may_be_yaml [U4],
    managed_fields_can_be_reset [U4],
    old_changes_are_summed_up [U4],
    lists_are_owned_by_key [U4],
    a_status_is_owned_apart [U4 U8],
    who_applied_on_the_client_goes_on [U4],
    an_apply_of_another_object_is_refused [U4],
    force_is_for_apply_alone [U4],
}

fn applied(data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" }, "data": data })
}

async fn apply(cx: &Context, query: &str, data: Value) -> Result<Answer> {
    cx.send(Request::apply(cx.core(&format!("configmaps/one?{query}")), &applied(data))).await
}

/// Each manager with its operation and the data fields it owns, by name: their order in the object
/// depends on the seconds in which they wrote.
fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut owners: Vec<Value> = entries
        .iter()
        .map(|entry| json!([entry["manager"], entry["operation"], entry["fieldsV1"]["f:data"]]))
        .collect();
    owners.sort_by_key(|owner| owner[0].as_str().map(str::to_owned));
    owners.into()
}

async fn an_apply_creates_and_owns(cx: Context) -> Result<()> {
    let created = expect(&apply(&cx, "fieldManager=a", json!({ "x": "1" })).await?, 201)?;
    same("data", &created["data"], json!({ "x": "1" }))?;
    same("owners", &owners(&created), json!([["a", "Apply", { "f:x": {} }]]))?;
    let again = expect(&apply(&cx, "fieldManager=a", json!({ "x": "2" })).await?, 200)?;
    same("data", &again["data"], json!({ "x": "2" }))
}

async fn an_apply_of_the_same_changes_nothing(cx: Context) -> Result<()> {
    let created = expect(&apply(&cx, "fieldManager=a", json!({ "x": "1" })).await?, 201)?;
    let again = expect(&apply(&cx, "fieldManager=a", json!({ "x": "1" })).await?, 200)?;
    same("object", &again, created)
}

async fn an_apply_against_another_owner_conflicts(cx: Context) -> Result<()> {
    expect(&apply(&cx, "fieldManager=a", json!({ "x": "1", "y": "1" })).await?, 201)?;
    let answer = apply(&cx, "fieldManager=b", json!({ "x": "2", "y": "2" })).await?;
    let message = "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.x\n- .data.y";
    let status = refused(&answer, 409, "Conflict", message)?;
    let cause = |field: &str| json!({ "reason": "FieldManagerConflict", "message": "conflict with \"a\"", "field": field });
    same("causes", &status["details"]["causes"], json!([cause(".data.x"), cause(".data.y")]))?;
    let answer = apply(&cx, "fieldManager=b", json!({ "x": "2", "y": "1" })).await?;
    let message = "Apply failed with 1 conflict: conflict with \"a\": .data.x";
    refused(&answer, 409, "Conflict", message)?;
    Ok(())
}

async fn force_takes_the_fields_over(cx: Context) -> Result<()> {
    expect(&apply(&cx, "fieldManager=a", json!({ "x": "1", "y": "1" })).await?, 201)?;
    let forced = apply(&cx, "fieldManager=b&force=true", json!({ "x": "2" })).await?;
    let forced = expect(&forced, 200)?;
    same("data", &forced["data"], json!({ "x": "2", "y": "1" }))?;
    let expected = json!([["a", "Apply", { "f:y": {} }], ["b", "Apply", { "f:x": {} }]]);
    same("owners", &owners(&forced), expected)
}

async fn a_field_no_longer_applied_is_removed(cx: Context) -> Result<()> {
    expect(&apply(&cx, "fieldManager=a", json!({ "x": "1", "y": "1" })).await?, 201)?;
    let less = expect(&apply(&cx, "fieldManager=a", json!({ "x": "1" })).await?, 200)?;
    same("data", &less["data"], json!({ "x": "1" }))?;
    same("owners", &owners(&less), json!([["a", "Apply", { "f:x": {} }]]))
}

async fn two_may_own_the_same_value(cx: Context) -> Result<()> {
    expect(&apply(&cx, "fieldManager=a", json!({ "x": "1" })).await?, 201)?;
    let shared = expect(&apply(&cx, "fieldManager=b", json!({ "x": "1" })).await?, 200)?;
    let both = json!([["a", "Apply", { "f:x": {} }], ["b", "Apply", { "f:x": {} }]]);
    same("owners", &owners(&shared), both)?;
    // What one lets go of, the other keeps.
    let kept = expect(&apply(&cx, "fieldManager=a", json!({})).await?, 200)?;
    same("data", &kept["data"], json!({ "x": "1" }))
}

async fn an_update_takes_ownership_of_what_it_changes(cx: Context) -> Result<()> {
    expect(&apply(&cx, "fieldManager=a", json!({ "x": "1", "y": "1" })).await?, 201)?;
    let patch = json!({ "data": { "x": "2", "z": "1" } });
    let path = cx.core("configmaps/one?fieldManager=editor");
    let edited = expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
    let expected = json!([
        ["a", "Apply", { "f:y": {} }],
        ["editor", "Update", { "f:x": {}, "f:z": {} }],
    ]);
    same("owners", &owners(&edited), expected)?;
    let answer = apply(&cx, "fieldManager=a", json!({ "x": "1", "y": "1" })).await?;
    let message = "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.x";
    refused(&answer, 409, "Conflict", message)?;
    Ok(())
}

async fn an_apply_needs_a_manager_and_no_managed_fields(cx: Context) -> Result<()> {
    let answer = apply(&cx, "force=false", json!({})).await?;
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is \
                   required for apply patch";
    refused(&answer, 422, "Invalid", message)?;
    let mut body = applied(json!({}));
    body["metadata"]["managedFields"] =
        json!([{ "manager": "a", "operation": "Apply", "apiVersion": "v1" }]);
    let answer = cx.send(Request::apply(cx.core("configmaps/one?fieldManager=a"), &body)).await?;
    refused(&answer, 400, "BadRequest", "metadata.managedFields must be nil")?;
    Ok(())
}

async fn an_apply_must_fit_the_schema(cx: Context) -> Result<()> {
    let mut body = applied(json!({}));
    body["datta"] = json!({});
    let answer = cx.send(Request::apply(cx.core("configmaps/one?fieldManager=a"), &body)).await?;
    let message = "failed to create typed patch object (/one; /v1, Kind=ConfigMap): .datta: field \
                   not declared in schema";
    same("message", &expect(&answer, 500)?["message"], json!(message))?;
    let mut body = applied(json!({}));
    body.as_object_mut().into_iter().for_each(|fields| _ = fields.remove("apiVersion"));
    let answer = cx.send(Request::apply(cx.core("configmaps/one?fieldManager=a"), &body)).await?;
    refused(&answer, 400, "BadRequest", "invalid object type: /, Kind=ConfigMap")?;
    Ok(())
}

/// The schema lets numbers through where there are quantities, and null anywhere.
async fn what_was_merged_is_in_normal_form(cx: Context) -> Result<()> {
    // Nobody but us writes to it.
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": { "name": "one", "labels": { "a": null }, "ownerReferences": [] },
        "spec": { "limits": [{
            "type": "Pod", "max": { "example.com/a": 1, "cpu": 0.5, "memory": "1024Mi" },
        }] },
    });
    let path = cx.core("limitranges/one?fieldManager=a");
    let applied = expect(&cx.send(Request::apply(&path, &range)).await?, 201)?;
    let max = json!({ "cpu": "500m", "example.com/a": "1", "memory": "1Gi" });
    same("quantities", &applied["spec"]["limits"][0]["max"], max)?;
    same("labels", &applied["metadata"]["labels"], json!({ "a": "" }))?;
    same("owners", &applied["metadata"]["ownerReferences"], Value::Null)?;
    let again = expect(&cx.send(Request::apply(&path, &range)).await?, 200)?;
    same("the same again", &again, applied)?;
    let protobuf = "application/vnd.kubernetes.protobuf";
    let read = cx.send(Request::get(cx.core("limitranges/one")).accept(protobuf)).await?;
    ensure!(read.status == 200, "expected 200 for protobuf, got {}", read.status);
    Ok(())
}

async fn what_was_merged_must_fit_its_type(cx: Context) -> Result<()> {
    let check = async |path: String, body: Value, kind: &str, why: &str| {
        let answer = cx.send(Request::apply(format!("{path}?fieldManager=a"), &body)).await?;
        let message = format!(
            "failed to convert new object (/one; {kind}) to proper version: unable to convert \
             unstructured object to {kind}: {why}"
        );
        same("message", &expect(&answer, 500)?["message"], json!(message))
    };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "one" },
        "data": { "a": "zz!" },
    });
    let why = "error decoding from json: illegal base64 data at input byte 2";
    check(cx.core("secrets/one"), secret, "/v1, Kind=Secret", why).await?;
    let lease = |spec: Value| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "one" }, "spec": spec,
        })
    };
    let leases = cx.apis("coordination.k8s.io/v1", "leases/one");
    let kind = "coordination.k8s.io/v1, Kind=Lease";
    let why = "parsing time \"foo\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"foo\" \
               as \"2006\"";
    check(leases.clone(), lease(json!({ "renewTime": "foo" })), kind, why).await?;
    let why = "cannot convert float64 to int32";
    check(leases, lease(json!({ "leaseTransitions": 1.5 })), kind, why).await
}

async fn applied_metadata_of_a_custom_resource_is_in_normal_form(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let widget = json!({
        "apiVersion": format!("{}/v1", cx.group()), "kind": "Widget",
        "metadata": { "name": "one", "labels": { "a": null } },
    });
    let path = cx.apis(&format!("{}/v1", cx.group()), "widgets/one");
    let applied = Request::apply(format!("{path}?fieldManager=a"), &widget);
    let applied = expect(&cx.send(applied).await?, 201)?;
    same("labels", &applied["metadata"]["labels"], json!({ "a": "" }))?;
    same("what is read", &cx.get(&path).await?, applied)
}

async fn an_apply_may_be_yaml(cx: Context) -> Result<()> {
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  x: \"1\"\n";
    let request = Request::apply(cx.core("configmaps/one?fieldManager=a"), &json!({})).body(yaml);
    same("data", &expect(&cx.send(request).await?, 201)?["data"], json!({ "x": "1" }))?;
    let request = Request::apply(cx.core("configmaps/one?fieldManager=a"), &json!({})).body("a: [");
    let status = expect(&cx.send(request).await?, 400)?;
    let message = text(&status, "/message");
    ensure!(message.starts_with("error decoding YAML: "), "{message}");
    Ok(())
}

async fn managed_fields_can_be_reset(cx: Context) -> Result<()> {
    let created = expect(&apply(&cx, "fieldManager=a", json!({ "x": "1" })).await?, 201)?;
    let reset = json!({ "metadata": { "managedFields": [{}] } });
    let reset =
        expect(&cx.send(Request::merge_patch(cx.core("configmaps/one"), &reset)).await?, 200)?;
    same("managedFields", &reset["metadata"]["managedFields"], Value::Null)?;
    ensure!(revision(&reset)? > revision(&created)?, "nothing was written");
    // Whoever applies next shares the object with an owner from before.
    let next = expect(&apply(&cx, "fieldManager=b", json!({ "y": "1" })).await?, 200)?;
    let expected = json!([
        ["b", "Apply", { "f:y": {} }],
        ["before-first-apply", "Update", { ".": {}, "f:x": {} }],
    ]);
    same("owners", &owners(&next), expected)
}

async fn force_is_for_apply_alone(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let request = Request::merge_patch(cx.core("configmaps/one?force=true"), &json!({}));
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be \
                   specified for non-apply patch";
    refused(&cx.send(request).await?, 422, "Invalid", message)?;
    Ok(())
}

async fn old_changes_are_summed_up(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    for number in 0..12 {
        let path = cx.core(&format!("configmaps/one?fieldManager=editor-{number:02}"));
        let patch = json!({ "data": { format!("k{number:02}"): "v" } });
        expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
    }
    // Thirteen wrote: nine are kept apart, and the oldest are one now. Who that is depends on the
    // seconds in which they wrote.
    let owners = owners(&cx.get(&cx.core("configmaps/one")).await?);
    let owners = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(owners.len() == 10, "{} owners", owners.len());
    let fields = |owner: &Value| {
        let fields = owner[2].as_object().cloned().unwrap_or_default();
        fields.keys().filter(|name| name.starts_with("f:")).count()
    };
    same("the oldest", &owners[0][0], json!("ancient-changes"))?;
    same("their operation", &owners[0][1], json!("Update"))?;
    same("their fields", &json!(fields(&owners[0])), json!(4))?;
    same("all fields", &json!(owners.iter().map(fields).sum::<usize>()), json!(13))
}

async fn lists_are_owned_by_key(cx: Context) -> Result<()> {
    let service = |ports: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "one" },
            "spec": { "ports": ports },
        })
    };
    let path = |manager: &str| cx.core(&format!("services/one?fieldManager={manager}"));
    let web = json!({ "name": "web", "port": 80 });
    let dns = json!({ "name": "dns", "port": 53, "protocol": "UDP" });
    let answer = cx.send(Request::apply(path("a"), &service(json!([web])))).await?;
    expect(&answer, 201)?;
    let answer = cx.send(Request::apply(path("b"), &service(json!([dns])))).await?;
    let both = expect(&answer, 200)?;
    let named = |object: &Value| -> Vec<Value> {
        let ports = object["spec"]["ports"].as_array().cloned().unwrap_or_default();
        ports.iter().map(|port| port["name"].clone()).collect()
    };
    same("ports", &json!(named(&both)), json!(["web", "dns"]))?;
    let fields = |object: &Value, manager: &str| -> Value {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let own = entries.iter().find(|entry| entry["manager"] == manager);
        own.map(|entry| entry["fieldsV1"]["f:spec"]["f:ports"].clone()).unwrap_or_default()
    };
    // The protocol is part of the key, also where it was not given.
    let key = "k:{\"port\":80,\"protocol\":\"TCP\"}";
    let owned = json!({ key: { ".": {}, "f:name": {}, "f:port": {} } });
    same("fields of a", &fields(&both, "a"), owned)?;
    let answer = cx.send(Request::apply(path("a"), &service(json!([])))).await?;
    let less = expect(&answer, 200)?;
    same("ports", &json!(named(&less)), json!(["dns"]))
}

async fn a_status_is_owned_apart(cx: Context) -> Result<()> {
    let ingress = |more: Value| {
        let mut ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": { "name": "one" },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            ingress[name] = value.clone();
        }
        ingress
    };
    let path = |part: &str| {
        cx.apis("networking.k8s.io/v1", &format!("ingresses/one{part}?fieldManager=a"))
    };
    let spec = json!({ "ingressClassName": "none", "rules": [{ "host": "a.example.com" }] });
    let balancer = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    let whole = ingress(json!({ "spec": spec, "status": balancer }));
    let created = expect(&cx.send(Request::apply(path(""), &whole)).await?, 201)?;
    same("status", &created["status"], json!({ "loadBalancer": {} }))?;
    let answer = cx.send(Request::apply(path("/status"), &whole)).await?;
    let reported = expect(&answer, 200)?;
    same("status", &reported["status"], balancer)?;
    let entries = reported["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let owned: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let fields = entry["fieldsV1"].as_object().cloned().unwrap_or_default();
            let names: Vec<String> = fields.keys().cloned().collect();
            json!([entry["manager"], entry["subresource"], names])
        })
        .collect();
    same("owners", &json!(owned), json!([["a", null, ["f:spec"]], ["a", "status", ["f:status"]]]))
}

async fn who_applied_on_the_client_goes_on(cx: Context) -> Result<()> {
    let last = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" },
        "data": { "x": "1", "y": "1" },
    });
    let note = "kubectl.kubernetes.io/last-applied-configuration";
    let mut object = applied(json!({ "x": "1", "y": "1", "z": "1" }));
    object["metadata"]["annotations"] = json!({ note: last.to_string() });
    let path = cx.core("configmaps?fieldManager=kubectl-client-side-apply");
    cx.create(&path, &object).await?;
    let next = expect(&apply(&cx, "fieldManager=kubectl", json!({ "x": "2" })).await?, 200)?;
    same("data", &next["data"], json!({ "x": "2", "y": "1", "z": "1" }))?;
    // The note is kept, so that an older client can take over again.
    let noted = next["metadata"]["annotations"][note].as_str().unwrap_or_default();
    let noted: Value = serde_json::from_str(noted)?;
    same("note", &noted["data"], json!({ "x": "2" }))
}

async fn an_apply_of_another_object_is_refused(cx: Context) -> Result<()> {
    let path = cx.core("configmaps/two?fieldManager=a");
    let answer = cx.send(Request::apply(path, &applied(json!({})))).await?;
    let message = "the name of the object (one) does not match the name on the URL (two)";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}
