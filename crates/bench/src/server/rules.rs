//! Objects of a kind with twenty rules in CEL, which are judged and not stored.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::client::{get, request};
use super::load::{JSON, Speed, Until, spread};
use super::site::Site;

/// What people write rules about: limits, names, lists that agree with each other, transitions.
const RULES: [&str; 20] = [
    "self.minReplicas <= self.replicas",
    "self.replicas <= self.maxReplicas",
    "self.maxReplicas - self.minReplicas <= 100",
    "self.name.startsWith('web-')",
    "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "size(self.name) <= 63",
    "self.image.contains(':') && !self.image.endsWith(':latest')",
    "self.image.split(':').size() == 2",
    "self.ports.all(p, p.port > 0 && p.port < 65536)",
    "self.ports.exists_one(p, p.name == 'http')",
    "self.ports.map(p, p.port).isSorted()",
    "self.ports.all(p, p.name in self.exposed || p.port > 8000)",
    "size(self.exposed) <= size(self.ports)",
    "self.labels.all(k, size(k) <= 63)",
    "'app' in self.labels && self.labels['app'] == self.name",
    "!has(self.paused) || !self.paused || self.replicas == 0",
    "duration(self.timeout) <= duration('10m')",
    "quantity(self.memory).isLessThan(quantity('8Gi'))",
    "isURL(self.url) && url(self.url).getScheme() == 'https'",
    "cidr(self.network).containsIP(self.gateway)",
];

/// Tries to create objects until the time is over. Nothing is stored.
pub(super) async fn validations(site: &Site, duration: Duration) -> Result<Speed> {
    define(site).await?;
    let path = "/apis/bench.example.com/v1/namespaces/bench/services?dryRun=All";
    let body = object().to_string();
    let make = move |_| request(Method::POST, path, JSON, body.clone());
    spread(site, Until::Elapsed(duration), make).await
}

/// Defines the kind, waits until it is served, and sees that a rule can be broken.
async fn define(site: &Site) -> Result<()> {
    let mut client = site.endpoint.connect().await?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.send(request(Method::POST, path, JSON, definition().to_string())).await?;
    let start = Instant::now();
    let objects = "/apis/bench.example.com/v1/namespaces/bench/services";
    while client.send(get(objects)).await.is_err() {
        ensure!(start.elapsed() < Duration::from_secs(60), "the kind is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut broken = object();
    broken["spec"]["gateway"] = "10.9.0.1".into();
    let path = format!("{objects}?dryRun=All");
    let refused = client.send(request(Method::POST, &path, JSON, broken.to_string())).await;
    let refused = refused.err().context("a broken rule was not noticed")?;
    let refused = format!("{refused:#}");
    ensure!(refused.contains("containsIP"), "another rule was broken: {refused}");
    Ok(())
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "services.bench.example.com"},
        "spec": {
            "group": "bench.example.com",
            "scope": "Namespaced",
            "names": {"plural": "services", "singular": "service", "kind": "Service"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec()}}},
            }],
        },
    })
}

fn spec() -> Value {
    let text = |length: u32| json!({"type": "string", "maxLength": length});
    let number = json!({"type": "integer"});
    let port = json!({
        "type": "object",
        "required": ["name", "port"],
        "properties": {"name": text(20), "port": number},
    });
    let properties = json!({
        "name": text(63), "image": text(200), "timeout": text(20), "memory": text(20),
        "url": text(200), "network": text(50), "gateway": text(50),
        "replicas": number, "minReplicas": number, "maxReplicas": number,
        "paused": {"type": "boolean"},
        "exposed": {"type": "array", "maxItems": 20, "items": text(20)},
        "labels": {"type": "object", "maxProperties": 20, "additionalProperties": text(63)},
        "ports": {"type": "array", "maxItems": 20, "items": port},
    });
    let required = properties.as_object().into_iter().flatten().map(|(name, _)| name);
    let required = required.filter(|&name| name != "paused");
    json!({
        "type": "object",
        "x-kubernetes-validations": RULES.map(|rule| json!({"rule": rule})),
        "required": required.collect::<Vec<_>>(),
        "properties": properties,
    })
}

fn object() -> Value {
    json!({
        "apiVersion": "bench.example.com/v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "name": "web-shop",
            "image": "registry.example.com/shop/web:1.14.2",
            "replicas": 3, "minReplicas": 1, "maxReplicas": 10,
            "ports": [
                {"name": "http", "port": 80},
                {"name": "https", "port": 443},
                {"name": "metrics", "port": 9090},
                {"name": "admin", "port": 9091},
            ],
            "exposed": ["http", "https"],
            "labels": {"app": "web-shop", "tier": "front", "team": "sales", "stage": "test"},
            "timeout": "90s", "memory": "512Mi",
            "url": "https://shop.example.com/basket?item=1",
            "network": "10.1.0.0/16", "gateway": "10.1.0.1",
        },
    })
}
