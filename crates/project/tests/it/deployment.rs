//! What is done about objects of the kind `Deployment` of the group `apps`, which is defined
//! elsewhere.

pub mod controller;
pub mod defaulting;
pub mod validation;

pub use k8s_openapi::api::apps::v1::Deployment;
