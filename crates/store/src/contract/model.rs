//! A model that is too simple to be wrong, and random operations that compare a store with it.

use std::collections::BTreeMap;

use super::{Lab, text};
use crate::{At, DeleteError, Expect, PutError, Query, Revision, Start};

/// Every state there ever was.
#[derive(Default)]
struct Model {
    current: BTreeMap<String, Entry>,
    past: BTreeMap<Revision, BTreeMap<String, Entry>>,
    events: Vec<(Revision, String, Option<String>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    revision: Revision,
    created: Revision,
    value: String,
}

/// Performs `steps` operations chosen by `seed`, then compares all states and all watches.
pub(crate) async fn check(lab: &Lab, seed: u64, steps: u32) {
    let mut random = Random(seed);
    let mut model = Model::default();
    model.past.insert(lab.store.revision(), BTreeMap::new());
    for step in 0..steps {
        let path = format!("pods/{}/{}", random.below(2), random.below(4));
        let found = model.current.get(&path).map(|entry| entry.revision);
        let expect = match random.below(4) {
            0 => Expect::Anything,
            1 => Expect::Absent,
            2 => found.map_or(Expect::Absent, Expect::At),
            // Some revision of some key: usually not this one's.
            _ => random.pick(model.past.keys().copied()).map_or(Expect::Anything, Expect::At),
        };
        if random.below(3) > 0 {
            model.put(lab, &path, expect, &step.to_string()).await;
        } else {
            model.delete(lab, &path, expect).await;
        }
    }
    model.compare(lab);
}

impl Model {
    async fn put(&mut self, lab: &Lab, path: &str, expect: Expect, value: &str) {
        let found = self.current.get(path).cloned();
        let outcome = lab.store.put(lab.write(path, value).expect(expect)).await;
        if expect.holds(found.as_ref().map(|entry| entry.revision)) {
            let rev = outcome.unwrap();
            let created = found.map_or(rev.revision, |entry| entry.created);
            assert_eq!(rev.created, created);
            let entry = Entry { revision: rev.revision, created, value: value.into() };
            self.current.insert(path.into(), entry);
            self.happened(rev.revision, path, Some(value.into()));
        } else {
            let error = outcome.unwrap_err();
            let expected = found.map(|entry| entry.revision);
            assert!(
                matches!(error, PutError::Conflict { found, .. } if found == expected),
                "{error:?}"
            );
        }
    }

    async fn delete(&mut self, lab: &Lab, path: &str, expect: Expect) {
        let found = self.current.get(path).map(|entry| entry.revision);
        let outcome = lab.store.delete(&lab.key(path), expect).await;
        match found {
            None => assert!(matches!(outcome, Err(DeleteError::NotFound)), "{outcome:?}"),
            Some(revision) if expect.holds(found) => {
                let deleted = outcome.unwrap();
                assert_eq!(deleted.previous.revision, revision);
                self.current.remove(path);
                self.happened(deleted.revision, path, None);
            }
            Some(revision) => assert!(
                matches!(outcome, Err(DeleteError::Conflict { found, .. }) if found == revision),
                "{outcome:?}"
            ),
        }
    }

    fn happened(&mut self, revision: Revision, path: &str, value: Option<String>) {
        let last = self.past.insert(revision, self.current.clone());
        assert!(last.is_none(), "a revision was used twice");
        assert_eq!(self.past.last_key_value().map(|(last, _)| *last), Some(revision));
        self.events.push((revision, path.into(), value));
    }

    fn compare(&self, lab: &Lab) {
        for (revision, expected) in &self.past {
            for prefix in ["pods/", "pods/1/"] {
                let key = lab.key(prefix);
                let query = Query { at: At::Exactly(*revision), ..Query::prefix(key.as_str()) };
                let listed: Vec<(String, Entry)> = lab
                    .store
                    .range(&query)
                    .unwrap()
                    .iter()
                    .map(|rev| {
                        let value = text(&rev.value);
                        let entry = Entry { revision: rev.revision, created: rev.created, value };
                        (lab.path(&rev.key).to_owned(), entry)
                    })
                    .collect();
                let expected: Vec<(String, Entry)> = expected
                    .clone()
                    .into_iter()
                    .filter(|(path, _)| path.starts_with(prefix))
                    .collect();
                assert_eq!(listed, expected, "{prefix} at {revision}");
                self.compare_watch(lab, prefix, *revision);
            }
        }
    }

    fn compare_watch(&self, lab: &Lab, prefix: &str, revision: Revision) {
        let key = lab.key(prefix);
        let mut watch = lab.store.watch(key.as_str(), Start::After(revision)).unwrap();
        let seen: Vec<_> = watch
            .take()
            .unwrap()
            .iter()
            .map(|event| {
                let value = event.current.as_ref().map(|rev| text(&rev.value));
                (event.revision, lab.path(&event.key).to_owned(), value)
            })
            .collect();
        let expected: Vec<_> = self
            .events
            .iter()
            .filter(|(at, path, _)| *at > revision && path.starts_with(prefix))
            .cloned()
            .collect();
        assert_eq!(seen, expected, "{prefix} from {revision}");
    }
}

/// Xorshift: the same operations for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T>(&mut self, from: impl ExactSizeIterator<Item = T>) -> Option<T> {
        let len = from.len() as u64;
        let mut from = from;
        (len > 0).then(|| self.below(len)).and_then(|at| from.nth(usize::try_from(at).ok()?))
    }
}
