//! The operator: keeps pets of a cluster in the store.
//!
//! The store is another system: an answer may be lost, and so may this process between the answer
//! and what is written of it. So a pet is known to the store by the UID of its object, too, and
//! whatever is done can be done again.

#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use kubewright::condition::{Conditions as _, READY};
use kubewright::logging::tell_trace;
use kubewright::manifest::Package;
use kubewright::{Action, Context, Controller, Error, Event, Operator, Reconciler};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Status};
use tracing::info;

use crate::SAMPLES;
use crate::pet::v1alpha1::Pet;
use crate::pet::{PetType, conversion, definition};
use crate::proto::pet_store_client::PetStoreClient;
use crate::proto::{self, AddPetsRequest, DeletePetsRequest, SearchPetsRequest, UpdatePetsRequest};

/// Holds objects until their pets have left the store.
pub const FINALIZER: &str = "pet.petstore.example.com";

/// What its objects in a cluster are named after.
pub const NAME: &str = "petstore-operator";

const CONNECT_MAX: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Nobody tells of what changes in the store, so it is looked at now and then.
const RESYNC: Duration = Duration::from_secs(10 * 60);
/// Most of the time is spent waiting for the store.
const AT_ONCE: usize = 4;

/// The operator on the store at an address.
pub fn operator(store: Uri) -> Operator {
    let controller = Controller::new("pet", Keeper::new(store))
        .finalizer(FINALIZER)
        .resync(RESYNC)
        .at_once(AT_ONCE);
    let operator = Operator::new(NAME)
        .controller(controller)
        .definition(definition())
        .converting(conversion());
    SAMPLES.iter().fold(operator, |operator, sample| operator.samples(sample))
}

/// What brings the operator into a cluster, beside a store at an address.
pub fn package(store: &Uri) -> Package {
    Package { arguments: vec![format!("--store={store}")], ..operator(store.clone()).package() }
}

/// Keeps pets in the store.
struct Keeper {
    endpoint: Endpoint,
    /// Made when it is first needed: operators are declared before anything runs.
    store: OnceLock<Client>,
}

type Client = PetStoreClient<InterceptedService<Channel, Traced>>;

/// Tells the store in which trace it is asked.
#[derive(Clone, Copy)]
struct Traced;

/// What a pet needs to be in the store as it should be.
#[derive(Debug, PartialEq)]
enum Plan {
    Add(proto::Pet),
    Update(proto::Pet),
    Nothing { id: String },
}

impl Keeper {
    fn new(store: Uri) -> Self {
        let endpoint = Endpoint::from(store).connect_timeout(CONNECT_MAX).timeout(ANSWER_MAX);
        Keeper { endpoint, store: OnceLock::new() }
    }

    /// The store, whether or not it can be reached; it is tried anew with each call.
    fn store(&self) -> Client {
        let connect = || PetStoreClient::with_interceptor(self.endpoint.connect_lazy(), Traced);
        self.store.get_or_init(connect).clone()
    }

    /// Sees to it that the store has a pet as it is described.
    async fn keep(&self, pet: &mut Pet, ctx: &Context) -> Result<(), Status> {
        let found = self.find(pet).await?;
        let mut store = self.store();
        let id = match plan(wanted(pet), found) {
            Plan::Nothing { id } => id,
            Plan::Add(added) => {
                let request = AddPetsRequest { pets: vec![added] };
                let added = store.add_pets(request).await?.into_inner();
                let id = added.ids.into_iter().next();
                let id = id.ok_or_else(|| Status::internal("the store gave the pet no id"))?;
                ctx.event(Event::normal("Added", format!("{} came to the store", pet.spec.name)));
                id
            }
            Plan::Update(updated) => {
                let id = updated.id.clone();
                store.update_pets(UpdatePetsRequest { pets: vec![updated] }).await?;
                let note = format!("{} was changed in the store", pet.spec.name);
                ctx.event(Event::normal("Updated", note));
                id
            }
        };
        pet.status.get_or_insert_default().id = Some(id);
        Ok(())
    }

    /// Sees to it that the store has a pet no more.
    async fn release(&self, pet: &Pet) -> Result<(), Status> {
        let id = match id(pet) {
            Some(id) => Some(id.to_owned()),
            // It may have come to the store though nobody lived to write it down.
            None => self.find(pet).await?.map(|found| found.id),
        };
        let Some(id) = id else { return Ok(()) };
        let request = DeletePetsRequest { ids: vec![id] };
        self.store().delete_pets(request).await.map(drop)
    }

    /// The pet as the store has it: the one that is written down, else the one that came in this
    /// pet's name.
    async fn find(&self, pet: &Pet) -> Result<Option<proto::Pet>, Status> {
        info!(name = pet.spec.name, id = id(pet), "finding pets in store");
        if let Some(id) = id(pet) {
            let ids = vec![id.to_owned()];
            let request = SearchPetsRequest { ids, ..SearchPetsRequest::default() };
            let found = self.first(request).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let keys = vec![key(pet)];
        self.first(SearchPetsRequest { keys, ..SearchPetsRequest::default() }).await
    }

    async fn first(&self, request: SearchPetsRequest) -> Result<Option<proto::Pet>, Status> {
        self.store().search_pets(request).await?.into_inner().message().await
    }
}

impl Interceptor for Traced {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        tell_trace(request.metadata_mut().as_mut());
        Ok(request)
    }
}

impl Reconciler<Pet> for Keeper {
    async fn reconcile(&self, pet: &mut Pet, ctx: &Context) -> Result<Action, Error> {
        self.keep(pet, ctx).await.map_err(|status| report(pet, ctx, "Reconcile", status))?;
        let conditions = &mut pet.status.get_or_insert_default().conditions;
        conditions.set(ctx.condition(READY, true, "Stored", "the store has it"));
        Ok(Action::Done)
    }

    async fn cleanup(&self, pet: &mut Pet, ctx: &Context) -> Result<Action, Error> {
        let released = self.release(pet).await;
        released.map_err(|status| report(pet, ctx, "Delete", status))?;
        ctx.event(Event::normal("Deleted", "it left the store").action("Delete"));
        Ok(Action::Done)
    }
}

/// Tells people that the store did not do something.
fn report(pet: &mut Pet, ctx: &Context, action: &str, status: Status) -> Error {
    let is_refused = matches!(
        status.code(),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange
    );
    let (reason, message) = match is_refused {
        true => ("Refused", format!("the store refuses it: {}", status.message())),
        // The same however often it is tried, so that it is written once.
        false => ("StoreUnavailable", "the store does not answer as it should".to_owned()),
    };
    let note = format!("the store: {}: {}", status.code(), status.message());
    ctx.event(Event::warning(reason, note).action(action));
    let conditions = &mut pet.status.get_or_insert_default().conditions;
    conditions.set(ctx.condition(READY, false, reason, &message));
    match is_refused {
        true => Error::terminal(status),
        false => Error::from(status),
    }
}

/// What to do about a pet, given the one in the store.
fn plan(wanted: proto::Pet, found: Option<proto::Pet>) -> Plan {
    let Some(found) = found else { return Plan::Add(wanted) };
    // Whoever brought it, it is this one now.
    let wanted = proto::Pet { id: found.id.clone(), key: found.key.clone(), ..wanted };
    match wanted == found {
        true => Plan::Nothing { id: found.id },
        false => Plan::Update(wanted),
    }
}

/// A pet as the store should have it.
fn wanted(pet: &Pet) -> proto::Pet {
    let kind = match pet.spec.kind {
        PetType::Dog => proto::PetType::Dog,
        PetType::Cat => proto::PetType::Cat,
        PetType::Bird => proto::PetType::Bird,
        PetType::Reptile => proto::PetType::Reptile,
    };
    proto::Pet {
        id: String::new(),
        name: pet.spec.name.clone(),
        r#type: kind.into(),
        birthday: Some(timestamp(pet.spec.birthday)),
        key: key(pet),
    }
}

/// Protocol buffers count nanoseconds upwards, before 1970 as well.
fn timestamp(moment: Timestamp) -> prost_types::Timestamp {
    let (mut seconds, mut nanos) = (moment.as_second(), moment.subsec_nanosecond());
    if nanos < 0 {
        (seconds, nanos) = (seconds - 1, nanos + 1_000_000_000);
    }
    prost_types::Timestamp { seconds, nanos }
}

fn id(pet: &Pet) -> Option<&str> {
    pet.status.as_ref().and_then(|status| status.id.as_deref())
}

/// What is no other pet's, in all clusters and for ever.
fn key(pet: &Pet) -> String {
    pet.metadata.uid.clone().unwrap_or_default()
}
