//! A persistent sorted list of revisions: cheap to share, cheap to change a little.
//!
//! Keys live in chunks of at most [`CHUNK_MAX`]. A clone shares every chunk; a change copies the
//! one chunk it touches if a clone still holds it, and otherwise changes it in place. A range is
//! a list of slices of chunks and costs nothing per key.
//!
//! Both levels hold the keys they are searched by, so that a step of a search waits for memory
//! once and not once per pointer on the way to a key: searching is most of what publishing costs.
//! Whoever looked a key up remembers its [`Position`], near which the next search for it ends soon.

use std::sync::Arc;

use crate::{Key, Rev};

/// Large enough that the list of chunks stays short, small enough to copy in a microsecond.
const CHUNK_MAX: usize = 64;
/// A chunk that falls below this is joined with its neighbour when both fit into one.
const CHUNK_MIN: usize = CHUNK_MAX / 4;

pub(crate) struct Sorted<I> {
    /// Separators rise from chunk to chunk behind the first.
    chunks: Arc<Vec<Separated<I>>>,
}

pub(crate) type Chunk<I> = Vec<Entry<I>>;

pub(crate) struct Entry<I> {
    key: Key,
    pub(crate) rev: Arc<Rev<I>>,
}

/// Part of a chunk.
pub(crate) struct Slice<I> {
    pub(crate) chunk: Arc<Chunk<I>>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A chunk, never empty, with keys that rise.
struct Separated<I> {
    /// Not above any key in the chunk, and above every key in the chunks before. That of the first
    /// chunk, which also takes what is below, says nothing.
    separator: Key,
    chunk: Arc<Chunk<I>>,
}

/// Where a key is or would be, or where a range begins or ends: a chunk, then an index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    chunk: usize,
    index: usize,
}

impl<I> Sorted<I> {
    /// From revisions whose keys rise strictly.
    pub(crate) fn from_sorted(revs: impl IntoIterator<Item = Arc<Rev<I>>>) -> Self {
        let mut chunks: Vec<Separated<I>> = Vec::new();
        let mut open: Chunk<I> = Vec::new();
        for rev in revs {
            debug_assert!(open.last().is_none_or(|last| last.key < rev.key), "keys rise strictly");
            // Three quarters full, so that the first insertions do not split every chunk.
            if open.len() == CHUNK_MAX * 3 / 4 {
                chunks.push(Separated::new(std::mem::take(&mut open)));
            }
            open.push(Entry::new(rev));
        }
        if !open.is_empty() {
            chunks.push(Separated::new(open));
        }
        Self { chunks: Arc::new(chunks) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Rev<I>>> {
        self.find(key).1
    }

    /// Where `key` is or would be, and what it holds.
    pub(crate) fn find(&self, key: &str) -> (Position, Option<&Arc<Rev<I>>>) {
        let (chunk, found) = self.locate(key, None);
        match found {
            Ok(index) => (Position { chunk, index }, Some(&self.chunks[chunk].chunk[index].rev)),
            Err(index) => (Position { chunk, index }, None),
        }
    }

    /// Puts `rev` in its place and returns what was there. The place is found sooner if it is
    /// `near` the position given, which may be any: one that was right a little while ago is best.
    pub(crate) fn insert(
        &mut self,
        rev: Arc<Rev<I>>,
        near: Option<Position>,
    ) -> Option<Arc<Rev<I>>> {
        let (number, found) = self.locate(rev.key.as_str(), near);
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.push(Separated::new(vec![Entry::new(rev)]));
            return None;
        }
        let chunk = Arc::make_mut(&mut chunks[number].chunk);
        let index = match found {
            Ok(index) => return Some(std::mem::replace(&mut chunk[index].rev, rev)),
            Err(index) => index,
        };
        chunk.insert(index, Entry::new(rev));
        if chunk.len() > CHUNK_MAX {
            // A key appended at the end suggests more of them: leave the full chunk behind.
            let appended = index + 1 == chunk.len();
            let upper = chunk.split_off(if appended { CHUNK_MAX } else { CHUNK_MAX / 2 });
            chunks.insert(number + 1, Separated::new(upper));
        }
        None
    }

    /// Takes `key` out and returns what was there; `near` is as for [`Self::insert`].
    pub(crate) fn remove(&mut self, key: &str, near: Option<Position>) -> Option<Arc<Rev<I>>> {
        let (number, found) = self.locate(key, near);
        let index = found.ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[number].chunk);
        let removed = chunk.remove(index);
        let room = CHUNK_MAX - chunk.len();
        if chunk.is_empty() {
            chunks.remove(number);
        } else if chunk.len() < CHUNK_MIN
            && chunks.get(number + 1).is_some_and(|next| next.chunk.len() <= room)
        {
            let next = chunks.remove(number + 1);
            Arc::make_mut(&mut chunks[number].chunk).extend(next.chunk.iter().cloned());
        }
        Some(removed.rev)
    }

    /// The keys that begin with `prefix`, behind `start_after` if given.
    pub(crate) fn range(&self, prefix: &str, start_after: Option<&str>) -> Vec<Slice<I>> {
        let mut from = self.position(|known| known < prefix);
        if let Some(start_after) = start_after {
            from = from.max(self.position(|known| known <= start_after));
        }
        let to = self.position(|known| known < prefix || known.starts_with(prefix));
        self.slices(from, to)
    }

    /// The keys from `start` on, to below `end` or else to the last.
    pub(crate) fn between(&self, start: &[u8], end: Option<&[u8]>) -> Vec<Slice<I>> {
        let from = self.position(|known| known.as_bytes() < start);
        let to = self.position(|known| {
            known.as_bytes() < start || end.is_none_or(|end| known.as_bytes() < end)
        });
        self.slices(from, to)
    }

    fn slices(&self, from: Position, to: Position) -> Vec<Slice<I>> {
        let mut slices = Vec::new();
        for number in from.chunk..=to.chunk {
            let Some(Separated { chunk, .. }) = self.chunks.get(number) else { break };
            let start = if number == from.chunk { from.index } else { 0 };
            let end = if number == to.chunk { to.index } else { chunk.len() };
            if start < end {
                slices.push(Slice { chunk: Arc::clone(chunk), start, end });
            }
        }
        slices
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Rev<I>>> {
        self.chunks.iter().flat_map(|separated| separated.chunk.iter().map(|entry| &entry.rev))
    }

    /// All chunks but the first, which takes whatever these do not: as many of them as begin before
    /// a place, such is the number of its chunk.
    fn behind_first(&self) -> &[Separated<I>] {
        self.chunks.get(1..).unwrap_or_default()
    }

    /// The chunk that has or would take `key`, and where in it that is or would be.
    fn locate(&self, key: &str, near: Option<Position>) -> (usize, Result<usize, usize>) {
        let chunk = partition_near(self.behind_first(), near.map(|near| near.chunk), |separated| {
            separated.separator.as_str() <= key
        });
        let Some(Separated { chunk: entries, .. }) = self.chunks.get(chunk) else {
            return (chunk, Err(0));
        };
        let near = near.filter(|near| near.chunk == chunk).map(|near| near.index);
        let index = partition_near(entries, near, |entry| entry.key.as_str() < key);
        let is_there = entries.get(index).is_some_and(|entry| entry.key.as_str() == key);
        (chunk, if is_there { Ok(index) } else { Err(index) })
    }

    /// The first place whose key is not `before`, which must hold for all strings up to some and
    /// for none beyond. It may be behind the end of a chunk.
    fn position(&self, before: impl Fn(&str) -> bool) -> Position {
        let chunk =
            self.behind_first().partition_point(|separated| before(separated.separator.as_str()));
        let index = self.chunks.get(chunk).map_or(0, |separated| {
            separated.chunk.partition_point(|entry| before(entry.key.as_str()))
        });
        Position { chunk, index }
    }
}

/// [`slice::partition_point`], in steps that double from `near` on: where the answer is close to
/// it, few elements are looked at.
fn partition_near<T>(items: &[T], near: Option<usize>, before: impl Fn(&T) -> bool) -> usize {
    let Some(near) = near else { return items.partition_point(before) };
    let near = near.min(items.len());
    let mut step = 1;
    // The answer is never below `low` nor above `high`.
    let (mut low, mut high) = (near, near);
    if items.get(near).is_some_and(&before) {
        high = items.len();
        low += 1;
        while let Some(item) = items[..high].get(low + step - 1) {
            if !before(item) {
                high = low + step - 1;
                break;
            }
            low += step;
            step *= 2;
        }
    } else {
        low = 0;
        while step <= high {
            if before(&items[high - step]) {
                low = high - step + 1;
                break;
            }
            high -= step;
            step *= 2;
        }
    }
    low + items[low..high].partition_point(before)
}

impl<I> Slice<I> {
    /// All of `revs`, which are in order.
    pub(crate) fn of(revs: impl IntoIterator<Item = Arc<Rev<I>>>) -> Self {
        let chunk: Chunk<I> = revs.into_iter().map(Entry::new).collect();
        Self { start: 0, end: chunk.len(), chunk: Arc::new(chunk) }
    }

    pub(crate) fn revs(&self) -> impl DoubleEndedIterator<Item = &Arc<Rev<I>>> {
        self.chunk[self.start..self.end].iter().map(|entry| &entry.rev)
    }

    /// The revision at this place of the chunk, if it is in the slice.
    pub(crate) fn rev(&self, index: usize) -> Option<&Arc<Rev<I>>> {
        self.chunk[..self.end].get(index).map(|entry| &entry.rev)
    }
}

impl<I> Separated<I> {
    fn new(chunk: Chunk<I>) -> Self {
        Self { separator: chunk[0].key.clone(), chunk: Arc::new(chunk) }
    }
}

impl<I> Entry<I> {
    fn new(rev: Arc<Rev<I>>) -> Self {
        Self { key: rev.key.clone(), rev }
    }
}

impl<I> Default for Sorted<I> {
    fn default() -> Self {
        Self { chunks: Arc::default() }
    }
}

impl<I> Clone for Sorted<I> {
    fn clone(&self) -> Self {
        Self { chunks: Arc::clone(&self.chunks) }
    }
}

impl<I> Clone for Separated<I> {
    fn clone(&self) -> Self {
        Self { separator: self.separator.clone(), chunk: Arc::clone(&self.chunk) }
    }
}

impl<I> Clone for Entry<I> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), rev: Arc::clone(&self.rev) }
    }
}

#[cfg(test)]
mod tests;
