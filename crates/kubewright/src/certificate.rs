//! Certificates: made here and kept in a Secret, or brought by somebody else.
//!
//! [`Current`] is what servers show, whoever brings it. A [`Directory`] is where others put
//! certificates, such as cert-manager through a mounted Secret. [`SelfMade`] makes an authority and
//! certificates of it, keeps them in a Secret that all replicas share, replaces them in time, and
//! tells the API server whom to believe. [`Authority`] is what both are made of.

mod authority;
mod current;
mod directory;
mod inject;
mod kept;
mod key;
mod self_made;
#[cfg(test)]
mod tests;

pub use self::authority::{Authority, IssueError, Pair};
pub use self::current::{Current, PairError, anyone};
pub use self::directory::{Directory, Metrics, ReadError};
pub use self::inject::{InjectError, Targets};
pub use self::kept::{Kept, Lifetimes, Wanted, plan};
pub use self::self_made::{KeepError, SelfMade};

pub(crate) use self::current::HTTP2;
