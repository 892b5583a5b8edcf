//! Whether administrators exist, which an identity provider knows, or does not say.

use std::time::Duration;

use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tenancy::{OnFailure, Services, Tier};

use crate::office::{Mood, Office};
use crate::site::{Site, beside};

fn at(office: &Office) -> Services {
    Services { identity_provider: Some(office.url()), ..Services::default() }
}

/// Whether somebody is taken as an administrator; if not, why.
async fn judged(site: &Site<'_>, admin: &str) -> Result<(), String> {
    let created = site.try_create(json!({"adminUsername": admin})).await;
    created.map_err(|error| error.to_string())?;
    // Else its namespace might come when it is gone.
    site.created().await;
    site.teams().delete(&site.team(), &DeleteParams::default()).await.expect("deleted");
    site.gone().await;
    Ok(())
}

#[tokio::test]
async fn administrators_exist() {
    let office = Office::open().await;
    beside(at(&office), async |site| {
        site.call_webhooks().await;
        let refused = judged(site, "mallory").await.expect_err("it is refused");
        let told = "spec.adminUsername: Invalid value: \"mallory\": \
                    the identity provider knows no such user";
        assert!(refused.contains(told), "{refused}");
        site.create().await;
        site.created().await;
        let refused = site.try_edit(json!({"adminUsername": "mallory"})).await;
        refused.expect_err("it is refused");
        site.edit(json!({"adminUsername": "ada"})).await;
        // Who is there already is not asked for again.
        office.set(Mood::Failing);
        site.edit(json!({"deploymentTier": "stg"})).await;
        site.created().await;
    })
    .await;
}

#[tokio::test]
async fn nobody_becomes_administrator_while_nobody_can_say_who_exists() {
    let mut office = Office::open().await;
    let services = Services { service_timeout: Duration::from_millis(300), ..at(&office) };
    beside(services.clone(), async |site| {
        site.call_webhooks().await;
        office.set(Mood::Slow);
        let refused = judged(site, "sam").await.expect_err("it is refused");
        assert!(refused.contains("nobody can say whether sam exists"), "{refused}");
        assert!(refused.contains("did not answer within 300ms"), "{refused}");
        office.set(Mood::Failing);
        let refused = judged(site, "sam").await.expect_err("it is refused");
        assert!(refused.contains("answered 500 Internal Server Error"), "{refused}");
        office.close().await;
        let refused = judged(site, "sam").await.expect_err("it is refused");
        assert!(refused.contains("nobody can say whether sam exists"), "{refused}");

        // Who would rather go on says so.
        let accept = OnFailure::Accept;
        site.change(Services { identity_provider_failure: accept, ..services }).await;
        judged(site, "sam").await.expect("it is taken");
        office.set(Mood::Fine);
        office.reopen().await;
        judged(site, "sam").await.expect("it is taken");
        judged(site, "mallory").await.expect_err("it is refused");
    })
    .await;
}

#[tokio::test]
async fn an_identity_provider_is_believed_by_its_certificate() {
    let (office, other) = (Office::open_secured().await, Office::open_secured().await);
    let right = Services { identity_provider_ca: Some(office.ca()), ..at(&office) };
    let wrong = Services { identity_provider_ca: Some(other.ca()), ..at(&office) };
    beside(right, async |site| {
        site.call_webhooks().await;
        judged(site, "sam").await.expect("it is taken");
        judged(site, "mallory").await.expect_err("it is refused");
        site.change(wrong).await;
        let refused = judged(site, "sam").await.expect_err("it is refused");
        assert!(refused.contains("nobody can say whether sam exists"), "{refused}");
        // Whom the machine believes is not enough either.
        site.change(at(&office)).await;
        judged(site, "sam").await.expect_err("it is refused");
    })
    .await;
}

#[tokio::test]
async fn a_namespace_that_is_there_cannot_be_asked_for() {
    beside(Services::default(), async |site| {
        site.call_webhooks().await;
        let theirs = site.cluster.namespace().to_owned();
        let refused = site.try_create(json!({"namespaceName": theirs})).await;
        let refused = refused.expect_err("it is refused").to_string();
        assert!(refused.contains("there is such a namespace already"), "{refused}");

        let mut sample = site.sample(json!({}));
        sample.spec.deployment_tier = None;
        let made = site.teams().create(&PostParams::default(), &sample).await.expect("created");
        assert_eq!(made.spec.deployment_tier, Some(Tier::Dev));
        site.created().await;
    })
    .await;
}
