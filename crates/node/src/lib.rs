//! Makes the pods that are bound to a node run, and reports it: what kubelet does.
//!
//! An agent plays one node or a thousand, with one watch on pods. `pod` is the life of a pod as a
//! state machine; a [`runtime`] is what runs containers; `node` is what the API shows of the node
//! itself, kept alive by `heartbeat`. The API is known only through [`kube::Client`], so an agent
//! joins any cluster.

mod agent;
mod balancer;
mod dns;
mod environment;
mod heartbeat;
// It needs the kernel's own ways of changing its interfaces.
#[cfg(target_os = "linux")]
mod local;
#[cfg(not(target_os = "linux"))]
#[path = "local_disabled.rs"]
mod local;
pub mod metrics;
mod node;
mod patch;
mod pod;
mod probe;
pub mod runtime;
mod server;
mod spdy;
mod sysctl;
mod tls;
// Only runtimes of Linux fill volumes, by the kernel's own ways of mounting and not following links.
#[cfg(target_os = "linux")]
mod volume;

pub use agent::{Config, run};
pub use balancer::{BalancerConfig, balance, withdraw_ingresses};
pub use dns::Dns;
pub use local::LocalAddresses;
pub use node::Machine;
pub use server::{ServeError, Server, ServerConfig};
