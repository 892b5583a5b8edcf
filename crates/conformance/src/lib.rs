//! What "compatible" means, executable against any Kubernetes API endpoint.
//!
//! Nothing here knows our server: an endpoint is whatever a kubeconfig names. [`record`] asks an
//! endpoint and keeps its answers as fixtures for pure code.

pub mod case;
pub mod endpoint;
pub mod record;
mod scrub;
