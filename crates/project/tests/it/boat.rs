//! What is done about objects of the kind `Boat` of the group `example.com`, which is defined
//! elsewhere.

pub mod controller;
pub mod defaulting;
pub mod validation;

pub use crate::import::imported::boat::Boat;
