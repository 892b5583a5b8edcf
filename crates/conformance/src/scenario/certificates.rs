//! Requests for certificates: who may have one gets it, signed by the cluster's authority.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::{Context, expect, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "certificates":
    an_approved_request_is_signed [B1 S8],
    a_denied_request_is_not_signed [B1 S8],
    a_node_approves_itself [B1 S8],
    a_request_that_breaks_the_rules_of_its_signer_fails [B1 S8],
}

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Asks for a certificate in a name and a group; gives the request's path.
async fn ask(cx: &Context, signer: &str, name: &str, group: &str) -> Result<String> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, name);
    let request = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": cx.namespace },
        "spec": {
            "request": BASE64_STANDARD.encode(request),
            "signerName": format!("kubernetes.io/{signer}"),
            "usages": ["digital signature", "client auth"],
        },
    });
    cx.create(PATH, &object).await?;
    Ok(format!("{PATH}/{}", cx.namespace))
}

async fn decide(cx: &Context, path: &str, verdict: &str) -> Result<()> {
    let mut request = cx.get(path).await?;
    request["status"]["conditions"] =
        json!([{ "type": verdict, "status": "True", "reason": "Asked", "message": "so be it" }]);
    expect(&cx.send(Request::put(format!("{path}/approval"), &request)).await?, 200)?;
    Ok(())
}

fn condition<'a>(request: &'a Value, kind: &str) -> Option<&'a Value> {
    request["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

async fn forget(cx: &Context, path: &str) -> Result<()> {
    expect(&cx.send(Request::delete(path)).await?, 200)?;
    Ok(())
}

/// Waits for a certificate, and checks whom it is for.
async fn signed(cx: &Context, path: &str, name: &str) -> Result<Value> {
    let is_signed = |request: &Value| !text(request, "/status/certificate").is_empty();
    let request = cx.wait(path, is_signed).await?;
    let pem = BASE64_STANDARD.decode(text(&request, "/status/certificate"))?;
    let pem = String::from_utf8(pem).context("a certificate is text")?;
    ensure!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{pem}");
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = BASE64_STANDARD.decode(body)?;
    let is_named = der.windows(name.len()).any(|part| part == name.as_bytes());
    ensure!(is_named, "the certificate does not name {name}");
    Ok(request)
}

async fn an_approved_request_is_signed(cx: Context) -> Result<()> {
    let path = ask(&cx, "kube-apiserver-client", "alice", "dev").await?;
    decide(&cx, &path, "Approved").await?;
    signed(&cx, &path, "alice").await?;
    forget(&cx, &path).await
}

async fn a_denied_request_is_not_signed(cx: Context) -> Result<()> {
    let path = ask(&cx, "kube-apiserver-client", "mallory", "dev").await?;
    decide(&cx, &path, "Denied").await?;
    let mut request = cx.get(&path).await?;
    same("certificate", &request["status"]["certificate"], Value::Null)?;
    request["status"]["conditions"] =
        json!([{ "type": "Approved", "status": "True", "reason": "Asked" }]);
    let answer = cx.send(Request::put(format!("{path}/approval"), &request)).await?;
    ensure!(answer.status == 422, "what is denied stays denied: {answer}");
    forget(&cx, &path).await
}

async fn a_node_approves_itself(cx: Context) -> Result<()> {
    let name = format!("system:node:{}", cx.namespace);
    let path = ask(&cx, "kube-apiserver-client-kubelet", &name, "system:nodes").await?;
    let request = signed(&cx, &path, &name).await?;
    let approved = condition(&request, "Approved").cloned().unwrap_or_default();
    same("reason", &approved["reason"], json!("AutoApproved"))?;
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    same("message", &approved["message"], json!(message))?;
    forget(&cx, &path).await
}

async fn a_request_that_breaks_the_rules_of_its_signer_fails(cx: Context) -> Result<()> {
    let path = ask(&cx, "kube-apiserver-client-kubelet", "alice", "system:nodes").await?;
    decide(&cx, &path, "Approved").await?;
    let failed = |request: &Value| condition(request, "Failed").is_some();
    let request = cx.wait(&path, failed).await?;
    let failed = condition(&request, "Failed").cloned().unwrap_or_default();
    same("reason", &failed["reason"], json!("SignerValidationFailure"))?;
    let message = "subject common name does not begin with system:node:";
    same("message", &failed["message"], json!(message))?;
    same("certificate", &request["status"]["certificate"], Value::Null)?;
    forget(&cx, &path).await
}
