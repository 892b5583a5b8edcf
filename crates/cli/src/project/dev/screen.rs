//! What a developer sees: on a terminal one screen, with how far it is above and the last lines of
//! everybody below; elsewhere a line after another.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use super::state::State;

pub(super) struct Screen {
    is_screen: bool,
    /// What does not change.
    head: [String; 2],
    lines: VecDeque<String>,
    told: String,
}

/// What is kept for the screen; no terminal is higher.
const LINES_MAX: usize = 500;
/// Where the terminal does not say.
const USUAL: (usize, usize) = (24, 80);

impl Screen {
    pub(super) fn new(is_screen: bool, project: &str, kubeconfig: &Path) -> Self {
        let head = [
            format!("{project}, again after every change; Ctrl-C ends it"),
            format!("export KUBECONFIG={}", kubeconfig.display()),
        ];
        if !is_screen {
            head.iter().for_each(|line| say!("dev      | {line}"));
        }
        Screen { is_screen, head, lines: VecDeque::new(), told: String::new() }
    }

    /// A line that somebody said.
    pub(super) fn line(&mut self, from: &str, text: &str) {
        let line = format!("{from:<8} | {text}");
        if !self.is_screen {
            say!("{line}");
            return;
        }
        self.lines.push_back(line);
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
        }
    }

    /// Shows how far it is.
    pub(super) fn show(&mut self, state: &State) {
        let told = state.told();
        let is_news = told != self.told;
        self.told = told;
        if self.is_screen {
            let drawn = self.draw(size());
            let mut out = io::stdout().lock();
            // Whoever has closed the terminal is not told.
            let _ = out.write_all(drawn.as_bytes()).and_then(|()| out.flush());
        } else if is_news {
            say!("dev      | {}", self.told);
        }
    }

    /// The whole screen, from its first corner.
    fn draw(&self, (rows, columns): (usize, usize)) -> String {
        let mut text = "\x1b[H\x1b[J".to_owned();
        let mut put = |line: &str| {
            let line: String = line.chars().filter(|c| !c.is_control()).take(columns).collect();
            write!(text, "{line}\r\n").expect("a text takes everything");
        };
        self.head.iter().for_each(|line| put(line));
        put(&self.told);
        put("");
        let room = rows.saturating_sub(self.head.len() + 3);
        let hidden = self.lines.len().saturating_sub(room);
        self.lines.iter().skip(hidden).for_each(|line| put(line));
        text
    }
}

/// Rows and columns of the terminal.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => USUAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_the_last_lines_that_fit() {
        let mut screen = Screen::new(true, "at", Path::new("file"));
        (0..10).for_each(|n| screen.line("cargo", &format!("line {n} of many")));
        let drawn = screen.draw((8, 20));
        assert!(drawn.contains("cargo    | line 9 of\r\n"), "{drawn:?}");
        assert!(!drawn.contains("line 6"), "{drawn:?}");
        assert!(drawn.lines().count() <= 8, "{drawn:?}");
    }
}
