//! What a site consists of, and what its parts are called. Decides only.

#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::kind::{SecretKey, Wordpress};

/// The claim by which it is told how a site's parts are called.
const MYSQL_CLAIM: &str = "mysql-pv-claim";
/// Says which password pods were started with, without saying it.
const CHECKSUM: &str = "example.com/sql-root-password";

/// What the parts of a site are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

/// How pods come by the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Password {
    /// In the open.
    Plain(String),
    /// By reference, and what the Secret has now.
    Secret { from: SecretKey, value: Vec<u8> },
}

/// All that a site consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Children {
    pub mysql_claim: PersistentVolumeClaim,
    pub mysql: Deployment,
    pub mysql_service: Service,
    pub claim: PersistentVolumeClaim,
    pub wordpress: Deployment,
    pub service: Service,
}

impl Names {
    /// The first site of a namespace has the bare names, later ones have prefixes. A site that has
    /// a claim keeps the names that it has, whoever comes or goes.
    ///
    /// `claims` are all claims of the namespace, `sites` all its sites.
    pub fn of<'a>(
        site: &Wordpress,
        claims: impl IntoIterator<Item = &'a PersistentVolumeClaim>,
        sites: impl IntoIterator<Item = &'a Wordpress>,
    ) -> Self {
        let bare = Names { prefix: String::new() };
        let prefixed = Names { prefix: format!("{}-", name(site)) };
        let mut is_taken = false;
        for claim in claims {
            let is_ours = is_of(claim, site);
            match claim.metadata.name.as_deref() {
                Some(MYSQL_CLAIM) if is_ours => return bare,
                Some(MYSQL_CLAIM) => is_taken = true,
                Some(other) if is_ours && other == prefixed.mysql_claim() => return prefixed,
                _ => {}
            }
        }
        let age = |site: &Wordpress| {
            let made = site.metadata.creation_timestamp.as_ref().map(|made| made.0);
            (made, site.metadata.name.clone())
        };
        let is_first = sites.into_iter().all(|other| age(other) >= age(site));
        if is_first && !is_taken { bare } else { prefixed }
    }

    pub fn mysql_claim(&self) -> String {
        format!("{}{MYSQL_CLAIM}", self.prefix)
    }

    pub fn mysql(&self) -> String {
        format!("{}wordpress-mysql", self.prefix)
    }

    pub fn claim(&self) -> String {
        format!("{}wp-pv-claim", self.prefix)
    }

    pub fn wordpress(&self) -> String {
        format!("{}wordpress", self.prefix)
    }
}

impl Children {
    pub fn of(site: &Wordpress, names: &Names, password: &Password) -> Self {
        Children {
            mysql_claim: object(claim(site, &names.mysql_claim())),
            mysql: object(mysql(site, names, password)),
            mysql_service: object(mysql_service(site, names)),
            claim: object(claim(site, &names.claim())),
            wordpress: object(wordpress(site, names, password)),
            service: object(service(site, names)),
        }
    }
}

/// Whether enough pods of a Deployment serve, of the version that is wanted or the one before.
pub(crate) fn is_available(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    status.and_then(|status| status.available_replicas).is_some_and(|count| count > 0)
}

impl Password {
    fn variable(&self, variable: &str) -> Value {
        match self {
            Password::Plain(value) => json!({"name": variable, "value": value}),
            Password::Secret { from, .. } => json!({
                "name": variable,
                "valueFrom": {"secretKeyRef": {"name": from.name, "key": from.key}},
            }),
        }
    }

    /// Another one for another password; mixed with who the site is, so that equal passwords of
    /// two sites do not show.
    fn checksum(&self, site: &Wordpress) -> String {
        let value = match self {
            Password::Plain(value) => value.as_bytes(),
            Password::Secret { value, .. } => value,
        };
        let uid = site.metadata.uid.as_deref().unwrap_or_default();
        let digest = Sha256::new().chain_update(uid).chain_update(value).finalize();
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

fn name(site: &Wordpress) -> &str {
    site.metadata.name.as_deref().unwrap_or_default()
}

/// Whether a claim was made for a site.
fn is_of(claim: &PersistentVolumeClaim, site: &Wordpress) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == site.metadata.uid.as_ref())
}

fn metadata(site: &Wordpress, called: &str) -> Value {
    json!({
        "name": called, "namespace": site.metadata.namespace, "labels": {"app": name(site)},
    })
}

fn labels(site: &Wordpress, tier: &str) -> Value {
    json!({"app": name(site), "tier": tier})
}

fn claim(site: &Wordpress, called: &str) -> Value {
    json!({
        "metadata": metadata(site, called),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    })
}

/// A Deployment of one pod with a volume, which no second pod can have at the same time.
fn deployment(
    site: &Wordpress,
    called: &str,
    tier: &str,
    container: Value,
    volume: (&str, &str),
    checksum: &str,
) -> Value {
    let (volume, claim) = volume;
    json!({
        "metadata": metadata(site, called),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels(site, tier)},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {
                    "labels": labels(site, tier), "annotations": {CHECKSUM: checksum},
                },
                "spec": {
                    "containers": [container],
                    "volumes": [{
                        "name": volume, "persistentVolumeClaim": {"claimName": claim},
                    }],
                },
            },
        },
    })
}

fn mysql(site: &Wordpress, names: &Names, password: &Password) -> Value {
    let container = json!({
        "name": "mysql",
        "image": "mysql:5.6",
        "env": [password.variable("MYSQL_ROOT_PASSWORD")],
        "ports": [{"name": "mysql", "containerPort": 3306, "protocol": "TCP"}],
        "volumeMounts": [{"name": "mysql-persistent-storage", "mountPath": "/var/lib/mysql"}],
    });
    let volume = ("mysql-persistent-storage", &*names.mysql_claim());
    deployment(site, &names.mysql(), "mysql", container, volume, &password.checksum(site))
}

fn mysql_service(site: &Wordpress, names: &Names) -> Value {
    json!({
        "metadata": metadata(site, &names.mysql()),
        "spec": {
            "clusterIP": "None",
            "selector": labels(site, "mysql"),
            "ports": [{"name": "mysql", "port": 3306, "targetPort": "mysql", "protocol": "TCP"}],
        },
    })
}

fn wordpress(site: &Wordpress, names: &Names, password: &Password) -> Value {
    let container = json!({
        "name": "wordpress",
        "image": "wordpress:4.8-apache",
        "env": [
            {"name": "WORDPRESS_DB_HOST", "value": names.mysql()},
            password.variable("WORDPRESS_DB_PASSWORD"),
        ],
        "ports": [{"name": "wordpress", "containerPort": 80, "protocol": "TCP"}],
        "volumeMounts": [{"name": "wordpress-persistent-storage", "mountPath": "/var/www/html"}],
    });
    let volume = ("wordpress-persistent-storage", &*names.claim());
    deployment(site, &names.wordpress(), "frontend", container, volume, &password.checksum(site))
}

fn service(site: &Wordpress, names: &Names) -> Value {
    json!({
        "metadata": metadata(site, &names.wordpress()),
        "spec": {
            "type": "NodePort",
            "selector": labels(site, "frontend"),
            "ports": [{"name": "http", "port": 80, "targetPort": "wordpress", "protocol": "TCP"}],
        },
    })
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("what is written here has the form of its kind")
}
