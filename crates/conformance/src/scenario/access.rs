//! Rights in detail: acting as others, rules about paths and wildcards, and reviews of them all.

use anyhow::Result;
use http::header::HeaderName;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "access":
    who_is_impersonated_has_the_groups_of_their_kind [S1],
    who_may_impersonate_whom_is_a_right [S1 S2],
    a_rule_may_be_about_paths [S2],
    a_rule_may_be_about_everything [S2],
    refusals_name_what_was_asked [S2 W7],
    a_review_says_why_somebody_may [S2],
    a_local_review_is_about_its_namespace [S2],
    a_review_may_be_narrowed_by_selectors [S2],
    one_may_ask_for_all_rules_of_one_s_own [S2],
    roles_are_about_resources_in_a_namespace [S2 B3],
    a_binding_keeps_its_role [S2 B3],
}

const RBAC: &str = "rbac.authorization.k8s.io";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn whoami() -> Request {
    let review = json!({ "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1" });
    Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
}

async fn who(cx: &Context, user: &str, groups: Option<&str>) -> Result<Value> {
    let mut request = whoami().impersonate(user);
    if let Some(groups) = groups {
        request = request.header(HeaderName::from_static("impersonate-group"), groups);
    }
    Ok(expect(&cx.send(request).await?, 201)?["status"]["userInfo"].clone())
}

async fn who_is_impersonated_has_the_groups_of_their_kind(cx: Context) -> Result<()> {
    let user = who(&cx, "someone", None).await?;
    same("groups", &user["groups"], json!(["system:authenticated"]))?;
    let user = who(&cx, "system:serviceaccount:a:b", None).await?;
    let groups = ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"];
    same("groups of an account", &user["groups"], json!(groups))?;
    // Who says so has a right to it, once.
    let user = who(&cx, "someone", Some("system:authenticated")).await?;
    same("groups", &user["groups"], json!(["system:authenticated"]))?;
    let answer = cx.send(whoami().impersonate("system:anonymous")).await?;
    let message = "selfsubjectreviews.authentication.k8s.io is forbidden: User \
                   \"system:anonymous\" cannot create resource \"selfsubjectreviews\" in API group \
                   \"authentication.k8s.io\" at the cluster scope";
    refused(&answer, 403, "Forbidden", message)?;
    Ok(())
}

/// Gives `user` a new ClusterRole with these rules, both called as our namespace. Whoever calls
/// this has to [`revoke`].
async fn grant(cx: &Context, user: Value, rules: Value) -> Result<()> {
    let name = &cx.namespace;
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    cx.create(&format!("/apis/{RBAC}/v1/clusterroles"), &role).await?;
    let binding = json!({
        "metadata": { "name": name },
        "subjects": [user],
        "roleRef": { "kind": "ClusterRole", "name": name, "apiGroup": RBAC },
    });
    cx.create(&format!("/apis/{RBAC}/v1/clusterrolebindings"), &binding).await?;
    Ok(())
}

async fn revoke(cx: &Context) -> Result<()> {
    for resource in ["clusterrolebindings", "clusterroles"] {
        let path = format!("/apis/{RBAC}/v1/{resource}/{}", cx.namespace);
        expect(&cx.send(Request::delete(path)).await?, 200)?;
    }
    Ok(())
}

/// A user nobody else knows.
fn user(cx: &Context) -> Value {
    json!({ "kind": "User", "name": cx.namespace, "apiGroup": RBAC })
}

async fn who_may_impersonate_whom_is_a_right(cx: Context) -> Result<()> {
    cx.create(&cx.core("serviceaccounts"), &json!({ "metadata": { "name": "actor" } })).await?;
    let answer = cx.create(&cx.core("serviceaccounts/actor/token"), &json!({ "spec": {} })).await?;
    let token = text(&answer, "/status/token").to_owned();
    let anonymous = cx.endpoint.without_credentials();
    let jane = || whoami().bearer(&token).impersonate("jane");
    let with =
        |name: &'static str, value: &str| jane().header(HeaderName::from_static(name), value);
    let actor = format!("system:serviceaccount:{}:actor", cx.namespace);
    let rules = json!([
        {
            "apiGroups": [""], "verbs": ["impersonate"],
            "resources": ["users"], "resourceNames": ["jane"],
        },
        {
            "apiGroups": [""], "verbs": ["impersonate"],
            "resources": ["groups"], "resourceNames": ["devs"],
        },
        {
            "apiGroups": ["authentication.k8s.io"], "verbs": ["impersonate"],
            "resources": ["userextras/reason", "uids"],
        },
    ]);
    let account = json!({ "kind": "ServiceAccount", "name": "actor", "namespace": cx.namespace });
    grant(&cx, account, rules).await?;
    let outcome = async {
        let answer = anonymous.poll(&jane(), PATIENCE, |answer| answer.status == 201).await?;
        let found = answer.json()?["status"]["userInfo"].clone();
        same("jane", &found, json!({ "username": "jane", "groups": ["system:authenticated"] }))?;
        let all = with("impersonate-group", "devs")
            .header(HeaderName::from_static("impersonate-uid"), "u")
            .header(HeaderName::from_static("impersonate-extra-reason"), "test");
        let found = expect(&anonymous.send(&all).await?, 201)?["status"]["userInfo"].clone();
        let expected = json!({
            "username": "jane",
            "uid": "u",
            "groups": ["devs", "system:authenticated"],
            "extra": { "reason": ["test"] },
        });
        same("all of jane", &found, expected)?;
        for (request, what) in [
            (whoami().bearer(&token).impersonate("john"), "users \"john\" is forbidden"),
            (with("impersonate-group", "ops"), "groups \"ops\" is forbidden"),
            (
                with("impersonate-extra-other", "x"),
                "userextras.authentication.k8s.io \"x\" is forbidden",
            ),
        ] {
            let status = expect(&anonymous.send(&request).await?, 403)?;
            let start = format!("{what}: User \"{actor}\" cannot impersonate resource ");
            let message = text(&status, "/message");
            anyhow::ensure!(message.starts_with(&start), "{message}");
        }
        Ok(())
    };
    let outcome = outcome.await;
    revoke(&cx).await?;
    outcome
}

async fn a_rule_may_be_about_paths(cx: Context) -> Result<()> {
    let get = |path: &str| Request::get(path).impersonate(&cx.namespace);
    let rules = json!([{ "nonResourceURLs": ["/metrics", "/nonsense/*"], "verbs": ["get"] }]);
    grant(&cx, user(&cx), rules).await?;
    let outcome = async {
        cx.endpoint.poll(&get("/metrics"), PATIENCE, |answer| answer.status == 200).await?;
        // What is allowed need not be there.
        let answer = cx.send(get("/nonsense/a/b")).await?;
        anyhow::ensure!(answer.status == 404, "{answer}");
        let message = format!("forbidden: User \"{}\" cannot get path \"/nonsense\"", cx.namespace);
        refused(&cx.send(get("/nonsense")).await?, 403, "Forbidden", &message)?;
        let post = Request::post("/metrics", &json!({})).impersonate(&cx.namespace);
        let message = format!("forbidden: User \"{}\" cannot post path \"/metrics\"", cx.namespace);
        refused(&cx.send(post).await?, 403, "Forbidden", &message)?;
        Ok(())
    };
    let outcome = outcome.await;
    revoke(&cx).await?;
    outcome
}

async fn a_rule_may_be_about_everything(cx: Context) -> Result<()> {
    let get = |path: String| Request::get(path).impersonate(&cx.namespace);
    let rules = json!([
        { "apiGroups": ["apps"], "resources": ["*"], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["*/status"], "verbs": ["*"] },
    ]);
    grant(&cx, user(&cx), rules).await?;
    let outcome = async {
        let scale = get(cx.apis("apps/v1", "deployments/none/scale"));
        cx.endpoint.poll(&scale, PATIENCE, |answer| answer.status == 404).await?;
        expect(&cx.send(get(cx.apis("apps/v1", "replicasets/none"))).await?, 404)?;
        expect(&cx.send(get(cx.core("pods/none/status"))).await?, 404)?;
        for path in
            [cx.apis("apps/v1", "deployments"), cx.core("pods/none"), cx.core("pods/none/log")]
        {
            expect(&cx.send(get(path)).await?, 403)?;
        }
        Ok(())
    };
    let outcome = outcome.await;
    revoke(&cx).await?;
    outcome
}

async fn refusals_name_what_was_asked(cx: Context) -> Result<()> {
    let within = format!("in the namespace \"{}\"", cx.namespace);
    let everywhere = "at the cluster scope".to_owned();
    for (request, what, verb, resource, group, place) in [
        (Request::get("/api/v1/nodes"), "nodes", "list", "nodes", "", &everywhere),
        (Request::get("/api/v1/nodes/a"), "nodes \"a\"", "get", "nodes", "", &everywhere),
        (Request::get("/api/v1/watch/pods"), "pods", "watch", "pods", "", &everywhere),
        (Request::get(cx.core("pods?watch=1")), "pods", "watch", "pods", "", &within),
        (
            Request::delete(cx.core("configmaps")),
            "configmaps",
            "deletecollection",
            "configmaps",
            "",
            &within,
        ),
        (
            Request::get(cx.apis("apps/v1", "deployments/a/scale")),
            "deployments.apps \"a\"",
            "get",
            "deployments/scale",
            "apps",
            &within,
        ),
        (
            Request::post(cx.core("pods/a/exec"), &json!({})),
            "pods \"a\"",
            "create",
            "pods/exec",
            "",
            &within,
        ),
        (
            Request::merge_patch(cx.core("pods/a/status"), &json!({})),
            "pods \"a\"",
            "patch",
            "pods/status",
            "",
            &within,
        ),
        (
            Request::put(cx.core("secrets/a"), &json!({})),
            "secrets \"a\"",
            "update",
            "secrets",
            "",
            &within,
        ),
    ] {
        let message = format!(
            "{what} is forbidden: User \"someone\" cannot {verb} resource \"{resource}\" in API \
             group \"{group}\" {place}"
        );
        let answer = cx.send(request.impersonate("someone")).await?;
        refused(&answer, 403, "Forbidden", &message)?;
    }
    Ok(())
}

async fn review(cx: &Context, kind: &str, path: String, spec: Value) -> Result<Answer> {
    let review = json!({ "kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec });
    cx.send(Request::post(path, &review)).await
}

async fn subject_review(cx: &Context, spec: Value) -> Result<Answer> {
    review(cx, "SubjectAccessReview", format!("{REVIEWS}/subjectaccessreviews"), spec).await
}

async fn a_review_says_why_somebody_may(cx: Context) -> Result<()> {
    let pods = json!({ "verb": "get", "resource": "pods" });
    for (spec, status) in [
        (json!({ "user": "someone", "resourceAttributes": pods }), json!({ "allowed": false })),
        (
            json!({ "user": "system:kube-scheduler", "resourceAttributes": pods }),
            json!({
                "allowed": true,
                "reason": "RBAC: allowed by ClusterRoleBinding \"system:kube-scheduler\" of \
                           ClusterRole \"system:kube-scheduler\" to User \"system:kube-scheduler\"",
            }),
        ),
        (
            json!({
                "user": "someone",
                "groups": ["system:authenticated"],
                "nonResourceAttributes": { "verb": "get", "path": "/api" },
            }),
            json!({
                "allowed": true,
                "reason": "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \
                           \"system:discovery\" to Group \"system:authenticated\"",
            }),
        ),
        // Who is of this group is asked for no reason.
        (
            json!({ "groups": ["system:masters"], "resourceAttributes": pods }),
            json!({ "allowed": true }),
        ),
    ] {
        let answer = subject_review(&cx, spec.clone()).await?;
        same(&spec.to_string(), &expect(&answer, 201)?["status"], status)?;
    }
    let answer = subject_review(&cx, json!({ "resourceAttributes": pods })).await?;
    let message = ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least \
                   one of user or group must be specified";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_local_review_is_about_its_namespace(cx: Context) -> Result<()> {
    let ask = async |attributes: Value| {
        let path = cx.apis("authorization.k8s.io/v1", "localsubjectaccessreviews");
        let spec = json!({ "user": "someone", "resourceAttributes": attributes });
        review(&cx, "LocalSubjectAccessReview", path, spec).await
    };
    let here = json!({ "verb": "get", "resource": "pods", "namespace": cx.namespace });
    let answer = expect(&ask(here).await?, 201)?;
    same("status", &answer["status"], json!({ "allowed": false }))?;
    same("namespace", &answer["metadata"]["namespace"], json!(cx.namespace))?;
    let elsewhere = json!({ "verb": "get", "resource": "pods", "namespace": "elsewhere" });
    let message = ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: \
                   Invalid value: \"elsewhere\": must match metadata.namespace";
    refused(&ask(elsewhere).await?, 422, "Invalid", message)?;
    Ok(())
}

async fn a_review_may_be_narrowed_by_selectors(cx: Context) -> Result<()> {
    let requirement = json!({ "key": "spec.nodeName", "operator": "In", "values": ["a"] });
    let narrow = json!({
        "verb": "list",
        "resource": "pods",
        "fieldSelector": { "requirements": [requirement] },
        "labelSelector": { "rawSelector": "a=b" },
    });
    let spec = json!({ "user": "someone", "resourceAttributes": narrow });
    let answer = expect(&subject_review(&cx, spec.clone()).await?, 201)?;
    same("spec", &answer["spec"], spec)?;
    same("status", &answer["status"], json!({ "allowed": false }))?;
    let wrong = json!({ "rawSelector": "a", "requirements": [{ "key": "b", "operator": "In" }] });
    let wrong = json!({ "verb": "list", "resource": "pods", "fieldSelector": wrong });
    let answer =
        subject_review(&cx, json!({ "user": "someone", "resourceAttributes": wrong })).await?;
    let message = ".authorization.k8s.io \"\" is invalid: \
                   [spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: \"a\": may \
                   not specified at the same time as requirements, \
                   spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: \
                   must be specified when `operator` is 'In' or 'NotIn']";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn one_may_ask_for_all_rules_of_one_s_own(cx: Context) -> Result<()> {
    let ask = |spec: Value| {
        let review = json!({
            "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": spec,
        });
        let path = format!("{REVIEWS}/selfsubjectrulesreviews");
        Request::post(path, &review).impersonate(&cx.namespace)
    };
    let answer = cx.send(ask(json!({}))).await?;
    refused(&answer, 400, "BadRequest", "no namespace on request")?;
    let answer = expect(&cx.send(ask(json!({ "namespace": cx.namespace }))).await?, 201)?;
    let status = &answer["status"];
    same("incomplete", &status["incomplete"], json!(false))?;
    let rules = json!([
        {
            "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        },
        {
            "verbs": ["create"], "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
        },
    ]);
    same("rules", &status["resourceRules"], rules)?;
    let open = json!({
        "verbs": ["get"],
        "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
    });
    let paths = status["nonResourceRules"].as_array().cloned().unwrap_or_default();
    anyhow::ensure!(paths.contains(&open), "{status}");
    Ok(())
}

async fn roles_are_about_resources_in_a_namespace(cx: Context) -> Result<()> {
    let rules = json!([{ "nonResourceURLs": ["/a"], "verbs": ["get"] }]);
    let role = json!({ "metadata": { "name": "one" }, "rules": rules });
    let path = cx.apis("rbac.authorization.k8s.io/v1", "roles");
    let message = "Role.rbac.authorization.k8s.io \"one\" is invalid: rules[0].nonResourceURLs: \
                   Invalid value: [\"/a\"]: namespaced rules cannot apply to non-resource URLs";
    refused(&cx.send(Request::post(&path, &role)).await?, 422, "Invalid", message)?;
    // No rules are none, however they are written.
    let role = json!({ "metadata": { "name": "one" }, "rules": [] });
    same("rules", &cx.create(&path, &role).await?["rules"], Value::Null)
}

async fn a_binding_keeps_its_role(cx: Context) -> Result<()> {
    let path = cx.apis("rbac.authorization.k8s.io/v1", "rolebindings");
    let wrong = json!({
        "metadata": { "name": "one" },
        "subjects": [{ "kind": "Crowd", "name": "" }],
        "roleRef": { "kind": "Role", "name": "", "apiGroup": "other" },
    });
    let message = "RoleBinding.rbac.authorization.k8s.io \"one\" is invalid: [roleRef.apiGroup: \
                   Unsupported value: \"other\": supported values: \"rbac.authorization.k8s.io\", \
                   roleRef.name: Required value, subjects[0].name: Required value, \
                   subjects[0].kind: Unsupported value: \"Crowd\": supported values: \
                   \"ServiceAccount\", \"User\", \"Group\"]";
    refused(&cx.send(Request::post(&path, &wrong)).await?, 422, "Invalid", message)?;
    // A role need not be there to be bound by whoever may do anything.
    let binding = json!({
        "metadata": { "name": "one" },
        "subjects": [{ "kind": "User", "name": "someone" }],
        "roleRef": { "kind": "Role", "name": "absent", "apiGroup": RBAC },
    });
    let created = cx.create(&path, &binding).await?;
    same("group of users", &created["subjects"][0]["apiGroup"], json!(RBAC))?;
    let patch = json!({ "roleRef": { "name": "other" } });
    let answer = cx.send(Request::merge_patch(format!("{path}/one"), &patch)).await?;
    let message = "RoleBinding.rbac.authorization.k8s.io \"one\" is invalid: roleRef: Invalid \
                   value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\
                   \"other\"}: cannot change roleRef";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}
