//! From a request to a stored revision and back.

pub mod kinds;
pub mod target;
pub mod user;

#[cfg(test)]
#[path = "../../apimachinery/src/fixtures.rs"]
mod fixtures;
