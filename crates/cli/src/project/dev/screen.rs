//! What a developer sees: on a terminal one screen, with how far it is and how the operator is doing
//! above, and the last lines of everybody below; elsewhere a line after another.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use super::state::State;

pub(super) struct Screen {
    is_screen: bool,
    /// What does not change.
    head: Vec<String>,
    lines: VecDeque<String>,
    told: String,
    details: Vec<String>,
}

/// What is kept for the screen; no terminal is higher.
const LINES_MAX: usize = 500;
/// Where the terminal does not say.
const USUAL: (usize, usize) = (24, 80);

impl Screen {
    /// `metrics` is where the operator is asked how it is doing, if it is; `within` what is to be
    /// said of its namespaces.
    pub(super) fn new(
        is_screen: bool,
        project: &str,
        kubeconfig: &Path,
        metrics: Option<SocketAddr>,
        within: Option<String>,
    ) -> Self {
        let mut head = vec![
            format!("{project}, again after every change; Ctrl-C ends it"),
            format!("export KUBECONFIG={}", kubeconfig.display()),
        ];
        head.extend(metrics.map(|it| format!("metrics at http://{it}/metrics")));
        head.extend(within);
        if !is_screen {
            head.iter().for_each(|line| say!("dev      | {line}"));
        }
        let (lines, told, details) = (VecDeque::new(), String::new(), Vec::new());
        Screen { is_screen, head, lines, told, details }
    }

    pub(super) fn is_screen(&self) -> bool {
        self.is_screen
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
        self.details = state.details();
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
        // Half of the screen, so that there is room for what is said.
        let details = self.details.len().min(rows / 2);
        self.details.iter().take(details).for_each(|line| put(line));
        put("");
        let room = rows.saturating_sub(self.head.len() + details + 3);
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
        let mut screen = Screen::new(true, "at", Path::new("file"), None, None);
        (0..10).for_each(|n| screen.line("cargo", &format!("line {n} of many")));
        let drawn = screen.draw((8, 20));
        assert!(drawn.contains("cargo    | line 9 of\r\n"), "{drawn:?}");
        assert!(!drawn.contains("line 6"), "{drawn:?}");
        assert!(drawn.lines().count() <= 8, "{drawn:?}");
    }

    #[test]
    fn a_screen_has_the_state_above_the_lines() {
        let metrics = Some(([127, 0, 0, 1], 9).into());
        let mut screen = Screen::new(true, "at", Path::new("file"), metrics, None);
        screen.line("operator", "hello");
        screen.told = "running, started 1 times".to_owned();
        screen.details = vec!["at: 3 reconciles, 0 failed, 0 waiting".to_owned()];
        let expected = "\x1b[H\x1b[J\
                        at, again after every change; Ctrl-C ends it\r\n\
                        export KUBECONFIG=file\r\n\
                        metrics at http://127.0.0.1:9/metrics\r\n\
                        running, started 1 times\r\n\
                        at: 3 reconciles, 0 failed, 0 waiting\r\n\
                        \r\n\
                        operator | hello\r\n";
        assert_eq!(screen.draw((24, 80)), expected);
        screen.details = vec!["more".to_owned(); 50];
        assert!(screen.draw((24, 80)).lines().count() <= 24);
    }
}
