//! What a container has written, as it is asked for: since when, how much, with which times.

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use jiff::Timestamp;

/// How a log is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) follow: bool,
    /// The run that has ended before, as status shows it.
    pub(super) previous: bool,
    timestamps: bool,
    since: Option<Timestamp>,
    pub(super) tail: Option<u64>,
    limit_bytes: Option<u64>,
    /// `stdout` or `stderr`; none for both.
    stream: Option<String>,
}

impl Options {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(query: &str, now: Timestamp) -> Result<Self, String> {
        let mut options = Options::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let invalid = || format!("Invalid value: {value:?} for {name}");
            let flag = || matches!(&*value, "" | "1" | "true" | "True");
            let number = || value.parse::<u64>().map_err(|_| invalid());
            match &*name {
                "follow" => options.follow = flag(),
                "previous" => options.previous = flag(),
                "timestamps" => options.timestamps = flag(),
                "tailLines" => options.tail = Some(number()?),
                "limitBytes" => options.limit_bytes = Some(number()?),
                "sinceSeconds" => {
                    let ago = Duration::from_secs(number()?);
                    options.since = Some(now.saturating_sub(ago).unwrap_or(Timestamp::MIN));
                }
                "sinceTime" => options.since = Some(value.parse().map_err(|_| invalid())?),
                "stream" => match &*value {
                    "Stdout" => options.stream = Some("stdout".to_owned()),
                    "Stderr" => options.stream = Some("stderr".to_owned()),
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(options)
    }
}

/// Makes what was asked for of what is in a log.
#[derive(Debug)]
pub(super) struct Selection {
    options: Options,
    /// What has come of a line that has not ended.
    rest: Vec<u8>,
    /// So many lines are left out first.
    skipped: u64,
    sent: u64,
    lines: u64,
    /// What was selected last is a part of a line, whose rest follows.
    is_within_line: bool,
}

impl Selection {
    pub(super) fn new(options: Options) -> Self {
        Selection {
            options,
            rest: Vec::new(),
            skipped: 0,
            sent: 0,
            lines: 0,
            is_within_line: false,
        }
    }

    /// Leaves out the first lines.
    pub(super) fn skipping(self, skipped: u64) -> Self {
        Selection { skipped, ..self }
    }

    /// How many lines there were that fit.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Whether no more is wanted.
    pub(super) fn is_full(&self) -> bool {
        self.options.limit_bytes.is_some_and(|limit| self.sent >= limit)
    }

    /// The next bytes of the log, as they are to be sent.
    pub(super) fn select(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut selected = Vec::new();
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return selected };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            self.line(line, &mut selected);
        }
        if let Some(limit) = self.options.limit_bytes {
            let room = usize::try_from(limit - self.sent.min(limit)).unwrap_or(usize::MAX);
            selected.truncate(room);
        }
        self.sent += selected.len() as u64;
        selected
    }

    fn line(&mut self, line: &[u8], selected: &mut Vec<u8>) {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let (Some(at), Some(stream), Some(tag), Some(text)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let is_asked =
            self.options.stream.as_ref().is_none_or(|wanted| wanted.as_bytes() == stream);
        let time = || str::from_utf8(at).ok().and_then(|at| at.parse::<Timestamp>().ok());
        let is_recent = self.options.since.is_none_or(|since| time().is_some_and(|at| at >= since));
        if !is_asked || !is_recent {
            return;
        }
        let is_whole = tag == b"F";
        self.lines += u64::from(is_whole);
        if self.skipped > 0 {
            self.skipped -= u64::from(is_whole);
            return;
        }
        if self.options.timestamps && !self.is_within_line {
            selected.extend(at);
            selected.push(b' ');
        }
        self.is_within_line = !is_whole;
        match is_whole {
            true => selected.extend(text),
            // The rest of the line follows.
            false => selected.extend(text.strip_suffix(b"\n").unwrap_or(text)),
        }
    }
}

/// A log as it was asked for.
pub(super) fn stream(
    log: BoxStream<'static, std::io::Result<Vec<u8>>>,
    selection: Selection,
) -> BoxStream<'static, std::io::Result<Vec<u8>>> {
    let stream = futures::stream::unfold((log, selection), |(mut log, mut selection)| async move {
        if selection.is_full() {
            return None;
        }
        let next = log.next().await?.map(|bytes| selection.select(&bytes));
        Some((next, (log, selection)))
    });
    stream.filter(|next| std::future::ready(!matches!(next, Ok(bytes) if bytes.is_empty()))).boxed()
}
