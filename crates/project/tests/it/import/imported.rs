//! Generated modules, as they are generated.

#[rustfmt::skip]
pub mod boat;
#[rustfmt::skip]
pub mod harbor;
#[rustfmt::skip]
pub mod option;
#[rustfmt::skip]
pub mod zoo;
