//! The pet store: a gRPC server whose pets survive it.

mod filter;
mod pets;
mod store;

use std::time::Duration;

use kubewright::logging::follow_trace;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tracing::{info, info_span, warn};

use self::pets::Pets;
use crate::proto::DESCRIPTORS;
use crate::proto::pet_store_server::PetStoreServer;

pub use self::store::{OpenError, Store};

/// How long those who have asked already are answered after the end has come. Who watches the
/// server's health would otherwise keep it for ever.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Serves a store until `shutdown`, with health and reflection.
///
/// # Errors
/// If the server cannot accept connections any more.
pub async fn serve(
    listener: TcpListener,
    store: Store,
    shutdown: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<PetStoreServer<Pets>>().await;
    // Tools of different ages ask by different versions.
    let reflect = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let address = listener.local_addr().ok();
    info!(?address, "pet store open");
    let served = Server::builder()
        .trace_fn(|request| {
            let span = info_span!("grpc", method = request.uri().path());
            follow_trace(&span, request.headers());
            span
        })
        .add_service(health_service)
        .add_service(reflect().build_v1().expect("descriptors that were just compiled"))
        .add_service(reflect().build_v1alpha().expect("descriptors that were just compiled"))
        .add_service(PetStoreServer::new(Pets::new(store)))
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            shutdown.clone().cancelled_owned(),
        );
    tokio::select! {
        served = served => served?,
        () = async {
            shutdown.cancelled().await;
            health.set_not_serving::<PetStoreServer<Pets>>().await;
            tokio::time::sleep(DRAIN_MAX).await;
        } => warn!("some requests were not answered to the end"),
    }
    info!("pet store closed");
    Ok(())
}
