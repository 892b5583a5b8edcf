//! YAML as kubectl and the API server read and write it: YAML 1.1 words and octal numbers, merge
//! keys, and nothing that JSON cannot say.
//!
//! The grammar is `granit-parser`'s, which reads YAML 1.2. What a scalar means, what a repeated
//! key or an alias does, and how a tree is written are decided here, after upstream's library.

mod complaint;
mod decode;
mod encode;
mod scalar;

pub use decode::{DecodeError, decode};
pub use encode::to_string;

/// The documents of a stream, as kubectl takes it apart: at lines that start with `---`, before
/// anything is parsed. Those that are empty come out as they are.
///
/// # Errors
/// A separator may be followed by nothing but a comment.
pub fn documents(stream: &str) -> Result<Vec<&str>, SplitError> {
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in stream.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("---") {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(SplitError { rest: rest.to_owned() });
            }
            // A separator before anything else begins the first document and ends none.
            if at > start {
                documents.push(&stream[start..at]);
            }
            start = at + line.len();
        }
        at += line.len();
    }
    if at > start {
        documents.push(&stream[start..]);
    }
    Ok(documents)
}

/// A separator with something on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid Yaml document separator: {rest}")]
pub struct SplitError {
    rest: String,
}

/// Whether a body is to be read as JSON: its first character that is no space is a brace.
pub fn is_json(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'{')
}

#[cfg(test)]
mod tests;
