//! What is known of an operator that is being developed, and what is to be done next. Decides only.

use std::path::PathBuf;

use super::report::Report;

/// What happens.
pub(super) enum Event {
    /// A source is different.
    Changed,
    /// There is a program, or why there is none.
    Built(Result<PathBuf, String>),
    /// The operator ended, with this status.
    Ended(String),
    /// The operator was asked how it is doing.
    Reported(Option<Report>),
    /// Somebody said something.
    Line { from: &'static str, text: String },
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Build,
    Restart(PathBuf),
    Wait,
}

/// How far it is. It begins with a build.
pub(super) struct State {
    is_building: bool,
    /// Something has changed since the build began.
    is_stale: bool,
    starts: u32,
    /// What people should know.
    note: String,
    /// What the operator that runs has last said of itself.
    report: Report,
}

impl Default for State {
    fn default() -> Self {
        let (note, report) = (String::new(), Report::default());
        State { is_building: true, is_stale: false, starts: 0, note, report }
    }
}

impl State {
    pub(super) fn next(&mut self, event: Event) -> Step {
        match event {
            Event::Changed if self.is_building => {
                self.is_stale = true;
                Step::Wait
            }
            Event::Changed => self.build(),
            // What was built is not what is there any more.
            Event::Built(_) if self.is_stale => self.build(),
            Event::Built(built) => {
                self.is_building = false;
                match built {
                    Ok(program) => {
                        self.starts += 1;
                        self.note.clear();
                        self.report = Report::default();
                        Step::Restart(program)
                    }
                    Err(reason) => {
                        self.note = match self.starts {
                            0 => reason,
                            _ => format!("{reason}; the former one goes on"),
                        };
                        Step::Wait
                    }
                }
            }
            Event::Ended(status) => {
                self.report = Report::default();
                self.note =
                    format!("the operator ended: {status}; the next change starts it again");
                Step::Wait
            }
            // One that does not answer is as it was when it last did.
            Event::Reported(report) => {
                self.report = report.unwrap_or_else(|| std::mem::take(&mut self.report));
                Step::Wait
            }
            Event::Line { .. } => Step::Wait,
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.note = note;
    }

    /// In a line.
    pub(super) fn told(&self) -> String {
        let doing = match (self.is_building, self.starts) {
            (true, _) => "building".to_owned(),
            (false, 0) => "not running".to_owned(),
            (false, starts) => format!("running, started {starts} times"),
        };
        if self.note.is_empty() { doing } else { format!("{doing}: {}", self.note) }
    }

    /// What the operator says of itself, in some lines.
    pub(super) fn details(&self) -> Vec<String> {
        self.report.lines()
    }

    fn build(&mut self) -> Step {
        (self.is_building, self.is_stale) = (true, false);
        Step::Build
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Result<PathBuf, String> {
        Ok("program".into())
    }

    #[test]
    fn what_changes_during_a_build_is_built_before_anything_starts() {
        let mut state = State::default();
        assert_eq!(state.next(Event::Changed), Step::Wait);
        assert_eq!(state.next(Event::Built(program())), Step::Build);
        assert_eq!(state.next(Event::Built(program())), Step::Restart("program".into()));
        assert_eq!(state.next(Event::Changed), Step::Build);
    }

    #[test]
    fn what_does_not_build_leaves_the_former_one_alone() {
        let mut state = State::default();
        assert_eq!(state.next(Event::Built(program())), Step::Restart("program".into()));
        assert_eq!(state.next(Event::Changed), Step::Build);
        assert_eq!(state.next(Event::Built(Err("it does not build".to_owned()))), Step::Wait);
        let told = "running, started 1 times: it does not build; the former one goes on";
        assert_eq!(state.told(), told);
        assert_eq!(state.next(Event::Changed), Step::Build);
        assert_eq!(state.next(Event::Built(program())), Step::Restart("program".into()));
        assert_eq!(state.told(), "running, started 2 times");
    }

    #[test]
    fn an_operator_that_ended_waits_for_a_change() {
        let mut state = State::default();
        state.next(Event::Built(program()));
        let report = serde_json::json!({"webhooks": ["/convert"]});
        let report = serde_json::from_value(report).expect("a report");
        assert_eq!(state.next(Event::Reported(Some(report))), Step::Wait);
        assert_eq!(state.next(Event::Reported(None)), Step::Wait);
        assert_eq!(state.details(), ["webhooks: /convert"]);
        assert_eq!(state.next(Event::Ended("exit status: 1".to_owned())), Step::Wait);
        assert!(state.told().contains("exit status: 1"));
        assert!(state.details().is_empty(), "it is not doing anything");
        assert_eq!(state.next(Event::Changed), Step::Build);
    }
}
