//! Texts of one kind, written shortly: what a text has in common with the first one is not kept
//! again.
//!
//! Objects of a kind have the same fields, and often the same values. A shorthand is a sequence of
//! pieces, each some bytes that are new and then how far back and how long the bytes are that were
//! there before: in the first text, or in this one. Once it is known how frequent which bytes are in
//! that, it is written in [`letters`] of few bits.

mod letters;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, OnceLock, PoisonError};

use self::letters::{Counts, Letters};

/// A piece that is repeated is at least so long; a shorter one is no shorter than what names it.
const REPEATED_MIN: usize = 6;
/// More of the first text is not remembered.
const MODEL_MAX: usize = 16 * 1024;
/// How many places are remembered, by a hash of what is there: a power of two.
const PLACES: usize = 4096;

/// After so many bytes it is known how frequent which are.
const LEARNT: u32 = 64 * 1024;
/// What a shorthand begins with: whether it is in letters.
const IN_BYTES: u8 = 0;
const IN_LETTERS: u8 = 1;

/// The text that others are compared with.
pub(super) struct Model {
    text: Box<[u8]>,
    /// The last place with each hash, and one more; zero if there is none.
    places: Box<[u32; PLACES]>,
    letters: OnceLock<Letters>,
    seen: Mutex<Seen>,
    bench: Mutex<Workbench>,
}

/// What shortening takes, kept from one text to the next: it is much larger than a text.
struct Workbench {
    /// The model's text, and the one that is shortened.
    all: Vec<u8>,
    /// As the model's, but for those that were touched, or any if that many were.
    places: Box<[u32; PLACES]>,
    touched: Vec<u16>,
}

/// The bytes of shorthands before there are letters.
struct Seen {
    counts: Box<Counts>,
    all: u32,
}

impl Model {
    pub(super) fn new(text: &str) -> Self {
        let text = &text.as_bytes()[..text.len().min(MODEL_MAX)];
        let mut places = Box::new([0; PLACES]);
        for at in 0..=text.len().saturating_sub(REPEATED_MIN) {
            if let Some(hash) = hash(text, at) {
                note(&mut places, hash, at);
            }
        }
        let seen = Mutex::new(Seen { counts: Box::new([0; 256]), all: 0 });
        let bench =
            Workbench { all: text.to_vec(), places: places.clone(), touched: Vec::new() }.into();
        Model { text: text.into(), places, letters: OnceLock::new(), seen, bench }
    }

    pub(super) fn shorten(&self, text: &str) -> Vec<u8> {
        let pieces = self.pieces(text);
        let mut short = Vec::with_capacity(pieces.len() + 1);
        if let Some(letters) = self.letters.get() {
            short.push(IN_LETTERS);
            write_number(&mut short, pieces.len());
            letters.write(&pieces, &mut short);
            if short.len() <= pieces.len() {
                return short;
            }
            short.clear();
        } else {
            self.learn(&pieces);
        }
        short.push(IN_BYTES);
        short.extend(pieces);
        short
    }

    /// The text that this is short for.
    ///
    /// # Panics
    /// If it is none of this model's.
    pub(super) fn expand(&self, short: &[u8]) -> String {
        match short.split_first() {
            Some((&IN_LETTERS, mut rest)) => {
                let count = read_number(&mut rest);
                let letters = self.letters.get().expect("it was written in letters");
                self.text(&letters.read(rest, count))
            }
            Some((_, pieces)) => self.text(pieces),
            None => panic!("a shorthand says what it is in"),
        }
    }

    fn learn(&self, pieces: &[u8]) {
        // Nothing that holds it panics half-way.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in pieces {
            seen.counts[usize::from(*byte)] += 1;
        }
        seen.all += pieces.len() as u32;
        if seen.all >= LEARNT {
            self.letters.get_or_init(|| Letters::new(&seen.counts));
        }
    }

    fn pieces(&self, text: &str) -> Vec<u8> {
        // Nothing that holds it panics half-way.
        let mut bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        let Workbench { all, places, touched } = &mut *bench;
        match touched.len() < PLACES {
            true => {
                let places_of_model = touched.iter().map(|hash| usize::from(*hash));
                places_of_model.for_each(|hash| places[hash] = self.places[hash]);
            }
            false => places.copy_from_slice(&self.places[..]),
        }
        touched.clear();
        all.truncate(self.text.len());
        all.shrink_to(self.text.len() + MODEL_MAX);
        all.extend_from_slice(text.as_bytes());
        let mut short = Vec::with_capacity(text.len() / 2);
        let (mut at, mut new) = (self.text.len(), self.text.len());
        while at + REPEATED_MIN <= all.len() {
            let place = hash(all, at).and_then(|hash| {
                if touched.len() < PLACES {
                    touched.push(hash);
                }
                note(places, hash, at)
            });
            let length = place.map_or(0, |place| common(&all[place..], &all[at..]));
            let Some(place) = place.filter(|_| length >= REPEATED_MIN) else {
                at += 1;
                continue;
            };
            write_bytes(&mut short, &all[new..at]);
            write_number(&mut short, at - place);
            write_number(&mut short, length);
            at += length;
            new = at;
        }
        write_bytes(&mut short, &all[new..]);
        short
    }

    fn text(&self, pieces: &[u8]) -> String {
        let mut all = Vec::with_capacity(self.text.len() + pieces.len() * 4);
        all.extend_from_slice(&self.text);
        let mut rest = pieces;
        loop {
            let length = read_number(&mut rest);
            let (new, more) = rest.split_at(length);
            all.extend_from_slice(new);
            rest = more;
            if rest.is_empty() {
                break;
            }
            let place = all.len() - read_number(&mut rest);
            let length = read_number(&mut rest);
            if place + length <= all.len() {
                all.extend_from_within(place..place + length);
                continue;
            }
            // What is repeated reaches into its own repetition.
            for at in place..place + length {
                all.push(all[at]);
            }
        }
        all.drain(..self.text.len());
        String::from_utf8(all).expect("it was a text")
    }
}

/// Of what a place begins with.
fn hash(all: &[u8], at: usize) -> Option<u16> {
    let begin = all[at..].first_chunk::<4>()?;
    let hash = u32::from_le_bytes(*begin).wrapping_mul(2_654_435_761) >> (32 - PLACES.ilog2());
    Some(hash as u16)
}

/// Remembers a place. Gives the last one that may begin alike.
fn note(places: &mut [u32; PLACES], hash: u16, at: usize) -> Option<usize> {
    // A text of four gigabytes is none that a server sends.
    let before = std::mem::replace(&mut places[usize::from(hash)], at as u32 + 1);
    (before as usize).checked_sub(1)
}

/// How many bytes two texts begin with alike.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn write_bytes(short: &mut Vec<u8>, bytes: &[u8]) {
    write_number(short, bytes.len());
    short.extend_from_slice(bytes);
}

/// Seven bits in each byte, the least first; the highest bit says that there are more.
fn write_number(short: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        short.push(number as u8 | 0x80);
        number >>= 7;
    }
    short.push(number as u8);
}

fn read_number(short: &mut &[u8]) -> usize {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = short.split_first().expect("it ends with bytes that are new");
        *short = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}
