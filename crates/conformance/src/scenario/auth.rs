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
    a_role_gives_what_it_names [S2],
    a_resource_name_narrows_a_role [S2],
    nobody_can_give_more_than_they_have [S2],
    access_can_be_reviewed [S2],
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
    let anonymous = cx.endpoint.without_credentials()?;
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
    let anonymous = cx.endpoint.without_credentials()?;
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
    let anonymous = cx.endpoint.without_credentials()?;
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
