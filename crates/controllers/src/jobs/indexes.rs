//! Sets of completion indexes, as a Job's status writes them: `1,3-5,7`.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

/// Indexes, as few ranges as there can be, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<Range>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    first: u32,
    last: u32,
}

impl Indexes {
    /// Reads indexes below a bound. What cannot be read is overlooked: it is of our own writing.
    pub(super) fn parse(text: &str, below: u32) -> Self {
        let mut ranges = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                continue;
            };
            if first < below {
                ranges.push(Range { first, last: last.min(below - 1) });
            }
        }
        Indexes::default().with(ranges)
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|range| (range.last - range.first + 1) as usize).sum()
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        let position = self.0.partition_point(|range| range.last < index);
        self.0.get(position).is_some_and(|range| range.first <= index)
    }

    pub(super) fn union(&self, other: &Indexes) -> Self {
        self.with(other.0.iter().copied())
    }

    /// How many of these the other has too.
    pub(super) fn common(&self, other: &Indexes) -> usize {
        let overlap = |left: &Range, right: &Range| {
            let (first, last) = (left.first.max(right.first), left.last.min(right.last));
            (last + 1).saturating_sub(first) as usize
        };
        self.0.iter().flat_map(|left| other.0.iter().map(|right| overlap(left, right))).sum()
    }

    fn with(&self, more: impl IntoIterator<Item = Range>) -> Self {
        let mut all: Vec<Range> = self.0.iter().copied().chain(more).collect();
        all.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(all.len());
        for range in all {
            match merged.last_mut() {
                Some(last) if range.first <= last.last + 1 => last.last = last.last.max(range.last),
                _ => merged.push(range),
            }
        }
        Indexes(merged)
    }
}

impl FromIterator<u32> for Indexes {
    fn from_iter<T: IntoIterator<Item = u32>>(indexes: T) -> Self {
        let indexes: BTreeSet<u32> = indexes.into_iter().collect();
        Indexes::default().with(indexes.into_iter().map(|it| Range { first: it, last: it }))
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, Range { first, last }) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}
