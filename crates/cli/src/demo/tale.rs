//! What happens, a line each, as it happens.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::time::Instant;

/// A teller with a watch.
pub(super) struct Tale {
    started: Instant,
    is_coloured: bool,
}

/// As wide as the longest name.
const NAME_WIDTH: usize = 9;

impl Tale {
    pub(super) fn new(started: Instant) -> Self {
        let is_coloured = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none();
        Tale { started, is_coloured }
    }

    /// Something happened.
    pub(super) fn tell(&self, who: &str, what: impl Display) {
        let (colour, plain) = self.colours("\x1b[36m");
        let seconds = self.started.elapsed().as_secs_f64();
        say!("{seconds:7.3} s  {colour}{who:NAME_WIDTH$}{plain}  {what}");
    }

    /// Something did not happen.
    pub(super) fn fail(&self, who: &str, error: &anyhow::Error) {
        let (colour, plain) = self.colours("\x1b[31m");
        self.tell(who, format_args!("{colour}did not happen:{plain} {}", crate::reasons(error)));
    }

    /// There is no more to tell.
    pub(super) fn end(&self, last: &str) {
        let (colour, plain) = self.colours("\x1b[1m");
        let seconds = self.started.elapsed().as_secs_f64();
        say!("\n{colour}After {seconds:.1} s {last}{plain}");
    }

    fn colours(&self, colour: &'static str) -> (&'static str, &'static str) {
        if self.is_coloured { (colour, "\x1b[0m") } else { ("", "") }
    }
}
