//! Hints: for which zones and nodes an endpoint is meant, if a Service asks for near ones.
//!
//! Zones are not balanced against each other, as an older annotation asked for.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};

/// How near endpoints should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearness {
    Anywhere,
    SameZone,
    SameNode,
}

impl Nearness {
    pub(super) fn of(service: &Service) -> Self {
        match service.spec.as_ref().and_then(|spec| spec.traffic_distribution.as_deref()) {
            Some("PreferClose" | "PreferSameZone") => Nearness::SameZone,
            Some("PreferSameNode") => Nearness::SameNode,
            _ => Nearness::Anywhere,
        }
    }

    /// Gives the endpoints of a slice their hints; tells whether they had others.
    pub(super) fn hint(self, slice: &mut EndpointSlice) -> bool {
        let mut is_changed = false;
        for endpoint in slice.endpoints.iter_mut().flatten() {
            // What is said of endpoints that nobody should use does not matter.
            let is_ready = endpoint.conditions.as_ref().and_then(|it| it.ready) == Some(true);
            if self != Nearness::Anywhere && !is_ready {
                continue;
            }
            let hints = self.hints(endpoint);
            is_changed |= endpoint.hints != hints;
            endpoint.hints = hints;
        }
        is_changed
    }

    fn hints(self, endpoint: &Endpoint) -> Option<EndpointHints> {
        if self == Nearness::Anywhere {
            return None;
        }
        let zones = endpoint.zone.clone().map(|name| vec![ForZone { name }]);
        let nodes = endpoint.node_name.clone().filter(|_| self == Nearness::SameNode);
        let nodes = nodes.map(|name| vec![ForNode { name }]);
        (zones.is_some() || nodes.is_some())
            .then_some(EndpointHints { for_nodes: nodes, for_zones: zones })
    }
}
