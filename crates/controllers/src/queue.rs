//! Work on the keys of a queue, several at a time, in one task.

#[cfg(test)]
mod tests;

use futures::future::join_all;
use kubewright::queue::Key;
use tokio_util::sync::CancellationToken;

pub(crate) use kubewright::queue::{Outcome, Queue};

/// Works on keys, at most so many at a time, until `shutdown`. Work under way is then dropped: each
/// request is whole, and whoever starts next finds what is still to do.
pub(crate) async fn work<K, F, W>(
    queue: &Queue<K>,
    at_once: usize,
    shutdown: &CancellationToken,
    work: F,
) where
    K: Key,
    F: Fn(K) -> W,
    W: Future<Output = Outcome>,
{
    let worker = || async {
        while let Some(taken) = queue.take().await {
            let outcome = work(taken.key().clone()).await;
            taken.finish(outcome);
        }
    };
    let workers = join_all(std::iter::repeat_with(worker).take(at_once));
    shutdown.run_until_cancelled(workers).await;
}
