//! An operator as others install it: one file, Kustomize, Helm, OLM.
//!
//! All forms come of one [`Model`]: what the operator's own binary says of itself
//! (`manifests --model`), and what Cargo knows of its crate. Rendering is pure, offline, and gives
//! equal files for equal models; [`folder::write`] puts them into a folder.

mod folder;
pub mod helm;
pub mod kustomize;
pub mod model;
pub mod olm;

use std::collections::BTreeMap;
use std::path::PathBuf;

use kubewright::manifest::{self, Package, Part, RenderError};

pub use self::folder::{FolderError, write};
pub use self::model::{About, Model};

/// What is to be in which file, by paths from a folder.
pub type Files = BTreeMap<PathBuf, String>;

/// Everything in one file, as `kubectl apply -f` takes it.
///
/// # Errors
/// The package contradicts itself.
pub fn yaml(package: &Package) -> Result<String, RenderError> {
    let mut manifests = package.render()?;
    manifests.retain(|manifest| manifest.part != Part::Samples);
    Ok(manifest::stream(package, &manifests))
}
