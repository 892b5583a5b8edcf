//! An answer of HTTP/1.1 as it comes in, in pieces of any size. Only what servers of the Kubernetes
//! API send is understood: a length, or chunks without extensions and trailers.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;

/// An answer, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Answer {
    status: u16,
    next: Next,
}

/// What comes next.
#[derive(Debug)]
enum Next {
    /// The rest of the head, which began with this.
    Head(Vec<u8>),
    /// So many bytes of the body, which ends with them.
    Rest(usize),
    /// The rest of the line that says how long the next chunk is; this is what it said so far.
    Size(usize),
    /// So many bytes of a chunk.
    Chunk(usize),
    /// So many bytes behind a chunk, or behind the last.
    Break {
        bytes: usize,
        is_last: bool,
    },
    Nothing,
}

impl Default for Next {
    fn default() -> Self {
        Next::Head(Vec::new())
    }
}

impl Answer {
    pub(super) fn has_status(&self) -> bool {
        self.status > 0
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.next, Next::Nothing)
    }

    /// Understands some more bytes. Hands over what of the body is among them, and whether the
    /// answer is a success.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        take: &mut impl FnMut(bool, &[u8]),
    ) -> Result<()> {
        while !bytes.is_empty() {
            let is_success = self.is_success();
            let mut pass = |bytes: &mut &[u8], left: usize| {
                let (body, rest) = bytes.split_at(bytes.len().min(left));
                take(is_success, body);
                *bytes = rest;
                left - body.len()
            };
            self.next = match &mut self.next {
                Next::Head(head) => {
                    // The end may have begun in the piece before.
                    let from = head.len().saturating_sub(END.len() - 1);
                    let before = head.len();
                    head.extend_from_slice(bytes);
                    let Some(end) = memmem::find(&head[from..], END) else { return Ok(()) };
                    let end = from + end + END.len();
                    bytes = &bytes[end - before..];
                    let (status, next) = understood(&head[..end])?;
                    self.status = status;
                    next
                }
                Next::Rest(left) => {
                    let left = pass(&mut bytes, *left);
                    if left > 0 { Next::Rest(left) } else { Next::Nothing }
                }
                Next::Size(size) => {
                    let (byte, size) = (bytes[0], *size);
                    bytes = &bytes[1..];
                    match byte {
                        b'\n' if size == 0 => Next::Break { bytes: 2, is_last: true },
                        b'\n' => Next::Chunk(size),
                        b'\r' => Next::Size(size),
                        digit => {
                            let digit = char::from(digit).to_digit(16);
                            Next::Size(size * 16 + digit.context("a chunk has a size")? as usize)
                        }
                    }
                }
                Next::Chunk(left) => match pass(&mut bytes, *left) {
                    0 => Next::Break { bytes: 2, is_last: false },
                    left => Next::Chunk(left),
                },
                Next::Break { bytes: left, is_last } => {
                    let (skipped, is_last) = (bytes.len().min(*left), *is_last);
                    let left = *left - skipped;
                    bytes = &bytes[skipped..];
                    match (left, is_last) {
                        (0, true) => Next::Nothing,
                        (0, false) => Next::Size(0),
                        (bytes, is_last) => Next::Break { bytes, is_last },
                    }
                }
                Next::Nothing => bail!("an answer has an end, but more came"),
            };
        }
        Ok(())
    }
}

const END: &[u8] = b"\r\n\r\n";

/// What a head says: how it went, and what follows.
fn understood(head: &[u8]) -> Result<(u16, Next)> {
    let head = std::str::from_utf8(head).context("read the head of an answer")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|status| status.get(..3)?.parse().ok());
    let status = status.context("an answer has a status")?;
    let mut next = None;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("content-length") {
            next = Some(match value.parse().context("read the length of an answer")? {
                0 => Next::Nothing,
                length => Next::Rest(length),
            });
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            ensure!(value.eq_ignore_ascii_case("chunked"), "an answer is {value}");
            next = Some(Next::Size(0));
        }
    }
    Ok((status, next.context("an answer says where it ends")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it is cut into pieces, the text is the same answer.
    fn check(text: &str, status: u16, expected: &str) {
        for piece in 1..=text.len() {
            let (mut answer, mut body) = (Answer::default(), Vec::new());
            for bytes in text.as_bytes().chunks(piece) {
                assert!(!answer.is_over());
                answer.feed(bytes, &mut |_, bytes| body.extend_from_slice(bytes)).unwrap();
            }
            assert!(answer.is_over());
            assert_eq!((answer.status(), &*body), (status, expected.as_bytes()));
        }
    }

    #[test]
    fn a_body_with_a_length_is_as_long() {
        check("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n{}\r\n\n", 201, "{}\r\n\n");
        check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, "");
    }

    #[test]
    fn chunks_are_joined() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(
            &format!("{head}3\r\nabc\r\n1A\r\n0123456789\r\nABCDEFGHIJKLMN\r\n0\r\n\r\n"),
            200,
            "abc0123456789\r\nABCDEFGHIJKLMN",
        );
        check(&format!("{head}0\r\n\r\n"), 200, "");
    }

    #[test]
    fn a_refusal_is_told_apart() {
        let text = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
        let mut told = Vec::new();
        let mut answer = Answer::default();
        answer.feed(text, &mut |is_success, body| told.push((is_success, body.to_vec()))).unwrap();
        assert_eq!(told, [(false, b"no".to_vec())]);
        assert!(!answer.is_success());
    }

    #[test]
    fn what_comes_behind_the_end_is_noticed() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore";
        assert!(Answer::default().feed(text, &mut |_, _| ()).is_err());
    }
}
