//! The API by example. Each module is one thing that programs do with a cluster, short enough to be
//! read in one go; the tests run every one of them.

pub mod custom;
pub mod find;
pub mod pod;
pub mod shared;
pub mod watch;
