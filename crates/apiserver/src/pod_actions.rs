//! What can be done to a pod besides changing it: it is bound to a node, or asked to leave one.
//!
//! Either is told by an object that plugins see like any other, and that is never stored.

mod binding;
mod eviction;

#[cfg(test)]
mod tests;

pub(crate) use binding::bind;
pub(crate) use eviction::evict;
