//! From requests to the store and back.

use std::sync::Arc;

use futures::Stream;
use futures::stream::{self, BoxStream};
use tonic::{Request, Response, Status};
use tracing::{debug, error};

use super::filter::{self, Filter};
use super::store::{Found, Store, StoreError};
use crate::proto::pet_store_server::PetStore;
use crate::proto::{
    AddPetsRequest, AddPetsResponse, DeletePetsRequest, DeletePetsResponse, Pet, SearchPetsRequest,
    UpdatePetsRequest, UpdatePetsResponse,
};

/// How many pets are read at a time: enough to make the change of threads worth it.
const PAGE: usize = 64;

pub(super) struct Pets {
    store: Arc<Store>,
}

impl Pets {
    pub(super) fn new(store: Store) -> Self {
        Pets { store: Arc::new(store) }
    }

    /// Does something with the store, which waits for a disk, where nobody else waits with it.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Status> {
        let store = Arc::clone(&self.store);
        let span = tracing::Span::current();
        let asked = tokio::task::spawn_blocking(move || span.in_scope(|| ask(&store))).await;
        asked.expect("the store does not panic").map_err(status)
    }
}

#[tonic::async_trait]
impl PetStore for Pets {
    async fn add_pets(
        &self,
        request: Request<AddPetsRequest>,
    ) -> Result<Response<AddPetsResponse>, Status> {
        let AddPetsRequest { pets } = request.into_inner();
        for pet in &pets {
            filter::check(pet).map_err(Status::invalid_argument)?;
            if !pet.id.is_empty() {
                return Err(Status::invalid_argument("a new pet gets its id from the store"));
            }
        }
        let ids = self.ask(move |store| store.add(pets)).await?;
        debug!(?ids, "pets added");
        Ok(Response::new(AddPetsResponse { ids }))
    }

    async fn update_pets(
        &self,
        request: Request<UpdatePetsRequest>,
    ) -> Result<Response<UpdatePetsResponse>, Status> {
        let UpdatePetsRequest { pets } = request.into_inner();
        for pet in &pets {
            filter::check(pet).map_err(Status::invalid_argument)?;
        }
        self.ask(move |store| store.update(pets)).await?;
        debug!("pets updated");
        Ok(Response::new(UpdatePetsResponse {}))
    }

    async fn delete_pets(
        &self,
        request: Request<DeletePetsRequest>,
    ) -> Result<Response<DeletePetsResponse>, Status> {
        let DeletePetsRequest { ids } = request.into_inner();
        self.ask(move |store| store.delete(&ids)).await?;
        debug!("pets deleted");
        Ok(Response::new(DeletePetsResponse {}))
    }

    type SearchPetsStream = BoxStream<'static, Result<Pet, Status>>;

    async fn search_pets(
        &self,
        request: Request<SearchPetsRequest>,
    ) -> Result<Response<Self::SearchPetsStream>, Status> {
        let filter = Filter::new(request.into_inner()).map_err(Status::invalid_argument)?;
        let found = self.ask(move |store| store.search(filter)).await?;
        Ok(Response::new(Box::pin(paged(found))))
    }
}

/// What was found, read as fast as it is taken.
fn paged(found: Found) -> impl Stream<Item = Result<Pet, Status>> + Send {
    let pages = stream::unfold(Some(found), |found| async move {
        let mut found = found?;
        let read = tokio::task::spawn_blocking(move || {
            let page: Vec<_> = found.by_ref().take(PAGE).collect();
            (page, found)
        });
        let (page, found) = read.await.expect("the store does not panic");
        let more = page.len() == PAGE;
        Some((page, more.then_some(found)))
    });
    let pets = futures::StreamExt::flat_map(pages, stream::iter);
    futures::TryStreamExt::map_err(pets, status)
}

fn status(error: StoreError) -> Status {
    match error {
        StoreError::Missing { .. } => Status::not_found(error.to_string()),
        StoreError::Damaged { .. } => {
            error!(%error, "a pet cannot be read");
            Status::data_loss(error.to_string())
        }
        StoreError::Disk(ref source) => {
            error!(%source, "the disk fails");
            // What the disk says is no business of clients.
            Status::internal(error.to_string())
        }
    }
}
