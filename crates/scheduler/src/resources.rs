//! Amounts of resources in whole numbers: thousandths of a processor, bytes, pieces.
//!
//! What a pod asks for is counted once, when it is first seen; what a node has left is then
//! additions and comparisons.

mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_apimachinery::quantity;
use kubewright_apimachinery::resources::{self, CPU, EPHEMERAL_STORAGE, MEMORY};

pub(crate) use self::requests::{NonZero, of_pod};

/// The resource that counts how many pods a node takes.
pub(crate) const PODS: &str = "pods";
const ATTACHABLE_VOLUMES_PREFIX: &str = "attachable-volumes-";

/// Amounts by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// Everything else that can be counted, in the order of names.
    pub scalars: Vec<(Arc<str>, i64)>,
}

impl Resources {
    pub(crate) fn of(list: Option<&BTreeMap<String, Quantity>>) -> Self {
        let mut amounts = Resources::default();
        for (name, quantity) in list.into_iter().flatten() {
            amounts.add_to(name, amount(name, quantity));
        }
        amounts
    }

    pub fn get(&self, name: &str) -> i64 {
        match name {
            CPU => self.milli_cpu,
            MEMORY => self.memory,
            EPHEMERAL_STORAGE => self.ephemeral_storage,
            _ => self.scalar(name).unwrap_or_default(),
        }
    }

    /// None if nothing was ever said of it.
    pub(crate) fn scalar(&self, name: &str) -> Option<i64> {
        let index = self.scalars.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(self.scalars[index].1)
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.milli_cpu == 0
            && self.memory == 0
            && self.ephemeral_storage == 0
            && self.scalars.is_empty()
    }

    pub(crate) fn add(&mut self, other: &Resources) {
        self.combine(other, 1);
    }

    pub(crate) fn subtract(&mut self, other: &Resources) {
        self.combine(other, -1);
    }

    fn combine(&mut self, other: &Resources, sign: i64) {
        self.milli_cpu += sign * other.milli_cpu;
        self.memory += sign * other.memory;
        self.ephemeral_storage += sign * other.ephemeral_storage;
        for (name, amount) in &other.scalars {
            *self.scalar_mut(name) += sign * amount;
        }
    }

    fn add_to(&mut self, name: &str, amount: i64) {
        match name {
            CPU => self.milli_cpu += amount,
            MEMORY => self.memory += amount,
            EPHEMERAL_STORAGE => self.ephemeral_storage += amount,
            _ if is_scalar(name) => *self.scalar_mut(name) += amount,
            _ => {}
        }
    }

    fn scalar_mut(&mut self, name: &str) -> &mut i64 {
        let found = self.scalars.binary_search_by(|(known, _)| (**known).cmp(name));
        let index = found.unwrap_or_else(|index| {
            self.scalars.insert(index, (name.into(), 0));
            index
        });
        &mut self.scalars[index].1
    }
}

/// A quantity in the unit in which its resource is counted here.
pub(crate) fn amount(name: &str, quantity: &Quantity) -> i64 {
    let Ok(quantity) = quantity::Quantity::parse(&quantity.0) else { return 0 };
    match name {
        CPU => quantity.milli_value(),
        _ => quantity.value(),
    }
}

/// A resource that is counted by its name alone.
pub(crate) fn is_scalar(name: &str) -> bool {
    resources::is_extended(name)
        || resources::is_huge_page(name)
        || (name.contains('/') && resources::is_native(name))
        || name.starts_with(ATTACHABLE_VOLUMES_PREFIX)
}
