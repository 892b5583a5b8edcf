//! From a request to a stored revision and back.

pub mod allocate;
pub mod authn;
pub mod authz;
pub mod body;
pub mod bootstrap;
pub mod catalog;
pub mod discovery;
pub mod document;
pub mod edge;
pub mod encode;
pub mod genesis;
pub mod index;
pub mod kinds;
pub mod negotiate;
pub mod openapi;
pub mod resource;
pub mod review;
pub mod target;
pub mod user;
pub mod version;

#[cfg(test)]
#[path = "../../apimachinery/src/fixtures.rs"]
mod fixtures;

#[cfg(test)]
mod sample;
