//! A store that is open, and can be closed and opened again.

use std::net::{Ipv4Addr, SocketAddr};

use futures::TryStreamExt as _;
use petstore::proto::pet_store_client::PetStoreClient;
use petstore::proto::{Pet, SearchPetsRequest};
use petstore::service::{Store, serve};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Uri};

pub(crate) struct Shop {
    dir: TempDir,
    address: SocketAddr,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let mut shop = Shop {
            dir: tempfile::tempdir().expect("a directory"),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            shutdown: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        shop.reopen().await;
        shop
    }

    /// Opens it where it was before, with the pets it had.
    pub(crate) async fn reopen(&mut self) {
        let store = Store::open(self.dir.path()).expect("a store");
        let listener = TcpListener::bind(self.address).await.expect("a place");
        self.address = listener.local_addr().expect("an address");
        self.shutdown = CancellationToken::new();
        let serving = serve(listener, store, self.shutdown.clone());
        self.tasks.spawn(async move { serving.await.expect("it is served") });
    }

    pub(crate) async fn close(&mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    pub(crate) fn address(&self) -> Uri {
        format!("http://{}", self.address).parse().expect("an address")
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::builder(self.address()).connect().await.expect("a connection")
    }

    pub(crate) async fn client(&self) -> PetStoreClient<Channel> {
        PetStoreClient::new(self.channel().await)
    }

    /// The names of its pets, in alphabetical order.
    pub(crate) async fn names(&self) -> Vec<String> {
        let pets = all(&mut self.client().await).await;
        let mut names: Vec<_> = pets.into_iter().map(|pet| pet.name).collect();
        names.sort();
        names
    }
}

/// The pets of a store, in the order of their ids.
pub(crate) async fn all(store: &mut PetStoreClient<Channel>) -> Vec<Pet> {
    let found = store.search_pets(SearchPetsRequest::default()).await.expect("an answer");
    found.into_inner().try_collect().await.expect("pets")
}
