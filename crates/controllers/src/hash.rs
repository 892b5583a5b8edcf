//! The hashes by which upstream tells templates and revisions apart, to the last bit: objects that
//! were made by either are known by the other.
//!
//! A template's hash is of the text that Go's dump of it would be, so that text is made here, by a
//! table of Go's structs.

mod dump;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// The value of the label `pod-template-hash`. A count of collisions makes it another.
pub(crate) fn template(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut hash = Fnv::OFFSET;
    hash.write_a(dump::pod_template(template).as_bytes());
    if let Some(collisions) = collisions {
        hash.write_a(&i64::from(collisions).to_le_bytes());
    }
    hash.encode()
}

/// The value of the label `controller-revision-hash`, and the end of a revision's name.
pub(crate) fn revision(data: &[u8], collisions: Option<i32>) -> String {
    let mut hash = Fnv::OFFSET;
    hash.write(data);
    if let Some(collisions) = collisions {
        hash.write(collisions.to_string().as_bytes());
    }
    hash.encode()
}

/// Fowler, Noll and Vo's hash in 32 bits.
struct Fnv(u32);

impl Fnv {
    const OFFSET: Fnv = Fnv(0x811c_9dc5);
    const PRIME: u32 = 0x0100_0193;

    /// FNV-1.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(Self::PRIME) ^ u32::from(*byte);
        }
    }

    /// FNV-1a, which does the same two things the other way round.
    fn write_a(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// In letters and digits that make no words.
    fn encode(&self) -> String {
        const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let safe = |digit: u8| char::from(SAFE[usize::from(digit) % SAFE.len()]);
        self.0.to_string().bytes().map(safe).collect()
    }
}
