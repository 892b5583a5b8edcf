//! What a server knew of webhooks before a process told it of its own, and how that comes back.
//! Decides only.

use std::net::IpAddr;

use http::Uri;
use serde_json::{Value, json};

/// What is to become of an object that a process has written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing in it is of the process any more, or nobody knows what was there before.
    Leave,
    /// A merge patch.
    Change(Value),
    Delete,
}

/// Where a process has its webhooks: `https://127.0.0.1:9443`.
pub(super) struct Base<'a>(&'a str);

impl<'a> Base<'a> {
    pub(super) fn of(url: &'a str) -> Self {
        Base(url.trim_end_matches('/'))
    }

    fn has(&self, config: &Value) -> bool {
        let rest = config["url"].as_str().and_then(|url| url.strip_prefix(self.0));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether something leads to a process that was killed before it could take that back: there is
    /// no other reason to have webhooks on one's own machine.
    fn is_left_behind(&self, config: &Value) -> bool {
        let url = config["url"].as_str().unwrap_or_default();
        is_loopback(url) || !url.is_empty() && host(url) == host(self.0)
    }
}

/// Whether a URL leads to the machine of whoever reads it.
///
/// ```
/// use kubewright::webhook::is_loopback;
///
/// assert!(is_loopback("https://127.0.0.1:9443/convert") && is_loopback("https://[::1]:1"));
/// assert!(!is_loopback("https://webhooks.example.com"));
/// ```
pub fn is_loopback(url: &str) -> bool {
    let Some(host) = host(url) else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn host(url: &str) -> Option<String> {
    url.parse::<Uri>().ok()?.host().map(str::to_owned)
}

/// What becomes of a configuration of webhooks.
pub(super) fn restored_configuration(
    current: &Value,
    former: Option<&Value>,
    base: &Base<'_>,
) -> Step {
    let before = former.and_then(|it| it["webhooks"].as_array()).into_iter().flatten();
    let before: Vec<&Value> =
        before.filter(|it| !base.is_left_behind(&it["clientConfig"])).collect();
    let webhooks = current["webhooks"].as_array().cloned().unwrap_or_default();
    let instead = |webhook: &Value| match base.has(&webhook["clientConfig"]) {
        true => before.iter().find(|it| it["name"] == webhook["name"]).map(|it| (*it).clone()),
        false => Some(webhook.clone()),
    };
    let restored: Vec<Value> = webhooks.iter().filter_map(instead).collect();
    match restored.is_empty() {
        _ if restored == webhooks => Step::Leave,
        true => Step::Delete,
        false => Step::Change(json!({ "webhooks": restored })),
    }
}

/// A strategic patch by which webhooks that are called elsewhere are called where they are wanted;
/// none if there are none such.
pub(super) fn moved(current: &Value, wanted: &Value) -> Option<Value> {
    let webhooks = |it: &Value| it["webhooks"].as_array().cloned().unwrap_or_default();
    let is_there = |it: &Value, field: &str| !it["clientConfig"][field].is_null();
    let current = webhooks(current);
    let is_elsewhere = |webhook: &&Value| {
        let mut former = current.iter().filter(|it| it["name"] == webhook["name"]);
        former.any(|it| {
            ["service", "url"].iter().any(|place| is_there(it, place) && !is_there(webhook, place))
        })
    };
    let moved: Vec<Value> = webhooks(wanted)
        .iter()
        .filter(is_elsewhere)
        .map(|it| json!({ "name": it["name"], "clientConfig": only(it["clientConfig"].clone()) }))
        .collect();
    (!moved.is_empty()).then(|| json!({ "webhooks": moved }))
}

/// A `clientConfig` as a patch that leaves nothing of another one.
fn only(mut config: Value) -> Value {
    if let Some(fields) = config.as_object_mut() {
        for field in ["service", "url", "caBundle"] {
            fields.entry(field).or_insert(Value::Null);
        }
    }
    config
}

/// What becomes of a definition whose objects a process converts.
pub(super) fn restored_conversion(
    current: &Value,
    former: Option<&Value>,
    base: &Base<'_>,
) -> Step {
    let config = |it: &Value| it["spec"]["conversion"]["webhook"]["clientConfig"].clone();
    if !base.has(&config(current)) {
        return Step::Leave;
    }
    match former {
        // Without conversion, fields of one version would be lost in the other.
        Some(former) if base.is_left_behind(&config(former)) => Step::Leave,
        former => {
            let conversion = former.map_or(&Value::Null, |it| &it["spec"]["conversion"]);
            Step::Change(json!({ "spec": { "conversion": whole(conversion) } }))
        }
    }
}

/// A `spec.conversion` as a merge patch that leaves nothing of another one.
pub(super) fn whole(conversion: &Value) -> Value {
    let mut conversion = match conversion {
        Value::Object(_) => conversion.clone(),
        _ => json!({ "strategy": "None" }),
    };
    match conversion["webhook"].get_mut("clientConfig") {
        Some(config) => *config = only(config.take()),
        None => conversion["webhook"] = Value::Null,
    }
    conversion
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://127.0.0.1:4000";

    fn at(name: &str, url: &str) -> Value {
        json!({"name": name, "clientConfig": {"url": url, "caBundle": "bWU="}})
    }

    fn in_cluster(name: &str) -> Value {
        json!({"name": name, "clientConfig": {"service": {"name": "it", "namespace": "there"}}})
    }

    #[test]
    fn a_configuration_is_what_it_was_where_it_still_leads_here() {
        fn check(former: Option<Value>, current: Value, expected: Step) {
            let former = former.map(|webhooks| json!({"webhooks": webhooks}));
            let current = json!({"webhooks": current});
            assert_eq!(
                restored_configuration(&current, former.as_ref(), &Base::of(BASE)),
                expected
            );
        }
        let change = |webhooks: Value| Step::Change(json!({"webhooks": webhooks}));
        let ours = || at("a", "https://127.0.0.1:4000/validate");
        // It was made for this process.
        check(None, json!([ours()]), Step::Delete);
        // It was there.
        let deployed = json!([in_cluster("a")]);
        check(Some(deployed.clone()), json!([ours()]), change(deployed.clone()));
        // Somebody has deployed meanwhile, or another process has told of itself.
        check(None, deployed.clone(), Step::Leave);
        check(Some(deployed), json!([at("a", "https://127.0.0.1:40001/x")]), Step::Leave);
        check(
            None,
            json!([at("b", "https://x.y/z"), ours()]),
            change(json!([at("b", "https://x.y/z")])),
        );
        // A process before this one was killed.
        check(Some(json!([at("a", "https://[::1]:1/validate")])), json!([ours()]), Step::Delete);
    }

    #[test]
    fn webhooks_are_moved_only_from_somewhere_else() {
        let wanted = json!({"webhooks": [at("a", "https://127.0.0.1:4000/validate")]});
        let former = |webhook: Value| moved(&json!({"webhooks": [webhook]}), &wanted);
        let config = json!({
            "url": "https://127.0.0.1:4000/validate", "caBundle": "bWU=", "service": null,
        });
        let expected = json!({"webhooks": [{"name": "a", "clientConfig": config}]});
        assert_eq!(former(in_cluster("a")), Some(expected));
        assert_eq!(former(in_cluster("b")), None);
        assert_eq!(former(at("a", "https://127.0.0.1:1/validate")), None);
    }

    #[test]
    fn a_conversion_is_what_it_was_where_it_still_leads_here() {
        fn check(former: Value, current: Value, expected: Step) {
            let [former, current] = [former, current].map(|it| json!({"spec": {"conversion": it}}));
            let step = restored_conversion(&current, Some(&former), &Base::of(BASE));
            assert_eq!(step, expected);
        }
        let by =
            |config: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": config}});
        let change = |conversion: Value| Step::Change(json!({"spec": {"conversion": conversion}}));
        let ours = || by(json!({"url": "https://127.0.0.1:4000/convert", "caBundle": "bWU="}));
        let none = json!({"strategy": "None", "webhook": null});
        check(json!({"strategy": "None"}), ours(), change(none.clone()));
        check(Value::Null, ours(), change(none));
        let deployed = json!({"name": "it", "namespace": "there"});
        let whole = by(json!({"service": deployed, "url": null, "caBundle": null}));
        check(by(json!({"service": deployed})), ours(), change(whole));
        check(json!({"strategy": "None"}), by(json!({"service": deployed})), Step::Leave);
        check(by(json!({"url": "https://localhost:1/convert"})), ours(), Step::Leave);
    }
}
