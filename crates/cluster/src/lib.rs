//! Which parts a cluster has, and when they start and end.
//!
//! [`Cluster`] is a whole cluster in this process: a store, a server, and a listener if wanted.
//! [`run`](mod@run) makes a named one of it, which others on this machine can find: it has a directory, a
//! record, a control socket, and entries in the user's kubeconfig.
//!
//! This is the only crate that asks the machine for the time.

mod authority;
mod clock;
mod cluster;
pub mod control;
pub mod drop_in;
pub mod home;
pub mod join;
mod key;
pub mod kubeconfig;
mod nodes;
mod pki;
mod process;
mod roots;
pub mod run;

pub use authority::Pair;
pub use clock::Clock;
pub use cluster::{Cluster, Config, Credentials, FrontProxy, Listen, StartError, Storage, Terms};
pub use kubewright_apiserver::audit;
pub use kubewright_controllers::{NAMES, Names};
pub use kubewright_node::runtime::{Stage, StagesError, load_images, parse_stages, shim};
pub use kubewright_scheduler::{Config as SchedulerConfig, ConfigError as SchedulerConfigError};
pub use kubewright_store::etcd;
pub use nodes::{Nodes, NodesError, Runtime};
pub use pki::Pki;
pub use process::Signals;
