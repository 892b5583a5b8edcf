//! A store of pets, and the operator that keeps the pets of a cluster in it.
//!
//! [`service`] is the store: a gRPC server with data of its own, which knows nothing of clusters.
//! [`pet`] is the custom resource, and [`keeper`] the operator that brings the two together.

pub mod keeper;
pub mod pet;
pub mod proto;
pub mod service;

/// What to try it with, each as YAML.
pub const SAMPLES: [&str; 2] =
    [include_str!("../samples/pet-sample1.yaml"), include_str!("../samples/pet-sample2.yaml")];
