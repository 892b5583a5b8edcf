//! Which member of a ring a key belongs to.

use std::collections::BTreeSet;

/// The members of a ring, by name.
pub(super) type Members = BTreeSet<String>;

/// The member that a key belongs to; none if there are no members.
///
/// Rendezvous hashing: each member draws a number for the key, and the highest wins. A member that
/// goes takes only its own keys with it, one that comes takes an equal part from each. All replicas
/// must draw the same, so the hash is written down here.
pub(super) fn owner<'a>(members: &'a Members, key: &str) -> Option<&'a str> {
    members.iter().map(String::as_str).max_by_key(|member| (draw(member, key), *member))
}

/// FNV-1a, and the end of splitmix64, since numbers that are close would follow names that are.
fn draw(member: &str, key: &str) -> u64 {
    let bytes = member.bytes().chain([0]).chain(key.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
