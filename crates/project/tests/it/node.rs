//! What is done about objects of the kind `Node` of the group `core`, which is defined
//! elsewhere.

pub mod controller;
pub mod defaulting;
pub mod validation;

pub use k8s_openapi::api::core::v1::Node;
