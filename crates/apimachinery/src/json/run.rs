//! How far a text goes on without anything special in it. Most of JSON is such runs, and whoever
//! looks at one byte at a time spends most of the time on them.

/// How many bytes are looked at together, which a processor does at once.
const TOGETHER: usize = 16;

/// How many bytes there are before the first that `ends` the run. It should not branch, or bytes are
/// looked at one by one after all.
pub(super) fn length(bytes: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    let (together, _) = bytes.as_chunks::<TOGETHER>();
    let goes_on = |some: &&[u8; TOGETHER]| !some.iter().fold(false, |any, byte| any | ends(*byte));
    let sure = together.iter().take_while(goes_on).count() * TOGETHER;
    let rest = bytes[sure..].iter();
    sure + rest.take_while(|byte| !ends(**byte)).count()
}
