//! JSON patch, merge patch and strategic merge patch.
//!
//! Each takes a document and a decoded patch and gives the patched document; none of them knows
//! what the document means afterwards (decoding, defaults, validation and managed fields are the
//! caller's). Where a patch would make an object deeper than the decoder allows, it is refused.

pub mod json;
pub mod merge;
mod status;
pub mod strategic;

#[cfg(test)]
mod tests;
