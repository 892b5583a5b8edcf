//! What was read of texts lately.
//!
//! Who hears of a change looks at the object, and so does the reconcile that follows: the text is
//! read for the first of them. All objects of a kind that has few stay read.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

/// How long the texts may be whose objects are in one generation. Objects take two or three times
/// the room.
const GENERATION_BYTES: usize = 512 * 1024;

/// Objects by where their texts are. Two generations: when the younger one is large enough, the
/// older one, of which nobody has asked for anything meanwhile, is forgotten.
pub(super) struct Lately<K> {
    young: HashMap<usize, Read<K>>,
    old: HashMap<usize, Read<K>>,
    young_bytes: usize,
}

struct Read<K> {
    /// Held, so that no other text comes to be in its place.
    text: Arc<[u8]>,
    bytes: usize,
    object: Arc<K>,
}

impl<K> Default for Lately<K> {
    fn default() -> Self {
        Lately { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 }
    }
}

impl<K> Lately<K> {
    /// What was read of this very text.
    pub(super) fn find(&mut self, text: &Arc<[u8]>) -> Option<Arc<K>> {
        if let Some(read) = self.young.get(&place(text)) {
            return Some(Arc::clone(&read.object));
        }
        let read = self.old.remove(&place(text))?;
        let object = Arc::clone(&read.object);
        self.keep(read);
        Some(object)
    }

    /// Takes note of what was read of a text of so many bytes.
    pub(super) fn add(&mut self, text: &Arc<[u8]>, bytes: usize, object: &Arc<K>) {
        self.keep(Read { text: Arc::clone(text), bytes, object: Arc::clone(object) });
    }

    fn keep(&mut self, read: Read<K>) {
        if self.young_bytes + read.bytes > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += read.bytes;
        if let Some(again) = self.young.insert(place(&read.text), read) {
            // Two have read it at once.
            self.young_bytes -= again.bytes;
        }
    }
}

fn place(text: &Arc<[u8]>) -> usize {
    text.as_ptr().addr()
}
