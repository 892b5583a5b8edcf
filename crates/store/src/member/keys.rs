//! Keys and values as etcd has them, in a store that knows neither versions nor leases: both
//! travel in front of the value.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::etcd::wire::KeyValue;
use crate::{Key, Rev};

/// What etcd knows of a value besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Meta {
    /// How often the key was written since it came to be.
    pub(super) version: i64,
    /// 0 for none.
    pub(super) lease: i64,
    /// How long that lease was granted for. Leases are found by their keys after a restart.
    pub(super) lease_seconds: i64,
}

/// A range of keys, by bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    start: Bytes,
    end: End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// One key and no other.
    Only,
    Below(Bytes),
    Never,
}

const META_BYTES: usize = 24;

pub(super) fn extract(_key: &Key, stored: &Bytes) -> Meta {
    let number = |at: usize| {
        let bytes = stored.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, i64::from_be_bytes)
    };
    Meta { version: number(0), lease: number(8), lease_seconds: number(16) }
}

pub(super) fn stored(meta: Meta, value: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(META_BYTES + value.len());
    bytes.put_i64(meta.version);
    bytes.put_i64(meta.lease);
    bytes.put_i64(meta.lease_seconds);
    bytes.put_slice(value);
    bytes.freeze()
}

pub(super) fn value(rev: &Rev<Meta>) -> &[u8] {
    rev.value.get(META_BYTES..).unwrap_or_default()
}

pub(super) fn key_value(rev: &Rev<Meta>) -> KeyValue {
    KeyValue { value: value(rev).to_vec(), ..key_only(rev) }
}

pub(super) fn key_only(rev: &Rev<Meta>) -> KeyValue {
    KeyValue {
        key: rev.key.as_str().as_bytes().to_vec(),
        create_revision: rev.created.get(),
        mod_revision: rev.revision.get(),
        version: rev.extracted.version,
        value: Vec::new(),
        lease: rev.extracted.lease,
    }
}

pub(super) fn key_values(revs: &[Arc<Rev<Meta>>]) -> Vec<KeyValue> {
    revs.iter().map(|rev| key_value(rev)).collect()
}

impl Span {
    /// As requests give it: no end is one key, and an end of a single zero byte is none at all.
    pub(super) fn new(key: Bytes, range_end: Bytes) -> Self {
        let end = match &*range_end {
            [] => End::Only,
            [0] => End::Never,
            _ => End::Below(range_end),
        };
        // A single zero byte is also the first key there could be.
        let start = if end != End::Only && *key == [0] { Bytes::new() } else { key };
        Span { start, end }
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        match &self.end {
            End::Only => key == &*self.start,
            End::Never => key >= &*self.start,
            End::Below(end) => key >= &*self.start && key < &**end,
        }
    }

    /// From where to where, the end excluded; `None` for all that follow.
    pub(super) fn bounds(&self) -> (&[u8], Option<Bytes>) {
        let end = match &self.end {
            End::Only => Some(crate::etcd::wire::key_after(&self.start)),
            End::Never => None,
            End::Below(end) => Some(end.clone()),
        };
        (&self.start, end)
    }

    /// What all its keys begin with.
    pub(super) fn prefix(&self) -> &str {
        let common = match &self.end {
            End::Only => self.start.len(),
            End::Never => 0,
            End::Below(end) => {
                self.start.iter().zip(end.iter()).take_while(|(start, end)| start == end).count()
            }
        };
        let bytes = &self.start[..common];
        match str::from_utf8(bytes) {
            Ok(prefix) => prefix,
            Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// The key, if it is one and text.
    pub(super) fn only(&self) -> Option<&str> {
        match self.end {
            End::Only => str::from_utf8(&self.start).ok(),
            _ => None,
        }
    }
}
