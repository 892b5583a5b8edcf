//! What an image's name leads to: the image, or a list of images, one for each machine.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Blob, Image};

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The images that are called the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    images: Vec<Image>,
    /// None where there is one image.
    list: Option<Blob>,
}

/// Why images cannot be called the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("there is no image")]
    Empty,
    #[error("two programs are for {0}, and an image has one for each machine: leave one out")]
    Twice(String),
}

impl Index {
    /// One image is what its name leads to; of several, a list of them is. In which order they are
    /// given does not matter.
    ///
    /// # Errors
    /// There is none, or two are for the same machine.
    pub fn of(mut images: Vec<Image>) -> Result<Self, IndexError> {
        images.sort_by(|a, b| a.architecture.cmp(&b.architecture));
        if let Some(pair) = images.windows(2).find(|it| it[0].architecture == it[1].architecture) {
            return Err(IndexError::Twice(pair[0].architecture.clone()));
        }
        let list = match images.as_slice() {
            [] => return Err(IndexError::Empty),
            [_] => None,
            several => {
                let manifests: Vec<_> = several.iter().map(Image::descriptor).collect();
                let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
                Some(Blob::new(INDEX, list.to_string().into_bytes()))
            }
        };
        Ok(Index { images, list })
    }

    /// By architecture.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// What the name leads to.
    pub fn root(&self) -> &Blob {
        self.list.as_ref().unwrap_or(&self.images[0].manifest)
    }

    /// All that manifests speak of, once each, in the order in which registries want it.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        let mut seen = BTreeSet::new();
        self.images.iter().flat_map(Image::blobs).filter(move |it| seen.insert(&it.digest))
    }

    /// What the list speaks of; nothing where there is no list.
    pub fn manifests(&self) -> impl Iterator<Item = &Blob> {
        self.images.iter().map(|image| &image.manifest).filter(|_| self.list.is_some())
    }
}
