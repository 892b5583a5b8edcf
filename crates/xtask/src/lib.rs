//! Chores of this repository. A library, so that an ordinary test can call [`tidy`].

pub mod containerd;
pub mod envtest;
pub mod long;
pub mod oracle;
pub mod record;
pub mod tidy;
pub mod transcripts;
pub mod types;
pub mod upstream;

use std::path::{Path, PathBuf};

/// The root of this repository.
pub fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate lives in crates/").to_owned()
}
