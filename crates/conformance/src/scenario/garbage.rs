//! What becomes of objects whose owners go.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{
    Context, PATIENCE, any_schema, config_map, expect, is_deleting, same, scenarios, text,
};
use crate::endpoint::{Answer, Request};

scenarios! { "garbage":
    what_is_owned_goes_after_its_owner [U10],
    in_the_foreground_an_owner_waits_for_those_who_block_it [U10],
    orphans_live_on_without_an_owner [U10],
    some_kinds_leave_orphans_unless_told_otherwise [U10],
    an_owner_that_is_not_there_owns_nothing [U10],
    of_two_owners_one_is_enough [U10],
    an_owner_in_another_namespace_is_none [U10],
    owners_in_a_circle_can_go [U10],
    custom_resources_own_and_are_owned [U10],
}

const HOLD: &str = "example.com/hold";

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

/// A ConfigMap that these own.
async fn owned(cx: &Context, name: &str, owners: &[Value]) -> Result<String> {
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] = json!(owners);
    cx.create(&cx.core("configmaps"), &object).await?;
    Ok(cx.core(&format!("configmaps/{name}")))
}

/// A reference to nobody.
fn absent() -> Value {
    let mut absent = reference(&config_map("absent"));
    absent["uid"] = json!("11111111-2222-3333-4444-555555555555");
    absent
}

/// Waits until the collector knows all ConfigMaps there are: it has seen what came after them. What
/// it does not know when an owner goes is garbage to it, whatever the policy.
async fn settle(cx: &Context) -> Result<()> {
    let last = owned(cx, "last", &[absent()]).await?;
    wait(cx, &last, is_gone).await?;
    Ok(())
}

async fn hold(cx: &Context, path: &str) -> Result<()> {
    let hold = json!({ "metadata": { "finalizers": [HOLD] } });
    expect(&cx.send(Request::merge_patch(path, &hold)).await?, 200)?;
    Ok(())
}

async fn delete(cx: &Context, path: &str, policy: &str) -> Result<Value> {
    let target = format!("{path}?propagationPolicy={policy}");
    expect(&cx.send(Request::delete(target)).await?, 200)
}

async fn wait(cx: &Context, path: &str, done: impl Fn(&Answer) -> bool) -> Result<Answer> {
    cx.endpoint.poll(&Request::get(path), PATIENCE, done).await
}

fn is_gone(answer: &Answer) -> bool {
    answer.status == 404
}

fn is_free(answer: &Answer) -> bool {
    answer.json().is_ok_and(|object| {
        object["kind"] == "ConfigMap" && object["metadata"]["ownerReferences"].is_null()
    })
}

async fn what_is_owned_goes_after_its_owner(cx: Context) -> Result<()> {
    let owner = cx.config_map("owner").await?;
    let child = owned(&cx, "child", &[reference(&owner)]).await?;
    let parent = cx.get(&child).await?;
    let grandchild = owned(&cx, "grandchild", &[reference(&parent)]).await?;
    expect(&cx.send(Request::delete(cx.core("configmaps/owner"))).await?, 200)?;
    wait(&cx, &child, is_gone).await?;
    wait(&cx, &grandchild, is_gone).await?;
    Ok(())
}

async fn in_the_foreground_an_owner_waits_for_those_who_block_it(cx: Context) -> Result<()> {
    let owner = cx.config_map("owner").await?;
    let blocking = owned(&cx, "blocking", &[reference(&owner)]).await?;
    let mut weak = reference(&owner);
    weak["blockOwnerDeletion"] = json!(false);
    let idle = owned(&cx, "idle", &[weak]).await?;
    hold(&cx, &blocking).await?;
    hold(&cx, &idle).await?;
    settle(&cx).await?;
    let path = cx.core("configmaps/owner");
    let dying = delete(&cx, &path, "Foreground").await?;
    same("finalizers", &dying["metadata"]["finalizers"], json!(["foregroundDeletion"]))?;
    wait(&cx, &blocking, is_deleting).await?;
    same("owner", &cx.get(&path).await?["metadata"]["finalizers"], json!(["foregroundDeletion"]))?;
    cx.release(&blocking).await?;
    wait(&cx, &path, is_gone).await?;
    // It was not waited for, and goes all the same.
    wait(&cx, &idle, is_deleting).await?;
    cx.release(&idle).await
}

async fn orphans_live_on_without_an_owner(cx: Context) -> Result<()> {
    let owner = cx.config_map("owner").await?;
    let other = cx.config_map("other").await?;
    let child = owned(&cx, "child", &[reference(&owner), reference(&other)]).await?;
    settle(&cx).await?;
    let path = cx.core("configmaps/owner");
    let dying = delete(&cx, &path, "Orphan").await?;
    same("finalizers", &dying["metadata"]["finalizers"], json!(["orphan"]))?;
    wait(&cx, &path, is_gone).await?;
    let owners = &cx.get(&child).await?["metadata"]["ownerReferences"];
    same("owners", owners, json!([reference(&other)]))
}

async fn some_kinds_leave_orphans_unless_told_otherwise(cx: Context) -> Result<()> {
    let labels = json!({ "app": "a" });
    let template = json!({
        "metadata": { "labels": labels },
        "spec": {
            "containers": [{ "name": "main", "image": "example.com/image" }],
            "restartPolicy": "Never",
        },
    });
    let job = json!({
        "metadata": { "name": "owner" },
        "spec": { "suspend": true, "template": template },
    });
    let mut lasting = template.clone();
    lasting["spec"]["restartPolicy"] = json!("Always");
    let controller = json!({
        "metadata": { "name": "owner" },
        "spec": { "replicas": 0, "selector": labels, "template": lasting },
    });
    let kinds = [
        ("job", cx.apis("batch/v1", "jobs"), job),
        ("controller", cx.core("replicationcontrollers"), controller),
    ];
    for (kind, collection, object) in kinds {
        let owner = cx.create(&collection, &object).await?;
        let child = owned(&cx, kind, &[reference(&owner)]).await?;
        settle(&cx).await?;
        let path = format!("{collection}/owner");
        let dying = expect(&cx.send(Request::delete(&path)).await?, 200)?;
        let finalizers = dying["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        ensure!(finalizers.contains(&json!("orphan")), "{kind}: {finalizers:?}");
        wait(&cx, &path, is_gone).await?;
        wait(&cx, &child, is_free).await?;
    }
    Ok(())
}

async fn an_owner_that_is_not_there_owns_nothing(cx: Context) -> Result<()> {
    let child = owned(&cx, "child", &[absent()]).await?;
    wait(&cx, &child, is_gone).await?;
    // Who has the name of an owner is not the owner.
    cx.config_map("absent").await?;
    let child = owned(&cx, "child", &[absent()]).await?;
    wait(&cx, &child, is_gone).await?;
    cx.get(&cx.core("configmaps/absent")).await?;
    Ok(())
}

async fn of_two_owners_one_is_enough(cx: Context) -> Result<()> {
    let owner = cx.config_map("owner").await?;
    let other = cx.config_map("other").await?;
    let child = owned(&cx, "child", &[reference(&owner), reference(&other)]).await?;
    expect(&cx.send(Request::delete(cx.core("configmaps/owner"))).await?, 200)?;
    let is_released = |answer: &Answer| {
        let left = json!([reference(&other)]);
        answer.json().is_ok_and(|child| child["metadata"]["ownerReferences"] == left)
    };
    wait(&cx, &child, is_released).await?;
    Ok(())
}

async fn an_owner_in_another_namespace_is_none(cx: Context) -> Result<()> {
    let maps = "/api/v1/namespaces/default/configmaps";
    let name = format!("owner-of-{}", cx.namespace);
    let owner = cx.create(maps, &config_map(&name)).await?;
    let child = owned(&cx, "child", &[reference(&owner)]).await?;
    let is_event = |event: &Value| {
        event["reason"] == "OwnerRefInvalidNamespace"
            && event["involvedObject"]["name"] == "child"
            && event["type"] == "Warning"
    };
    let events = |answer: &Answer| {
        answer.json().is_ok_and(|list| {
            list["items"].as_array().is_some_and(|events| events.iter().any(is_event))
        })
    };
    let told = wait(&cx, &cx.core("events"), events).await?.json()?;
    let event = told["items"].as_array().and_then(|events| events.iter().find(|one| is_event(one)));
    let message = format!(
        "ownerRef [v1/ConfigMap, namespace: {}, name: {name}, uid: {}] does not exist in namespace \
         \"{}\"",
        cx.namespace,
        text(&owner, "/metadata/uid"),
        cx.namespace
    );
    same("message", event.map_or(&Value::Null, |event| &event["message"]), json!(message))?;
    wait(&cx, &child, is_gone).await?;
    expect(&cx.send(Request::delete(format!("{maps}/{name}"))).await?, 200)?;
    Ok(())
}

async fn owners_in_a_circle_can_go(cx: Context) -> Result<()> {
    let first = cx.config_map("first").await?;
    let path = cx.core("configmaps/first");
    let second = owned(&cx, "second", &[reference(&first)]).await?;
    let owners = [reference(&cx.get(&second).await?)];
    let patch = json!({ "metadata": { "ownerReferences": owners } });
    expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 200)?;
    delete(&cx, &path, "Foreground").await?;
    wait(&cx, &path, is_gone).await?;
    wait(&cx, &second, is_gone).await?;
    Ok(())
}

async fn custom_resources_own_and_are_owned(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let collection = cx.widget_path();
    let owner = cx.create(&collection, &cx.widget("owner", json!({}))).await?;
    let mut part = cx.widget("part", json!({}));
    part["metadata"]["ownerReferences"] = json!([reference(&owner)]);
    cx.create(&collection, &part).await?;
    let child = owned(&cx, "child", &[reference(&owner)]).await?;
    delete(&cx, &format!("{collection}/owner"), "Background").await?;
    wait(&cx, &format!("{collection}/part"), is_gone).await?;
    wait(&cx, &child, is_gone).await?;
    Ok(())
}
