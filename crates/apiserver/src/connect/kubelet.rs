//! How nodes are reached.

use kubewright_apimachinery::status::{Reason, Status};
use serde_json::Value;

use crate::index::Store;
use crate::outbound::{Identity, Line, Security, Trust};
use crate::refusal::Refusal;

/// Where a node listens that does not say so.
const PORT: u16 = 10250;

/// What a server is told of nodes.
#[derive(Debug, Clone)]
pub struct Access {
    /// Which of a node's addresses is used, the best first: `InternalIP`, `Hostname`, …
    pub address_types: Vec<String>,
    /// Who vouches for nodes, in PEM. Without, they need not show who they are.
    pub authorities: Option<Vec<u8>>,
    /// Who this server is to nodes.
    pub identity: Option<Identity>,
}

impl Default for Access {
    fn default() -> Self {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Access {
            address_types: types.map(str::to_owned).to_vec(),
            authorities: None,
            identity: None,
        }
    }
}

/// Leads to nodes.
pub(crate) struct Kubelets {
    address_types: Vec<String>,
    /// For nodes that must show who they are.
    verified: Security,
    /// For those that need not.
    unverified: Security,
    /// For what is no node, whom nobody vouches for and to whom we are nobody.
    stranger: Security,
}

/// Where a node is.
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Kubelets {
    pub(crate) fn new(access: Access) -> Self {
        let Access { address_types, authorities, identity } = access;
        let trust = authorities.map_or(Trust::Anyone, Trust::Bundle);
        Kubelets {
            address_types,
            verified: Security::new(&trust, identity.as_ref()),
            unverified: Security::new(&Trust::Anyone, identity.as_ref()),
            stranger: Security::new(&Trust::Anyone, None),
        }
    }

    /// Where a node says that it is.
    pub(super) fn address(&self, node: &Value) -> Result<Address, Refusal> {
        let known = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = self.address_types.iter().find_map(|wanted| {
            let address = known.iter().find(|address| address["type"] == **wanted)?;
            address["address"].as_str()
        });
        let Some(host) = found else {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let known: Vec<String> = known
                .iter()
                .map(|known| format!("{{{} {}}}", text(&known["type"]), text(&known["address"])))
                .collect();
            let known = known.join(" ");
            return Err(unknown(format!(
                "no preferred addresses found; known addresses: [{known}]"
            )));
        };
        let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
        let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        Ok(Address { host: host.to_owned(), port: port.unwrap_or(PORT) })
    }

    /// The way to a node's kubelet.
    pub(super) fn line(&self, store: &Store, address: Address, is_verified: bool) -> Line {
        let security = if is_verified { &self.verified } else { &self.unverified };
        Line::to_host(store.clone(), address.host, address.port, Some(security.clone()))
    }

    /// The way to something else, which may want to be spoken to in secret.
    pub(super) fn stranger(&self, store: &Store, address: Address, is_secure: bool) -> Line {
        let security = is_secure.then(|| self.stranger.clone());
        Line::to_host(store.clone(), address.host, address.port, security)
    }
}

/// A failure that upstream has no word for.
pub(super) fn unknown(why: impl Into<String>) -> Refusal {
    Box::new(Status::failure(500, Reason::Unknown, why))
}
