//! What people are told: in logs, and when they write what cannot be.

use at::Phase;
use kubewright_testing::{Log, yaml};
use serde_json::{Value, json};

use crate::on_site;

/// The words of the original, for whoever searches logs for them.
#[test]
fn each_step_is_logged_in_the_words_of_the_original() {
    on_site(async |site| {
        let log = Log::of("at");
        let due = site.schedule(30, Some("echo YAY")).await;
        site.becomes(Phase::Pending).await;
        site.pod().await;
        site.end_pod("Succeeded").await;
        site.becomes(Phase::Done).await;
        let target = format!("Checking schedule Target={due}");
        log.has_in_order(&["=== Reconciling At", "Phase: PENDING", &target]);
        log.has_in_order(&[
            &target,
            "Schedule parsing done Result=0ns",
            "It's time! Ready to execute=echo YAY",
            "Phase: RUNNING",
            "Pod launched name=tea-pod",
            "Container terminated reason=Succeeded message=",
            "Phase: DONE",
        ]);
        let waits = log.lines().into_iter().find(|it| it.starts_with("Schedule parsing done "));
        let waits = waits.expect("it waits before it begins");
        assert_ne!(waits, "Schedule parsing done Result=0ns");
        site.end().await;
    });
}

#[test]
fn what_cannot_be_is_refused_by_field() {
    on_site(async |site| {
        let sample = sample();
        let check = async |change: Value, told: &str| {
            let refusal = site.cluster.refusal(&sample, change).await;
            assert!(refusal.contains(told), "{refusal}");
        };
        let typo = json!({"spec": {"shedule": "2019-07-03T02:00:00Z"}});
        check(typo, r#"strict decoding error: unknown field "spec.shedule""#).await;
        let words = json!({"spec": {"command": ["echo", "YAY"]}});
        check(words, "spec.command in body must be of type string").await;
        let long = json!({"metadata": {"name": "x".repeat(64)}});
        check(long, "metadata.name: must have at most 63 characters").await;
        site.end().await;
    });
}

/// The sample, in whatever namespace the test has.
fn sample() -> Value {
    let mut sample = yaml(at::SAMPLE).remove(0);
    sample["metadata"].as_object_mut().expect("fields").remove("namespace");
    sample
}
