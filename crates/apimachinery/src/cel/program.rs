//! Expressions prepared to run.

mod composition;
mod eval;
mod plan;

pub use self::composition::{Composition, Named};
use self::eval::Frame;
use super::check::Checked;
use super::function::Overload;
use super::value::{Failure, Outcome, Val};
use crate::regex::Regex;

/// An expression that can be run with values for its variables.
pub struct Program {
    root: Node,
    /// How many variables there are at once, its own included.
    n_slots: usize,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("n_slots", &self.n_slots).finish_non_exhaustive()
    }
}

/// What a run came to.
pub struct Run<'v> {
    pub outcome: Outcome<'v>,
    pub cost: u64,
}

impl Program {
    pub(super) fn new(checked: &Checked, variables: &[&str]) -> Result<Self, Failure> {
        let (root, n_slots) = plan::plan(checked, variables)?;
        Ok(Program { root, n_slots })
    }

    /// Runs with values for the variables, in the order they were given when it was made. Ends
    /// with a failure as soon as it costs more than `cost_max`.
    pub fn run<'v>(&'v self, variables: Vec<Outcome<'v>>, cost_max: u64) -> Run<'v> {
        self.run_in(variables, cost_max, None)
    }

    /// Runs with the values that a composition was made with.
    pub fn run_composed<'v>(&'v self, composition: &mut Composition<'v>) -> Run<'v> {
        let (values, cost_max) = (composition.values.clone(), composition.cost_max);
        self.run_in(values, cost_max, Some(composition))
    }

    fn run_in<'v>(
        &'v self,
        variables: Vec<Outcome<'v>>,
        cost_max: u64,
        composition: Option<&mut Composition<'v>>,
    ) -> Run<'v> {
        let mut frame = Frame::new(variables, self.n_slots, cost_max, composition);
        let outcome = frame.eval(&self.root);
        Run { outcome, cost: frame.cost() }
    }
}

/// A step of the evaluation.
enum Node {
    Constant(Val<'static>),
    Variable(usize),
    Select {
        operand: Box<Node>,
        field: Box<str>,
        mode: Select,
    },
    Index {
        operand: Box<Node>,
        index: Box<Node>,
        optional: bool,
    },
    Conditional(Box<[Node; 3]>),
    And(Box<[Node]>),
    Or(Box<[Node]>),
    /// Whether a value is one of some constants.
    Member {
        value: Box<Node>,
        constants: Val<'static>,
    },
    /// The value of an optional, or else another value; a whole optional unless `unwrap`.
    OptionalOr {
        optional: Box<Node>,
        other: Box<Node>,
        unwrap: bool,
    },
    Call(Box<Call>),
    List(Box<[(bool, Node)]>),
    Map(Box<[(bool, Node, Node)]>),
    Struct {
        type_name: Box<str>,
        fields: Box<[(bool, Box<str>, Node)]>,
    },
    Fold(Box<Fold>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Select {
    Value,
    Optional,
    /// Only asks whether it is there.
    Test,
}

struct Call {
    function: &'static str,
    candidates: &'static [Overload],
    is_member: bool,
    /// Known when the types left no doubt.
    overload: Option<&'static Overload>,
    /// The pattern, when it is a constant.
    pattern: Option<Regex>,
    /// Goes on to the second of two arguments when the first fails.
    looks_at_all: bool,
    args: Box<[Node]>,
}

struct Fold {
    range: Node,
    /// Slots of the variables.
    first: usize,
    second: Option<usize>,
    body: FoldBody,
}

enum FoldBody {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    List {
        filter: Option<Node>,
        value: Node,
    },
    Map {
        filter: Option<Node>,
        key: Option<Node>,
        value: Node,
    },
    /// Names the value of the range.
    Bind(Node),
}

impl Node {
    /// Whether it denotes a place rather than a result; costs are counted differently then.
    fn is_place(&self) -> bool {
        matches!(
            self,
            Node::Variable(_) | Node::Select { .. } | Node::Index { .. } | Node::Conditional(_)
        )
    }
}
