//! Build Kubernetes operators.
//!
//! An author writes a [`Reconciler`], declares a [`Controller`] and makes an [`Operator`] of it.
//! Below that are layers, each of use alone: a [`queue`] of keys that wait for work, [`informer`]s
//! that know the objects of a kind, a [`cache`] that shares them, and a [`control_loop`] that brings
//! all together.

pub mod access;
mod apply;
mod backoff;
pub mod cache;
pub mod certificate;
mod chain;
mod clock;
pub mod condition;
pub mod connect;
pub mod context;
pub mod control_loop;
pub mod controller;
mod coordination;
pub mod crd;
mod difference;
pub mod election;
mod endpoint;
pub mod event;
pub mod informer;
mod key;
pub mod logging;
pub mod manifest;
pub mod metrics;
pub mod operator;
mod panics;
pub mod placement;
pub mod predicate;
pub mod queue;
mod random;
pub mod reconcile;
pub mod serve;
pub mod settings;
pub mod shard;
mod trail;
pub mod webhook;

pub use cache::Cache;
pub use clock::Clock;
pub use context::Context;
pub use control_loop::ControlLoop;
pub use controller::{Controller, Reconciler};
pub use coordination::Coordination;
pub use event::Event;
pub use key::ObjectKey;
pub use operator::Operator;
pub use reconcile::{Action, Error, Request};

/// What the first page shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
