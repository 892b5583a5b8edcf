//! Addresses and ports of Services, around the writes that need them.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_apimachinery::gvk::GroupKind;
use kubewright_apimachinery::status::Status;
use serde_json::Value;

use crate::allocate::{self, Allocator, Families, Family, Form, ReserveError, Reserved};
use crate::index::{self, Index, Store};
use crate::meta;
use crate::refusal::{self, Refusal};
use crate::resource::Resource;

/// Where Services get what they need.
pub(crate) struct Services {
    allocator: Allocator<Index>,
    families: Families,
}

/// As other objects are stored. Read without an index, which knows only what has a uid: the books
/// about ports have none.
const STORED: Form = Form { encode: index::to_bytes, ..Form::JSON };

impl Services {
    pub(crate) fn new(store: &Store, cidrs: &[String], ports: RangeInclusive<u16>) -> Self {
        let family = |cidr: &String| {
            let address = cidr.split('/').next().and_then(|text| text.parse::<IpAddr>().ok());
            Family::of(address.expect("the ranges of the server are sound"))
        };
        let primary = cidrs.first().map_or(Family::V4, family);
        let families = match cidrs.len() > 1 {
            true => Families::dual(primary),
            false => Families::single(primary),
        };
        let allocator = Allocator::new(Arc::new(store.clone()), cidrs, ports, STORED);
        Services { allocator, families }
    }

    pub(crate) fn concern(resource: &Resource) -> bool {
        resource.gvr.group.is_empty() && resource.gvr.resource == "services"
    }

    /// Gives a Service what it needs, before it is validated.
    pub(crate) async fn reserve(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        now: Timestamp,
        dry_run: bool,
    ) -> Result<Reserved, Refusal> {
        let name = meta::text(service, "name").to_owned();
        let plan = match old {
            None => allocate::plan_create(service, self.families),
            Some(old) => allocate::plan_update(service, old, self.families),
        };
        let plan = plan.map_err(|refused| status(&name, refused))?;
        let reserved = self.allocator.reserve(&plan, service, now, dry_run).await;
        reserved.map_err(|error| match error {
            ReserveError::Refused(refused) => status(&name, refused),
            ReserveError::Unavailable(error) => refusal::unavailable(&error),
        })
    }

    /// The Service was written, or not.
    pub(crate) async fn settle(&self, reserved: Reserved, written: bool) {
        let settled = match written {
            true => self.allocator.commit(reserved).await,
            false => self.allocator.revert(reserved).await,
        };
        // What stays reserved is found free again when the server starts.
        if let Err(error) = settled {
            tracing::warn!(%error, "a reservation is not settled");
        }
    }

    /// The Service is gone.
    pub(crate) async fn release(&self, service: &Value) {
        if let Err(error) = self.allocator.release(&allocate::holdings(service)).await {
            tracing::warn!(%error, "what a service held is not released");
        }
    }

    /// Takes what existing Services hold.
    pub(crate) async fn repair(&self, services: &[Value], now: Timestamp) {
        if let Err(error) = self.allocator.repair(services, now).await {
            tracing::warn!(%error, "what services hold is not reserved");
        }
    }
}

fn status(name: &str, refused: allocate::Refusal) -> Refusal {
    Box::new(match refused {
        allocate::Refusal::Invalid(errors) => {
            Status::invalid(&GroupKind::new("", "Service"), name, &errors)
        }
        allocate::Refusal::Internal(why) => Status::internal_error(why),
    })
}
