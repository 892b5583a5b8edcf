//! What is decided about a pod is written in the order in which it was decided.
//!
//! Writes are tasks beside the loop. Two about one pod, a moment apart, may overtake each other on
//! their way, and the pod would be left with what was true before.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(super) struct Order {
    /// By a pod's uid.
    last: HashMap<Arc<str>, Last>,
}

/// The last that was written about a pod, or is to be.
#[derive(Debug, Default)]
struct Last {
    /// Ends with it.
    done: Option<oneshot::Receiver<()>>,
    /// Why the pod has no node. A cache may show older reasons for a while.
    reason: Option<String>,
}

/// The right to write about a pod once all before are done; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl Order {
    pub(super) fn turn(&mut self, uid: &Arc<str>) -> Turn {
        let (done, ended) = oneshot::channel();
        let last = self.last.entry(Arc::clone(uid)).or_default();
        Turn { before: last.done.replace(ended), _done: done }
    }

    /// Notes why a pod has no node. Whether it was told something else last.
    pub(super) fn tell(&mut self, uid: &Arc<str>, reason: &str) -> bool {
        let last = self.last.entry(Arc::clone(uid)).or_default();
        last.reason.replace(reason.to_owned()).is_some_and(|told| told != reason)
    }

    /// Nothing more is to be written about a pod.
    pub(super) fn forget(&mut self, uid: &str) {
        self.last.remove(uid);
    }
}

impl Turn {
    pub(super) async fn come(&mut self) {
        if let Some(before) = self.before.take() {
            // Nobody sends: it ends when whoever had the turn is done, however that went.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::Order;

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_when_the_one_before_has_ended() {
        let (mut order, uid) = (Order::default(), Arc::from("uid"));
        let (mut first, mut second) = (order.turn(&uid), order.turn(&uid));
        first.come().await;
        let early = timeout(Duration::from_secs(60), second.come()).await;
        assert!(early.is_err(), "it came before its time");

        let (mut third, mut other) = (order.turn(&uid), order.turn(&Arc::from("other")));
        other.come().await;
        drop(first);
        drop(second);
        third.come().await;
    }

    #[test]
    fn a_reason_is_news_if_another_was_told_last() {
        let (mut order, uid) = (Order::default(), Arc::from("uid"));
        assert!(!order.tell(&uid, "a"), "what the pod shows is all that is known");
        assert!(!order.tell(&uid, "a"));
        assert!(order.tell(&uid, "b"));
        order.forget(&uid);
        assert!(!order.tell(&uid, "a"));
    }
}
