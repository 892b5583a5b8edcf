//! Who a client is, and what it may do.

use anyhow::{Result, ensure};
use http::header::HeaderName;
use serde_json::{Value, json};

use super::{Context, PATIENCE, config_map, expect, refused, same, scenarios, text};
use crate::endpoint::{Answer, Endpoint, Request};

scenarios! { "auth":
    a_client_can_ask_who_it_is [S1],
    a_client_without_credentials_is_anonymous [S1],
    a_wrong_token_is_unauthorized [S1],
    an_admin_may_act_as_another [S1],
    a_service_account_gets_a_token [S1],
    token_issuer_is_discoverable [S1],
    a_token_is_not_issued_for_a_moment [S1],
    a_bound_token_dies_with_its_secret [S1],
    a_token_is_for_its_audiences [S1],
    a_group_without_a_user_cannot_be_impersonated [S1],
    a_role_gives_what_it_names [S2],
    a_resource_name_narrows_a_role [S2],
    nobody_can_give_more_than_they_have [S2],
    access_can_be_reviewed [S2],
    a_review_must_ask_something [S2],
    selectors_of_a_review_are_checked [S2],
    a_binding_needs_the_rules_it_gives [S2],
    a_role_can_be_the_sum_of_others [S2],
    a_cluster_has_roles_from_the_start [S4],
    the_first_bindings_let_everyone_look_around [S4],
}

async fn who(endpoint: &Endpoint, request: impl Fn(Request) -> Request) -> Result<Value> {
    let review = json!({ "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1" });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = endpoint.send(&request(Request::post(path, &review))).await?;
    Ok(expect(&answer, 201)?["status"]["userInfo"].clone())
}

async fn a_client_can_ask_who_it_is(cx: Context) -> Result<()> {
    let user = who(&cx.endpoint, |request| request).await?;
    ensure!(!text(&user, "/username").is_empty(), "{user}");
    let groups = user["groups"].as_array().cloned().unwrap_or_default();
    ensure!(groups.contains(&json!("system:authenticated")), "{user}");
    Ok(())
}

async fn a_client_without_credentials_is_anonymous(cx: Context) -> Result<()> {
    let anonymous = cx.endpoint.without_credentials();
    let answer = anonymous.send(&Request::get(cx.core("configmaps"))).await?;
    let message = format!(
        "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in \
         API group \"\" in the namespace \"{}\"",
        cx.namespace
    );
    let status = refused(&answer, 403, "Forbidden", &message)?;
    same("details", &status["details"], json!({ "kind": "configmaps" }))?;
    let answer = anonymous.send(&Request::get("/apis/apps/v1/deployments/")).await?;
    ensure!(answer.status == 403, "{answer}");
    let answer = anonymous.send(&Request::get("/nonsense")).await?;
    let message = "forbidden: User \"system:anonymous\" cannot get path \"/nonsense\"";
    refused(&answer, 403, "Forbidden", message)?;
    Ok(())
}

async fn a_wrong_token_is_unauthorized(cx: Context) -> Result<()> {
    let anonymous = cx.endpoint.without_credentials();
    let request = Request::get(cx.core("configmaps")).bearer("wrong");
    let answer = anonymous.send(&request).await?;
    same(
        "answer",
        &expect(&answer, 401)?,
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }),
    )
}

async fn an_admin_may_act_as_another(cx: Context) -> Result<()> {
    let header = HeaderName::from_static;
    let user = who(&cx.endpoint, |request| {
        request
            .impersonate("someone")
            .header(header("impersonate-group"), "testers")
            .header(header("impersonate-uid"), "some-uid")
            .header(header("impersonate-extra-reason"), "a test")
    })
    .await?;
    same(
        "user",
        &user,
        json!({
            "username": "someone",
            "uid": "some-uid",
            "groups": ["testers", "system:authenticated"],
            "extra": { "reason": ["a test"] },
        }),
    )?;
    // Who acts as another cannot pass it on.
    let request = Request::get(cx.core("configmaps")).impersonate("someone");
    expect(&cx.send(request).await?, 403)?;
    Ok(())
}

async fn service_account_token(cx: &Context, name: &str) -> Result<String> {
    let account = json!({ "metadata": { "name": name } });
    cx.create(&cx.core("serviceaccounts"), &account).await?;
    let request = json!({ "spec": { "expirationSeconds": 600 } });
    let path = cx.core(&format!("serviceaccounts/{name}/token"));
    let answer = cx.create(&path, &request).await?;
    Ok(text(&answer, "/status/token").to_owned())
}

async fn a_service_account_gets_a_token(cx: Context) -> Result<()> {
    let token = service_account_token(&cx, "robot").await?;
    let anonymous = cx.endpoint.without_credentials();
    let user = who(&anonymous, |request| request.bearer(&token)).await?;
    let name = format!("system:serviceaccount:{}:robot", cx.namespace);
    same("username", &user["username"], json!(name))?;
    same(
        "groups",
        &user["groups"],
        json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{}", cx.namespace),
            "system:authenticated",
        ]),
    )?;
    let review = json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "spec": { "token": token },
    });
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = cx.create(path, &review).await?;
    same("authenticated", &review["status"]["authenticated"], json!(true))?;
    same("username", &review["status"]["user"]["username"], json!(name))?;
    // The token dies with its account.
    expect(&cx.send(Request::delete(cx.core("serviceaccounts/robot"))).await?, 200)?;
    let request = Request::get(cx.core("configmaps")).bearer(&token);
    anonymous.poll(&request, PATIENCE, |answer: &Answer| answer.status == 401).await?;
    Ok(())
}

async fn token_issuer_is_discoverable(cx: Context) -> Result<()> {
    let configuration = cx.get("/.well-known/openid-configuration").await?;
    same("types", &configuration["response_types_supported"], json!(["id_token"]))?;
    ensure!(text(&configuration, "/issuer").starts_with("https://"), "{configuration}");
    ensure!(text(&configuration, "/jwks_uri").ends_with("/openid/v1/jwks"), "{configuration}");
    let keys = cx.send(Request::get("/openid/v1/jwks").accept("application/jwk-set+json")).await?;
    same("content type", &json!(keys.content_type()), json!("application/jwk-set+json"))?;
    let keys = keys.json()?;
    same("use", &keys["keys"][0]["use"], json!("sig"))
}

/// Binds a new role with these rules to `someone` in our namespace.
async fn allow(cx: &Context, rules: Value) -> Result<()> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({ "metadata": { "name": "role" }, "rules": rules });
    cx.create(&cx.apis(rbac, "roles"), &role).await?;
    let binding = json!({
        "metadata": { "name": "binding" },
        "subjects": [{ "kind": "User", "name": "someone", "apiGroup": "rbac.authorization.k8s.io" }],
        "roleRef": { "kind": "Role", "name": "role", "apiGroup": "rbac.authorization.k8s.io" },
    });
    cx.create(&cx.apis(rbac, "rolebindings"), &binding).await?;
    Ok(())
}

async fn a_role_gives_what_it_names(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let get = || Request::get(cx.core("configmaps/one")).impersonate("someone");
    let message = format!(
        "configmaps \"one\" is forbidden: User \"someone\" cannot get resource \"configmaps\" in \
         API group \"\" in the namespace \"{}\"",
        cx.namespace
    );
    refused(&cx.send(get()).await?, 403, "Forbidden", &message)?;
    allow(&cx, json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }]))
        .await?;
    cx.endpoint.poll(&get(), PATIENCE, |answer| answer.status == 200).await?;
    // Neither another verb nor another resource nor another namespace comes with it.
    for request in [
        Request::delete(cx.core("configmaps/one")),
        Request::get(cx.core("secrets/one")),
        Request::get("/api/v1/namespaces/default/configmaps/one"),
    ] {
        expect(&cx.send(request.impersonate("someone")).await?, 403)?;
    }
    Ok(())
}

async fn a_resource_name_narrows_a_role(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    cx.config_map("two").await?;
    let rule = json!({
        "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"],
        "resourceNames": ["one"],
    });
    allow(&cx, json!([rule])).await?;
    let get = |target: &str| Request::get(cx.core(target)).impersonate("someone");
    cx.endpoint.poll(&get("configmaps/one"), PATIENCE, |answer| answer.status == 200).await?;
    expect(&cx.send(get("configmaps/two")).await?, 403)?;
    expect(&cx.send(get("configmaps")).await?, 403)?;
    // A list of one name is about that name.
    expect(&cx.send(get("configmaps?fieldSelector=metadata.name%3Done")).await?, 200)?;
    Ok(())
}

async fn nobody_can_give_more_than_they_have(cx: Context) -> Result<()> {
    let rule = json!({
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"],
    });
    allow(&cx, json!([rule])).await?;
    let secrets = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }]);
    let role = json!({ "metadata": { "name": "more" }, "rules": secrets });
    let path = cx.apis("rbac.authorization.k8s.io/v1", "roles");
    let request = Request::post(path.clone(), &role).impersonate("someone");
    let escalates = |answer: &Answer| {
        answer.json().is_ok_and(|status| text(&status, "/message").contains("attempting to grant"))
    };
    let answer = cx.endpoint.poll(&request, PATIENCE, escalates).await?;
    let message = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"someone\" \
                   (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
                   currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}";
    refused(&answer, 403, "Forbidden", message)?;
    // What they have, they can give.
    let own = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"],
    }]);
    let role = json!({ "metadata": { "name": "same" }, "rules": own });
    expect(&cx.send(Request::post(path, &role).impersonate("someone")).await?, 201)?;
    Ok(())
}

async fn access_can_be_reviewed(cx: Context) -> Result<()> {
    let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"] });
    allow(&cx, json!([rule])).await?;
    let create = Request::post(cx.core("configmaps?dryRun=All"), &config_map("one"));
    let allowed = |answer: &Answer| answer.status == 201;
    cx.endpoint.poll(&create.impersonate("someone"), PATIENCE, allowed).await?;
    for (verb, expected) in [("create", true), ("delete", false)] {
        let attributes =
            json!({ "namespace": cx.namespace, "verb": verb, "resource": "configmaps" });
        let review = json!({
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": { "user": "someone", "resourceAttributes": attributes },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = cx.create(path, &review).await?;
        same(verb, &review["status"]["allowed"], json!(expected))?;
    }
    let review = json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": { "namespace": cx.namespace },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let answer = cx.send(Request::post(path, &review).impersonate("someone")).await?;
    let rules = expect(&answer, 201)?["status"]["resourceRules"].clone();
    let ours = json!({ "verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"] });
    ensure!(rules.as_array().is_some_and(|rules| rules.contains(&ours)), "{rules}");
    Ok(())
}

async fn a_token_is_not_issued_for_a_moment(cx: Context) -> Result<()> {
    let account = json!({ "metadata": { "name": "robot" } });
    cx.create(&cx.core("serviceaccounts"), &account).await?;
    let request = json!({ "spec": { "expirationSeconds": 599 } });
    let path = cx.core("serviceaccounts/robot/token");
    let answer = cx.send(Request::post(path, &request)).await?;
    let message = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: \
                   Invalid value: 599: may not specify a duration less than 10 minutes";
    refused(&answer, 422, "Invalid", message)?;
    let path = cx.core("serviceaccounts/none/token");
    let answer = cx.send(Request::post(path, &json!({ "spec": {} }))).await?;
    refused(&answer, 404, "NotFound", "serviceaccounts \"none\" not found")?;
    Ok(())
}

async fn a_bound_token_dies_with_its_secret(cx: Context) -> Result<()> {
    let account = json!({ "metadata": { "name": "robot" } });
    cx.create(&cx.core("serviceaccounts"), &account).await?;
    cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": "one" } })).await?;
    let bound = json!({ "apiVersion": "v1", "kind": "Secret", "name": "one" });
    let request = json!({ "spec": { "boundObjectRef": bound } });
    let answer = cx.create(&cx.core("serviceaccounts/robot/token"), &request).await?;
    let token = text(&answer, "/status/token").to_owned();
    let anonymous = cx.endpoint.without_credentials();
    who(&anonymous, |request| request.bearer(&token)).await?;
    expect(&cx.send(Request::delete(cx.core("secrets/one"))).await?, 200)?;
    let request = Request::get(cx.core("configmaps")).bearer(&token);
    anonymous.poll(&request, PATIENCE, |answer: &Answer| answer.status == 401).await?;
    Ok(())
}

async fn a_token_is_for_its_audiences(cx: Context) -> Result<()> {
    let account = json!({ "metadata": { "name": "robot" } });
    cx.create(&cx.core("serviceaccounts"), &account).await?;
    let request = json!({ "spec": { "audiences": ["vault"] } });
    let answer = cx.create(&cx.core("serviceaccounts/robot/token"), &request).await?;
    let token = text(&answer, "/status/token").to_owned();
    let anonymous = cx.endpoint.without_credentials();
    let request = Request::get(cx.core("configmaps")).bearer(&token);
    expect(&anonymous.send(&request).await?, 401)?;
    for (audience, expected) in [("vault", json!(true)), ("other", Value::Null)] {
        let review = json!({
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "spec": { "token": token, "audiences": [audience] },
        });
        let review = cx.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        same(audience, &review["status"]["authenticated"], expected)?;
    }
    Ok(())
}

async fn a_group_without_a_user_cannot_be_impersonated(cx: Context) -> Result<()> {
    let group = HeaderName::from_static("impersonate-group");
    let answer = cx.send(Request::get("/api").header(group, "staff")).await?;
    let message = "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"staff\"}, \
                   Extra:map[string][]string(nil)} without impersonating a user name";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_review_must_ask_something(cx: Context) -> Result<()> {
    let review = json!({
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = cx.send(Request::post(path, &review)).await?;
    let message = ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: \
                   null: exactly one of nonResourceAttributes or resourceAttributes must be \
                   specified";
    refused(&answer, 422, "Invalid", message)?;
    let review = json!({
        "kind": "LocalSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {
            "user": "someone",
            "resourceAttributes": { "namespace": "other", "verb": "get", "resource": "pods" },
        },
    });
    let path = cx.apis("authorization.k8s.io/v1", "localsubjectaccessreviews");
    let answer = cx.send(Request::post(path, &review)).await?;
    let message = ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: \
                   Invalid value: \"other\": must match metadata.namespace";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn selectors_of_a_review_are_checked(cx: Context) -> Result<()> {
    let review = |selector: Value| {
        json!({
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": { "resourceAttributes": {
                "verb": "list", "resource": "pods", "labelSelector": selector,
            } },
        })
    };
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let unknown = json!({ "requirements": [{ "key": "a", "operator": "Like", "values": ["b"] }] });
    let answer = cx.create(path, &review(unknown)).await?;
    let problem = "spec.resourceAttributes.labelSelector ignored due to parse error";
    same("error", &answer["status"]["evaluationError"], json!(problem))?;
    same("allowed", &answer["status"]["allowed"], json!(true))?;
    let answer = cx.send(Request::post(path, &review(json!({})))).await?;
    let message = ".authorization.k8s.io \"\" is invalid: \
                   spec.resourceAttributes.labelSelector.requirements: Required value: when \
                   spec.resourceAttributes.labelSelector is specified, requirements or rawSelector \
                   is required";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_binding_needs_the_rules_it_gives(cx: Context) -> Result<()> {
    let rule = json!({
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["rolebindings"],
        "verbs": ["create"],
    });
    allow(&cx, json!([rule])).await?;
    let path = cx.apis("rbac.authorization.k8s.io/v1", "rolebindings");
    let bind = |kind: &str, name: &str| {
        let binding = json!({
            "metadata": { "name": "more" },
            "subjects": [{ "kind": "User", "name": "other", "apiGroup": "rbac.authorization.k8s.io" }],
            "roleRef": { "kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io" },
        });
        Request::post(path.clone(), &binding).impersonate("someone")
    };
    let escalates = |answer: &Answer| {
        answer.json().is_ok_and(|status| text(&status, "/message").contains("attempting to grant"))
    };
    let answer =
        cx.endpoint.poll(&bind("ClusterRole", "cluster-admin"), PATIENCE, escalates).await?;
    let message = "rolebindings.rbac.authorization.k8s.io \"more\" is forbidden: user \"someone\" \
                   (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
                   currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
                   {NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
    refused(&answer, 403, "Forbidden", message)?;
    let answer = cx.send(bind("Role", "none")).await?;
    let message = "rolebindings.rbac.authorization.k8s.io \"none\" not found";
    refused(&answer, 404, "NotFound", message)?;
    expect(&cx.send(bind("Role", "role")).await?, 201)?;
    Ok(())
}

async fn a_cluster_has_roles_from_the_start(cx: Context) -> Result<()> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let ours = "labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults";
    let numbers =
        [("clusterroles", 69), ("clusterrolebindings", 50), ("roles", 7), ("rolebindings", 7)];
    for (resource, expected) in numbers {
        let list = cx.get(&format!("{rbac}/{resource}?{ours}")).await?;
        let found = list["items"].as_array().map_or(0, Vec::len);
        same(resource, &json!(found), json!(expected))?;
    }
    let admin = cx.get(&format!("{rbac}/clusterroles/cluster-admin")).await?;
    same(
        "rules",
        &admin["rules"],
        json!([
            { "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] },
            { "verbs": ["*"], "nonResourceURLs": ["*"] },
        ]),
    )?;
    let view = cx.get(&format!("{rbac}/clusterroles/view")).await?;
    let label = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    same(
        "aggregation",
        &view["aggregationRule"],
        json!({ "clusterRoleSelectors": [{ "matchLabels": label }] }),
    )?;
    let annotations = json!({ "rbac.authorization.kubernetes.io/autoupdate": "true" });
    same("annotations", &view["metadata"]["annotations"], annotations)
}

async fn the_first_bindings_let_everyone_look_around(cx: Context) -> Result<()> {
    let anonymous = cx.endpoint.without_credentials();
    for (path, expected) in [("/version", 200), ("/livez", 200), ("/api", 403), ("/metrics", 403)] {
        let answer = anonymous.send(&Request::get(path)).await?;
        ensure!(answer.status == expected, "{path}: {answer}");
    }
    for (path, expected) in [("/version", 200), ("/api", 200), ("/metrics", 403)] {
        let answer = cx.send(Request::get(path).impersonate("someone")).await?;
        ensure!(answer.status == expected, "{path}: {answer}");
    }
    Ok(())
}

async fn a_role_can_be_the_sum_of_others(cx: Context) -> Result<()> {
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let label = format!("{}.kubewright.dev/part", cx.namespace);
    let rule =
        |resource: &str| json!({ "apiGroups": [""], "resources": [resource], "verbs": ["get"] });
    let part = |name: &str, rules: Value| {
        let name = format!("{}-{name}", cx.namespace);
        json!({ "metadata": { "name": name, "labels": { &label: "yes" } }, "rules": rules })
    };
    let selector = json!({ "matchLabels": { &label: "yes" } });
    let sum = json!({
        "metadata": { "name": format!("{}-sum", cx.namespace) },
        "aggregationRule": { "clusterRoleSelectors": [selector] },
        // What somebody wrote here does not last.
        "rules": [rule("nodes")],
    });
    cx.create(roles, &part("b", json!([rule("secrets"), rule("pods")]))).await?;
    cx.create(roles, &part("a", json!([rule("pods")]))).await?;
    cx.create(roles, &sum).await?;
    let path = format!("{roles}/{}", text(&sum, "/metadata/name"));
    let wait_for = async |rules: Value| {
        let is_sum = |role: Value| role["rules"] == rules;
        let get = Request::get(&path);
        cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_sum)).await
    };
    wait_for(json!([rule("pods"), rule("secrets")])).await?;
    let names = ["a", "b"].map(|name| format!("{roles}/{}-{name}", cx.namespace));
    let patch = json!({ "rules": [rule("events")] });
    expect(&cx.send(Request::merge_patch(&names[0], &patch)).await?, 200)?;
    wait_for(json!([rule("events"), rule("secrets"), rule("pods")])).await?;
    expect(&cx.send(Request::delete(&names[1])).await?, 200)?;
    wait_for(json!([rule("events")])).await?;
    expect(&cx.send(Request::delete(&names[0])).await?, 200)?;
    wait_for(Value::Null).await?;
    expect(&cx.send(Request::delete(&path)).await?, 200)?;
    Ok(())
}
