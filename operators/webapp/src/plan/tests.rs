use super::*;
use crate::kind::WebAppSpec;

fn app(tier: Tier) -> WebApp {
    let spec = WebAppSpec {
        deployment_tier: tier,
        web_app_hostname: "app.acme.com".to_owned(),
        web_app_image: "registry.acme.com/app/app:v1.4".to_owned(),
        web_app_replicas: 2,
    };
    WebApp::new("shop", spec)
}

fn storage(database: &StatefulSet) -> Value {
    json!(database)["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
        .clone()
}

#[test]
fn the_tier_sets_resources_and_storage() {
    let check = |tier: Tier, cpu: &str, kept: &str| {
        let Children { deployment, database, .. } = Children::of(&app(tier), "secret", None);
        let container = &json!(deployment)["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"]["cpu"], cpu);
        assert_eq!(storage(&database), kept);
    };
    check(Tier::Dev, "100m", "1Gi");
    check(Tier::Stg, "250m", "10Gi");
    check(Tier::Prod, "500m", "100Gi");
}

#[test]
fn the_claims_of_a_database_that_is_there_stay() {
    let before = Children::of(&app(Tier::Dev), "secret", None).database;
    let after = Children::of(&app(Tier::Prod), "secret", Some(&before)).database;
    assert_eq!(storage(&after), "1Gi");
    let container = &json!(after)["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"]["memory"], "2Gi");
}

#[test]
fn pods_have_the_settings_and_the_credentials() {
    let Children { deployment, config, secret, .. } = Children::of(&app(Tier::Dev), "hush", None);
    let spec = &json!(deployment)["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"][0]["configMap"]["name"], *config.metadata.name.as_ref().unwrap());
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], "config");
    let reference = &spec["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"];
    assert_eq!(reference["name"], *secret.metadata.name.as_ref().unwrap());
    assert_eq!(secret.data.expect("data")["password"].0, b"hush");
}

/// What is said of two replicas that are so, beside a database that is ready.
fn check(status: Value, expected: (bool, &str, &str)) {
    let app = app(Tier::Dev);
    let Children { mut deployment, mut database, .. } = Children::of(&app, "secret", None);
    deployment.metadata.generation = Some(2);
    deployment.status = serde_json::from_value(status).expect("a status");
    database.status = serde_json::from_value(json!({"replicas": 1, "readyReplicas": 1})).ok();
    let Report { is_ready, reason, message } = Report::of(&app, &deployment, &database);
    assert_eq!((is_ready, reason, message.as_str()), expected);
}

#[test]
fn a_rollout_is_told_as_it_goes() {
    check(
        json!({
            "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 2,
        }),
        (true, "Available", "2 of 2 replicas are available"),
    );
    // Of the version before.
    check(
        json!({
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 2,
        }),
        (false, "RollingOut", "2 of 2 replicas are available as they should be"),
    );
    check(
        json!({
            "observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 3,
            "availableReplicas": 3,
        }),
        (false, "RollingOut", "1 of 2 replicas are available as they should be"),
    );
    check(
        json!({
            "observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "unavailableReplicas": 1,
            "conditions": [{
                "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
                "message": "it takes too long",
            }],
        }),
        (false, "RolloutStuck", "it takes too long"),
    );
}

#[test]
fn without_a_database_nothing_is_ready() {
    let app = app(Tier::Dev);
    let Children { deployment, database, .. } = Children::of(&app, "secret", None);
    assert_eq!(Report::of(&app, &deployment, &database).reason, "DatabaseStarting");
}
