//! Jobs and CronJobs, by the pods they make and what becomes of those.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, pod, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "jobs":
    a_job_makes_pods_until_enough_have_succeeded [J1],
    an_indexed_job_gives_each_pod_its_index [J1],
    a_job_fails_when_too_many_pods_have_failed [J1],
    an_index_that_has_failed_does_not_keep_others_from_their_end [J1],
    a_policy_says_what_a_failure_means [J1],
    a_policy_says_what_success_is [J1],
    a_job_can_be_suspended_and_resumed [J1],
    a_job_that_is_over_goes_after_its_time [J1],
    the_pods_of_a_deleted_job_go [J1],
    a_job_for_another_controller_is_left_alone [J1],
    a_cron_job_starts_jobs_when_they_are_due [J2],
}

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

fn job(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    let mut template = pod("")["spec"].clone();
    template["restartPolicy"] = json!("Never");
    spec["template"] = json!({ "spec": template });
    json!({ "metadata": { "name": name }, "spec": spec })
}

fn jobs(cx: &Context) -> String {
    cx.apis("batch/v1", "jobs")
}

/// The Job, once it is right.
async fn wait(cx: &Context, name: &str, right: impl Fn(&Value) -> bool) -> Result<Value> {
    let get = Request::get(format!("{}/{name}", jobs(cx)));
    let is_right = |job: Value| right(&job);
    let answer =
        cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_right)).await?;
    answer.json()
}

/// The pods that a Job has made and that are not over, once there are so many.
async fn pods(cx: &Context, job: &str, count: usize) -> Result<Vec<Value>> {
    let list = cx.core(&format!("pods?labelSelector=batch.kubernetes.io/job-name%3D{job}"));
    let active = |list: Value| {
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let is_over = |pod: &Value| {
            matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
                || !text(pod, "/metadata/deletionTimestamp").is_empty()
        };
        all.into_iter().filter(|pod| !is_over(pod)).collect::<Vec<_>>()
    };
    let is_right = |list: Value| active(list).len() == count;
    let answer = cx
        .endpoint
        .poll(&Request::get(list), PATIENCE, |answer| answer.json().is_ok_and(is_right))
        .await?;
    Ok(active(answer.json()?))
}

/// Has a pod be over.
async fn end(cx: &Context, pod: &Value, status: Value) -> Result<()> {
    let path = cx.core(&format!("pods/{}/status", text(pod, "/metadata/name")));
    expect(&cx.send(Request::merge_patch(path, &json!({ "status": status }))).await?, 200)?;
    Ok(())
}

fn is_over(job: &Value) -> bool {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| matches!(text(it, "/type"), "Complete" | "Failed"))
}

/// What conditions there are: type, status, reason, message.
fn conditions(job: &Value) -> Value {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    json!(
        conditions
            .map(|it| json!([it["type"], it["status"], it["reason"], it["message"]]))
            .collect::<Vec<_>>()
    )
}

/// Waits until people were told this of an object.
async fn told(cx: &Context, name: &str, reason: &str, note: &str) -> Result<()> {
    let list = Request::get(cx.apis("events.k8s.io/v1", "events"));
    let is_told = |events: Value| {
        events["items"].as_array().into_iter().flatten().any(|event| {
            text(event, "/regarding/name") == name
                && text(event, "/reason") == reason
                && text(event, "/note").starts_with(note)
        })
    };
    cx.endpoint.poll(&list, PATIENCE, |answer| answer.json().is_ok_and(is_told)).await?;
    Ok(())
}

async fn a_job_makes_pods_until_enough_have_succeeded(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let made = cx.create(&jobs(&cx), &job("j", json!({ "completions": 2 }))).await?;
    let first = pods(&cx, "j", 1).await?.remove(0);
    same("finalizers", &first["metadata"]["finalizers"], json!([FINALIZER]))?;
    same("name", &first["metadata"]["generateName"], json!("j-"))?;
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": made["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    same("owner", &first["metadata"]["ownerReferences"], owner)?;
    wait(&cx, "j", |job| job["status"]["active"] == 1).await?;
    end(&cx, &first, json!({ "phase": "Succeeded" })).await?;
    let second = pods(&cx, "j", 1).await?.remove(0);
    end(&cx, &second, json!({ "phase": "Succeeded" })).await?;

    let job = wait(&cx, "j", is_over).await?;
    let mut status = job["status"].clone();
    for time in ["startTime", "completionTime", "conditions"] {
        let time = status.as_object_mut().and_then(|status| status.remove(time));
        if time.is_none() {
            bail!("a part of status is missing: {job}");
        }
    }
    let counts = json!({
        "succeeded": 2, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
    });
    same("status", &status, counts)?;
    let reached = ["CompletionsReached", "Reached expected number of succeeded pods"];
    let expected = json!([
        ["SuccessCriteriaMet", "True", reached[0], reached[1]],
        ["Complete", "True", reached[0], reached[1]],
    ]);
    same("conditions", &conditions(&job), expected)?;
    let name = text(&first, "/metadata/name");
    told(&cx, "j", "SuccessfulCreate", &format!("Created pod: {name}")).await?;
    told(&cx, "j", "Completed", "Job completed").await?;
    let counted = cx.get(&cx.core(&format!("pods/{name}"))).await?;
    same("finalizers", &counted["metadata"]["finalizers"], Value::Null)
}

async fn an_indexed_job_gives_each_pod_its_index(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let spec = json!({ "completionMode": "Indexed", "completions": 3, "parallelism": 3 });
    cx.create(&jobs(&cx), &job("j", spec)).await?;
    let mut all = pods(&cx, "j", 3).await?;
    let key = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    all.sort_by_key(|pod| text(pod, key).to_owned());
    for (index, pod) in all.iter().enumerate() {
        same("index", &json!(text(pod, key)), json!(index.to_string()))?;
        let label = &pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"];
        same("label", label, json!(index.to_string()))?;
        same("hostname", &pod["spec"]["hostname"], json!(format!("j-{index}")))?;
        same("name", &pod["metadata"]["generateName"], json!(format!("j-{index}-")))?;
        let field = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        let variable = json!({
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": field } },
        });
        same("variable", &pod["spec"]["containers"][0]["env"], json!([variable]))?;
    }
    end(&cx, &all[0], json!({ "phase": "Succeeded" })).await?;
    end(&cx, &all[2], json!({ "phase": "Succeeded" })).await?;
    wait(&cx, "j", |job| job["status"]["completedIndexes"] == "0,2").await?;
    end(&cx, &all[1], json!({ "phase": "Succeeded" })).await?;
    let job = wait(&cx, "j", is_over).await?;
    same("indexes", &job["status"]["completedIndexes"], json!("0-2"))?;
    same("succeeded", &job["status"]["succeeded"], json!(3))
}

async fn a_job_fails_when_too_many_pods_have_failed(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&jobs(&cx), &job("j", json!({ "backoffLimit": 0 }))).await?;
    let pod = pods(&cx, "j", 1).await?.remove(0);
    end(&cx, &pod, json!({ "phase": "Failed" })).await?;
    let job = wait(&cx, "j", is_over).await?;
    let why = ["BackoffLimitExceeded", "Job has reached the specified backoff limit"];
    let expected =
        json!([["FailureTarget", "True", why[0], why[1]], ["Failed", "True", why[0], why[1]],]);
    same("conditions", &conditions(&job), expected)?;
    same("failed", &job["status"]["failed"], json!(1))?;
    told(&cx, "j", why[0], why[1]).await
}

/// The pods of an indexed Job by their index, once there are so many.
async fn by_index(cx: &Context, count: usize) -> Result<Vec<Value>> {
    let mut all = pods(cx, "j", count).await?;
    let key = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    all.sort_by_key(|pod| text(pod, key).to_owned());
    Ok(all)
}

async fn an_index_that_has_failed_does_not_keep_others_from_their_end(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let spec = json!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2,
        "backoffLimitPerIndex": 0,
    });
    cx.create(&jobs(&cx), &job("j", spec)).await?;
    let all = by_index(&cx, 2).await?;
    end(&cx, &all[0], json!({ "phase": "Failed" })).await?;
    let job = wait(&cx, "j", |job| job["status"]["failedIndexes"] == "0").await?;
    same("conditions", &conditions(&job), json!([]))?;
    end(&cx, &all[1], json!({ "phase": "Succeeded" })).await?;
    let job = wait(&cx, "j", is_over).await?;
    same("completed", &job["status"]["completedIndexes"], json!("1"))?;
    same("failed", &job["status"]["failedIndexes"], json!("0"))?;
    let why = ["FailedIndexes", "Job has failed indexes"];
    let expected =
        json!([["FailureTarget", "True", why[0], why[1]], ["Failed", "True", why[0], why[1]]]);
    same("conditions", &conditions(&job), expected)
}

async fn a_policy_says_what_success_is(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": { "rules": [{ "succeededIndexes": "1" }] },
    });
    cx.create(&jobs(&cx), &job("j", spec)).await?;
    let all = by_index(&cx, 3).await?;
    end(&cx, &all[1], json!({ "phase": "Succeeded" })).await?;
    let job = wait(&cx, "j", is_over).await?;
    let why = ["SuccessPolicy", "Matched rules at index 0"];
    let expected = json!([
        ["SuccessCriteriaMet", "True", why[0], why[1]],
        ["Complete", "True", why[0], why[1]]
    ]);
    same("conditions", &conditions(&job), expected)?;
    same("completed", &job["status"]["completedIndexes"], json!("1"))?;
    pods(&cx, "j", 0).await?;
    Ok(())
}

async fn a_policy_says_what_a_failure_means(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let codes = json!({ "operator": "In", "values": [42] });
    let rules = json!([{ "action": "FailJob", "onExitCodes": codes }]);
    let spec = json!({ "backoffLimit": 6, "podFailurePolicy": { "rules": rules } });
    cx.create(&jobs(&cx), &job("j", spec)).await?;
    let pod = pods(&cx, "j", 1).await?.remove(0);
    let container = json!({
        "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": 42 } },
    });
    end(&cx, &pod, json!({ "phase": "Failed", "containerStatuses": [container] })).await?;
    let job = wait(&cx, "j", is_over).await?;
    let why = format!(
        "Container main for pod {}/{} failed with exit code 42 matching FailJob rule at index 0",
        cx.namespace,
        text(&pod, "/metadata/name")
    );
    let expected = json!([
        ["FailureTarget", "True", "PodFailurePolicy", why],
        ["Failed", "True", "PodFailurePolicy", why],
    ]);
    same("conditions", &conditions(&job), expected)
}

async fn a_job_can_be_suspended_and_resumed(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&jobs(&cx), &job("j", json!({ "suspend": true }))).await?;
    let is = |status: &'static str| {
        move |job: &Value| job["status"]["conditions"][0]["status"] == status
    };
    let job = wait(&cx, "j", is("True")).await?;
    let expected = json!([["Suspended", "True", "JobSuspended", "Job suspended"]]);
    same("conditions", &conditions(&job), expected)?;
    same("start", &job["status"]["startTime"], Value::Null)?;
    let path = format!("{}/j", jobs(&cx));
    let resume = json!({ "spec": { "suspend": false } });
    expect(&cx.send(Request::merge_patch(&path, &resume)).await?, 200)?;
    pods(&cx, "j", 1).await?;
    let job = wait(&cx, "j", is("False")).await?;
    same(
        "conditions",
        &conditions(&job),
        json!([["Suspended", "False", "JobResumed", "Job resumed"]]),
    )?;
    let suspend = json!({ "spec": { "suspend": true } });
    expect(&cx.send(Request::merge_patch(&path, &suspend)).await?, 200)?;
    wait(&cx, "j", is("True")).await?;
    pods(&cx, "j", 0).await?;
    told(&cx, "j", "Suspended", "Job suspended").await?;
    told(&cx, "j", "Resumed", "Job resumed").await
}

async fn a_job_that_is_over_goes_after_its_time(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&jobs(&cx), &job("j", json!({ "ttlSecondsAfterFinished": 1 }))).await?;
    let pod = pods(&cx, "j", 1).await?.remove(0);
    end(&cx, &pod, json!({ "phase": "Succeeded" })).await?;
    let get = Request::get(format!("{}/j", jobs(&cx)));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 404).await?;
    let get = Request::get(cx.core(&format!("pods/{}", text(&pod, "/metadata/name"))));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

async fn the_pods_of_a_deleted_job_go(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&jobs(&cx), &job("j", json!({}))).await?;
    let pod = pods(&cx, "j", 1).await?.remove(0);
    let path = format!("{}/j?propagationPolicy=Background", jobs(&cx));
    expect(&cx.send(Request::delete(path)).await?, 200)?;
    let get = Request::get(cx.core(&format!("pods/{}", text(&pod, "/metadata/name"))));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

async fn a_job_for_another_controller_is_left_alone(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    cx.create(&jobs(&cx), &job("other", json!({ "managedBy": "example.com/us" }))).await?;
    // What came later had its turn.
    cx.create(&jobs(&cx), &job("own", json!({}))).await?;
    pods(&cx, "own", 1).await?;
    pods(&cx, "other", 0).await?;
    let other = cx.get(&format!("{}/other", jobs(&cx))).await?;
    same("status", &other["status"], json!({}))
}

async fn a_cron_job_starts_jobs_when_they_are_due(cx: Context) -> Result<()> {
    let template = json!({ "spec": job("", json!({}))["spec"] });
    let spec = json!({
        "schedule": "@every 2s", "concurrencyPolicy": "Forbid", "jobTemplate": template,
    });
    let cron_jobs = cx.apis("batch/v1", "cronjobs");
    let cron_job = json!({ "metadata": { "name": "c" }, "spec": spec });
    let made = cx.create(&cron_jobs, &cron_job).await?;
    let get = Request::get(format!("{cron_jobs}/c"));
    let is_active = |cron_job: Value| cron_job["status"]["active"].is_array();
    let answer =
        cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_active)).await?;
    let active = answer.json()?["status"]["active"][0].clone();
    same("kind", &active["kind"], json!("Job"))?;
    let name = text(&active, "/name").to_owned();
    let job = cx.get(&format!("{}/{name}", jobs(&cx))).await?;
    same("owner", &job["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"].clone())?;
    let at = "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp";
    if text(&job, at).is_empty() {
        bail!("it does not say when it was due: {job}");
    }
    told(&cx, "c", "SuccessfulCreate", &format!("Created job {name}")).await
}
