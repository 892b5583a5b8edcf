//! What etcd's revision is now, asked once for all who want to know.
//!
//! A reader that must see every finished write needs a revision that etcd, by consensus, names after
//! the reader came. So a question that is already on its way is of no use to it, but one question
//! answers all readers that came before it was sent.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore};

use super::client::{CallError, Client};
use super::wire::{RangeRequest, revision};

/// The question that the next reader joins.
pub(super) struct Freshness {
    next: Mutex<Arc<Question>>,
    /// One question is on its way at a time; meanwhile the next one gathers readers.
    turnstile: Semaphore,
}

/// Answered once, for everybody who holds it. If the reader who asks goes away, another one asks.
type Question = OnceCell<Result<i64, Arc<CallError>>>;

impl Freshness {
    pub(super) fn new() -> Self {
        Self { next: Mutex::default(), turnstile: Semaphore::new(1) }
    }

    /// A revision that is not older than any write finished before this call. `key` is read, and may
    /// well not exist.
    pub(super) async fn revision(
        &self,
        client: &Client,
        key: &Bytes,
    ) -> Result<i64, Arc<CallError>> {
        let question = Arc::clone(&self.next.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = question.get_or_init(|| async {
            let _turn = self.turnstile.acquire().await.expect("it is never closed");
            self.close(&question);
            // A linearizable read, etcd's default; what it finds does not matter.
            let request =
                RangeRequest { key: key.clone(), keys_only: true, ..RangeRequest::default() };
            let answer = client.range(request).await.map_err(Arc::new)?;
            Ok(revision(answer.header.as_ref()))
        });
        answer.await.clone()
    }

    /// Nobody joins `question` from now on.
    fn close(&self, question: &Arc<Question>) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&next, question) {
            *next = Arc::default();
        }
    }
}
