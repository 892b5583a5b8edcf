//! What a server would say of an object that nobody sends it.
//!
//! Only what follows from the object itself: its defaults and the rules of its kind. What depends on
//! what else there is, or on who asks, is left out: whether the namespace exists, admission, quotas.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::field::Error;
use serde_json::Value;

use crate::allocate::{self, Families, Family};
use crate::catalog::Catalog;
use crate::kinds::Context;
use crate::meta;
use crate::resource::{Origin, Resource};
use crate::services::Services;
use crate::user::User;
use crate::warnings::Warnings;

/// What would be said.
#[derive(Debug, Default)]
pub struct Foresight {
    /// Empty if the object would be accepted.
    pub errors: Vec<Error>,
    pub warnings: Vec<String>,
}

/// What would be said of a new object of a built-in kind, which is in normal form and says its
/// namespace, if it is to be in one. `None` if objects of this kind are not created.
pub fn of_new(kind: &builtin::Kind, mut object: Value) -> Option<Foresight> {
    let resource = Catalog::builtin().find(|resource| is_of(resource, kind))?;
    resource.default(&mut object);
    meta::wipe(&mut object);
    let mut object = resource.to_hub(object);
    meta::identify(&mut object, Timestamp::UNIX_EPOCH);
    let base = meta::text(&object, "generateName");
    if meta::text(&object, "name").is_empty() && !base.is_empty() {
        let name = meta::generate_name(base);
        meta::of(&mut object).insert("name".to_owned(), name.into());
    }
    if Services::concern(resource)
        && let Err(errors) = provide(&mut object)
    {
        return Some(Foresight { errors, warnings: Vec::new() });
    }
    let warnings = Warnings::default();
    let context =
        Context { user: &User::apiserver(), now: Timestamp::UNIX_EPOCH, warnings: &warnings };
    resource.prepare_create(&mut object, &context);
    let errors = resource.validate_create(&object);
    warnings.extend(resource.warnings(None, &object, None));
    Some(Foresight { errors, warnings: warnings.texts() })
}

fn is_of(resource: &Resource, kind: &builtin::Kind) -> bool {
    let is_kind = matches!(&resource.origin, Origin::Builtin(own) if std::ptr::eq(own.kind, kind));
    // What is not stored is no object: a review, a binding.
    is_kind && resource.has_verb("create") && resource.has_verb("get")
}

/// Gives a Service what a cluster of both families would have for it.
fn provide(service: &mut Value) -> Result<(), Vec<Error>> {
    let families = Families::dual(Family::V4);
    match allocate::plan_create(service, families) {
        Ok(plan) => {
            let address = |family: Family| match family {
                Family::V4 => IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10)),
                Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 10)),
            };
            let addresses: Vec<IpAddr> =
                plan.addresses.iter().map(|wish| address(wish.family)).collect();
            let ports: Vec<i32> = plan
                .ports
                .iter()
                .zip(30_000..)
                .map(|(wish, free)| wish.port.unwrap_or(free))
                .collect();
            plan.grant(service, &addresses, &ports);
            Ok(())
        }
        Err(allocate::Refusal::Invalid(errors)) => Err(errors),
        // It is not the client's fault.
        Err(allocate::Refusal::Internal(_)) => Ok(()),
    }
}
