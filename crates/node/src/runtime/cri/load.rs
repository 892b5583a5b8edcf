//! Images from files, without a registry. CRI knows only how to pull, so this speaks containerd's own
//! services, which listen at the same socket.

mod archive;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use self::archive::{Archive, Blob, Image};
use self::stubs::content::content_client::ContentClient;
use self::stubs::content::{WriteAction, WriteContentRequest};
use self::stubs::images::images_client::ImagesClient;
use self::stubs::images::{CreateImageRequest, Descriptor, UpdateImageRequest};
use self::stubs::leases::leases_client::LeasesClient;
use self::stubs::leases::{CreateRequest, DeleteRequest};
use super::api::{Api, channel};
use super::{image, message};

/// Where CRI's images are in containerd.
const NAMESPACE: &str = "k8s.io";
const CHUNK: usize = 1 << 20;
const LEASE: Duration = Duration::from_hours(1);
/// How long containerd may take to tell itself of a new image.
const KNOWN_MAX: Duration = Duration::from_secs(30);

#[expect(
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    reason = "the generator knows no other, and gives no reasons"
)]
mod stubs {
    pub(super) mod content {
        tonic::include_proto!("containerd.services.content.v1");
    }
    pub(super) mod images {
        tonic::include_proto!("containerd.services.images.v1");
    }
    pub(super) mod leases {
        tonic::include_proto!("containerd.services.leases.v1");
    }
}

/// Why an image is not there.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Make another: `docker save`, `podman save` and `skopeo copy` write such files.
    #[error("read images from {}: {why}", path.display())]
    Archive { path: PathBuf, why: String },
    #[error("read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("reach the container runtime at {}", socket.display())]
    Connect { socket: PathBuf, source: tonic::transport::Error },
    /// Load it by the means that the runtime has.
    #[error("load images at {}: that can be done with containerd only", socket.display())]
    Unsupported { socket: PathBuf },
    #[error("load images at {}: {why}", socket.display())]
    Refused { socket: PathBuf, why: String },
}

/// Gives the images in a file (as `docker save` writes it, or of OCI's layout, compressed or not) to
/// the containerd at a socket, and gives their names.
///
/// # Errors
/// If the file has no images, or the runtime does not take them.
pub async fn load_images(
    socket: &Path,
    path: &Path,
    now: Timestamp,
) -> Result<Vec<String>, LoadError> {
    let archive = Archive::open(path).map_err(|error| error.of(path))?;
    let images = archive.images().map_err(|error| error.of(path))?;
    let connected = channel(socket).await;
    let channel =
        connected.map_err(|source| LoadError::Connect { socket: socket.to_owned(), source })?;
    let refused = |status: Status| match status.code() {
        Code::Unimplemented => LoadError::Unsupported { socket: socket.to_owned() },
        _ => LoadError::Refused { socket: socket.to_owned(), why: message(&status) },
    };
    let lease = Lease::take(channel.clone(), now).await.map_err(refused)?;
    let mut names = Vec::new();
    for image in images {
        for blob in &image.blobs {
            write(channel.clone(), &lease, &archive, blob).await.map_err(refused)?;
        }
        names.extend(call(channel.clone(), &lease, &image).await.map_err(refused)?);
    }
    lease.give_back().await.map_err(refused)?;
    let api = Api::new(channel);
    for name in &names {
        until_known(&api, name)
            .await
            .map_err(|why| LoadError::Refused { socket: socket.to_owned(), why })?;
    }
    Ok(names)
}

/// Waits until CRI knows an image that containerd has.
async fn until_known(api: &Api, name: &str) -> Result<(), String> {
    let knowing = async {
        while image::find(api, name).await?.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    let known = tokio::time::timeout(KNOWN_MAX, knowing).await;
    known.unwrap_or_else(|_| Err(format!("{name} is loaded, but CRI does not know it")))
}

/// Has containerd keep what nothing refers to yet.
struct Lease {
    channel: Channel,
    id: String,
}

impl Lease {
    async fn take(channel: Channel, now: Timestamp) -> Result<Self, Status> {
        // Whoever does not come back loses it.
        let until = now.saturating_add(LEASE).unwrap_or(now);
        let labels = [("containerd.io/gc.expire".to_owned(), format!("{until:.0}"))];
        let id = format!("kubewright-{}-{}", std::process::id(), until.as_nanosecond());
        let request = CreateRequest { id: id.clone(), labels: labels.into() };
        LeasesClient::new(channel.clone()).create(namespaced(request)).await?;
        Ok(Lease { channel, id })
    }

    fn of<T>(&self, request: T) -> Request<T> {
        let mut request = namespaced(request);
        let id = self.id.parse().expect("it is made of letters and digits");
        request.metadata_mut().insert("containerd-lease", id);
        request
    }

    async fn give_back(self) -> Result<(), Status> {
        let request = DeleteRequest { id: self.id, sync: false };
        LeasesClient::new(self.channel).delete(namespaced(request)).await.map(drop)
    }
}

/// Puts a content where containerd has its contents.
async fn write(
    channel: Channel,
    lease: &Lease,
    archive: &Archive,
    blob: &Blob,
) -> Result<(), Status> {
    let total = i64::try_from(blob.size).unwrap_or(i64::MAX);
    let request = WriteContentRequest {
        action: WriteAction::Write.into(),
        r#ref: format!("kubewright-{}", blob.digest),
        total,
        expected: blob.digest.clone(),
        ..WriteContentRequest::default()
    };
    let labels: HashMap<String, String> = blob.labels.clone();
    let mut reader = archive.reader(blob).map_err(|error| Status::aborted(error.to_string()))?;
    let mut offset = Some(0_i64);
    let parts = std::iter::from_fn(move || {
        let part = read_part(&mut reader);
        let mut request = WriteContentRequest { offset: offset?, ..request.clone() };
        match part.is_empty() {
            true => {
                request.action = WriteAction::Commit.into();
                request.labels.clone_from(&labels);
                offset = None;
            }
            false => {
                offset = Some(request.offset + part.len() as i64);
                request.data = part;
            }
        }
        Some(request)
    });
    let parts = futures::stream::iter(parts);
    let mut client = ContentClient::new(channel);
    let written = async {
        let mut answers = client.write(lease.of(parts)).await?.into_inner();
        while answers.message().await?.is_some() {}
        Ok(())
    };
    match written.await {
        // It is there from another image.
        Err(status) if Status::code(&status) == Code::AlreadyExists => Ok(()),
        written => written,
    }
}

/// What cannot be read any more is found out by its digest.
fn read_part(reader: &mut impl io::Read) -> Vec<u8> {
    let mut part = Vec::with_capacity(CHUNK);
    let _ = io::Read::read_to_end(&mut io::Read::take(reader, CHUNK as u64), &mut part);
    part
}

/// Gives an image its names.
async fn call(channel: Channel, lease: &Lease, image: &Image) -> Result<Vec<String>, Status> {
    let mut client = ImagesClient::new(channel);
    for name in &image.names {
        let image = stubs::images::Image {
            name: name.clone(),
            labels: HashMap::new(),
            target: Some(Descriptor {
                media_type: image.target.media_type.clone(),
                digest: image.target.digest.clone(),
                size: i64::try_from(image.target.size).unwrap_or(i64::MAX),
            }),
        };
        let create = CreateImageRequest { image: Some(image.clone()) };
        match client.create(lease.of(create)).await {
            Err(status) if status.code() == Code::AlreadyExists => {
                let update = UpdateImageRequest { image: Some(image) };
                client.update(lease.of(update)).await?;
            }
            created => drop(created?),
        }
    }
    Ok(image.names.clone())
}

fn namespaced<T>(request: T) -> Request<T> {
    let mut request = Request::new(request);
    let namespace = MetadataValue::from_static(NAMESPACE);
    request.metadata_mut().insert("containerd-namespace", namespace);
    request
}
