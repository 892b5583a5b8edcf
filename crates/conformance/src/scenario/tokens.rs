//! Tokens of service accounts: what they say, what they are bound to, and how others verify them.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, pod, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "tokens":
    a_token_says_whose_it_is_and_for_how_long [S1],
    a_request_for_a_token_is_answered_in_full [S1],
    a_token_of_a_pod_names_it_and_its_node [S1],
    a_token_is_bound_to_what_is_there [S1],
    a_request_is_for_the_account_in_its_path [S1],
    a_token_does_not_live_for_ever [S1],
    a_review_says_what_is_wrong_with_a_token [S1],
    the_issuer_describes_itself [S1],
}

/// What a token says, without asking who signed it.
fn claims(token: &str) -> Result<(Value, Value)> {
    let parts: Vec<&str> = token.split('.').collect();
    ensure!(parts.len() == 3, "a token has three parts: {token}");
    let part = |text: &str| -> Result<Value> {
        Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).context("decode")?)?)
    };
    Ok((part(parts[0])?, part(parts[1])?))
}

async fn account(cx: &Context) -> Result<Value> {
    cx.create(&cx.core("serviceaccounts"), &json!({ "metadata": { "name": "robot" } })).await
}

fn ask(cx: &Context, spec: Value) -> Request {
    Request::post(cx.core("serviceaccounts/robot/token"), &json!({ "spec": spec }))
}

async fn issued(cx: &Context, spec: Value) -> Result<Value> {
    expect(&cx.send(ask(cx, spec)).await?, 201)
}

async fn review(cx: &Context, token: &str, audiences: &[&str]) -> Result<Value> {
    let review = json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "spec": { "token": token, "audiences": audiences },
    });
    let answer = cx.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
    Ok(answer["status"].clone())
}

async fn a_token_says_whose_it_is_and_for_how_long(cx: Context) -> Result<()> {
    let account = account(&cx).await?;
    let answer = issued(&cx, json!({ "expirationSeconds": 700 })).await?;
    let (header, claims) = claims(text(&answer, "/status/token"))?;
    let configuration = cx.get("/.well-known/openid-configuration").await?;
    let keys = Request::get("/openid/v1/jwks").accept("application/jwk-set+json");
    let keys = expect(&cx.send(keys).await?, 200)?;
    same("key", &header["kid"], keys["keys"][0]["kid"].clone())?;
    same("algorithm", &header["alg"], keys["keys"][0]["alg"].clone())?;
    same("issuer", &claims["iss"], configuration["issuer"].clone())?;
    same("audience", &claims["aud"], json!([configuration["issuer"]]))?;
    let subject = format!("system:serviceaccount:{}:robot", cx.namespace);
    same("subject", &claims["sub"], json!(subject))?;
    let issued = claims["iat"].as_i64().context("a time of issue")?;
    same("beginning", &claims["nbf"], json!(issued))?;
    same("end", &claims["exp"], json!(issued + 700))?;
    ensure!(text(&claims, "/jti").len() == 36, "{claims}");
    let own = json!({
        "namespace": cx.namespace,
        "serviceaccount": { "name": "robot", "uid": account["metadata"]["uid"] },
    });
    same("own claims", &claims["kubernetes.io"], own)?;
    let end: jiff::Timestamp = text(&answer, "/status/expirationTimestamp").parse()?;
    same("end of the answer", &json!(end.as_second()), claims["exp"].clone())
}

async fn a_request_for_a_token_is_answered_in_full(cx: Context) -> Result<()> {
    let account = account(&cx).await?;
    let answer = issued(&cx, json!({ "audiences": ["vault", "db"] })).await?;
    same("kind", &answer["kind"], json!("TokenRequest"))?;
    same("apiVersion", &answer["apiVersion"], json!("authentication.k8s.io/v1"))?;
    let spec = json!({
        "audiences": ["vault", "db"], "expirationSeconds": 3600, "boundObjectRef": null,
    });
    same("spec", &answer["spec"], spec)?;
    let metadata = &answer["metadata"];
    same("name", &metadata["name"], json!("robot"))?;
    same("namespace", &metadata["namespace"], json!(cx.namespace))?;
    same("uid", &metadata["uid"], account["metadata"]["uid"].clone())?;
    let managed = &metadata["managedFields"][0];
    same("subresource", &managed["subresource"], json!("token"))?;
    let fields = json!({ "f:spec": { "f:audiences": {}, "f:expirationSeconds": {} } });
    same("fields", &managed["fieldsV1"], fields)
}

async fn a_token_of_a_pod_names_it_and_its_node(cx: Context) -> Result<()> {
    account(&cx).await?;
    let mut pod = pod("one");
    pod["spec"]["serviceAccountName"] = json!("robot");
    pod["spec"]["nodeName"] = json!("nowhere");
    let pod = cx.create(&cx.core("pods"), &pod).await?;
    let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": "one" });
    let answer = issued(&cx, json!({ "boundObjectRef": bound })).await?;
    let token = text(&answer, "/status/token");
    let (_, claims) = claims(token)?;
    let own = &claims["kubernetes.io"];
    let uid = pod["metadata"]["uid"].clone();
    same("pod", &own["pod"], json!({ "name": "one", "uid": uid }))?;
    same("node", &own["node"], json!({ "name": "nowhere" }))?;
    let status = review(&cx, token, &[]).await?;
    same("authenticated", &status["authenticated"], json!(true))?;
    let credential = format!("JTI={}", text(&claims, "/jti"));
    let extra = json!({
        "authentication.kubernetes.io/credential-id": [credential],
        "authentication.kubernetes.io/node-name": ["nowhere"],
        "authentication.kubernetes.io/pod-name": ["one"],
        "authentication.kubernetes.io/pod-uid": [uid],
    });
    same("extra", &status["user"]["extra"], extra)?;
    // What kubelets ask for when nobody asked for a time lasts longer, and says since when it should
    // not.
    let spec = json!({ "boundObjectRef": bound, "expirationSeconds": 3607 });
    let (_, long) = self::claims(text(&issued(&cx, spec).await?, "/status/token"))?;
    let since = long["iat"].as_i64().context("a time of issue")?;
    same("end", &long["exp"], json!(since + 365 * 24 * 60 * 60))?;
    same("warning", &long["kubernetes.io"]["warnafter"], json!(since + 3607))?;
    // The token dies with its pod.
    expect(&cx.send(Request::delete(cx.core("pods/one?gracePeriodSeconds=0"))).await?, 200)?;
    let anonymous = cx.endpoint.without_credentials();
    let request = Request::get(cx.core("configmaps")).bearer(token);
    anonymous.poll(&request, PATIENCE, |answer: &Answer| answer.status == 401).await?;
    Ok(())
}

async fn a_token_is_bound_to_what_is_there(cx: Context) -> Result<()> {
    account(&cx).await?;
    cx.wait_for_account().await?;
    cx.create(&cx.core("pods"), &pod("other")).await?;
    cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": "one" } })).await?;
    let ask = |kind: &str, name: &str, uid: &str| {
        let bound = json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": uid });
        ask(&cx, json!({ "boundObjectRef": bound }))
    };
    let answer = cx.send(ask("Pod", "none", "")).await?;
    refused(&answer, 404, "NotFound", "pods \"none\" not found")?;
    let answer = cx.send(ask("Node", "none", "")).await?;
    refused(&answer, 404, "NotFound", "nodes \"none\" not found")?;
    let message = "cannot bind token for serviceaccount \"robot\" to pod running with different \
                   serviceaccount name.";
    refused(&cx.send(ask("Pod", "other", "")).await?, 400, "BadRequest", message)?;
    let message = "cannot bind token to object of type /v1, Kind=ConfigMap";
    refused(&cx.send(ask("ConfigMap", "one", "")).await?, 400, "BadRequest", message)?;
    let message = "Operation cannot be fulfilled on Secret \"one\": the UID in the bound object \
                   reference (other) does not match the UID in record. The object might have been \
                   deleted and then recreated";
    refused(&cx.send(ask("Secret", "one", "other")).await?, 409, "Conflict", message)?;
    Ok(())
}

async fn a_request_is_for_the_account_in_its_path(cx: Context) -> Result<()> {
    account(&cx).await?;
    let path = cx.core("serviceaccounts/robot/token");
    let named = json!({ "metadata": { "name": "other" }, "spec": {} });
    let message = "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid \
                   value: \"other\": must match the service account name if specified";
    refused(&cx.send(Request::post(&path, &named)).await?, 422, "Invalid", message)?;
    let elsewhere = json!({ "metadata": { "namespace": "elsewhere" }, "spec": {} });
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    refused(&cx.send(Request::post(&path, &elsewhere)).await?, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_token_does_not_live_for_ever(cx: Context) -> Result<()> {
    account(&cx).await?;
    let answer = cx.send(ask(&cx, json!({ "expirationSeconds": 1_i64 << 33 }))).await?;
    let message = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: \
                   Invalid value: 8589934592: may not specify a duration larger than 2^32 seconds";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_review_says_what_is_wrong_with_a_token(cx: Context) -> Result<()> {
    account(&cx).await?;
    let answer = issued(&cx, json!({})).await?;
    let token = text(&answer, "/status/token");
    let issuer = cx.get("/.well-known/openid-configuration").await?["issuer"].clone();
    let status = review(&cx, token, &[]).await?;
    same("audiences", &status["audiences"], json!([issuer]))?;
    let status = review(&cx, token, &["other"]).await?;
    let error = format!(
        "[invalid bearer token, token audiences [{issuer}] is invalid for the target audiences \
         [\"other\"]]"
    );
    same("of another audience", &status, json!({ "user": {}, "error": error }))?;
    let status = review(&cx, "nonsense", &[]).await?;
    same("nonsense", &status, json!({ "user": {}, "error": "invalid bearer token" }))?;
    let nothing = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {},
    });
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let message = "token is required for TokenReview in authentication";
    refused(&cx.send(Request::post(path, &nothing)).await?, 400, "BadRequest", message)?;
    Ok(())
}

async fn the_issuer_describes_itself(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get("/.well-known/openid-configuration")).await?;
    same("cache", &json!(answer.header("cache-control")), json!("public, max-age=3600"))?;
    let configuration = expect(&answer, 200)?;
    let (issuer, url) = (configuration["issuer"].clone(), configuration["jwks_uri"].clone());
    let expected = json!({
        "issuer": issuer,
        "jwks_uri": url,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": configuration["id_token_signing_alg_values_supported"],
    });
    same("configuration", &configuration, expected)?;
    let answer =
        cx.send(Request::get("/openid/v1/jwks").accept("application/jwk-set+json")).await?;
    same("cache", &json!(answer.header("cache-control")), json!("public, max-age=3600"))?;
    let key = expect(&answer, 200)?["keys"][0].clone();
    ensure!(!text(&key, "/kid").is_empty() && key["d"].is_null(), "{key}");
    // Each is known in one form alone.
    for (path, form, other) in [
        ("/.well-known/openid-configuration", "application/json", "application/jwk-set+json"),
        ("/openid/v1/jwks", "application/jwk-set+json", "application/json"),
    ] {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {form}");
        let answer = cx.send(Request::get(path).accept(other)).await?;
        refused(&answer, 406, "NotAcceptable", &message)?;
    }
    // Whoever holds a token may learn how it is verified, and nobody else.
    account(&cx).await?;
    let answer = issued(&cx, json!({})).await?;
    let token = text(&answer, "/status/token");
    let anonymous = cx.endpoint.without_credentials();
    let path = "/.well-known/openid-configuration";
    expect(&anonymous.send(&Request::get(path).bearer(token)).await?, 200)?;
    let message = "forbidden: User \"system:anonymous\" cannot get path \
                   \"/.well-known/openid-configuration\"";
    refused(&anonymous.send(&Request::get(path)).await?, 403, "Forbidden", message)?;
    Ok(())
}
