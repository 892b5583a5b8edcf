use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(ttl: Option<i32>, conditions: Value, expected: Option<i64>) {
    let spec = json!({ "template": {}, "ttlSecondsAfterFinished": ttl });
    let job = json!({ "spec": spec, "status": { "conditions": conditions } });
    let job: Job = serde_json::from_value(job).expect("a job");
    let now = "2026-01-01T00:01:00Z".parse().expect("a time");
    assert_eq!(left(&job, now), expected.map(SignedDuration::from_secs));
}

#[test]
fn a_job_goes_so_long_after_its_end() {
    let end = |kind: &str, status: &str| json!([{ "type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    check(Some(100), end("Complete", "True"), Some(40));
    check(Some(10), end("Failed", "True"), Some(-50));
    check(Some(0), end("Complete", "False"), None);
    check(Some(0), end("FailureTarget", "True"), None);
    check(None, end("Complete", "True"), None);
}
