//! The protocol of the store, as `proto/petstore.proto` has it.

pub use self::generated::*;

/// The same for tools that ask the server which services it has.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "the generator knows no other, and gives no reasons"
)]
mod generated {
    tonic::include_proto!("petstore.v1");
}
