//! What "compatible" means, executable against any Kubernetes API endpoint.
//!
//! Nothing here knows our server: an endpoint is whatever a kubeconfig names, or a `kube` client
//! that somebody made. [`scenario`] holds the
//! behaviours and [`judge`] runs them; [`record`] asks an endpoint and keeps its answers as fixtures
//! for pure code.

pub mod case;
pub mod crd;
pub mod endpoint;
mod extension;
mod hook;
pub mod judge;
pub mod record;
pub mod scenario;
mod scrub;
pub mod socket;
mod surface;

/// What is wrong in the repository itself, a sentence each: api-surface ids without a scenario or
/// scenarios with an unknown id, and recordings that do not answer their case.
pub fn faults() -> anyhow::Result<Vec<String>> {
    let mut faults = surface::faults(&scenario::every())?;
    faults.extend(record::stale(&root().join("crates/apimachinery/fixtures"))?);
    Ok(faults)
}

/// The root of this repository.
fn root() -> std::path::PathBuf {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(std::path::Path::parent).expect("this crate lives in crates/").to_owned()
}

#[test]
fn scenarios_and_recordings_agree_with_what_is_written() {
    let faults = faults().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
