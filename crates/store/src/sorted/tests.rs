use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::{Slice, Sorted};
use crate::{Key, Rev, Revision};

fn rev(key: &str, revision: i64) -> Arc<Rev<()>> {
    let revision = Revision::new(revision);
    Arc::new(Rev::new(Key::from(key), revision, revision, Bytes::new(), None, ()))
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

proptest! {
    /// Against the standard library's map, and an old clone against an old copy of it.
    #[test]
    fn a_sorted_list_behaves_as_a_map_and_old_clones_do_not_change(
        steps in prop::collection::vec((0u16..900, prop::bool::weighted(0.6)), 1..2500),
        pause in 0usize..2500,
        start in 0u16..900,
    ) {
        let mut sorted = Sorted::default();
        let mut model = BTreeMap::new();
        let mut old = (sorted.clone(), model.clone());
        for (number, (n, put)) in steps.into_iter().enumerate() {
            if number == pause {
                old = (sorted.clone(), model.clone());
            }
            let key = key(n);
            let (was, expected) = if put {
                let revision = i64::try_from(number).unwrap();
                (sorted.insert(rev(&key, revision)), model.insert(key, revision))
            } else {
                (sorted.remove(&key), model.remove(&key))
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
