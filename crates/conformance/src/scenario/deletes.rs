//! Deletion: of one object and of many, with finalizers, preconditions and policies.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{
    Context, any_schema, config_map, expect, names, refused, revision, same, scenarios, text,
};
use crate::endpoint::{Answer, Request};

scenarios! { "deletes":
    a_deletion_answers_what_was_deleted [U9],
    a_finalizer_holds_the_object [U9],
    a_dying_object_gets_no_new_finalizer [U9],
    a_finalizer_must_be_qualified [U9],
    a_deletion_may_have_preconditions [U9],
    a_policy_becomes_a_finalizer [U9],
    deletion_options_must_make_sense [U9],
    a_collection_is_deleted_by_selector [U9],
    deletion_raises_the_generation_once [U7 U9],
    a_job_that_goes_is_said_to_leave_its_pods [U9 W12],
}

async fn delete(cx: &Context, target: &str, options: Value) -> Result<Answer> {
    cx.send(Request::delete(cx.core(target)).json(&options)).await
}

async fn finalized(cx: &Context, finalizers: Value) -> Result<Value> {
    let mut object = config_map("one");
    object["metadata"]["finalizers"] = finalizers;
    cx.create(&cx.core("configmaps"), &object).await
}

async fn a_deletion_answers_what_was_deleted(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    let answer = cx.send(Request::delete(cx.core("configmaps/one"))).await?;
    same(
        "answer",
        &expect(&answer, 200)?,
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": { "name": "one", "kind": "configmaps", "uid": one["metadata"]["uid"] },
        }),
    )?;
    let answer = cx.send(Request::delete(cx.core("configmaps/one"))).await?;
    refused(&answer, 404, "NotFound", "configmaps \"one\" not found")?;
    Ok(())
}

async fn a_finalizer_holds_the_object(cx: Context) -> Result<()> {
    let created = finalized(&cx, json!(["example.com/hold"])).await?;
    let dying = expect(&delete(&cx, "configmaps/one", json!({})).await?, 200)?;
    same("kind", &dying["kind"], json!("ConfigMap"))?;
    ensure!(!text(&dying, "/metadata/deletionTimestamp").is_empty(), "{dying}");
    same("grace", &dying["metadata"]["deletionGracePeriodSeconds"], json!(0))?;
    ensure!(revision(&dying)? > revision(&created)?, "nothing was written");
    // To ask again changes nothing.
    same("again", &expect(&delete(&cx, "configmaps/one", json!({})).await?, 200)?, dying)?;
    let release = json!({ "metadata": { "finalizers": null } });
    expect(&cx.send(Request::merge_patch(cx.core("configmaps/one"), &release)).await?, 200)?;
    expect(&cx.send(Request::get(cx.core("configmaps/one"))).await?, 404)?;
    Ok(())
}

async fn a_dying_object_gets_no_new_finalizer(cx: Context) -> Result<()> {
    finalized(&cx, json!(["example.com/hold"])).await?;
    expect(&delete(&cx, "configmaps/one", json!({})).await?, 200)?;
    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } });
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &more)).await?;
    let message = "ConfigMap \"one\" is invalid: metadata.finalizers: Forbidden: no new finalizers \
                   can be added if the object is being deleted, found new finalizers \
                   []string{\"example.com/more\"}";
    refused(&answer, 422, "Invalid", message)?;
    // Anything else may still change.
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    expect(&cx.send(Request::merge_patch(cx.core("configmaps/one"), &label)).await?, 200)?;
    let release = json!({ "metadata": { "finalizers": null } });
    expect(&cx.send(Request::merge_patch(cx.core("configmaps/one"), &release)).await?, 200)?;
    Ok(())
}

async fn a_finalizer_must_be_qualified(cx: Context) -> Result<()> {
    let mut object = config_map("one");
    object["metadata"]["finalizers"] = json!(["hold"]);
    let answer = cx.send(Request::post(cx.core("configmaps"), &object)).await?;
    let message = "ConfigMap \"one\" is invalid: metadata.finalizers[0]: Invalid value: \"hold\": \
                   name is neither a standard finalizer name nor is it fully qualified";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_deletion_may_have_preconditions(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    let answer =
        delete(&cx, "configmaps/one", json!({ "preconditions": { "uid": "other" } })).await?;
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"one\": the UID in the precondition (other) \
         does not match the UID in record ({}). The object might have been deleted and then \
         recreated",
        text(&one, "/metadata/uid")
    );
    refused(&answer, 409, "Conflict", &message)?;
    let old = json!({ "preconditions": { "resourceVersion": "1" } });
    let answer = delete(&cx, "configmaps/one", old).await?;
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"one\": the ResourceVersion in the \
         precondition (1) does not match the ResourceVersion in record ({}). The object might have \
         been modified",
        revision(&one)?
    );
    refused(&answer, 409, "Conflict", &message)?;
    let right = json!({ "preconditions": {
        "uid": one["metadata"]["uid"],
        "resourceVersion": one["metadata"]["resourceVersion"],
    } });
    expect(&delete(&cx, "configmaps/one", right).await?, 200)?;
    Ok(())
}

async fn a_policy_becomes_a_finalizer(cx: Context) -> Result<()> {
    for (name, policy, finalizer) in
        [("one", "Foreground", "foregroundDeletion"), ("two", "Orphan", "orphan")]
    {
        cx.config_map(name).await?;
        let target = format!("configmaps/{name}?propagationPolicy={policy}");
        let answer = cx.send(Request::delete(cx.core(&target))).await?;
        // Where a garbage collector runs it may be quick, but the answer shows the mark.
        same(policy, &expect(&answer, 200)?["metadata"]["finalizers"], json!([finalizer]))?;
    }
    Ok(())
}

async fn deletion_options_must_make_sense(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let answer = cx.send(Request::delete(cx.core("configmaps/one?propagationPolicy=Some"))).await?;
    let message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported \
                   value: \"Some\": supported values: \"Foreground\", \"Background\", \"Orphan\", \
                   \"nil\"";
    refused(&answer, 422, "Invalid", message)?;
    let both = json!({ "propagationPolicy": "Orphan", "orphanDependents": true });
    let message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \
                   \"Orphan\": orphanDependents and deletionPropagation cannot be both set";
    refused(&delete(&cx, "configmaps/one", both).await?, 422, "Invalid", message)?;
    let answer = cx.send(Request::delete(cx.core("configmaps/one?gracePeriodSeconds=x"))).await?;
    let message = "strconv.ParseInt: parsing \"x\": invalid syntax";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_collection_is_deleted_by_selector(cx: Context) -> Result<()> {
    for (name, labels) in
        [("a", json!({ "go": "yes" })), ("b", json!({})), ("c", json!({ "go": "yes" }))]
    {
        let secret = json!({ "metadata": { "name": name, "labels": labels } });
        cx.create(&cx.core("secrets"), &secret).await?;
    }
    let answer = cx.send(Request::delete(cx.core("secrets?labelSelector=go%3Dyes"))).await?;
    let deleted = expect(&answer, 200)?;
    same("kind", &deleted["kind"], json!("SecretList"))?;
    ensure!(names(&deleted) == ["a", "c"], "deleted {:?}", names(&deleted));
    let left = cx.get(&cx.core("secrets")).await?;
    ensure!(names(&left) == ["b"], "left {:?}", names(&left));
    Ok(())
}

async fn deletion_raises_the_generation_once(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let mut widget = cx.widget("one", json!({}));
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cx.create(&cx.widget_path(), &widget).await?;
    let path = format!("{}/one", cx.widget_path());
    for _ in 0..2 {
        let dying = expect(&cx.send(Request::delete(path.clone())).await?, 200)?;
        same("generation", &dying["metadata"]["generation"], json!(2))?;
    }
    let release = json!({ "metadata": { "finalizers": null } });
    expect(&cx.send(Request::merge_patch(path, &release)).await?, 200)?;
    Ok(())
}

async fn a_job_that_goes_is_said_to_leave_its_pods(cx: Context) -> Result<()> {
    let jobs = cx.apis("batch/v1", "jobs");
    let job = json!({
        "metadata": { "name": "one" },
        "spec": {
            "suspend": true,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "main", "image": "i" }],
            } },
        },
    });
    cx.create(&jobs, &job).await?;
    let warning = "child pods are preserved by default when jobs are deleted; set \
                   propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                   suppress this warning";
    for (query, expected) in [("", vec![warning]), ("&propagationPolicy=Orphan", vec![])] {
        let target = format!("{jobs}/one?dryRun=All{query}");
        let answer = cx.send(Request::delete(target)).await?;
        expect(&answer, 200)?;
        ensure!(answer.warnings() == expected, "{:?} after {query:?}", answer.warnings());
    }
    Ok(())
}
