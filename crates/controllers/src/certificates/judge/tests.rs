use serde_json::json;

use super::*;

fn node() -> Request {
    Request {
        common_name: "system:node:a".to_owned(),
        organizations: vec!["system:nodes".to_owned()],
        ..Request::default()
    }
}

fn words(usages: &str) -> Vec<String> {
    usages.split(',').filter(|usage| !usage.is_empty()).map(str::to_owned).collect()
}

/// A signer, the usages and the request, and why it is not signed.
#[track_caller]
fn check(signer: &str, usages: &str, request: &Request, expected: Option<&str>) {
    let expected = expected.map_or(Verdict::Sign, |why| Verdict::Refuse(why.to_owned()));
    assert_eq!(judge(signer, &words(usages), request), expected);
}

#[test]
fn nodes_get_certificates_in_their_name() {
    let usages = "digital signature,key encipherment,client auth";
    check(KUBELET_CLIENT, usages, &node(), None);
    check(KUBELET_CLIENT, "digital signature,client auth", &node(), None);
    let why = "usages did not match [client auth digital signature key encipherment]";
    check(KUBELET_CLIENT, "client auth", &node(), Some(why));
    let named = Request { dns_names: 1, ..node() };
    check(KUBELET_CLIENT, usages, &named, Some("DNS subjectAltNames are not allowed"));
    let other = Request { organizations: vec!["x".to_owned()], ..node() };
    check(KUBELET_CLIENT, usages, &other, Some("subject organization is not system:nodes"));
    let person = Request { common_name: "me".to_owned(), ..node() };
    let why = "subject common name does not begin with system:node:";
    check(KUBELET_CLIENT, usages, &person, Some(why));
}

#[test]
fn nodes_serve_under_names_or_addresses() {
    let usages = "digital signature,server auth";
    check(KUBELET_SERVING, usages, &Request { addresses: 1, ..node() }, None);
    check(KUBELET_SERVING, usages, &node(), Some("DNS or IP subjectAltName is required"));
    let mail = Request { addresses: 1, emails: 1, ..node() };
    check(KUBELET_SERVING, usages, &mail, Some("Email subjectAltNames are not allowed"));
}

#[test]
fn anybody_may_be_a_client_and_nothing_else() {
    check(CLIENT, "client auth,digital signature", &Request::default(), None);
    let why = "invalid usage for client certificate: server auth";
    check(CLIENT, "client auth,server auth", &Request::default(), Some(why));
    let why = "missing required usage for client certificate: client auth";
    check(CLIENT, "digital signature", &Request::default(), Some(why));
    check(LEGACY, "server auth", &Request::default(), None);
    let theirs = judge("example.com/signer", &[], &Request::default());
    assert_eq!(theirs, Verdict::NotOurs);
}

#[test]
fn only_nodes_approve_themselves() {
    let check = |signer: &str, user: &str, expected: &[&str]| {
        let spec = json!({
            "request": "", "signerName": signer, "username": user,
            "usages": ["digital signature", "client auth"],
        });
        let asked = serde_json::from_value(json!({ "metadata": {}, "spec": spec })).expect("one");
        let rights: Vec<&str> =
            self_approval(&asked, &node()).into_iter().map(|(right, _)| right).collect();
        assert_eq!(rights, expected);
    };
    check(KUBELET_CLIENT, "system:node:a", &["selfnodeclient", "nodeclient"]);
    check(KUBELET_CLIENT, "system:bootstrap:x", &["nodeclient"]);
    check(CLIENT, "system:node:a", &[]);
    check(LEGACY, "system:node:a", &[]);
}

#[test]
fn a_certificate_lasts_as_long_as_is_asked_within_reason() {
    assert_eq!(lifetime(None), LIFETIME);
    assert_eq!(lifetime(Some(3600)), Duration::from_secs(3600));
    assert_eq!(lifetime(Some(1)), LIFETIME_MIN);
    assert_eq!(lifetime(Some(i32::MAX)), LIFETIME);
}
