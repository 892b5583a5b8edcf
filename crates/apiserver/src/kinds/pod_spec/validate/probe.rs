//! What the node asks a container: probes, and hooks of its life.

use k8s_openapi::api::core::v1::{
    ExecAction, GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction,
    TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;

use crate::kinds::check::{self, list, text};

const SCHEMES: &[&str] = &["HTTP", "HTTPS"];

/// What a probe decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Liveness,
    Readiness,
    Startup,
}

impl Purpose {
    pub(super) const ALL: [Purpose; 3] = [Purpose::Liveness, Purpose::Readiness, Purpose::Startup];

    /// The field of a container.
    pub(super) fn field(self) -> &'static str {
        match self {
            Purpose::Liveness => "livenessProbe",
            Purpose::Readiness => "readinessProbe",
            Purpose::Startup => "startupProbe",
        }
    }
}

pub(super) fn validate(
    probe: &Probe,
    purpose: Purpose,
    grace: Option<i64>,
    path: &Path<'_>,
) -> Vec<Error> {
    let action = Action {
        exec: probe.exec.as_ref(),
        http_get: probe.http_get.as_ref(),
        tcp_socket: probe.tcp_socket.as_ref(),
        grpc: probe.grpc.as_ref(),
        sleep: None,
    };
    let mut errors = action.validate(grace, path);
    for (name, value) in [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ] {
        errors.extend(check::non_negative(&path.child(name), value.unwrap_or_default()));
    }
    let grace_path = path.child("terminationGracePeriodSeconds");
    if let Some(seconds) = probe.termination_grace_period_seconds.filter(|seconds| *seconds <= 0) {
        errors.push(Error::invalid(&grace_path, seconds, "must be greater than 0"));
    }
    match purpose {
        Purpose::Liveness | Purpose::Startup => {
            let threshold = probe.success_threshold.unwrap_or_default();
            if threshold != 1 {
                let path = path.child("successThreshold");
                errors.push(Error::invalid(&path, threshold, "must be 1"));
            }
        }
        Purpose::Readiness => {
            if let Some(seconds) = probe.termination_grace_period_seconds {
                let problem = "must not be set for readinessProbes";
                errors.push(Error::invalid(&grace_path, seconds, problem));
            }
        }
    }
    errors
}

pub(super) fn validate_lifecycle(
    lifecycle: &Lifecycle,
    grace: Option<i64>,
    path: &Path<'_>,
) -> Vec<Error> {
    let hooks = [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)];
    let mut errors = Vec::new();
    for (name, hook) in hooks {
        if let Some(LifecycleHandler { exec, http_get, sleep, tcp_socket }) = hook {
            let action = Action {
                exec: exec.as_ref(),
                http_get: http_get.as_ref(),
                tcp_socket: tcp_socket.as_ref(),
                grpc: None,
                sleep: sleep.as_ref(),
            };
            errors.extend(action.validate(grace, &path.child(name)));
        }
    }
    errors
}

/// Exactly one of these.
struct Action<'a> {
    exec: Option<&'a ExecAction>,
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    grpc: Option<&'a GRPCAction>,
    sleep: Option<&'a SleepAction>,
}

impl Action<'_> {
    fn validate(&self, grace: Option<i64>, path: &Path<'_>) -> Vec<Error> {
        let kinds = [
            ("exec", self.exec.is_some()),
            ("httpGet", self.http_get.is_some()),
            ("tcpSocket", self.tcp_socket.is_some()),
            ("grpc", self.grpc.is_some()),
            ("sleep", self.sleep.is_some()),
        ];
        let mut given = kinds.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name);
        let Some(first) = given.next() else {
            return vec![Error::required(path, "must specify a handler type")];
        };
        let mut errors = self.validate_first(grace, &path.child(first));
        errors.extend(given.map(|name| {
            Error::forbidden(&path.child(name), "may not specify more than 1 handler type")
        }));
        errors
    }

    fn validate_first(&self, grace: Option<i64>, path: &Path<'_>) -> Vec<Error> {
        if let Some(exec) = self.exec {
            let is_empty = list(&exec.command).is_empty();
            let error = is_empty.then(|| Error::required(&path.child("command"), ""));
            error.into_iter().collect()
        } else if let Some(http) = self.http_get {
            validate_http_get(http, path)
        } else if let Some(tcp) = self.tcp_socket {
            check::port_or_name(&path.child("port"), &tcp.port)
        } else if let Some(grpc) = self.grpc {
            check::port_or_name(&path.child("port"), &IntOrString::Int(grpc.port))
        } else if let (Some(SleepAction { seconds }), Some(grace)) = (self.sleep, grace)
            && !(0..=grace).contains(seconds)
        {
            let problem = format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            );
            vec![Error::invalid(path, *seconds, problem)]
        } else {
            Vec::new()
        }
    }
}

fn validate_http_get(action: &HTTPGetAction, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("path"), text(&action.path)));
    errors.extend(check::port_or_name(&path.child("port"), &action.port));
    errors.extend(check::one_of(&path.child("scheme"), text(&action.scheme), SCHEMES));
    for header in list(&action.http_headers) {
        errors.extend(check::invalid(
            &path.child("httpHeaders"),
            &header.name,
            name::http_header_name(&header.name),
        ));
    }
    errors
}
