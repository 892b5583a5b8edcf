use std::future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// Works on the keys of `queue` until `enough` were worked on; says which, in order.
async fn worked(queue: &Queue<&'static str>, enough: usize, outcome: Outcome) -> Vec<&'static str> {
    let shutdown = CancellationToken::new();
    let done = Mutex::new(Vec::new());
    let count = AtomicUsize::new(0);
    work(queue, 1, &shutdown, |key| {
        done.lock().expect("nobody panics").push(key);
        if count.fetch_add(1, Ordering::Relaxed) + 1 == enough {
            shutdown.cancel();
        }
        future::ready(outcome)
    })
    .await;
    done.into_inner().expect("nobody panics")
}

#[tokio::test]
async fn a_key_waits_once() {
    let queue = Queue::new();
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    assert_eq!(worked(&queue, 2, Outcome::Done).await, ["a", "b"]);
}

#[tokio::test]
async fn what_is_added_during_its_work_is_worked_on_again() {
    let queue = Queue::new();
    let shutdown = CancellationToken::new();
    let count = AtomicUsize::new(0);
    queue.add("a");
    work(&queue, 4, &shutdown, |key| {
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => queue.add(key),
            _ => shutdown.cancel(),
        }
        future::ready(Outcome::Done)
    })
    .await;
    assert_eq!(count.into_inner(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_pause_grows_with_each_failure() {
    let queue = Queue::new();
    queue.add("a");
    let start = Instant::now();
    assert_eq!(worked(&queue, 4, Outcome::Failed).await, ["a"; 4]);
    // 5 + 10 + 20
    assert_eq!(start.elapsed(), Duration::from_millis(35));
}

#[tokio::test(start_paused = true)]
async fn a_key_can_be_put_off() {
    let queue = Queue::new();
    queue.add("a");
    let start = Instant::now();
    worked(&queue, 2, Outcome::After(Duration::from_secs(7))).await;
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}
