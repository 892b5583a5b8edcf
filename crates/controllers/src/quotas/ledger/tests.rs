use serde_json::json;

use super::*;

fn key(namespace: &str, name: &str) -> Key {
    Key { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn spec(limited: &str) -> Value {
    json!({ "hard": { limited: "1" } })
}

fn ledger(quotas: &[(&str, &str, &str)]) -> Ledger {
    let mut ledger = Ledger::default();
    for (namespace, name, limited) in quotas {
        assert!(ledger.apply(&key(namespace, name), spec(limited)), "it is new");
    }
    ledger
}

fn kind(group: &str, plural: &str, verbs: &[&str]) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: String::new(),
        plural: plural.to_owned(),
        namespaced: true,
        verbs: verbs.iter().map(|verb| verb.to_string()).collect(),
    }
}

const ALL: &[&str] = &["create", "delete", "get", "list", "watch"];

#[test]
fn a_charge_is_no_news_and_another_limit_is() {
    let mut ledger = ledger(&[("a", "q", "pods")]);
    assert!(!ledger.apply(&key("a", "q"), spec("pods")));
    assert!(ledger.apply(&key("a", "q"), spec("services")));
}

#[test]
fn a_change_concerns_who_counts_it_in_its_namespace() {
    let ledger =
        ledger(&[("a", "pods", "pods"), ("a", "secrets", "count/secrets"), ("b", "pods", "pods")]);
    assert_eq!(ledger.concerned(&Evaluator::Pods, "a"), [key("a", "pods")]);
    assert_eq!(ledger.concerned(&Evaluator::Services, "a"), []);
    assert_eq!(ledger.concerned(&Evaluator::Pods, "c"), []);
}

#[test]
fn a_quota_that_is_gone_is_forgotten() {
    let quotas = [("a", "q", "pods"), ("b", "q", "pods"), ("b", "r", "pods")];
    let mut all = ledger(&quotas);
    all.delete(&key("a", "q"));
    assert_eq!(all.all(), [key("b", "q"), key("b", "r")]);
    let mut all = ledger(&quotas);
    all.retain(&BTreeSet::from([key("b", "r"), key("c", "q")]));
    assert_eq!(all.all(), [key("b", "r")]);
}

#[test]
fn a_new_kind_concerns_who_counts_it_anywhere() {
    let limited = "count/widgets.example.com";
    let mut ledger = ledger(&[("a", "pods", "pods"), ("a", "q", limited), ("b", "q", limited)]);
    let kinds = |plurals: &[&str]| {
        let kind = |plural: &&str| Arc::new(kind("example.com", plural, ALL));
        let mut kinds = Kinds::default();
        kinds.preferred.extend(plurals.iter().map(kind));
        Arc::new(kinds)
    };
    assert_eq!(ledger.learn(&kinds(&["gadgets"])), []);
    let expected = [key("a", "q"), key("b", "q")];
    assert_eq!(ledger.learn(&kinds(&["gadgets", "widgets"])), expected);
    assert_eq!(ledger.learn(&kinds(&["widgets"])), []);
}

#[test]
fn only_what_comes_and_goes_can_be_counted() {
    let check = |group, plural, verbs, expected| {
        assert_eq!(evaluator(&kind(group, plural, verbs)).is_some(), expected, "{plural}");
    };
    check("", "pods", ALL, true);
    check("", "pods", &["create", "list"], false);
    check("", "events", ALL, false);
    check("example.com", "widgets", ALL, true);
    let everywhere = Kind { namespaced: false, ..kind("example.com", "worlds", ALL) };
    assert_eq!(evaluator(&everywhere), None);
}
