//! Revisioned bytes with watch.
//!
//! A [`Store`] maps keys to bytes, numbers every change with one global [`Revision`], and lets
//! anyone read the latest state, read the state at a recent revision, change a key only if it is
//! still what it was, and watch changes from a revision on. It knows neither kinds nor JSON:
//! what a server wants to know about the bytes it extracts once, at write time, into the `I` of
//! `Store<I>`.
//!
//! # One image
//!
//! All three stores answer reads and watches from the same structure in memory:
//!
//! * the **image** holds the latest revision of every key as `Arc<Rev<I>>` in a persistent
//!   sorted list of chunks. A reader takes a [`Snapshot`] (one pointer) and keeps it as long as
//!   it likes; a list of five thousand objects is a few dozen shared chunks, not five thousand
//!   copies;
//! * the **history** is one ring of [`Event`]s per resource (the store learns from
//!   [`Config::resource`] which part of a key names its resource), bounded by time and bytes.
//!   It serves watches, each a cursor into the ring, and lists at an exact revision, which are
//!   the latest image with the younger events undone. A watcher costs a writer nothing: when
//!   the ring moves past its cursor, it is told so and starts over.
//!
//! # Three ways to write
//!
//! * `memory` commits in place;
//! * `embedded` has one committer thread. Whatever queued during the previous sync is the next
//!   batch: preconditions are checked in order against the pending state, revisions assigned,
//!   the batch written and synced once, then published to readers and watchers, then
//!   acknowledged. Nobody sees a revision that is not durable, and a failed precondition is
//!   answered only when the winner is visible. [`Store::update`], which retries by itself, may
//!   look at the pending revision and so need not wait for somebody else's sync;
//! * `etcd` sends a transaction to etcd and learns of all changes, its own and others', from
//!   one watch.
//!
//! # What holds
//!
//! * A revision number is used once, ever. `embedded` persists a ceiling ahead of the numbers
//!   it hands out and continues above it after a crash.
//! * An acknowledged write survives a crash, except that a write with [`Durability::Written`]
//!   survives only a crash of this process.
//! * After a failed sync nothing more is acknowledged; reads go on.
//! * Events of a watch arrive in order of revision, each once, none missing.
//! * A watch at the last durable revision resumes after a restart. Anything else from before
//!   is [`WatchError::Compacted`]; the disk holds no history.
//!
//! There are no transactions over several keys: the Kubernetes API has none, and one revision
//! per change keeps every revision a place where a watch can resume. Only [`member`], which is
//! etcd to others, has the committer change several keys at once.

mod backup;
mod bunch;
mod commit;
mod config;
#[cfg(test)]
mod contract;
mod dump;
pub mod embedded;
mod engine;
mod error;
pub mod etcd;
mod expiry;
mod history;
mod image;
mod key;
pub mod member;
mod memory;
mod observe;
mod revision;
mod sorted;
mod store;
mod watch;
mod write;

pub use backup::{BackupError, RestoreError, restore};
pub use bunch::{Bunch, Run};
pub use config::{Clock, Config, HistoryBounds};
pub use error::{DeleteError, PutError, RangeError, Unavailable, UpdateError, WatchError};
pub use image::{Range, Snapshot, Walk};
pub use key::Key;
pub use observe::{Observed, Observer, Operation};
pub use revision::{Event, Form, Rev, Revision};
pub use store::{At, Query, Store};
pub use watch::{Start, Watch};
pub use write::{Change, Deleted, Durability, Expect, Put, Updated};
