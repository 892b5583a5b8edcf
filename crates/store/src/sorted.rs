//! A persistent sorted list of revisions: cheap to share, cheap to change a little.
//!
//! Keys live in chunks of at most [`CHUNK_MAX`] shared pointers. A clone shares every chunk; a
//! change copies the one chunk it touches, once per clone, so a batch that falls into a few
//! chunks costs little more than changing them in place. A range is a list of slices of chunks
//! and costs nothing per key.

use std::sync::Arc;

use crate::Rev;

/// Large enough that the list of chunks stays short, small enough to copy in well under a
/// microsecond.
const CHUNK_MAX: usize = 128;
/// A chunk that falls below this is joined with its neighbour when both fit into one.
const CHUNK_MIN: usize = CHUNK_MAX / 4;

pub(crate) type Chunk<I> = Vec<Arc<Rev<I>>>;

pub(crate) struct Sorted<I> {
    /// None is empty; keys rise within a chunk and from chunk to chunk.
    chunks: Arc<Vec<Arc<Chunk<I>>>>,
}

/// Part of a chunk.
pub(crate) struct Slice<I> {
    pub(crate) chunk: Arc<Chunk<I>>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Where a key is or would be: chunk, then index in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    chunk: usize,
    index: usize,
}

impl<I> Sorted<I> {
    /// From revisions whose keys rise strictly.
    pub(crate) fn from_sorted(revs: impl IntoIterator<Item = Arc<Rev<I>>>) -> Self {
        let mut chunks: Vec<Arc<Chunk<I>>> = Vec::new();
        let mut open: Chunk<I> = Vec::new();
        for rev in revs {
            debug_assert!(open.last().is_none_or(|last| last.key < rev.key), "keys rise strictly");
            // Three quarters full, so that the first insertions do not split every chunk.
            if open.len() == CHUNK_MAX * 3 / 4 {
                chunks.push(Arc::new(std::mem::take(&mut open)));
            }
            open.push(rev);
        }
        if !open.is_empty() {
            chunks.push(Arc::new(open));
        }
        Self { chunks: Arc::new(chunks) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Rev<I>>> {
        let at = self.position(|known| known < key);
        self.chunks.get(at.chunk)?.get(at.index).filter(|rev| rev.key.as_str() == key)
    }

    /// Puts `rev` in its place and returns what was there.
    pub(crate) fn insert(&mut self, rev: Arc<Rev<I>>) -> Option<Arc<Rev<I>>> {
        let mut at = self.position(|known| known < rev.key.as_str());
        let chunks = Arc::make_mut(&mut self.chunks);
        if at.chunk == chunks.len() {
            // Behind every key: the last chunk takes it.
            match chunks.last() {
                Some(last) => at = Position { chunk: at.chunk - 1, index: last.len() },
                None => chunks.push(Arc::new(Vec::new())),
            }
        }
        let chunk = Arc::make_mut(&mut chunks[at.chunk]);
        if let Some(present) = chunk.get_mut(at.index).filter(|present| present.key == rev.key) {
            return Some(std::mem::replace(present, rev));
        }
        chunk.insert(at.index, rev);
        if chunk.len() > CHUNK_MAX {
            // A key appended at the end suggests more of them: leave the full chunk behind.
            let appended = at.index + 1 == chunk.len();
            let upper = chunk.split_off(if appended { CHUNK_MAX } else { CHUNK_MAX / 2 });
            chunks.insert(at.chunk + 1, Arc::new(upper));
        }
        None
    }

    /// Takes `key` out and returns what was there.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<Rev<I>>> {
        let at = self.position(|known| known < key);
        let present = self.chunks.get(at.chunk)?.get(at.index)?;
        if present.key.as_str() != key {
            return None;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[at.chunk]);
        let removed = chunk.remove(at.index);
        if chunk.is_empty() {
            chunks.remove(at.chunk);
        } else if chunk.len() < CHUNK_MIN && at.chunk + 1 < chunks.len() {
            let room = CHUNK_MAX - chunks[at.chunk].len();
            if chunks[at.chunk + 1].len() <= room {
                let next = chunks.remove(at.chunk + 1);
                Arc::make_mut(&mut chunks[at.chunk]).extend(next.iter().cloned());
            }
        }
        Some(removed)
    }

    /// The keys that begin with `prefix`, behind `start_after` if given.
    pub(crate) fn range(&self, prefix: &str, start_after: Option<&str>) -> Vec<Slice<I>> {
        let mut from = self.position(|known| known < prefix);
        if let Some(start_after) = start_after {
            from = from.max(self.position(|known| known <= start_after));
        }
        let to = self.position(|known| known < prefix || known.starts_with(prefix));
        let mut slices = Vec::new();
        for chunk in from.chunk..=to.chunk {
            let Some(shared) = self.chunks.get(chunk) else { break };
            let start = if chunk == from.chunk { from.index } else { 0 };
            let end = if chunk == to.chunk { to.index } else { shared.len() };
            if start < end {
                slices.push(Slice { chunk: Arc::clone(shared), start, end });
            }
        }
        slices
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Rev<I>>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The first place whose key is not `before`, which must hold for a leading part of the keys.
    fn position(&self, before: impl Fn(&str) -> bool) -> Position {
        let chunk = self
            .chunks
            .partition_point(|chunk| before(chunk.last().expect("no chunk is empty").key.as_str()));
        let index = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.partition_point(|rev| before(rev.key.as_str())));
        Position { chunk, index }
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

#[cfg(test)]
mod tests;
