//! Build Kubernetes operators.
//!
//! Layers, each of use alone: a [`queue`] of keys that wait for work, [`informer`]s that know the
//! objects of a kind, and a [`controller`] that brings both together.

pub mod access;
mod backoff;
mod clock;
pub mod controller;
pub mod informer;
mod key;
pub mod manifest;
pub mod predicate;
pub mod queue;
mod random;
pub mod reconcile;

pub use clock::Clock;
pub use controller::Controller;
pub use key::ObjectKey;
pub use reconcile::{Action, Error, Request};
