//! Conditions by value: what they see, what they may cost, and what they say when they fail.

use std::sync::Arc;

use kubewright_apimachinery::builtin;
use serde_json::json;

use super::conditions::{Conditions, Matched, Owner};
use super::request::describe;
use super::*;
use crate::admission::{Attributes, Operation, Options};
use crate::authz::{Authorizer, tests as roles};
use crate::metrics::Metrics;
use crate::resource::Resource;
use crate::sample;
use crate::user::User;
use crate::warnings::Warnings;

const ROLES: &str = "\
clusterrole reader
  get,list \"\" pods,pods/log
  get /healthz
clusterrolebinding reader -
  user ann
  serviceaccount shop till
";

/// Asks whether a change of a pod by `ann` meets conditions, of which each line is one.
async fn check(conditions: &str, expected: &str) {
    let store = sample::store();
    roles::write(&store, ROLES).await;
    let authorizer = Arc::new(Authorizer::new(store));
    let row = builtin::resource("", "v1", "pods").expect("it is in the table");
    let resource = Resource::builtin(row);
    let user = User { uid: "7".to_owned(), ..User::new("ann", ["staff".to_owned()]) };
    let warnings = Warnings::default();
    let old = json!({"metadata": {"name": "web"}, "spec": {"hostNetwork": true}});
    let attributes = Attributes {
        user: &user,
        resource: &resource,
        part: None,
        namespace: Some("shop"),
        name: "web",
        operation: Operation::Update,
        dry_run: false,
        old: Some(&old),
        warnings: &warnings,
        options: Options::None,
        deadline: crate::admission::deadline(None),
    };
    let object = json!({"metadata": {"name": "web", "creationTimestamp": null,
        "labels": {"app.kubernetes.io/name": "web"}}, "spec": {"containers": [{"name": "c"}]}});
    let list: Vec<Value> = conditions
        .lines()
        .enumerate()
        .map(|(index, line)| json!({"name": format!("c{index}"), "expression": line.trim()}))
        .collect();
    let conditions = {
        let owner = Owner { kind: "policy", role: "validate", name: "p".to_owned() };
        Conditions::compile(owner, &json!(list), &Environment::new(true))
    };
    let asker = Asker::new(&authorizer, &attributes);
    let request = describe(&attributes, &resource.gvr, &resource.gvk, None);
    let subject = Subject {
        object: &object,
        old: &old,
        request: &request,
        namespace: &NOTHING,
        params: &NOTHING,
        asker: &asker,
    };
    let found = match conditions.matched(&subject, &[], &Metrics::default()) {
        Ok(Matched::Yes) => "yes".to_owned(),
        Ok(Matched::No(name)) => format!("no: {name}"),
        Err(why) => format!("error: {why}"),
    };
    assert_eq!(found, expected, "{list:?}");
}

#[tokio::test]
async fn conditions_see_the_object_and_the_request() {
    check("object.metadata.name == request.name", "yes").await;
    check("oldObject.spec.hostNetwork && !has(object.spec.hostNetwork)", "yes").await;
    check("object.metadata.creationTimestamp == null", "yes").await;
    check("object.metadata.labels['app.kubernetes.io/name'] == 'web'", "yes").await;
    check("request.operation == 'UPDATE' && !request.dryRun", "yes").await;
    check("request.kind.kind == 'Pod' && request.requestResource.resource == 'pods'", "yes").await;
    check("'staff' in request.userInfo.groups && request.userInfo.uid == '7'", "yes").await;
    check("params == null && namespaceObject == null", "yes").await;
    check("!has(request.subResource) && request.namespace == 'shop'", "yes").await;
}

#[tokio::test]
async fn one_that_does_not_hold_settles_it() {
    check("true\nfalse", "no: c1").await;
    check("object.spec.replicas > 1\nfalse\nfalse", "no: c1").await;
}

#[tokio::test]
async fn what_went_wrong_is_told_once() {
    check(
        "object.spec.replicas > 1",
        "error: expression 'object.spec.replicas > 1' resulted in error: no such key: replicas",
    )
    .await;
    check(
        "object.x == 1\ntrue\nobject.x == 1\noldObject.y == 1",
        "error: [expression 'object.x == 1' resulted in error: no such key: x, expression \
         'oldObject.y == 1' resulted in error: no such key: y]",
    )
    .await;
    check(
        "variables.x",
        "error: compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference \
         to 'variables' (in container '')\n | variables.x\n | ^",
    )
    .await;
    check("object.metadata.name", "error: compilation error: must evaluate to bool but got dyn")
        .await;
}

#[tokio::test]
async fn permissions_are_asked_for() {
    check("authorizer.group('').resource('pods').namespace('shop').check('get').allowed()", "yes")
        .await;
    check(
        "authorizer.group('').resource('pods').subresource('log').check('list').allowed()",
        "yes",
    )
    .await;
    check("authorizer.group('apps').resource('pods').check('get').allowed()", "no: c0").await;
    check("authorizer.path('/healthz').check('get').allowed()", "yes").await;
    check("authorizer.path('/metrics').check('get').allowed()", "no: c0").await;
    check("authorizer.requestResource.check('get').allowed()", "yes").await;
    check("authorizer.requestResource.check('delete').allowed()", "no: c0").await;
    check(
        "authorizer.requestResource.check('get').reason() == 'RBAC: allowed by \
         ClusterRoleBinding \"reader\" of ClusterRole \"reader\" to User \"ann\"'",
        "yes",
    )
    .await;
    check(
        "authorizer.serviceAccount('shop', 'till').group('').resource('pods').fieldSelector('a=b')\
         .labelSelector('c').check('get').allowed()",
        "yes",
    )
    .await;
    check("!authorizer.path('/healthz').check('get').errored()", "yes").await;
    check(
        "authorizer.path(' ').check('get').allowed()",
        "error: expression 'authorizer.path(' ').check('get').allowed()' resulted in error: path \
         must not be empty",
    )
    .await;
    check(
        "authorizer.serviceAccount('a/b', 'c').path('/x').check('get').allowed()",
        "error: expression 'authorizer.serviceAccount('a/b', 'c').path('/x').check('get')\
         .allowed()' resulted in error: Invalid service account namespace",
    )
    .await;
}

#[tokio::test]
async fn conditions_share_what_they_may_cost() {
    let ask = "authorizer.requestResource.check('get').allowed()";
    let seven = [ask; 7].join("\n");
    check(&seven, "yes").await;
    let eight = [ask; 8].join("\n");
    check(
        &eight,
        "error: validation failed due to running out of cost budget, no further validation rules \
         will be run",
    )
    .await;
    let greedy = [ask; 3].join(" && ");
    check(
        &greedy,
        &format!(
            "error: expression '{greedy}' resulted in error: operation cancelled: actual cost \
             limit exceeded"
        ),
    )
    .await;
}
