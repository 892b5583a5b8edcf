//! Which objects a request or another object means: by label, or by field.

pub mod field;
pub mod label;

#[cfg(test)]
mod tests;
