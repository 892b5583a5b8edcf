//! The life of a pod on its node, as a state machine.
//!
//! [`Life`] is what is known; [`plan`] says what to do about it, and when to look again; what became
//! of the doing is told to `Life`. Before all, [`admit`] says whether it is taken, and [`resize`] whose turn it is to have more. [`status`] is what the API is to show. All of that is pure: time
//! is an argument. [`Worker`](worker::Worker) is the loop that does it.

pub(crate) mod admit;
mod backoff;
mod hook;
mod life;
mod log;
mod notice;
mod plan;
mod probing;
pub(crate) mod resize;
mod restart;
mod status;
#[cfg(test)]
mod tests;
pub(crate) mod worker;

pub(crate) use self::log::run_of;
pub(crate) use self::notice::{pause, reference};
pub(crate) use self::status::{CONDITIONS, Host};
