//! Endpoints in slices of bounded size, with as few slices touched as can be.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};

use crate::part::text;

/// What is to be done about slices.
#[derive(Debug, Default, PartialEq)]
pub(in crate::services) struct Changes {
    pub(in crate::services) create: Vec<EndpointSlice>,
    pub(in crate::services) update: Vec<EndpointSlice>,
    pub(in crate::services) delete: Vec<EndpointSlice>,
}

/// Endpoints that a group of slices should hold, each once.
#[derive(Debug, Default)]
pub(in crate::services) struct Wanted {
    by_identity: HashMap<Identity, Endpoint>,
    /// In which order they came; those that were taken are still here.
    order: VecDeque<Identity>,
}

/// What makes an endpoint the same one, in whatever condition: its addresses in order, its
/// hostname, and the namespace and name of what it stands for.
type Identity = (Vec<String>, Option<String>, Option<(String, String)>);

/// What tells ports of slices apart. Their order does not.
pub(in crate::services) fn ports_key(ports: &[EndpointPort]) -> Vec<String> {
    let mut keys: Vec<String> = ports.iter().map(|port| format!("{port:?}")).collect();
    keys.sort_unstable();
    keys
}

impl Changes {
    pub(in crate::services) fn extend(&mut self, other: Changes) {
        self.create.extend(other.create);
        self.update.extend(other.update);
        self.delete.extend(other.delete);
    }

    /// Has slices that would go become those that are to come.
    pub(in crate::services) fn recycle(&mut self, is_ours: impl Fn(&EndpointSlice) -> bool) {
        let mut kept = Vec::new();
        for old in std::mem::take(&mut self.delete) {
            let of_type = |new: &EndpointSlice| new.address_type == old.address_type;
            match self.create.iter().rposition(of_type).filter(|_| is_ours(&old)) {
                Some(position) => {
                    let mut new = self.create.remove(position);
                    new.metadata.name = old.metadata.name;
                    new.metadata.resource_version = old.metadata.resource_version;
                    self.update.push(new);
                }
                None => kept.push(old),
            }
        }
        self.delete = kept;
    }
}

impl Wanted {
    pub(in crate::services) fn insert(&mut self, endpoint: Endpoint) {
        let identity = identity(&endpoint);
        if self.by_identity.insert(identity.clone(), endpoint).is_none() {
            self.order.push_back(identity);
        }
    }

    pub(in crate::services) fn len(&self) -> usize {
        self.by_identity.len()
    }

    /// The wanted form of an endpoint, which then need not be put anywhere else.
    fn take(&mut self, endpoint: &Endpoint) -> Option<Endpoint> {
        self.by_identity.remove(&identity(endpoint))
    }

    /// Puts into a slice what there is room for.
    pub(in crate::services) fn fill(&mut self, slice: &mut EndpointSlice, size: usize) {
        let endpoints = slice.endpoints.get_or_insert_default();
        while endpoints.len() < size
            && let Some(identity) = self.order.pop_front()
        {
            endpoints.extend(self.by_identity.remove(&identity));
        }
    }
}

/// Puts endpoints into slices with the same ports: where they are already, then into slices that
/// change anyway, then into one with just enough room, and else into new ones. `adapt` sees to the
/// rest of a slice and tells whether it had to.
pub(in crate::services) fn pack(
    existing: &[&EndpointSlice],
    mut wanted: Wanted,
    size: usize,
    adapt: impl Fn(&mut EndpointSlice) -> bool,
    new: impl Fn() -> EndpointSlice,
) -> Changes {
    let mut changes = Changes::default();
    let mut unchanged: Vec<EndpointSlice> = Vec::new();
    for slice in existing {
        let mut slice = EndpointSlice::clone(slice);
        let mut kept = Vec::new();
        let mut is_changed = false;
        for endpoint in endpoints(&slice) {
            if let Some(wanted) = wanted.take(endpoint) {
                is_changed |= !is_equal(&wanted, endpoint);
                // Hints are seen to later; those of an endpoint that stays are a start.
                kept.push(Endpoint { hints: endpoint.hints.clone(), ..wanted });
            }
        }
        let is_less = kept.len() != endpoints(&slice).len();
        if is_less && kept.is_empty() {
            changes.delete.push(slice);
            continue;
        }
        slice.endpoints = Some(kept);
        if adapt(&mut slice) || is_changed || is_less {
            changes.update.push(slice);
        } else {
            unchanged.push(slice);
        }
    }
    changes.update.sort_by_key(|slice| std::cmp::Reverse(endpoints(slice).len()));
    for slice in &mut changes.update {
        wanted.fill(slice, size);
    }
    while wanted.len() > 0 {
        let fullest = unchanged
            .iter()
            .enumerate()
            .filter(|(_, slice)| endpoints(slice).len() + wanted.len() <= size)
            .max_by_key(|(_, slice)| endpoints(slice).len())
            .map(|(position, _)| position)
            .filter(|_| wanted.len() < size);
        let (mut slice, to) = match fullest {
            Some(position) => (unchanged.remove(position), &mut changes.update),
            None => (new(), &mut changes.create),
        };
        wanted.fill(&mut slice, size);
        to.push(slice);
    }
    changes
}

pub(in crate::services) fn endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

fn identity(endpoint: &Endpoint) -> Identity {
    let mut addresses = endpoint.addresses.clone();
    addresses.sort_unstable();
    let target = endpoint.target_ref.as_ref();
    let target = target.map(|it| (text(&it.namespace).to_owned(), text(&it.name).to_owned()));
    (addresses, endpoint.hostname.clone(), target)
}

/// Whether all that is said of an endpoint, apart from hints, is as it should be.
pub(in crate::services) fn is_equal(wanted: &Endpoint, held: &Endpoint) -> bool {
    let target = |endpoint: &Endpoint| {
        let mut target = endpoint.target_ref.clone();
        if let Some(target) = &mut target {
            target.resource_version = None;
        }
        target
    };
    wanted.node_name == held.node_name
        && wanted.zone == held.zone
        && wanted.conditions == held.conditions
        && target(wanted) == target(held)
}

/// Whether a slice holds just these endpoints, as they should be.
pub(in crate::services) fn holds(slice: &EndpointSlice, wanted: &Wanted) -> bool {
    let find = |held: &Endpoint| wanted.by_identity.get(&identity(held));
    endpoints(slice).len() == wanted.len()
        && endpoints(slice).iter().all(|held| find(held).is_some_and(|it| is_equal(it, held)))
}
