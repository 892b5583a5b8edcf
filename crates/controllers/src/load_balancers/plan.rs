//! Where a Service is reached from outside.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service};

/// How this machine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Ip(IpAddr),
    Name(String),
}

/// What status should say of a Service's load balancer, if it says something else. Services of
/// another class are somebody else's.
pub(super) fn plan(service: &Service, address: &Address) -> Option<LoadBalancerStatus> {
    let spec = service.spec.as_ref()?;
    let held = service.status.as_ref().and_then(|status| status.load_balancer.clone());
    let held = held.unwrap_or_default();
    let wanted = match spec.type_.as_deref() {
        Some("LoadBalancer") if spec.load_balancer_class.is_some() => return None,
        Some("LoadBalancer") => LoadBalancerStatus { ingress: Some(vec![ingress(address)]) },
        _ => LoadBalancerStatus::default(),
    };
    (held != wanted).then_some(wanted)
}

fn ingress(address: &Address) -> LoadBalancerIngress {
    match address {
        Address::Ip(ip) => LoadBalancerIngress {
            ip: Some(ip.to_string()),
            ip_mode: Some("VIP".to_owned()),
            ..LoadBalancerIngress::default()
        },
        Address::Name(name) => {
            LoadBalancerIngress { hostname: Some(name.clone()), ..LoadBalancerIngress::default() }
        }
    }
}
