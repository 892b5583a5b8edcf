//! The pet store as others see it, and its operator in a cluster.

mod keeper;
mod service;
mod shop;
mod versions;
