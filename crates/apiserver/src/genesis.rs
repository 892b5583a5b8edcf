//! What a fresh server creates itself.

pub(crate) mod flow;
