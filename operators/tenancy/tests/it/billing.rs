//! That a namespace ends is told, once, before it does.

use std::time::Duration;

use http::Method;
use kube::ResourceExt as _;
use tenancy::{BILLED, FINALIZER, Services};

use crate::office::{Mood, Office};
use crate::site::beside;

fn at(office: &Office) -> Services {
    Services { billing: Some(office.url()), ..Services::default() }
}

#[tokio::test]
async fn billing_is_told_before_the_namespace_goes() {
    let mut office = Office::open_secured().await;
    let services = Services { billing_ca: Some(office.ca()), ..at(&office) };
    beside(services, async |site| {
        site.create().await;
        let team = site.created().await;
        assert_eq!(team.finalizers(), [FINALIZER]);
        office.close().await;
        site.delete().await;
        let held = site.told(BILLED, "False", "BillingUnavailable").await;
        assert_eq!(held.finalizers(), [FINALIZER]);
        let namespace = site.namespaces().get(&site.home()).await.expect("it is there");
        assert!(namespace.metadata.deletion_timestamp.is_none());
        assert_eq!(office.told(), 0);

        office.reopen().await;
        site.gone().await;
        assert_eq!(office.closures(), [team.uid().expect("a uid")]);
        assert_eq!(office.told(), 1);
    })
    .await;
}

/// Billing has heard of it and its answer was lost: it is told again, of the same.
#[tokio::test]
async fn a_lost_answer_makes_no_second_closure() {
    let office = Office::open().await;
    beside(at(&office), async |site| {
        site.create().await;
        let team = site.created().await;
        office.set(Mood::Forgetful);
        site.delete().await;
        office.is_told(1).await;
        site.told(BILLED, "False", "BillingUnavailable").await;
        office.set(Mood::Fine);
        site.gone().await;
        assert_eq!(office.closures(), [team.uid().expect("a uid")]);
    })
    .await;
}

/// Who does not answer in time is not waited for; it is tried again, and nothing goes until then.
#[tokio::test]
async fn slow_billing_holds_the_namespace_until_it_answers() {
    let office = Office::open().await;
    let services = Services { service_timeout: Duration::from_millis(300), ..at(&office) };
    beside(services, async |site| {
        site.create().await;
        let team = site.created().await;
        office.set(Mood::Slow);
        site.delete().await;
        let held = site.told(BILLED, "False", "BillingUnavailable").await;
        assert_eq!(held.finalizers(), [FINALIZER]);
        assert_eq!(office.told(), 0);
        office.set(Mood::Fine);
        site.gone().await;
        assert_eq!(office.closures(), [team.uid().expect("a uid")]);
    })
    .await;
}

#[tokio::test]
async fn billing_is_believed_by_its_certificate() {
    let (office, other) = (Office::open_secured().await, Office::open_secured().await);
    let right = Services { billing_ca: Some(office.ca()), ..at(&office) };
    let wrong = Services { billing_ca: Some(other.ca()), ..at(&office) };
    beside(wrong, async |site| {
        site.create().await;
        let team = site.created().await;
        site.delete().await;
        let held = site.told(BILLED, "False", "BillingUnavailable").await;
        assert_eq!(held.finalizers(), [FINALIZER]);
        assert_eq!(office.told(), 0, "somebody else is told nothing");
        site.change(right).await;
        site.gone().await;
        assert_eq!(office.closures(), [team.uid().expect("a uid")]);
    })
    .await;
}

/// Billing has answered and it was written down; then the object cannot go.
#[tokio::test]
async fn what_fails_after_billing_was_told_does_not_tell_it_again() {
    let office = Office::open().await;
    beside(at(&office), async |site| {
        site.create().await;
        site.created().await;
        let mut refusal = site.refuse(|request| {
            let path = request.uri.path();
            request.method == Method::PATCH
                && path.contains("/acmenamespaces/")
                && !path.ends_with("/status")
        });
        site.delete().await;
        refusal.tried(2).await;
        site.kill();
        refusal.end();
        site.run().await;
        site.gone().await;
        assert_eq!(office.told(), 1);
    })
    .await;
}

#[tokio::test]
async fn without_billing_nothing_is_held_any_more() {
    let office = Office::open().await;
    beside(at(&office), async |site| {
        site.create().await;
        site.created().await;
        site.change(Services::default()).await;
        site.until(|team| team.is_some_and(|team| team.finalizers().is_empty())).await;
        site.stop().await;
        site.delete().await;
        site.gone().await;
        assert_eq!(office.told(), 0);
    })
    .await;
}
