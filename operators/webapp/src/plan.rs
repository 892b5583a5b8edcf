//! What a web application consists of, and how it fares. Decides only.

#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kind::{Tier, WebApp};

/// All that an application consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Children {
    pub config: ConfigMap,
    pub secret: Secret,
    /// Where the database is found. A name of its own is all that it is.
    pub database_service: Service,
    pub database: StatefulSet,
    pub service: Service,
    pub deployment: Deployment,
    pub ingress: Ingress,
}

/// How an application fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub is_ready: bool,
    pub reason: &'static str,
    pub message: String,
}

/// What a tier gives to each part.
struct Share {
    cpu: &'static str,
    memory: &'static str,
}

impl Children {
    /// The children of an application, with a password in case there is none yet. The claims of a
    /// database that is there cannot be changed, so they stay.
    pub fn of(app: &WebApp, password: &str, database: Option<&StatefulSet>) -> Self {
        let claims = database.and_then(|it| it.spec.as_ref()?.volume_claim_templates.as_ref());
        let storage = claims.and_then(|claims| {
            let requests = claims.first()?.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
            requests.get("storage").map(|storage| storage.0.clone())
        });
        let storage = storage.unwrap_or_else(|| app.spec.deployment_tier.storage().to_owned());
        Children {
            config: object(config(app)),
            secret: object(secret(app, password)),
            database_service: object(database_service(app)),
            database: object(self::database(app, &storage)),
            service: object(service(app)),
            deployment: object(deployment(app)),
            ingress: object(ingress(app)),
        }
    }
}

impl Report {
    /// Judges by what the cluster says of the parts.
    pub fn of(app: &WebApp, deployment: &Deployment, database: &StatefulSet) -> Self {
        let wanted = app.spec.web_app_replicas;
        let status = deployment.status.clone().unwrap_or_default();
        let is_seen = status.observed_generation >= deployment.metadata.generation;
        let updated =
            status.updated_replicas.unwrap_or(0).min(status.available_replicas.unwrap_or(0));
        let is_whole = is_seen
            && updated == wanted
            && status.replicas.unwrap_or(0) == wanted
            && status.unavailable_replicas.unwrap_or(0) == 0;
        let (is_ready, reason, message) = if !database.is_ready() {
            (false, "DatabaseStarting", "the database is not ready yet".to_owned())
        } else if is_whole {
            (true, "Available", format!("{wanted} of {wanted} replicas are available"))
        } else if let Some(why) = is_seen.then(|| stuck(&status)).flatten() {
            (false, "RolloutStuck", why)
        } else {
            let message = format!("{updated} of {wanted} replicas are available as they should be");
            (false, "RollingOut", message)
        };
        Report { is_ready, reason, message }
    }
}

/// Whether something that is counted is there.
pub(crate) trait Ready {
    fn is_ready(&self) -> bool;
}

impl Ready for StatefulSet {
    fn is_ready(&self) -> bool {
        let status = self.status.as_ref();
        status.and_then(|status| status.ready_replicas).is_some_and(|count| count > 0)
    }
}

/// Which pods run an application, as a selector is written.
pub(crate) fn selector(app: &WebApp) -> String {
    format!("app={},tier=web", name(app))
}

/// What the Secret of an application is called.
pub(crate) fn secret_name(app: &WebApp) -> String {
    database_name(app)
}

/// What the database of an application, and all that belongs to it, is called.
pub(crate) fn database_name(app: &WebApp) -> String {
    format!("{}-database", name(app))
}

impl Tier {
    fn web(self) -> Share {
        match self {
            Tier::Dev => Share { cpu: "100m", memory: "128Mi" },
            Tier::Stg => Share { cpu: "250m", memory: "256Mi" },
            Tier::Prod => Share { cpu: "500m", memory: "512Mi" },
        }
    }

    fn database(self) -> Share {
        match self {
            Tier::Dev => Share { cpu: "100m", memory: "256Mi" },
            Tier::Stg => Share { cpu: "500m", memory: "1Gi" },
            Tier::Prod => Share { cpu: "1", memory: "2Gi" },
        }
    }

    fn storage(self) -> &'static str {
        match self {
            Tier::Dev => "1Gi",
            Tier::Stg => "10Gi",
            Tier::Prod => "100Gi",
        }
    }
}

/// Why a rollout does not go on, if it does not.
fn stuck(status: &DeploymentStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let progressing = conditions.find(|it| it.type_ == "Progressing" && it.status == "False")?;
    Some(progressing.message.clone().unwrap_or_else(|| "it does not go on".to_owned()))
}

fn name(app: &WebApp) -> &str {
    app.metadata.name.as_deref().unwrap_or_default()
}

fn metadata(app: &WebApp, suffix: &str) -> Value {
    json!({
        "name": format!("{}{suffix}", name(app)),
        "namespace": app.metadata.namespace,
        "labels": {"app": name(app)},
    })
}

fn labels(app: &WebApp, tier: &str) -> Value {
    json!({"app": name(app), "tier": tier})
}

fn resources(share: &Share) -> Value {
    let amounts = json!({"cpu": share.cpu, "memory": share.memory});
    json!({"requests": amounts, "limits": {"memory": share.memory}})
}

/// Asked often: a rollout, and whoever waits for the first answer, waits for it.
fn ready_at(port: &str) -> Value {
    json!({"tcpSocket": {"port": port}, "periodSeconds": 1})
}

fn config(app: &WebApp) -> Value {
    json!({
        "metadata": metadata(app, "-config"),
        "data": {
            "DATABASE_HOST": database_name(app),
            "DATABASE_NAME": "app",
            "DATABASE_PORT": "5432",
            "DEPLOYMENT_TIER": app.spec.deployment_tier,
            "HOSTNAME": app.spec.web_app_hostname,
        },
    })
}

fn secret(app: &WebApp, password: &str) -> Value {
    let bytes = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
    json!({
        "metadata": metadata(app, "-database"),
        "type": "Opaque",
        "data": {"username": bytes("app"), "password": bytes(password)},
    })
}

fn database_service(app: &WebApp) -> Value {
    json!({
        "metadata": metadata(app, "-database"),
        "spec": {
            "clusterIP": "None",
            "selector": labels(app, "database"),
            "ports": [{
                "name": "postgres", "port": 5432, "targetPort": "postgres", "protocol": "TCP",
            }],
        },
    })
}

fn from_secret(app: &WebApp, variable: &str, key: &str) -> Value {
    let reference = json!({"name": secret_name(app), "key": key});
    json!({"name": variable, "valueFrom": {"secretKeyRef": reference}})
}

fn database(app: &WebApp, storage: &str) -> Value {
    json!({
        "metadata": metadata(app, "-database"),
        "spec": {
            "serviceName": database_name(app),
            "replicas": 1,
            "selector": {"matchLabels": labels(app, "database")},
            "template": {
                "metadata": {"labels": labels(app, "database")},
                "spec": {"containers": [{
                    "name": "postgres",
                    "image": "postgres:17",
                    "ports": [{"name": "postgres", "containerPort": 5432, "protocol": "TCP"}],
                    "env": [
                        {"name": "POSTGRES_DB", "value": "app"},
                        from_secret(app, "POSTGRES_USER", "username"),
                        from_secret(app, "POSTGRES_PASSWORD", "password"),
                        // The root of a volume has a folder of the file system's in it.
                        {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
                    ],
                    "readinessProbe": ready_at("postgres"),
                    "resources": resources(&app.spec.deployment_tier.database()),
                    "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}],
                }]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": storage}},
                },
            }],
        },
    })
}

fn service(app: &WebApp) -> Value {
    json!({
        "metadata": metadata(app, ""),
        "spec": {
            "selector": labels(app, "web"),
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    })
}

fn deployment(app: &WebApp) -> Value {
    json!({
        "metadata": metadata(app, ""),
        "spec": {
            "replicas": app.spec.web_app_replicas,
            "selector": {"matchLabels": labels(app, "web")},
            "template": {
                "metadata": {"labels": labels(app, "web")},
                "spec": {
                    "containers": [{
                        "name": "app",
                        "image": app.spec.web_app_image,
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "env": [
                            from_secret(app, "DATABASE_USER", "username"),
                            from_secret(app, "DATABASE_PASSWORD", "password"),
                        ],
                        "readinessProbe": ready_at("http"),
                        "resources": resources(&app.spec.deployment_tier.web()),
                        "volumeMounts": [{
                            "name": "config", "mountPath": "/etc/webapp", "readOnly": true,
                        }],
                    }],
                    "volumes": [{
                        "name": "config", "configMap": {"name": format!("{}-config", name(app))},
                    }],
                },
            },
        },
    })
}

fn ingress(app: &WebApp) -> Value {
    let backend = json!({"service": {"name": name(app), "port": {"name": "http"}}});
    json!({
        "metadata": metadata(app, ""),
        "spec": {"rules": [{
            "host": app.spec.web_app_hostname,
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }]},
    })
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("what is written here has the form of its kind")
}
