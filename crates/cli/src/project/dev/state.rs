//! What is known of an operator that is being developed, and what is to be done next. Decides only.

use std::path::PathBuf;

/// What happens.
pub(super) enum Event {
    /// A source is different.
    Changed,
    /// There is a program, or why there is none.
    Built(Result<PathBuf, String>),
    /// The operator ended, with this status.
    Ended(String),
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
}

impl Default for State {
    fn default() -> Self {
        State { is_building: true, is_stale: false, starts: 0, note: String::new() }
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
                self.note =
                    format!("the operator ended: {status}; the next change starts it again");
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
        assert_eq!(state.next(Event::Ended("exit status: 1".to_owned())), Step::Wait);
        assert!(state.told().contains("exit status: 1"));
        assert_eq!(state.next(Event::Changed), Step::Build);
    }
}
