//! Tells somebody how long writes take.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use crate::write::{Action, Conflicts, Draft, Rejected, Writer, Written};
use crate::{Expect, Key, Revision, Store, Unavailable};

/// Is told of every write, when it was answered.
pub trait Observer: Send + Sync + 'static {
    fn wrote(&self, write: &Observed<'_>);
}

/// A write that was answered.
#[derive(Debug)]
pub struct Observed<'a> {
    pub key: &'a Key,
    pub operation: Operation,
    pub elapsed: Duration,
    /// Whether the storage could not be reached. A conflict is an answer.
    pub failed: bool,
}

/// What a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

impl<I: Send + Sync + 'static> Store<I> {
    /// The same store. Writes through this handle, or a clone of it, are told to the observer.
    #[must_use]
    pub fn observed(&self, observer: Arc<dyn Observer>) -> Self {
        let writer = Arc::clone(self.writer());
        Store::new(Arc::clone(self.image()), Arc::new(Timed { writer, observer }))
    }
}

/// Measures another writer.
struct Timed<I> {
    writer: Arc<dyn Writer<I>>,
    observer: Arc<dyn Observer>,
}

impl<I: Send + Sync + 'static> Writer<I> for Timed<I> {
    fn write(
        &self,
        draft: Draft<I>,
        conflicts: Conflicts,
    ) -> BoxFuture<'_, Result<Written<I>, Rejected<I>>> {
        let key = draft.key.clone();
        let operation = match (&draft.action, draft.expect) {
            (Action::Delete { .. }, _) => Operation::Delete,
            (Action::Put { .. }, Expect::Absent) => Operation::Create,
            (Action::Put { .. }, _) => Operation::Update,
        };
        let begun = Instant::now();
        let write = self.writer.write(draft, conflicts);
        Box::pin(async move {
            let outcome = write.await;
            self.observer.wrote(&Observed {
                key: &key,
                operation,
                elapsed: begun.elapsed(),
                failed: matches!(outcome, Err(Rejected::Unavailable(_))),
            });
            outcome
        })
    }

    fn latest(&self) -> BoxFuture<'_, Result<Revision, Unavailable>> {
        self.writer.latest()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.writer.close()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Change, Config, Durability, Put};

    #[derive(Default)]
    struct Told(Mutex<Vec<(String, Operation, bool)>>);

    impl Observer for Told {
        fn wrote(&self, write: &Observed<'_>) {
            let told = (write.key.to_string(), write.operation, write.failed);
            self.0.lock().expect("nobody panics").push(told);
        }
    }

    #[tokio::test]
    async fn every_write_is_told_as_what_it_is() {
        let told = Arc::new(Told::default());
        let config = Config::new(|_, _| (), |_| "", || Duration::ZERO);
        let store = Store::memory(config).observed(Arc::<Told>::clone(&told));
        store.put(Put::new("/a", "1").expect(Expect::Absent)).await.expect("it is new");
        let change = |_| async {
            let (value, durability) = ("2".into(), Durability::Synced);
            Ok::<_, ()>(Change::Put { value, ttl: None, durability })
        };
        store.update(&Key::from("/a"), change).await.expect("it is there");
        store.put(Put::new("/a", "3").expect(Expect::Absent)).await.expect_err("it is there");
        store.delete(&Key::from("/a"), Expect::Anything).await.expect("it is there");
        store.close().await;
        store.put(Put::new("/b", "1").expect(Expect::Absent)).await.expect_err("it is closed");

        let told = told.0.lock().expect("nobody panics");
        let expected = [
            ("/a", Operation::Create, false),
            ("/a", Operation::Update, false),
            ("/a", Operation::Create, false),
            ("/a", Operation::Delete, false),
            ("/b", Operation::Create, true),
        ];
        let expected = expected.map(|(key, operation, failed)| (key.to_owned(), operation, failed));
        assert_eq!(*told, expected);
    }
}
