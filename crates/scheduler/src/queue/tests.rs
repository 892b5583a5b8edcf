//! Whose turn it is, told as a story: who comes, what happens, who is next.

use super::*;
use crate::fixtures::pod;

const SECOND: Duration = Duration::from_secs(1);

struct Story {
    queue: Queue,
    now: Instant,
}

impl Story {
    fn new() -> Self {
        Story { queue: Queue::new(SECOND, 10 * SECOND), now: Instant::now() }
    }

    fn comes(&mut self, name: &str, priority: i32) {
        self.queue.add(named(name, priority), 0, false, self.now);
    }

    /// The next pod, if there is one.
    fn next(&mut self) -> String {
        let next = self.queue.pop(self.now);
        next.map_or("nobody".to_owned(), |next| next.pod.key.name().to_owned())
    }

    fn rejected(&mut self, name: &str) {
        let mut by = PluginSet::default();
        by.insert(3);
        self.queue.reject(name, by, self.now);
    }

    fn wakes(&mut self, name: &str) {
        self.queue.wake_those(self.now, |pod, _, by| pod.key.name() == name && by.contains(3));
    }

    fn passes(&mut self, seconds: u32) {
        self.now += seconds * SECOND;
    }
}

fn named(name: &str, priority: i32) -> Arc<Pod> {
    pod(&format!("{{metadata: {{name: {name}}}, spec: {{priority: {priority}}}}}"))
}

#[test]
fn the_most_important_pod_is_next_and_then_the_first() {
    let mut story = Story::new();
    story.comes("one", 0);
    story.comes("two", 0);
    story.comes("urgent", 5);
    assert_eq!([story.next(), story.next(), story.next()], ["urgent", "one", "two"]);
    assert_eq!(story.next(), "nobody");
}

#[test]
fn a_rejected_pod_waits_for_what_helps_it() {
    let mut story = Story::new();
    story.comes("p", 0);
    story.comes("q", 0);
    story.next();
    story.rejected("p");
    story.next();
    story.rejected("q");
    story.passes(2);
    assert_eq!(story.next(), "nobody");
    story.wakes("q");
    assert_eq!([story.next(), story.next()], ["q", "nobody"]);
}

#[test]
fn a_pod_that_no_change_helps_is_tried_after_five_minutes() {
    let mut story = Story::new();
    story.comes("p", 0);
    story.next();
    story.rejected("p");
    assert_eq!(story.queue.deadline(), Some(story.now + 300 * SECOND));
    story.passes(299);
    assert_eq!(story.next(), "nobody");
    story.passes(1);
    assert_eq!(story.next(), "p");
}

#[test]
fn a_pod_that_backs_off_has_its_turn_when_nobody_else_has() {
    let mut story = Story::new();
    story.comes("p", 9);
    story.next();
    story.rejected("p");
    story.wakes("p");
    story.comes("q", 0);
    assert_eq!([story.next(), story.next()], ["q", "p"]);
}

#[test]
fn errors_are_given_their_time_and_more_each_time() {
    let mut story = Story::new();
    story.comes("p", 0);
    for seconds in [1, 2, 4, 8, 10, 10] {
        assert_eq!(story.next(), "p");
        story.queue.fail("p", story.now);
        assert_eq!(story.queue.deadline(), Some(story.now + seconds * SECOND));
        assert_eq!(story.next(), "nobody");
        story.passes(seconds);
    }
    // Whoever fits nowhere has not gone wrong: it begins anew.
    assert_eq!(story.next(), "p");
    story.rejected("p");
    story.comes("q", 0);
    story.wakes("p");
    assert_eq!(story.next(), "q");
    assert_eq!(story.queue.deadline(), Some(story.now + SECOND));
}

#[test]
fn a_gated_pod_has_no_turn_until_its_gates_are_gone() {
    let mut story = Story::new();
    story.queue.add(named("p", 0), 0, true, story.now);
    assert_eq!(story.next(), "nobody");
    story.queue.update(named("p", 0), true, story.now, |_| true);
    assert_eq!(story.next(), "nobody");
    story.queue.update(named("p", 0), false, story.now, |_| false);
    assert_eq!(story.next(), "p");
}

#[test]
fn a_pod_that_changes_in_a_way_that_helps_has_a_turn() {
    let mut story = Story::new();
    story.comes("p", 0);
    story.next();
    story.rejected("p");
    story.passes(1);
    story.queue.update(named("p", 0), false, story.now, |_| false);
    assert_eq!(story.next(), "nobody");
    story.queue.update(named("p", 0), false, story.now, |by| by.contains(3));
    assert_eq!(story.next(), "p");
}

#[test]
fn a_pod_for_which_room_is_made_waits_for_it() {
    let mut story = Story::new();
    story.comes("p", 0);
    story.next();
    story.queue.set_preempting("p", true, story.now);
    story.rejected("p");
    story.passes(1);
    story.wakes("p");
    assert_eq!(story.next(), "nobody");
    story.queue.set_preempting("p", false, story.now);
    assert_eq!(story.next(), "p");
}

#[test]
fn a_pod_that_is_gone_has_no_turn() {
    let mut story = Story::new();
    story.comes("p", 0);
    story.comes("q", 0);
    story.queue.remove("p");
    assert_eq!([story.next(), story.next()], ["q", "nobody"]);
    story.queue.remove("q");
    story.rejected("q");
    assert_eq!(story.queue.deadline(), None);
}
