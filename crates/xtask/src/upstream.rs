//! Upstream Kubernetes and etcd as real binaries: built once per machine, run at will.
//!
//! They are the judge of everything we build. Nothing else in the repository needs Go.

mod assets;
mod authority;
pub(crate) mod process;
mod run;

pub use self::assets::{build, compile};
pub use self::process::exec_with_parent;
pub use self::run::run;

/// The Kubernetes that we behave as.
pub const VERSION: &str = "v1.36.4";

/// What may run beside etcd and kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Extra {
    ControllerManager,
    /// The controller manager with only those controllers that keep the API itself in order:
    /// workloads stay as they were written.
    Housekeeping,
    Scheduler,
}
