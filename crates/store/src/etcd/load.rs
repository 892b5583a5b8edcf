//! Everything under a prefix at one revision, in pages that stay small however large the values are.

use bytes::Bytes;

use super::client::{CallError, Client};
use super::wire::{KeyValue, RangeRequest, key_after, prefix_end, revision};

#[cfg(test)]
mod tests;

/// The state of a prefix at `revision`, in key order.
pub(super) struct Loaded {
    pub(super) cluster: u64,
    pub(super) revision: i64,
    pub(super) kvs: Vec<KeyValue>,
}

/// A page is sized to need about this many bytes, whatever the objects weigh.
const PAGE_BYTES: usize = 8 << 20;
const PAGE_KEYS_FIRST: usize = 500;
const PAGE_KEYS_MAX: usize = 10_000;

/// Reads page after page at the revision of the first. When that revision is compacted under way, the
/// load starts over, since pages of two revisions never make one state.
pub(super) async fn load(client: &Client, prefix: &Bytes) -> Result<Loaded, CallError> {
    loop {
        match load_once(client, prefix).await {
            Err(CallError::Compacted) => {
                tracing::warn!("etcd was compacted during the load, which starts over");
            }
            result => return result,
        }
    }
}

async fn load_once(client: &Client, prefix: &Bytes) -> Result<Loaded, CallError> {
    let mut request = RangeRequest {
        key: prefix.clone(),
        range_end: prefix_end(prefix),
        ..RangeRequest::default()
    };
    let mut loaded = Loaded { cluster: 0, revision: 0, kvs: Vec::new() };
    let mut limit = PAGE_KEYS_FIRST;
    loop {
        request.limit = limit as i64;
        request.revision = loaded.revision;
        let page = client.range(request.clone()).await?;
        if loaded.revision == 0 {
            loaded.revision = revision(page.header.as_ref());
            loaded.cluster = page.header.map_or(0, |header| header.cluster_id);
            loaded.kvs.reserve_exact(usize::try_from(page.count).unwrap_or(0));
        }
        let bytes = page.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
        limit = limit_next(page.kvs.len(), bytes);
        let last = page.kvs.last().map(|kv| key_after(&kv.key));
        loaded.kvs.extend(page.kvs);
        match last {
            Some(next) if page.more => request.key = next,
            _ => return Ok(loaded),
        }
    }
}

/// How many keys to ask for after a page of `keys` that weighed `bytes`.
fn limit_next(keys: usize, bytes: usize) -> usize {
    let weight = (bytes / keys.max(1)).max(1);
    (PAGE_BYTES / weight).clamp(1, PAGE_KEYS_MAX)
}
