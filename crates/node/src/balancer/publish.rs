//! Tells in the API where Ingresses are served, as whoever serves them does.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::networking::v1::{
    Ingress, IngressLoadBalancerIngress, IngressLoadBalancerStatus, IngressPortStatus,
};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use kubewright::{Action, Context, Controller, Error, Reconciler};
use serde_json::json;

const NAME: &str = "kubewright-router";

/// Keeps the status of every Ingress as it is served at this place.
pub(super) fn controller(place: SocketAddr) -> Controller<Ingress, Publisher> {
    Controller::new(NAME, Publisher { place })
}

/// Takes back what an earlier process told, now that Ingresses are not served here.
///
/// # Errors
/// If the API does not have it.
pub async fn withdraw_ingresses(client: &Client, address: IpAddr) -> Result<(), kube::Error> {
    let all: Api<Ingress> = Api::all(client.clone());
    for ingress in all.list(&ListParams::default()).await? {
        let Some(left) = plan(told(&ingress), address, None) else { continue };
        let namespace = ingress.namespace().unwrap_or_default();
        let api: Api<Ingress> = Api::namespaced(client.clone(), &namespace);
        let patch = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": left}}}));
        match api.patch_status(&ingress.name_any(), &PatchParams::default(), &patch).await {
            // It went meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            patched => drop(patched?),
        }
    }
    Ok(())
}

pub(super) struct Publisher {
    place: SocketAddr,
}

impl Reconciler<Ingress> for Publisher {
    async fn reconcile(&self, ingress: &mut Ingress, _: &Context) -> Result<Action, Error> {
        if let Some(places) = plan(told(ingress), self.place.ip(), Some(self.place.port())) {
            let status = ingress.status.get_or_insert_default();
            status.load_balancer = Some(IngressLoadBalancerStatus { ingress: Some(places) });
        }
        Ok(Action::Done)
    }
}

fn told(ingress: &Ingress) -> &[IngressLoadBalancerIngress] {
    let balancer = ingress.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    balancer.and_then(|balancer| balancer.ingress.as_deref()).unwrap_or_default()
}

/// What should be told of an Ingress, if it is something else: that it is at this port of the
/// address, or at none. Whoever else serves it has the word: two who both insist would write
/// without end.
fn plan(
    told: &[IngressLoadBalancerIngress],
    address: IpAddr,
    port: Option<u16>,
) -> Option<Vec<IngressLoadBalancerIngress>> {
    let address = address.to_string();
    let is_foreign = |it: &&IngressLoadBalancerIngress| it.ip.as_ref() != Some(&address);
    let foreign: Vec<_> = told.iter().filter(is_foreign).cloned().collect();
    let wanted = match port {
        Some(port) if foreign.is_empty() => vec![IngressLoadBalancerIngress {
            ip: Some(address),
            hostname: None,
            ports: Some(vec![IngressPortStatus {
                port: port.into(),
                protocol: "TCP".to_owned(),
                error: None,
            }]),
        }],
        _ => foreign,
    };
    (told != wanted).then_some(wanted)
}
