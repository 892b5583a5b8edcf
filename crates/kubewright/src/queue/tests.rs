use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn cause(object: &str, revision: &str) -> Cause {
    Cause { source: "watch Pod".into(), object: object.into(), revision: revision.into() }
}

/// Takes what is ready now and is done with it; says what, in order.
fn drain(queue: &Queue<&'static str>) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Some(work) = take(queue) {
        keys.push(*work.key());
        work.finish(Outcome::Done);
    }
    keys
}

/// The next key, if one is ready.
fn take<'q>(queue: &'q Queue<&'static str>) -> Option<Work<'q, &'static str>> {
    queue.take().now_or_never().flatten()
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_once() {
    let queue = Queue::new();
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_added_during_its_work_waits_for_its_end() {
    let queue = Queue::new();
    queue.add("a");
    let work = take(&queue).expect("it is ready");
    queue.add("a");
    assert!(take(&queue).is_none());
    work.finish(Outcome::Done);
    assert_eq!(drain(&queue), ["a"]);
    assert_eq!(drain(&queue), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn more_important_keys_come_first_and_equal_ones_in_their_order() {
    let queue = Queue::new();
    for (key, priority) in [("c", -100), ("a", 5), ("d", -100), ("b", 5)] {
        queue.add_with(key, Add::default().priority(priority));
    }
    assert_eq!(drain(&queue), ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_adds_the_higher_priority_and_the_shorter_pause_count() {
    let queue = Queue::new();
    queue.add_with("low", Add::default().priority(-1));
    queue.add_with("a", Add::default().priority(-100).after(seconds(5)));
    queue.add_with("a", Add::default().priority(-200).after(seconds(50)));
    queue.add_with("a", Add::default().priority(7).after(seconds(10)));
    tokio::time::advance(seconds(4)).await;
    assert_eq!(drain(&queue), ["low"]);
    queue.add_with("low", Add::default().priority(-1));
    tokio::time::advance(seconds(1)).await;
    assert_eq!(drain(&queue), ["a", "low"]);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_pause_does_not_lower_a_priority() {
    let queue = Queue::new();
    queue.add_with("a", Add::default().priority(7).after(seconds(10)));
    queue.add_with("b", Add::default());
    queue.add_with("a", Add::default().priority(-100));
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[test]
fn pauses_double_from_5_milliseconds_to_1000_seconds() {
    let pause = |failures| Pauses::default().after(failures);
    assert_eq!(pause(0), Duration::from_millis(5));
    assert_eq!(pause(1), Duration::from_millis(10));
    assert_eq!(pause(17), Duration::from_millis(5 << 17));
    assert_eq!(pause(18), seconds(1000));
    assert_eq!(pause(u32::MAX), seconds(1000));
    let pause = |failures| Pauses { min: seconds(1), max: seconds(300) }.after(failures);
    assert_eq!([0, 1, 8, 9, u32::MAX].map(pause), [1, 2, 256, 300, 300].map(seconds));
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_lengthen_the_pause_and_success_resets_it() {
    let queue = Queue::new();
    let start = Instant::now();
    queue.add("a");
    for outcome in [Outcome::Failed, Outcome::Again, Outcome::Failed, Outcome::Done] {
        queue.take().await.expect("it is open").finish(outcome);
    }
    assert_eq!(start.elapsed(), Duration::from_millis(5 + 10 + 20));
    queue.add("a");
    let work = queue.take().await.expect("it is open");
    assert_eq!(work.failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_brings_a_failed_key_back_at_once_and_does_not_count_as_a_failure() {
    let queue = Queue::new();
    queue.add("a");
    queue.take().await.expect("it is open").finish(Outcome::Failed);
    queue.add("a");
    let work = take(&queue).expect("it is ready");
    assert_eq!(work.failures(), 1);
    work.finish(Outcome::Failed);
    let start = Instant::now();
    drop(queue.take().await);
    assert_eq!(start.elapsed(), Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_later_keeps_its_priority() {
    let queue = Queue::new();
    queue.add_with("a", Add::default().priority(3));
    take(&queue).expect("it is ready").finish(Outcome::After(seconds(60)));
    assert!(take(&queue).is_none());
    tokio::time::advance(seconds(60)).await;
    queue.add("b");
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_can_wait_for_ever_and_others_go_on() {
    let queue = Queue::new();
    queue.add("a");
    take(&queue).expect("it is ready").finish(Outcome::After(Duration::MAX));
    queue.add_with("b", Add::default().after(Duration::MAX));
    tokio::time::advance(seconds(1_000_000)).await;
    assert_eq!(drain(&queue), [""; 0]);
    queue.add("c");
    queue.add("a");
    assert_eq!(drain(&queue), ["a", "c"]);
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_given_up_has_failed() {
    let queue = Queue::new();
    queue.add("a");
    drop(take(&queue));
    let work = queue.take().await.expect("it is open");
    assert_eq!((*work.key(), work.failures()), ("a", 1));
}

#[tokio::test(start_paused = true)]
async fn causes_are_kept_until_the_work_is_done() {
    let queue = Queue::new();
    queue.add_with("a", Add::default().because(cause("ns/x", "1")));
    queue.add_with("a", Add::default().because(cause("ns/y", "2")));
    queue.add_with("a", Add::default().because(cause("ns/x", "3")));
    let work = take(&queue).expect("it is ready");
    assert_eq!(work.causes().to_string(), "watch Pod ns/x@3, watch Pod ns/y@2");
    work.finish(Outcome::Failed);
    let work = queue.take().await.expect("it is open");
    assert_eq!(work.causes().iter().count(), 2);
    work.finish(Outcome::Done);
    queue.add("a");
    assert_eq!(take(&queue).expect("it is ready").causes(), &Causes::default());
}

#[tokio::test(start_paused = true)]
async fn many_causes_are_counted_only() {
    let queue = Queue::new();
    for number in 0..10 {
        queue.add_with("a", Add::default().because(cause(&format!("ns/{number}"), "1")));
    }
    let work = take(&queue).expect("it is ready");
    assert_eq!((work.causes().iter().count(), work.causes().more()), (8, 2));
}

#[tokio::test(start_paused = true)]
async fn every_worker_hears_that_the_queue_is_closed() {
    let queue = Queue::<&str>::new();
    let workers = futures::future::join_all((0..3).map(|_| queue.take()));
    let closing = async {
        tokio::task::yield_now().await;
        queue.close();
    };
    let (ended, ()) = tokio::join!(workers, closing);
    assert!(ended.iter().all(Option::is_none));
}

#[tokio::test(start_paused = true)]
async fn idle_workers_share_what_comes_at_once() {
    let queue = Queue::new();
    let workers = futures::future::join_all((0..3).map(|_| queue.take()));
    let adding = async {
        tokio::task::yield_now().await;
        for key in ["a", "b", "c"] {
            queue.add(key);
        }
    };
    let (mut taken, ()) = tokio::join!(workers, adding);
    let mut keys: Vec<_> = taken.iter().flatten().map(|work| *work.key()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c"]);
    taken.clear();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_refused_does_not_come_back_before_its_time() {
    let queue = Queue::new();
    queue.add("a");
    let work = take(&queue).expect("it is ready");
    queue.add("a");
    work.finish(Outcome::Refused(seconds(10)));
    queue.add_with("a", Add::default().priority(7));
    queue.add("b");
    tokio::time::advance(seconds(9)).await;
    assert_eq!(drain(&queue), ["b"]);
    tokio::time::advance(seconds(1)).await;
    let work = take(&queue).expect("it is ready");
    assert_eq!((*work.key(), work.failures()), ("a", 1));
    // That is over then.
    work.finish(Outcome::Done);
    queue.add("a");
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_again_and_again_waits_longer_than_it_was_told() {
    let queue = Queue::with_pauses(Pauses { min: seconds(4), max: seconds(1000) });
    queue.add("a");
    for pause in [10, 10, 16, 32] {
        let work = take(&queue).expect("it is ready");
        work.finish(Outcome::Refused(seconds(10)));
        tokio::time::advance(seconds(pause - 1)).await;
        assert!(take(&queue).is_none(), "before {pause} seconds");
        tokio::time::advance(seconds(1)).await;
    }
}
