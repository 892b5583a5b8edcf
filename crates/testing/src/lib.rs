//! A Kubernetes cluster inside a test.
//!
//! [`Cluster`] is a whole API server with working controllers, in memory and without a socket. It
//! starts in milliseconds, so every test has its own. Under tokio's paused clock its time is
//! virtual: a day passes as soon as everybody waits for it. [`Faults`] makes its clients' life hard.
//! The same tests run on a cluster that is there already: see [`on_cluster`].

mod cluster;
mod eventually;
mod faults;
mod line;
mod log;
mod nodes;
mod outside;
mod remote;
mod running;
#[cfg(test)]
mod tests;
mod yaml;

pub use cluster::{Cluster, on_cluster};
pub use faults::{Faults, Held};
pub use line::Line;
pub use log::Log;
pub use running::Running;
pub use yaml::yaml;
