//! What is said to a container runtime: stubs, and a connection.

use std::path::Path;

use tonic::transport::{Channel, Endpoint};

#[expect(
    unreachable_pub,
    clippy::enum_variant_names,
    clippy::allow_attributes_without_reason,
    reason = "the generator knows no other, and gives no reasons"
)]
mod stubs {
    tonic::include_proto!("runtime.v1");
}

pub(super) use self::stubs::image_service_client::ImageServiceClient;
pub(super) use self::stubs::runtime_service_client::RuntimeServiceClient;
pub(super) use self::stubs::*;

/// The two services of a runtime. Cloning shares the connection.
#[derive(Debug, Clone)]
pub(super) struct Api {
    pub(super) runtime: RuntimeServiceClient<Channel>,
    pub(super) images: ImageServiceClient<Channel>,
}

/// What is listed may be long: containers with all their labels and annotations.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

impl Api {
    /// Connects to a socket, and again whenever the connection is lost.
    pub(super) async fn connect(socket: &Path) -> Result<Self, tonic::transport::Error> {
        Ok(Api::new(channel(socket).await?))
    }

    pub(super) fn new(channel: Channel) -> Self {
        let (runtime, images) =
            (RuntimeServiceClient::new(channel.clone()), ImageServiceClient::new(channel));
        Api {
            runtime: runtime.max_decoding_message_size(MESSAGE_BYTES_MAX),
            images: images.max_decoding_message_size(MESSAGE_BYTES_MAX),
        }
    }
}

pub(super) async fn channel(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("unix://{}", socket.display()))?.connect().await
}
