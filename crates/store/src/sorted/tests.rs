use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::{Position, Slice, Sorted, partition_near};
use crate::engine::Head;
use crate::{Key, Rev, Revision};

fn rev(key: &str, revision: i64) -> Arc<Rev<()>> {
    let revision = Revision::new(revision);
    let head = Head { revision, created: revision, deadline: None };
    Arc::new(Rev::new(Key::from(key), head, Bytes::new(), ()))
}

fn key(n: u16) -> String {
    format!("/{}/{n:05}", n % 3)
}

fn keys(sorted: &Sorted<()>, prefix: &str, start_after: Option<&str>) -> Vec<(String, i64)> {
    sorted
        .range(prefix, start_after)
        .iter()
        .flat_map(Slice::revs)
        .map(|rev| (rev.key.to_string(), rev.revision.get()))
        .collect()
}

/// Any position, also one that is not in the list.
fn near() -> impl Strategy<Value = Option<Position>> {
    prop::option::of((0usize..20, 0usize..80).prop_map(|(chunk, index)| Position { chunk, index }))
}

#[test]
fn a_search_from_anywhere_finds_the_same_place() {
    for len in 0..40 {
        let items: Vec<usize> = (0..len).collect();
        for point in 0..=len {
            for near in 0..len + 3 {
                let found = partition_near(&items, Some(near), |&item| item < point);
                assert_eq!(found, point, "of {len} from {near}");
            }
        }
    }
}

/// Falling keys all go into the first chunk, whose separator they leave behind.
#[test]
fn falling_keys_are_found_from_anywhere() {
    let mut sorted = Sorted::default();
    for n in (0..900).rev() {
        assert!(sorted.insert(rev(&format!("/{n:05}"), n), None).is_none());
    }
    for n in 0..900 {
        for chunk in 0..20 {
            let near = Some(Position { chunk, index: 0 });
            let was = sorted.insert(rev(&format!("/{n:05}"), n), near).unwrap();
            assert_eq!(was.revision.get(), n);
        }
    }
}

#[test]
fn a_search_from_where_the_answer_is_looks_at_two() {
    let items: Vec<usize> = (0..1000).collect();
    let looks = std::cell::Cell::new(0);
    let before = |&item: &usize| {
        looks.set(looks.get() + 1);
        item < 700
    };
    assert_eq!(partition_near(&items, Some(700), before), 700);
    assert_eq!(looks.get(), 2);
}

proptest! {
    /// Against the standard library's map, and an old clone against an old copy of it.
    #[test]
    fn a_sorted_list_behaves_as_a_map_and_old_clones_do_not_change(
        steps in prop::collection::vec((0u16..900, prop::bool::weighted(0.6), near()), 1..2500),
        pause in 0usize..2500,
        start in 0u16..900,
    ) {
        let mut sorted = Sorted::default();
        let mut model = BTreeMap::new();
        let mut old = (sorted.clone(), model.clone());
        for (number, (n, put, near)) in steps.into_iter().enumerate() {
            if number == pause {
                old = (sorted.clone(), model.clone());
            }
            let key = key(n);
            let (was, expected) = if put {
                let revision = i64::try_from(number).unwrap();
                (sorted.insert(rev(&key, revision), near), model.insert(key, revision))
            } else {
                (sorted.remove(&key, near), model.remove(&key))
            };
            prop_assert_eq!(was.map(|rev| rev.revision.get()), expected);
        }
        for (sorted, model) in [(sorted, model), old] {
            prop_assert_eq!(sorted.iter().count(), model.len());
            let all: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(keys(&sorted, "", None), all.clone());
            for (key, revision) in &all {
                prop_assert_eq!(sorted.get(key).map(|rev| rev.revision.get()), Some(*revision));
            }
            let start = key(start);
            for prefix in ["/0/", "/1/", "/2/0", "/3", "/1/00004"] {
                let expected: Vec<_> =
                    all.iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect();
                prop_assert_eq!(keys(&sorted, prefix, None), expected.clone());
                let expected: Vec<_> =
                    expected.into_iter().filter(|(key, _)| *key > start).collect();
                prop_assert_eq!(keys(&sorted, prefix, Some(&start)), expected);
            }
        }
    }
}
