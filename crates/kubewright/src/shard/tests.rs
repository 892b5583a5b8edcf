//! Whose a key is, and when one may work on it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::assignment::{Members, owner};
use super::view::{Claim, Found, View, may_work};
use crate::election::Record;

fn members(names: &[&str]) -> Members {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The lease of another member, which it renewed at some time of its own clock.
fn found(name: &str, renewed: i64, claim: &[&str]) -> Found {
    let record = Record {
        holder: format!("host_{name}"),
        duration: Duration::from_secs(15),
        acquired: None,
        renewed: Timestamp::from_second(renewed).ok(),
        transitions: 0,
    };
    Found { name: name.to_owned(), record, claim: members(claim) }
}

/// A key that is `whose` by each of these claims.
fn key(whose: &[(&str, &[&str])]) -> String {
    let fits =
        |key: &String| whose.iter().all(|(name, claim)| owner(&members(claim), key) == Some(name));
    (0..10_000).map(|n| format!("shop/pet-{n}")).find(fits).expect("there is one")
}

/// What others said when `me` looked at a moment, in seconds, and got the answer a second later.
struct Looks {
    start: Instant,
    view: View,
    claim: Claim,
}

impl Looks {
    fn new(settled: &[&str]) -> Self {
        let claim = Claim { settled: Some(members(settled)), next: None };
        Looks { start: Instant::now(), view: View::default(), claim }
    }

    fn look(&mut self, at: u64, found: &[Found]) -> &mut Self {
        let asked = self.start + Duration::from_secs(at);
        self.view.look(found.to_vec(), asked, asked + Duration::from_secs(1));
        self
    }

    fn check(&mut self, key: &str, expected: bool) -> &mut Self {
        assert_eq!(may_work("me", &self.claim, &self.view, key), expected, "{:?}", self.view);
        self
    }
}

const BOTH: &[&str] = &["me", "you"];

#[test]
fn keys_are_shared_evenly_and_few_move() {
    let three = members(&["ring-a", "ring-b", "ring-c"]);
    let four = members(&["ring-a", "ring-b", "ring-c", "ring-d"]);
    let (mut counts, mut moved) = (BTreeMap::<&str, u32>::new(), 0);
    for n in 0..4_000 {
        let key = format!("shop/pet-{n}");
        let (before, after) = (owner(&three, &key), owner(&four, &key));
        *counts.entry(after.expect("there are members")).or_default() += 1;
        if before != after {
            assert_eq!(after, Some("ring-d"), "{key} moved between those that were there");
            moved += 1;
        }
    }
    assert!(counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
    assert!((900..1_100).contains(&moved), "{moved}");
    assert_eq!(owner(&Members::new(), "shop/pet"), None);
}

#[test]
fn replicas_of_all_versions_draw_the_same() {
    let drawn: Vec<_> = (0..8)
        .map(|n| owner(&members(&["a", "b", "c"]), &format!("shop/pet-{n}")).map(str::to_owned))
        .map(Option::unwrap_or_default)
        .collect();
    assert_eq!(drawn.join(""), "aacacccb");
}

#[test]
fn one_that_is_alone_works_on_everything_once_it_has_looked() {
    let mut looks = Looks::new(&["me"]);
    looks.look(0, &[]).check("shop/thor", true);
    looks.claim.settled = None;
    looks.check("shop/thor", false);
}

#[test]
fn members_that_agree_work_on_their_own_keys() {
    let (mine, yours) = (key(&[("me", BOTH)]), key(&[("you", BOTH)]));
    let mut looks = Looks::new(BOTH);
    looks.look(0, &[found("you", 0, BOTH)]).check(&mine, true).check(&yours, false);
}

#[test]
fn a_key_moves_when_its_old_owner_says_so() {
    let mine = key(&[("me", BOTH), ("you", &["you"])]);
    let mut looks = Looks::new(BOTH);
    looks.look(0, &[found("you", 0, &["you"])]).check(&mine, false);
    looks.look(2, &[found("you", 2, &["you"])]).check(&mine, false);
    looks.look(4, &[found("you", 4, BOTH)]).check(&mine, true);
}

#[test]
fn what_is_to_be_handed_over_is_not_begun() {
    let (stays, goes) = (key(&[("me", BOTH)]), key(&[("you", BOTH)]));
    let mut looks = Looks::new(&["me"]);
    looks.look(0, &[found("you", 0, BOTH)]);
    // Both claim it until the first has handed it over, and it works on it no more already now.
    looks.check(&goes, false).check(&stays, true);
    looks.claim.next = Some(members(BOTH));
    looks.check(&goes, false).check(&stays, true);
}

#[test]
fn only_a_look_shows_that_a_member_is_dead() {
    let yours = key(&[("me", &["me"]), ("you", BOTH)]);
    let mut looks = Looks::new(&["me"]);
    let dead = [found("you", 0, BOTH)];
    // Seen at 1; a look that was begun at 15 cannot know what was written between 15 and 16.
    looks.look(0, &dead).check(&yours, false);
    looks.look(15, &dead).check(&yours, false);
    assert_eq!(looks.view.members("me"), members(BOTH));
    looks.look(16, &dead).check(&yours, true);
    assert_eq!(looks.view.members("me"), members(&["me"]));
    // It comes back, and claims what it had.
    looks.look(18, &[found("you", 18, BOTH)]).check(&yours, false);
    assert_eq!(looks.view.members("me"), members(BOTH));
}

#[test]
fn a_lease_that_is_deleted_frees_only_what_was_given_up() {
    let yours = key(&[("me", &["me"]), ("you", BOTH)]);
    let mut looks = Looks::new(&["me"]);
    looks.look(0, &[found("you", 0, BOTH)]);
    looks.look(2, &[]).check(&yours, false);
    assert_eq!(looks.view.members("me"), members(&["me"]));
    looks.look(16, &[]).check(&yours, true);

    let mut looks = Looks::new(&["me"]);
    looks.look(0, &[found("you", 0, BOTH)]);
    looks.look(2, &[found("you", 2, &[])]).check(&yours, true);
    assert_eq!(looks.view.members("me"), members(&["me"]));
    looks.look(3, &[]).check(&yours, true);
}

#[test]
fn the_leases_of_those_long_dead_are_forgotten() {
    let dead = [found("you", 0, BOTH)];
    let mut looks = Looks::new(&["me"]);
    looks.look(0, &dead);
    assert!(looks.look(600, &dead).view.forgotten().is_empty());
    assert_eq!(looks.look(601, &dead).view.forgotten(), ["you"]);
    assert!(looks.look(602, &[]).view.forgotten().is_empty());
}
