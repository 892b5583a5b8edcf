//! Decisions, by policy and question.

use std::time::Duration;

use kubewright_apimachinery::yaml;
use kubewright_store::{Config, Expect, HistoryBounds, Key, Put};
use serde_json::Value;

use super::*;
use crate::bootstrap;
use crate::index;
use crate::sample;
use crate::target::{ResourceTarget, Verb};

/// Where an object of access control is kept.
fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = text(&object["kind"]).to_lowercase() + "s";
    let name = text(&object["metadata"]["name"]);
    match text(&object["metadata"]["namespace"]).as_str() {
        "" => Key::from(format!("/registry/{resource}/{name}")),
        namespace => Key::from(format!("/registry/{resource}/{namespace}/{name}")),
    }
}

pub(crate) async fn put(store: &Store, mut object: Value) {
    object["metadata"]["uid"] = "4c2b5a52-0c34-4b8b-8f0f-0b1f5a2d7c11".into();
    let put = Put::new(key(&object), index::to_bytes(&object));
    store.put(put).await.expect("memory takes all");
}

/// Writes roles and bindings in the form of the bootstrap policy.
pub(crate) async fn write(store: &Store, policy: &str) {
    for object in bootstrap::parse(policy) {
        put(store, object).await;
    }
}

/// `ann`, or `ann+group+group`.
fn user(text: &str) -> User {
    let mut words = text.split('+').map(str::to_owned);
    let name = words.next().unwrap_or_default();
    User { groups: words.collect(), ..User::new(name, []) }
}

/// `list pods/log.example.com in web named one`, or `get /healthz`.
fn question(text: &str) -> Attributes<'_> {
    let words: Vec<&str> = text.split(' ').collect();
    let after = |word| words.iter().position(|w| *w == word).map_or("", |at| words[at + 1]);
    let (verb, object) = (words[0], words[1]);
    if object.starts_with('/') {
        return Attributes::path(verb, object);
    }
    let (path, group) = object.split_once('.').unwrap_or((object, ""));
    let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
    let (namespace, name) = (after("in"), after("named"));
    let named = Resource { group, resource, subresource, namespace, name, ..Resource::default() };
    Attributes::resource(verb, named)
}

fn decided(authorizer: &Authorizer, who: &str, what: &str) -> String {
    match authorizer.decide(&user(who), &question(what)) {
        Decision::Allowed(grant) => format!("yes: {grant}"),
        Decision::Denied(denial) => format!("no: {denial}"),
    }
}

async fn check(policy: &str, cases: &[(&str, &str, &str)]) {
    let store = sample::store();
    write(&store, policy).await;
    let authorizer = Authorizer::new(store);
    for (who, what, expected) in cases {
        assert_eq!(decided(&authorizer, who, what), *expected, "{who}: {what}");
    }
}

#[tokio::test]
async fn a_role_allows_what_its_rules_name() {
    let by =
        "yes: RBAC: allowed by ClusterRoleBinding \"some\" of ClusterRole \"some\" to User \"ann\"";
    check(
        "clusterrole some\n\
         \x20 get,list \"\" pods,services/*,*/status\n\
         \x20 * apps deployments one,two\n\
         \x20 get /logs,/metrics/*\n\
         clusterrolebinding some -\n\
         \x20 user ann",
        &[
            ("ann", "get pods in web named one", by),
            ("ann", "list pods", by),
            ("ann", "watch pods", "no: "),
            ("bob", "list pods", "no: "),
            ("ann", "list pods.apps", "no: "),
            ("ann", "get pods/log in web named one", "no: "),
            ("ann", "get pods/status in web named one", by),
            ("ann", "get services/proxy in web named one", "no: "),
            ("ann", "get services in web named one", "no: "),
            ("ann", "delete deployments.apps in web named two", by),
            ("ann", "delete deployments.apps in web named three", "no: "),
            ("ann", "list deployments.apps in web", "no: "),
            ("ann", "get /logs", by),
            ("ann", "get /logs/", "no: "),
            ("ann", "get /metrics/slis", by),
            ("ann", "post /logs", "no: "),
        ],
    )
    .await;
}

#[tokio::test]
async fn subjects_are_users_groups_and_accounts() {
    check(
        "role web reader\n\
         \x20 get \"\" pods\n\
         rolebinding web reader -\n\
         \x20 user ann\n\
         \x20 group staff\n\
         \x20 serviceaccount ci robot\n\
         clusterrole all\n\
         \x20 * * *\n\
         clusterrolebinding all -\n\
         \x20 group admins",
        &[
            (
                "ann+staff",
                "get pods in web named a",
                "yes: RBAC: allowed by RoleBinding \"reader/web\" of Role \"reader\" to User \"ann\"",
            ),
            (
                "bob+staff",
                "get pods in web named a",
                "yes: RBAC: allowed by RoleBinding \"reader/web\" of Role \"reader\" to Group \"staff\"",
            ),
            (
                "system:serviceaccount:ci:robot",
                "get pods in web named a",
                "yes: RBAC: allowed by RoleBinding \"reader/web\" of Role \"reader\" to \
                 ServiceAccount \"robot/ci\"",
            ),
            ("system:serviceaccount:web:robot", "get pods in web named a", "no: "),
            ("ann", "get pods in other named a", "no: "),
            ("ann", "get pods", "no: "),
            (
                "cid+admins",
                "delete nodes named a",
                "yes: RBAC: allowed by ClusterRoleBinding \"all\" of ClusterRole \"all\" to Group \
                 \"admins\"",
            ),
            ("cid+admins", "get /metrics", "no: "),
            ("cid+system:masters", "get /metrics", "yes: "),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_missing_role_is_told() {
    check(
        "rolebinding web one -\n\
         \x20 user ann\n\
         clusterrolebinding two -\n\
         \x20 user ann\n\
         \x20 user bob",
        &[
            (
                "ann",
                "get pods in web",
                "no: RBAC: [clusterrole.rbac.authorization.k8s.io \"two\" not found, \
                 role.rbac.authorization.k8s.io \"one\" not found]",
            ),
            (
                "bob",
                "get pods",
                "no: RBAC: clusterrole.rbac.authorization.k8s.io \"two\" not found",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_acknowledged_write_decides_the_next_request() {
    let store = sample::store();
    let authorizer = Authorizer::new(store.clone());
    let allowed = || decided(&authorizer, "ann", "get pods in web").starts_with("yes");
    assert!(!allowed());
    write(&store, "role web r\n  get \"\" pods\nrolebinding web r -\n  user ann").await;
    assert!(allowed());
    write(&store, "role web r\n  list \"\" pods").await;
    assert!(!allowed(), "the role changed");
    write(&store, "role web r\n  get \"\" pods").await;
    assert!(allowed());
    write(&store, "rolebinding web r -\n  user bob").await;
    assert!(!allowed(), "the subject changed");
    write(&store, "rolebinding web r -\n  user ann\n  user ann").await;
    assert!(allowed());
    let key = Key::from("/registry/rolebindings/web/r");
    store.delete(&key, Expect::Anything).await.expect("it is there");
    assert!(!allowed(), "the binding is gone");
}

#[tokio::test]
async fn a_policy_that_lost_its_place_is_read_anew() {
    let mut config = Config::new(index::extract, index::resource_of, || Duration::ZERO);
    config.history = HistoryBounds { window: Duration::ZERO, bytes_max: 1 };
    let store = Store::memory(config);
    let authorizer = Authorizer::new(store.clone());
    assert_eq!(decided(&authorizer, "ann", "get pods in web"), "no: ");
    for index in 0..300 {
        write(&store, &format!("role web r{index}\n  get \"\" pods")).await;
    }
    write(&store, "rolebinding web b r7\n  user ann").await;
    assert!(decided(&authorizer, "ann", "get pods in web").starts_with("yes"));
}

#[test]
fn a_refusal_says_who_may_not_do_what() {
    let check = |who: &str, what: &str, message: &str| {
        assert_eq!(forbidden(&user(who), &question(what), "").message, message);
    };
    check(
        "ann",
        "list pods in web",
        "pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" in the \
         namespace \"web\"",
    );
    check(
        "ann",
        "update deployments/scale.apps in web named one",
        "deployments.apps \"one\" is forbidden: User \"ann\" cannot update resource \
         \"deployments/scale\" in API group \"apps\" in the namespace \"web\"",
    );
    check(
        "<b>",
        "list nodes",
        "nodes is forbidden: User \"&lt;b&gt;\" cannot list resource \"nodes\" in API group \"\" \
         at the cluster scope",
    );
    check("ann", "get /logs", "forbidden: User \"ann\" cannot get path \"/logs\"");
}

/// What `ann` is told when she writes `new` over `old`, holding `policy`.
async fn escalation(policy: &str, new: &str, old: Option<&str>) -> String {
    let store = sample::store();
    write(&store, policy).await;
    let object = |text: &str| match text.starts_with("apiVersion") {
        true => yaml::decode(text).expect("it is YAML").value,
        false => bootstrap::parse(text).remove(0),
    };
    let (new, old) = (object(new), old.map(object));
    let namespace = new["metadata"]["namespace"].as_str();
    let target = ResourceTarget {
        verb: if old.is_some() { Verb::Update } else { Verb::Create },
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        namespace: namespace.map(str::to_owned),
        resource: new["kind"].as_str().unwrap().to_lowercase() + "s",
        name: match &old {
            Some(old) => old["metadata"]["name"].as_str().unwrap().to_owned(),
            None => String::new(),
        },
        ..ResourceTarget::default()
    };
    let user = User::new("ann", []);
    match escalation::check(&Authorizer::new(store), &user, &target, &new, old.as_ref()) {
        Ok(()) => "fine".to_owned(),
        Err(status) => format!("{} {}", status.code, status.message),
    }
}

#[tokio::test]
async fn nobody_gives_more_than_they_have() {
    let held =
        "clusterrole h\n  get,list \"\" pods\n  get /logs/*\nclusterrolebinding h -\n  user ann";
    let role = "role web r\n  get \"\" pods\n  list \"\" pods one\n  get /logs/a";
    assert_eq!(escalation(held, role, None).await, "fine");
    let more = "role web r\n  delete,get,watch \"\" pods,secrets one\n  get,post /logs/a";
    assert_eq!(
        escalation(held, more, None).await,
        "403 roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"ann\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
         held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"one\"], Verbs:[\"delete\" \"watch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"one\"], Verbs:[\"delete\" \"get\" \"watch\"]}\n\
         {NonResourceURLs:[\"/logs/a\"], Verbs:[\"post\"]}"
    );
    let named = "clusterrole h\n  get \"\" pods one\nclusterrolebinding h -\n  user ann";
    let any = "role web r\n  get \"\" pods";
    assert!(escalation(named, any, None).await.starts_with("403"), "one name is not all");
    let escalate = "clusterrole h\n  escalate rbac.authorization.k8s.io roles\nclusterrolebinding h -\n  user ann";
    assert_eq!(escalation(escalate, more, None).await, "fine");
}

#[tokio::test]
async fn who_binds_holds_the_rules_or_may_bind() {
    let roles = "clusterrole big\n  * * *\nrole web small\n  get \"\" pods\n";
    let binding = "rolebinding web b small\n  user bob";
    assert!(escalation(roles, binding, None).await.starts_with("403 rolebindings.rbac"));
    let held = format!("{roles}rolebinding web mine small\n  user ann");
    assert_eq!(escalation(&held, binding, None).await, "fine");
    let may = format!(
        "{roles}role web m\n  bind rbac.authorization.k8s.io roles small\n\
         rolebinding web mine m\n  user ann"
    );
    assert_eq!(escalation(&may, binding, None).await, "fine");
    assert_eq!(
        escalation(roles, "rolebinding web b none\n  user bob", None).await,
        "404 rolebindings.rbac.authorization.k8s.io \"none\" not found"
    );
    assert_eq!(
        escalation(roles, "clusterrolebinding b none\n  user bob", None).await,
        "404 clusterrolebindings.rbac.authorization.k8s.io \"none\" not found"
    );
}

#[tokio::test]
async fn aggregation_needs_everything() {
    let role = "clusterrole a\n  aggregate aggregate-to-a";
    assert_eq!(
        escalation("", role, None).await,
        "403 clusterroles.rbac.authorization.k8s.io \"a\" is forbidden: must have cluster-admin \
         privileges to use the aggregationRule"
    );
    let admin = "clusterrole all\n  * * *\n  * *\nclusterrolebinding all -\n  user ann";
    assert_eq!(escalation(admin, role, None).await, "fine");
}

#[tokio::test]
async fn the_collection_of_garbage_escalates_nothing() {
    let old = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n\
               metadata: {name: r, namespace: web, finalizers: [a/b]}\n\
               rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]";
    let freed = old.replace(", finalizers: [a/b]", "");
    assert_eq!(escalation("", &freed, Some(old)).await, "fine");
    let labelled = old.replace("finalizers: [a/b]", "labels: {a: b}");
    assert!(escalation("", &labelled, Some(old)).await.starts_with("403"));
}
