//! What is filled into other objects than pods before they are stored, and who may refuse them.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, refused, same, scenarios};
use crate::endpoint::{Answer, Request};

scenarios! { "admission":
    a_claim_asks_for_no_more_than_is_allowed [A1],
    claims_and_volumes_are_protected [A5],
    a_claim_gets_the_default_class [A5],
    an_ingress_gets_the_default_class [A5],
    a_new_node_is_not_ready [A5],
}

fn claim(storage: &str) -> Value {
    json!({
        "metadata": { "name": "one" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            // No class, so that no default comes in.
            "storageClassName": "",
            "resources": { "requests": { "storage": storage } },
        },
    })
}

async fn a_claim_asks_for_no_more_than_is_allowed(cx: Context) -> Result<()> {
    let limits = json!([{
        "type": "PersistentVolumeClaim", "min": { "storage": "1Gi" }, "max": { "storage": "2Gi" },
    }]);
    let range = json!({ "metadata": { "name": "range" }, "spec": { "limits": limits } });
    cx.create(&cx.core("limitranges"), &range).await?;
    let create = |storage: &str| {
        Request::post(cx.core("persistentvolumeclaims?dryRun=All"), &claim(storage))
    };
    let is_limited = |answer: &Answer| answer.status == 403;
    let answer = cx.endpoint.poll(&create("3Gi"), PATIENCE, is_limited).await?;
    let message = "persistentvolumeclaims \"one\" is forbidden: maximum storage usage per \
                   PersistentVolumeClaim is 2Gi, but request is 3Gi";
    refused(&answer, 403, "Forbidden", message)?;
    let message = "persistentvolumeclaims \"one\" is forbidden: minimum storage usage per \
                   PersistentVolumeClaim is 1Gi, but request is 1Mi";
    refused(&cx.send(create("1Mi")).await?, 403, "Forbidden", message)?;
    expect(&cx.send(create("2Gi")).await?, 201)?;
    Ok(())
}

async fn claims_and_volumes_are_protected(cx: Context) -> Result<()> {
    let claims = cx.core("persistentvolumeclaims?dryRun=All");
    let claim = cx.create(&claims, &claim("1Gi")).await?;
    same("claim", &claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]))?;
    let volume = json!({
        "metadata": { "name": cx.namespace, "finalizers": ["example.com/hold"] },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/tmp" },
        },
    });
    let volume = cx.create("/api/v1/persistentvolumes?dryRun=All", &volume).await?;
    let finalizers = json!(["example.com/hold", "kubernetes.io/pv-protection"]);
    same("volume", &volume["metadata"]["finalizers"], finalizers)
}

async fn a_claim_gets_the_default_class(cx: Context) -> Result<()> {
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let class = json!({
        "metadata": {
            "name": cx.namespace,
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "example.com/nobody",
    });
    cx.create(classes, &class).await?;
    let mut silent = claim("1Gi");
    silent["spec"].as_object_mut().expect("it is one").remove("storageClassName");
    let create = |claim: &Value| Request::post(cx.core("persistentvolumeclaims?dryRun=All"), claim);
    let has_class = |answer: &Answer| {
        answer.json().is_ok_and(|claim| claim["spec"]["storageClassName"] == cx.namespace.as_str())
    };
    let given = cx.endpoint.poll(&create(&silent), PATIENCE, has_class).await;
    // Who asks for no class gets none.
    let none = cx.send(create(&claim("1Gi"))).await?;
    expect(&cx.send(Request::delete(format!("{classes}/{}", cx.namespace))).await?, 200)?;
    given?;
    same("class", &expect(&none, 201)?["spec"]["storageClassName"], json!(""))
}

async fn an_ingress_gets_the_default_class(cx: Context) -> Result<()> {
    let classes = "/apis/networking.k8s.io/v1/ingressclasses";
    let class = json!({
        "metadata": {
            "name": cx.namespace,
            "annotations": { "ingressclass.kubernetes.io/is-default-class": "true" },
        },
        "spec": { "controller": "example.com/nobody" },
    });
    cx.create(classes, &class).await?;
    let service = json!({ "name": "one", "port": { "number": 80 } });
    let ingress = json!({
        "metadata": { "name": "one" },
        "spec": { "defaultBackend": { "service": service } },
    });
    let path = cx.apis("networking.k8s.io/v1", "ingresses?dryRun=All");
    let has_class = |answer: &Answer| {
        answer.json().is_ok_and(|one| one["spec"]["ingressClassName"] == cx.namespace.as_str())
    };
    let create = Request::post(path.clone(), &ingress);
    let given = cx.endpoint.poll(&create, PATIENCE, has_class).await;
    let mut named = ingress.clone();
    named["spec"]["ingressClassName"] = json!("another");
    let named = cx.send(Request::post(path, &named)).await?;
    expect(&cx.send(Request::delete(format!("{classes}/{}", cx.namespace))).await?, 200)?;
    given?;
    same("class", &expect(&named, 201)?["spec"]["ingressClassName"], json!("another"))
}

async fn a_new_node_is_not_ready(cx: Context) -> Result<()> {
    let node = json!({ "metadata": { "name": cx.namespace } });
    let node = cx.create("/api/v1/nodes?dryRun=All", &node).await?;
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    same("taints", &node["spec"]["taints"], json!([taint]))
}
