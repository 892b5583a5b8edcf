//! Who stands for election.

use uuid::Uuid;

/// A name that no other process has: `<host name>_<uuid>`, as Go's operators call themselves.
///
/// In a pod the name of the host is the name of the pod, so people see who leads.
pub fn identity() -> String {
    let system = rustix::system::uname();
    format!("{}_{}", system.nodename().to_string_lossy(), Uuid::new_v4())
}
