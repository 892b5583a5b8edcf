//! Container images without a daemon: one static program and what it needs, the same bytes for the
//! same input.
//!
//! [`Image`] is pure: files become layers, layers become blobs that are known by their digests. An
//! [`Index`] is one image, or several for as many machines.
//! [`archive`] writes them as a file that `docker load`, `ctr images import` and others take;
//! [`registry`] sends them to a registry; [`program`] builds what is put in.

pub mod archive;
mod elf;
mod index;
pub mod program;
mod reference;
pub mod registry;
mod tar;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub use self::elf::{Elf, ElfError};
pub use self::index::{Index, IndexError};
pub use self::reference::{Reference, ReferenceError, check_image};
pub use self::tar::File;

/// Who runs in the image: a user without rights, by the number that distroless images have.
pub const USER: u32 = 65532;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What is to be in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// `amd64`, `arm64`: what the program is for.
    pub architecture: String,
    /// From the oldest layer to the newest: what changes seldom comes first.
    pub layers: Vec<Vec<File>>,
    pub entrypoint: Vec<String>,
    pub labels: Vec<(String, String)>,
}

/// Bytes that are known by their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub media_type: &'static str,
    /// `sha256:` and 64 digits.
    pub digest: String,
    pub bytes: Vec<u8>,
}

/// An image as registries keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub architecture: String,
    pub manifest: Blob,
    pub config: Blob,
    pub layers: Vec<Blob>,
}

impl Image {
    /// The image of these contents. Equal contents give equal bytes: there is no time in it.
    pub fn of(contents: &Contents) -> Self {
        let archives: Vec<_> = contents.layers.iter().map(|files| tar::archive(files)).collect();
        let unpacked: Vec<_> = archives.iter().map(|archive| digest(archive)).collect();
        let layers: Vec<_> =
            archives.iter().map(|archive| Blob::new(LAYER, compressed(archive))).collect();
        let labels: serde_json::Map<String, Value> =
            contents.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let config = json!({
            "architecture": contents.architecture,
            "os": "linux",
            "created": EPOCH,
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": contents.entrypoint,
                "WorkingDir": "/",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": unpacked},
            "history": contents.layers.iter().map(|_| {
                json!({"created": EPOCH, "created_by": "kubewright build"})
            }).collect::<Vec<_>>(),
        });
        let config = Blob::new(CONFIG, config.to_string().into_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(),
            "layers": layers.iter().map(Blob::descriptor).collect::<Vec<_>>(),
        });
        let manifest = Blob::new(MANIFEST, manifest.to_string().into_bytes());
        Image { architecture: contents.architecture.clone(), manifest, config, layers }
    }

    /// How others refer to it, with the machine that it is for.
    fn descriptor(&self) -> Value {
        let mut descriptor = self.manifest.descriptor();
        descriptor["platform"] = json!({"architecture": self.architecture, "os": "linux"});
        descriptor
    }

    /// Everything but the manifest, in the order in which registries want it.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        self.layers.iter().chain([&self.config])
    }
}

/// The time in an image that knows no time.
const EPOCH: &str = "1970-01-01T00:00:00Z";

impl Blob {
    pub(crate) fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        Blob { media_type, digest: digest(&bytes), bytes }
    }

    /// How others refer to it.
    pub(crate) fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len()})
    }

    /// Where it is in a layout on disk.
    pub(crate) fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("strings take any text");
    }
    text
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes any bytes");
    encoder.finish().expect("memory takes any bytes")
}

/// What a program needs around it: a user's name, and a place for what is passing.
pub fn surroundings() -> Vec<File> {
    const HOME: &str = "home/nonroot";
    let passwd = format!(
        "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/{HOME}:/sbin/nologin\n"
    );
    let group = format!("root:x:0:\nnonroot:x:{USER}:\n");
    vec![
        File::folder("etc", 0o755),
        File::new("etc/group", 0o644, group.into_bytes()),
        File::new("etc/passwd", 0o644, passwd.into_bytes()),
        File::folder("home", 0o755),
        File { owner: USER, ..File::folder(HOME, 0o700) },
        File::folder("tmp", 0o1777),
    ]
}
