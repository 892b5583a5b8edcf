//! A persistent sorted list of revisions: cheap to share, cheap to change a little.
//!
//! Keys live in chunks of at most [`CHUNK_MAX`]. A clone shares every chunk; a change copies the
//! one chunk it touches if a clone still holds it, and otherwise changes it in place. A range is
//! a list of slices of chunks and costs nothing per key.
//!
//! Both levels hold the keys they are searched by, so that a step of a search waits for memory
//! once and not once per pointer on the way to a key: searching is most of what publishing costs.

use std::sync::Arc;

use crate::{Key, Rev};

/// Large enough that the list of chunks stays short, small enough to copy in a microsecond.
const CHUNK_MAX: usize = 64;
/// A chunk that falls below this is joined with its neighbour when both fit into one.
const CHUNK_MIN: usize = CHUNK_MAX / 4;

pub(crate) struct Sorted<I> {
    /// Separators rise from chunk to chunk.
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
    /// Not above any key in the chunk, except that the first chunk also takes what is below, and
    /// above every key in the chunks before.
    separator: Key,
    chunk: Arc<Chunk<I>>,
}

/// Where a range begins or ends: a chunk, then an index in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
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
        let (chunk, found) = self.locate(key);
        let index = found.ok()?;
        Some(&self.chunks[chunk].chunk[index].rev)
    }

    /// Puts `rev` in its place and returns what was there.
    pub(crate) fn insert(&mut self, rev: Arc<Rev<I>>) -> Option<Arc<Rev<I>>> {
        let (number, found) = self.locate(rev.key.as_str());
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

    /// Takes `key` out and returns what was there.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<Rev<I>>> {
        let (number, found) = self.locate(key);
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

    /// The chunk that has or would take `key`, and where in it that is or would be.
    fn locate(&self, key: &str) -> (usize, Result<usize, usize>) {
        let chunk = self
            .chunks
            .partition_point(|separated| separated.separator.as_str() <= key)
            .saturating_sub(1);
        let index = self.chunks.get(chunk).map_or(Err(0), |separated| {
            separated.chunk.binary_search_by(|entry| entry.key.as_str().cmp(key))
        });
        (chunk, index)
    }

    /// The first place whose key is not `before`, which must hold for all strings up to some and
    /// for none beyond. It may be behind the end of a chunk.
    fn position(&self, before: impl Fn(&str) -> bool) -> Position {
        let chunk = self
            .chunks
            .partition_point(|separated| before(separated.separator.as_str()))
            .saturating_sub(1);
        let index = self.chunks.get(chunk).map_or(0, |separated| {
            separated.chunk.partition_point(|entry| before(entry.key.as_str()))
        });
        Position { chunk, index }
    }
}

impl<I> Slice<I> {
    /// All of `revs`, which are in order.
    pub(crate) fn of(revs: impl IntoIterator<Item = Arc<Rev<I>>>) -> Self {
        let chunk: Chunk<I> = revs.into_iter().map(Entry::new).collect();
        Self { start: 0, end: chunk.len(), chunk: Arc::new(chunk) }
    }

    pub(crate) fn revs(&self) -> impl Iterator<Item = &Arc<Rev<I>>> {
        self.chunk[self.start..self.end].iter().map(|entry| &entry.rev)
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
