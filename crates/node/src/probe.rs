//! Probes over the network, and by commands: whether a container is well. Hooks over HTTP are asked
//! the same way.

mod question;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, GRPCAction, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::pod::pause;
use crate::runtime::{Health, Runtime, RuntimeError, Target};

use self::question::{Answer, Unanswered};

const AGENT: &str = "kube-probe/1.36";
const HOOK_AGENT: &str = "kube-lifecycle/1.36";
/// Between two tries to reach a server for calls, as Go's library waits at first.
const RECONNECT: Duration = Duration::from_secs(1);

/// Looks whether a container is well, for no longer than the probe says.
pub(crate) async fn run(runtime: &dyn Runtime, target: &Target, probe: &Probe) -> Health {
    let seconds = probe.timeout_seconds.unwrap_or(1).max(1);
    let timeout = Duration::from_secs(u64::from(seconds.unsigned_abs()));
    let looking = async {
        if let Some(exec) = &probe.exec {
            let command = exec.command.clone().unwrap_or_default();
            return by_command(runtime, target, &command, timeout).await;
        }
        let Some(address) = target.address else {
            return Health::Unknown("the pod has no address".to_owned());
        };
        if let Some(get) = &probe.http_get {
            return by_http(runtime, target, get).await;
        }
        if let Some(tcp) = &probe.tcp_socket {
            let host = tcp.host.as_deref().filter(|host| !host.is_empty());
            let Some(port) = port(&tcp.port, &target.container) else {
                return Health::Unknown(no_port(&tcp.port));
            };
            let shown = SocketAddr::new(address, port);
            let connected = match host {
                Some(host) => TcpStream::connect((host, port)).await,
                None => TcpStream::connect(runtime.reach(shown)).await,
            };
            return match connected {
                Ok(_) => Health::Well,
                Err(error) => Health::Ill(dial(&shown.to_string(), &error)),
            };
        }
        match &probe.grpc {
            Some(grpc) => by_grpc(runtime, address, grpc, timeout).await,
            None => Health::Unknown("missing probe handler".to_owned()),
        }
    };
    if probe.grpc.is_some() {
        // It says itself what took too long.
        return looking.await;
    }
    match tokio::time::timeout(timeout, looking).await {
        Ok(health) => health,
        Err(_) if probe.exec.is_some() => {
            Health::Ill(format!("command timed out after {seconds}s"))
        }
        Err(_) => Health::Ill("context deadline exceeded".to_owned()),
    }
}

async fn by_command(
    runtime: &dyn Runtime,
    target: &Target,
    command: &[String],
    timeout: Duration,
) -> Health {
    told(runtime.ask(&target.id, command, Some(timeout)).await)
}

/// What the end of a command says about its container.
fn told(asked: Result<(i32, Vec<u8>), RuntimeError>) -> Health {
    match asked {
        Ok((0, _)) => Health::Well,
        Ok((_, said)) => Health::Ill(String::from_utf8_lossy(&said).into_owned()),
        Err(error) => Health::Unknown(error.to_string()),
    }
}

async fn by_http(runtime: &dyn Runtime, target: &Target, get: &HTTPGetAction) -> Health {
    match question::ask(runtime, target, get, AGENT).await {
        Ok(Answer { status: 200..300, .. }) => Health::Well,
        Ok(Answer { status: 300..400, body, .. }) => {
            Health::Warned(format!("Probe terminated redirects, Response body: {body}"))
        }
        Ok(Answer { status, .. }) => {
            Health::Ill(format!("HTTP probe failed with statuscode: {status}"))
        }
        Err(Unanswered::Impossible(why)) => Health::Unknown(why),
        Err(Unanswered::Failed(why)) => Health::Ill(why),
    }
}

/// Calls what a hook names, however long that takes. Who answers has heard of it, whatever the
/// answer says.
///
/// # Errors
/// Why nobody answered.
pub(crate) async fn call(
    runtime: &dyn Runtime,
    target: &Target,
    get: &HTTPGetAction,
) -> Result<(), RuntimeError> {
    match question::ask(runtime, target, get, HOOK_AGENT).await {
        Ok(_) => Ok(()),
        Err(Unanswered::Impossible(why) | Unanswered::Failed(why)) => {
            Err(RuntimeError::Failed(why))
        }
    }
}

async fn by_grpc(
    runtime: &dyn Runtime,
    address: IpAddr,
    grpc: &GRPCAction,
    timeout: Duration,
) -> Health {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let (deadline, within) = (Instant::now() + timeout, pause(timeout));
    let place = SocketAddr::new(address, u16::try_from(grpc.port).unwrap_or_default());
    let Ok(channel) = timeout_at(deadline, channel(runtime.reach(place))).await else {
        return Health::Ill(format!(
            "timeout: failed to connect service \"{place}\" within {within}: \
             context deadline exceeded"
        ));
    };
    let service = grpc.service.clone().unwrap_or_default();
    let mut client = HealthClient::new(channel);
    let asked = timeout_at(deadline, client.check(HealthCheckRequest { service })).await;
    let why = match asked {
        Err(_) => format!("timeout: health rpc did not complete within {within}"),
        Ok(Ok(answer)) => match answer.into_inner().status() {
            ServingStatus::Serving => return Health::Well,
            other => format!("service unhealthy (responded with {:?})", other.as_str_name()),
        },
        Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {}",
            status.message()
        ),
        Ok(Err(status)) => {
            let (code, message) = (code_name(status.code()), status.message());
            format!("error: health rpc probe failed: rpc error: code = {code} desc = {message}")
        }
    };
    Health::Ill(why)
}

/// A connection for calls, as soon as somebody takes one: who does not listen yet may soon.
async fn channel(place: SocketAddr) -> tonic::transport::Channel {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{place}"))
        .and_then(|endpoint| endpoint.user_agent(AGENT))
        .expect("an address makes a URL");
    loop {
        match endpoint.connect().await {
            Ok(channel) => return channel,
            Err(_) => tokio::time::sleep(RECONNECT).await,
        }
    }
}

/// As Go prints it.
fn code_name(code: tonic::Code) -> String {
    match code {
        tonic::Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    }
}

/// The number of a port that may be given by the name that the container gives it.
pub(crate) fn port(port: &IntOrString, container: &Container) -> Option<u16> {
    match port {
        IntOrString::Int(number) => u16::try_from(*number).ok().filter(|number| *number > 0),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_deref() == Some(name));
            match named {
                Some(port) => u16::try_from(port.container_port).ok(),
                None => name.parse().ok(),
            }
        }
    }
}

fn no_port(port: &IntOrString) -> String {
    match port {
        IntOrString::Int(number) => format!("invalid port number: {number}"),
        IntOrString::String(name) => {
            format!("couldn't find port: strconv.Atoi: parsing {name:?}: invalid syntax")
        }
    }
}

/// As Go says that nobody can be reached.
fn dial(place: &str, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {place}: {why}")
}
