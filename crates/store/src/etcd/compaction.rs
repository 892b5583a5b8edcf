//! Forgetting old revisions, as kube-apiserver does it: etcd keeps every revision until told
//! otherwise. All servers of a cluster, upstream's among them, take turns through one key whose
//! version is their common clock; whoever moves it first compacts, the others note its time.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::client::{CallError, Client};
use super::wire::{
    Compare, PutRequest, RangeRequest, ResponseOp, TxnRequest, TxnResponse, revision,
};

#[cfg(test)]
mod tests;

/// The key that kube-apiserver uses; it lies outside every prefix.
const CLOCK: &[u8] = b"compact_rev_key";

/// Compacts every `interval` to what was current one interval ago. Runs until dropped.
pub(super) async fn run(client: &Client, interval: Duration) {
    let mut turn = Turn::default();
    loop {
        sleep(interval).await;
        match compact(client, turn).await {
            Ok(next) => turn = next,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "etcd was not compacted");
            }
        }
    }
}

/// What one server knows of the common clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Turn {
    /// The version of the clock key when it was last seen.
    version: i64,
    /// The revision of etcd at that time; 0 before the first turn.
    revision: i64,
}

async fn compact(client: &Client, turn: Turn) -> Result<Turn, CallError> {
    let answer = client.txn(turn.request()).await?;
    let (next, compact_to) = turn.advance(answer);
    if let Some(revision) = compact_to {
        match client.compact(revision).await {
            // Somebody compacted further by hand; that is all we wanted.
            Ok(_) | Err(CallError::Compacted) => {
                tracing::debug!(revision, "etcd is compacted");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(next)
}

impl Turn {
    /// Moves the clock if nobody else has moved it since the last turn.
    fn request(self) -> TxnRequest {
        let key = Bytes::from_static(CLOCK);
        let value = Bytes::from(self.revision.to_string());
        TxnRequest {
            compare: vec![Compare::version(key.clone(), self.version)],
            success: vec![PutRequest { key: key.clone(), value, ..PutRequest::default() }.into()],
            failure: vec![RangeRequest { key, ..RangeRequest::default() }.into()],
        }
    }

    /// The next turn, and the revision to compact to if this turn was ours.
    fn advance(self, answer: TxnResponse) -> (Self, Option<i64>) {
        let revision = revision(answer.header.as_ref());
        if answer.succeeded {
            // The very first turn knows no revision that is old enough.
            let compact_to = (self.revision > 0).then_some(self.revision);
            return (Self { version: self.version + 1, revision }, compact_to);
        }
        let clock = answer.responses.into_iter().next().map(ResponseOp::into_kvs);
        let version = clock.and_then(|kvs| Some(kvs.first()?.version)).unwrap_or(0);
        (Self { version, revision }, None)
    }
}
