//! Certificates that cert-manager makes: what it is asked for, and how they reach the operator.

use serde_json::{Value, json};

use super::{Certificates, Manifest, Package, Part};

/// cert-manager's own kinds, if it is to make certificates.
pub(super) fn certificates(package: &Package) -> Vec<Manifest> {
    let mounts = mounts(package);
    if package.certificates != Certificates::CertManager || mounts.is_empty() {
        return Vec::new();
    }
    let names = package.names();
    let object = |kind: &str, name: &str, spec: Value| {
        let object = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": package.namespace},
            "spec": spec,
        });
        Manifest::new(Part::Certificates, object)
    };
    let issuer = names.with("selfsigned-issuer");
    let certificate = |mount: &Mount| {
        let spec = json!({
            "dnsNames": mount.hosts,
            "issuerRef": {"kind": "Issuer", "name": issuer},
            "secretName": mount.secret,
        });
        object("Certificate", &names.with(mount.certificate), spec)
    };
    let mut manifests: Vec<_> = mounts.iter().map(certificate).collect();
    manifests.push(object("Issuer", &issuer, json!({"selfSigned": {}})));
    manifests
}

/// What has cert-manager write its authority into an object that must trust the webhooks.
pub(super) fn annotate(package: &Package, object: &mut Value) {
    if package.certificates == Certificates::CertManager {
        let certificate = package.names().with(SERVING);
        let source = format!("{}/{certificate}", package.namespace);
        object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = source.into();
    }
}

const SERVING: &str = "serving-cert";

/// A certificate of cert-manager's, as the operator finds it: a Secret that is a folder.
pub(super) struct Mount {
    certificate: &'static str,
    volume: &'static str,
    secret: String,
    hosts: [String; 2],
    path: &'static str,
    flag: &'static str,
}

/// One for the webhooks if there are any, one for the metrics if they are served.
pub(super) fn mounts(package: &Package) -> Vec<Mount> {
    let names = package.names();
    let webhooks = package.is_called().then(|| Mount {
        certificate: SERVING,
        volume: "webhook-certs",
        secret: names.webhook_secret(),
        hosts: names.webhook_hosts(&package.namespace),
        path: "/tmp/k8s-webhook-server/serving-certs",
        flag: "--webhook-cert-path",
    });
    let metrics = package.metrics.then(|| Mount {
        certificate: "metrics-certs",
        volume: "metrics-certs",
        secret: names.metrics_secret(),
        hosts: names.metrics_hosts(&package.namespace),
        path: "/tmp/k8s-metrics-server/metrics-certs",
        flag: "--metrics-cert-path",
    });
    webhooks.into_iter().chain(metrics).collect()
}

impl Mount {
    pub(super) fn volume(&self) -> Value {
        json!({"name": self.volume, "secret": {"secretName": self.secret}})
    }

    pub(super) fn volume_mount(&self) -> Value {
        json!({"name": self.volume, "mountPath": self.path, "readOnly": true})
    }

    pub(super) fn argument(&self) -> String {
        format!("{}={}", self.flag, self.path)
    }
}
