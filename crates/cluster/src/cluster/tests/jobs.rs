//! Jobs and CronJobs over hours, which pass as soon as nobody has anything to do.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::controllers::{create, start, until};

fn job(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    let pod = json!({ "containers": [{ "name": "main", "image": "i" }], "restartPolicy": "Never" });
    spec["template"] = json!({ "spec": pod });
    json!({ "metadata": { "name": name }, "spec": spec })
}

/// The pods of a Job that are not over, once there are so many.
async fn pods(client: &Client, jobs: &Api<Job>, job: &str, count: i32) -> Vec<Pod> {
    let has = |job: Option<&Job>| {
        let status = job.and_then(|job| job.status.as_ref());
        status.is_some_and(|status| status.active.unwrap_or_default() == count)
    };
    until(jobs, job, has).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let selector = format!("batch.kubernetes.io/job-name={job}");
    let pods = pods.list(&ListParams::default().labels(&selector)).await.expect("listed").items;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let is_over = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
    pods.into_iter()
        .filter(|pod| !is_over(pod) && pod.metadata.deletion_timestamp.is_none())
        .collect()
}

async fn end(client: &Client, pod: &Pod, phase: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let name = pod.metadata.name.as_deref().expect("a name");
    let patch = Patch::Merge(json!({ "status": { "phase": phase } }));
    pods.patch_status(name, &PatchParams::default(), &patch).await.expect("patched");
}

fn reason(job: &Job, kind: &str) -> Option<String> {
    let mut conditions = job.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|it| it.type_ == kind && it.status == "True")?.reason.clone()
}

#[tokio::test(start_paused = true)]
async fn a_job_tries_again_after_pauses_until_its_limit() {
    let (cluster, client) = start().await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    create(&jobs, job("j", json!({ "backoffLimit": 2 }))).await;
    let begin = tokio::time::Instant::now();
    for failures in 0..3 {
        let failed = |job: Option<&Job>| {
            let status = job.and_then(|job| job.status.as_ref());
            status
                .is_some_and(|it| it.failed.unwrap_or_default() == failures && it.active == Some(1))
        };
        until(&jobs, "j", failed).await;
        let active = pods(&client, &jobs, "j", 1).await;
        end(&client, &active[0], "Failed").await;
    }
    let has_failed = |job: Option<&Job>| job.is_some_and(|job| reason(job, "Failed").is_some());
    until(&jobs, "j", has_failed).await;
    let job = jobs.get("j").await.expect("read");
    assert_eq!(reason(&job, "Failed").as_deref(), Some("BackoffLimitExceeded"));
    assert_eq!(job.status.expect("a status").failed, Some(3));
    assert!(begin.elapsed().as_secs() >= 28, "it paused ten seconds and then twenty");
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_has_a_deadline_and_goes_after_its_time() {
    let (cluster, client) = start().await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let spec = json!({ "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 1800 });
    create(&jobs, job("j", spec)).await;
    let begin = tokio::time::Instant::now();
    let is_late = |job: Option<&Job>| {
        job.is_some_and(|job| reason(job, "Failed").as_deref() == Some("DeadlineExceeded"))
    };
    until(&jobs, "j", is_late).await;
    assert!((599..700).contains(&begin.elapsed().as_secs()));
    until(&jobs, "j", |job| job.is_none()).await;
    assert!(begin.elapsed().as_secs() > 2400 - 2);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_starts_by_the_clock_and_keeps_a_history() {
    let (cluster, client) = start().await;
    let cron_jobs: Api<CronJob> = Api::default_namespaced(client.clone());
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let spec = json!({
        "schedule": "*/5 * * * *",
        "successfulJobsHistoryLimit": 1,
        "jobTemplate": { "spec": job("", json!({}))["spec"] },
    });
    create(&cron_jobs, json!({ "metadata": { "name": "c" }, "spec": spec })).await;
    let mut names: Vec<String> = Vec::new();
    for _ in 0..3 {
        let known = names.clone();
        let active = |cron_job: &CronJob| {
            let active = cron_job.status.as_ref()?.active.as_ref()?.first()?.name.clone()?;
            (!known.contains(&active)).then_some(active)
        };
        until(&cron_jobs, "c", |it| it.and_then(&active).is_some()).await;
        let name = active(&cron_jobs.get("c").await.expect("read")).expect("active");
        let running = pods(&client, &jobs, &name, 1).await;
        end(&client, &running[0], "Succeeded").await;
        until(&jobs, &name, |job| job.is_none_or(|job| reason(job, "Complete").is_some())).await;
        names.push(name);
    }
    let minutes: Vec<i64> =
        names.iter().filter_map(|name| name.strip_prefix("c-")?.parse().ok()).collect();
    assert_eq!((minutes[1] - minutes[0], minutes[2] - minutes[1], minutes[0] % 5), (5, 5, 0));
    until(&jobs, &names[0], |job| job.is_none()).await;
    cluster.shutdown().await;
}
