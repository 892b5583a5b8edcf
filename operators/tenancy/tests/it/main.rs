//! The operator on a cluster, ours or one that is there already, beside services that fail whenever
//! it hurts.

mod billing;
mod furnishing;
mod judging;
mod office;
mod site;
