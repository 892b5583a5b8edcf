//! Images as files: an OCI layout in an archive, which says in Docker's words as well what it has.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::index::INDEX;
use super::tar::{self, File};
use super::{Blob, CONFIG, Image, Index, IndexError, LAYER, MANIFEST, Reference, digest};

/// The archive of what is called so. Whoever reads only Docker's words finds the first image in it.
pub fn write(called: &Index, reference: &Reference) -> Vec<u8> {
    let image = &called.images()[0];
    let mut descriptor = match called.images() {
        [image] => image.descriptor(),
        _ => called.root().descriptor(),
    };
    descriptor["annotations"] = json!({
        "io.containerd.image.name": reference.to_string(),
        "org.opencontainers.image.ref.name": reference.tag,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [descriptor],
    });
    let docker = json!([{
        "Config": image.config.path(),
        "RepoTags": [reference.to_string()],
        "Layers": image.layers.iter().map(Blob::path).collect::<Vec<_>>(),
    }]);
    let text = |path: &str, value: &Value| File::new(path, 0o644, value.to_string().into_bytes());
    let mut files = vec![
        text("oci-layout", &json!({"imageLayoutVersion": "1.0.0"})),
        text("index.json", &index),
        text("manifest.json", &docker),
        File::folder("blobs", 0o755),
        File::folder("blobs/sha256", 0o755),
    ];
    // Layers of equal bytes are one blob.
    let blobs = called.blobs().chain(called.manifests()).chain([called.root()]);
    let blobs: BTreeMap<_, _> = blobs.map(|blob| (blob.path(), blob)).collect();
    files.extend(blobs.iter().map(|(path, blob)| File::new(path, 0o644, blob.bytes.clone())));
    tar::archive(&files)
}

/// Why an archive is no image.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is no archive: {0}")]
    Format(&'static str),
    #[error("it has no {0}, as images in the OCI layout have")]
    Missing(String),
    #[error("read {path}: {problem}")]
    Document { path: String, problem: String },
    #[error("{path} has other bytes than its name says: it is damaged")]
    Damaged { path: String },
    #[error("its list of images is of no use")]
    Index(#[from] IndexError),
}

/// What is in an archive, and what it is called there.
///
/// # Errors
/// It is no archive of an image, or it is damaged.
pub fn read(bytes: &[u8]) -> Result<(Index, Option<String>), ArchiveError> {
    let files = entries(bytes)?;
    let file =
        |path: &str| files.get(path).copied().ok_or_else(|| ArchiveError::Missing(path.to_owned()));
    let document = |path: &str| {
        serde_json::from_slice::<Value>(file(path)?).map_err(|error| ArchiveError::Document {
            path: path.to_owned(),
            problem: error.to_string(),
        })
    };
    let blob = |descriptor: &Value, media_type: &'static str| {
        let name = descriptor["digest"].as_str().unwrap_or_default();
        let path = format!("blobs/{}", name.replace(':', "/"));
        let bytes = file(&path)?.to_vec();
        match digest(&bytes) == name {
            true => Ok(Blob { media_type, digest: name.to_owned(), bytes }),
            false => Err(ArchiveError::Damaged { path }),
        }
    };
    let parsed = |blob: &Blob| {
        serde_json::from_slice::<Value>(&blob.bytes).map_err(|error| ArchiveError::Document {
            path: blob.path(),
            problem: error.to_string(),
        })
    };
    let image = |descriptor: &Value| {
        let manifest = blob(descriptor, MANIFEST)?;
        let described = parsed(&manifest)?;
        if described["mediaType"] != MANIFEST {
            let problem = format!("is of {}, not of {MANIFEST}", described["mediaType"]);
            return Err(ArchiveError::Document { path: manifest.path(), problem });
        }
        let layers = described["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let architecture = descriptor["platform"]["architecture"].as_str().unwrap_or_default();
        Ok(Image {
            architecture: architecture.to_owned(),
            config: blob(&described["config"], CONFIG)?,
            layers: layers.iter().map(|layer| blob(layer, LAYER)).collect::<Result<_, _>>()?,
            manifest,
        })
    };
    let index = document("index.json")?;
    let root = &index["manifests"][0];
    let images = match root["mediaType"] == INDEX {
        true => {
            let list = parsed(&blob(root, INDEX)?)?;
            let manifests = list["manifests"].as_array().map(Vec::as_slice).unwrap_or_default();
            manifests.iter().map(image).collect::<Result<_, _>>()?
        }
        false => vec![image(root)?],
    };
    let name = root["annotations"]["io.containerd.image.name"].as_str();
    Ok((Index::of(images)?, name.map(str::to_owned)))
}

/// The files of an archive, by path.
fn entries(bytes: &[u8]) -> Result<BTreeMap<String, &[u8]>, ArchiveError> {
    const BLOCK: usize = 512;
    let mut files = BTreeMap::new();
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + BLOCK) {
        if header.iter().all(|&byte| byte == 0) {
            break;
        }
        if &header[257..262] != b"ustar" {
            return Err(ArchiveError::Format("a header is not of the form ustar"));
        }
        let text = |range: std::ops::Range<usize>| {
            let field = &header[range];
            let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        let size = usize::from_str_radix(text(124..136).trim(), 8)
            .map_err(|_| ArchiveError::Format("a size is no number"))?;
        let body = bytes
            .get(at + BLOCK..)
            .and_then(|rest| rest.get(..size))
            .ok_or(ArchiveError::Format("it ends too early"))?;
        files.insert(text(0..100).trim_start_matches("./").to_owned(), body);
        at += BLOCK + size.next_multiple_of(BLOCK);
    }
    Ok(files)
}
