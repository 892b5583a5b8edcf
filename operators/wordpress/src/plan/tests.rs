use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

use super::*;
use crate::kind::WordpressSpec;

/// A site that was made so many seconds after another.
fn site(name: &str, second: i64) -> Wordpress {
    let mut site = Wordpress::new(name, WordpressSpec::default());
    let made = "2026-01-01T00:00:00Z".parse().expect("a time");
    let later = std::time::Duration::from_secs(second.unsigned_abs());
    site.metadata.creation_timestamp = Some(Time(made));
    if let Some(made) = &mut site.metadata.creation_timestamp {
        made.0 += later;
    }
    site.metadata.uid = Some(format!("uid-of-{name}"));
    site
}

fn claim_of(owner: Option<&str>, called: &str) -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = Some(called.to_owned());
    claim.metadata.owner_references = owner.map(|owner| {
        vec![OwnerReference { uid: format!("uid-of-{owner}"), ..OwnerReference::default() }]
    });
    claim
}

/// How a site's Deployment is called, given claims and sites.
fn check(of: &Wordpress, claims: &[PersistentVolumeClaim], sites: &[&Wordpress], expected: &str) {
    let names = Names::of(of, claims, sites.iter().copied());
    assert_eq!(names.wordpress(), expected);
}

#[test]
fn the_first_site_has_the_bare_names() {
    let (one, two) = (site("one", 0), site("two", 5));
    check(&one, &[], &[&one, &two], "wordpress");
    check(&two, &[], &[&one, &two], "two-wordpress");
    // Two at once: the alphabet decides.
    let twin = site("a", 0);
    check(&one, &[], &[&one, &twin], "one-wordpress");
    check(&twin, &[], &[&one, &twin], "wordpress");
}

#[test]
fn a_site_keeps_its_names() {
    let (one, two) = (site("one", 0), site("two", 5));
    let claims =
        [claim_of(Some("one"), "mysql-pv-claim"), claim_of(Some("two"), "two-mysql-pv-claim")];
    check(&one, &claims, &[&one, &two], "wordpress");
    check(&two, &claims, &[&one, &two], "two-wordpress");
    // Also when it is the only one left, or when an older one appears.
    check(&two, &claims[1..], &[&two], "two-wordpress");
    check(&two, &[claim_of(Some("two"), "mysql-pv-claim")], &[&one, &two], "wordpress");
}

#[test]
fn names_that_are_somebody_elses_are_left_to_them() {
    let one = site("one", 0);
    check(&one, &[claim_of(None, "mysql-pv-claim")], &[&one], "one-wordpress");
    check(&one, &[claim_of(Some("gone"), "mysql-pv-claim")], &[&one], "one-wordpress");
}

#[test]
fn the_password_comes_by_reference_or_in_the_open() {
    let one = site("one", 0);
    let names = Names::of(&one, [], [&one]);
    let env = |password: &Password| {
        let mysql = json!(Children::of(&one, &names, password).mysql);
        mysql["spec"]["template"]["spec"]["containers"][0]["env"][0].clone()
    };
    assert_eq!(
        env(&Password::Plain("hush".to_owned())),
        json!({"name": "MYSQL_ROOT_PASSWORD", "value": "hush"})
    );
    let from = SecretKey { name: "keys".to_owned(), key: "root".to_owned() };
    assert_eq!(
        env(&Password::Secret { from, value: b"hush".to_vec() }),
        json!({
            "name": "MYSQL_ROOT_PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "keys", "key": "root"}},
        })
    );
}

#[test]
fn another_password_makes_other_pods() {
    let one = site("one", 0);
    let checksum =
        |site: &Wordpress, password: &str| Password::Plain(password.to_owned()).checksum(site);
    assert_eq!(checksum(&one, "hush"), checksum(&one, "hush"));
    assert_ne!(checksum(&one, "hush"), checksum(&one, "hash"));
    assert_ne!(checksum(&one, "hush"), checksum(&site("two", 0), "hush"));
}
