//! What a Kubernetes object is and how it may change.
//!
//! Everything here is a function from values to values: no IO, no clock, no tasks. Where a rule
//! is upstream's, the tests hold answers recorded from upstream's own binaries.

pub mod apply;
pub mod builtin;
pub mod cel;
pub mod conversion;
pub mod cron;
pub mod field;
pub mod gvk;
pub mod image;
pub mod int_or_string;
pub mod json;
pub mod jsonpath;
pub mod name;
pub mod patch;
pub mod proto;
pub mod quantity;
pub mod quota;
pub mod regex;
pub mod resources;
pub mod schema;
pub mod selector;
pub mod status;
pub mod table;
pub mod time;
pub mod yaml;

#[cfg(test)]
mod fixtures;

#[cfg(test)]
mod oracle;
