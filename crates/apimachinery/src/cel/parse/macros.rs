//! Calls that are not calls: `has`, the quantifiers, `map` and its relatives.

use super::Parser;
use crate::cel::ast::{Call, Element, Expr, Fold, Id, Kind, Literal, Purpose, operator};

/// The name of the accumulator, which no expression can write.
pub(in crate::cel) const ACCUMULATOR: &str = "@result";
/// What it was called once; still nobody's variable.
const OLD_ACCUMULATOR: &str = "__result__";
const UNUSED: &str = "#unused";

pub(super) enum Expansion {
    Done(Expr),
    /// It is a call after all.
    None {
        target: Option<Expr>,
        args: Vec<Expr>,
    },
    Wrong {
        at: Id,
        message: String,
    },
}

pub(super) fn expand(
    parser: &mut Parser,
    id: Id,
    function: &str,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Expansion {
    let offset = parser.offsets[id];
    let height = parser.heights[id];
    let mut maker = Maker { parser, offset, height };
    let result = match (function, target, args.len()) {
        ("has", None, 1) => maker.has(args),
        ("all", Some(range), 2 | 3) => maker.quantifier(Purpose::All, range, args),
        ("exists", Some(range), 2 | 3) => maker.quantifier(Purpose::Exists, range, args),
        ("exists_one", Some(range), 2 | 3) | ("existsOne", Some(range), 3) => {
            maker.quantifier(Purpose::ExistsOne, range, args)
        }
        ("map", Some(range), 2 | 3) => maker.map(range, args),
        ("filter", Some(range), 2) => maker.filter(range, args),
        ("transformList" | "transformMap" | "transformMapEntry", Some(range), 3 | 4) => {
            maker.transform(function, range, args)
        }
        ("optMap" | "optFlatMap", Some(target), 2) => maker.optional_map(function, target, args),
        ("sortBy", Some(target), 2) => maker.sort_by(target, args),
        (_, target, _) => return Expansion::None { target, args },
    };
    match result {
        Ok(expr) => Expansion::Done(expr),
        Err((at, message)) => Expansion::Wrong { at, message },
    }
}

/// The argument that is wrong, and why.
type Wrong = (Id, String);
type Made = Result<Expr, Wrong>;

/// Makes nodes that all stand where the macro does.
struct Maker<'p> {
    parser: &'p mut Parser,
    offset: u32,
    /// Of the call that the macro is written as.
    height: usize,
}

impl Maker<'_> {
    fn has(&mut self, args: Vec<Expr>) -> Made {
        let [arg] = take(args);
        match arg.kind {
            Kind::Select { operand, field, .. } => {
                Ok(self.node(Kind::Select { operand, field, test_only: true }))
            }
            _ => Err((arg.id, "invalid argument to has() macro".to_owned())),
        }
    }

    fn quantifier(&mut self, purpose: Purpose, range: Expr, args: Vec<Expr>) -> Made {
        let count = args.len() - 1;
        let (variables, mut rest) = variables(args, count, "argument must be a simple name")?;
        let predicate = rest.remove(0);
        let accumulator = self.accumulator();
        let (init, condition, step, result) = match purpose {
            Purpose::All => (
                self.literal(Literal::Bool(true)),
                self.call(operator::NOT_STRICTLY_FALSE, vec![accumulator]),
                {
                    let accumulator = self.accumulator();
                    self.call(operator::AND, vec![accumulator, predicate])
                },
                self.accumulator(),
            ),
            Purpose::Exists => (
                self.literal(Literal::Bool(false)),
                {
                    let not = self.call(operator::NOT, vec![accumulator]);
                    self.call(operator::NOT_STRICTLY_FALSE, vec![not])
                },
                {
                    let accumulator = self.accumulator();
                    self.call(operator::OR, vec![accumulator, predicate])
                },
                self.accumulator(),
            ),
            _ => (
                self.literal(Literal::Int(0)),
                self.literal(Literal::Bool(true)),
                {
                    let one = self.literal(Literal::Int(1));
                    let more = self.call(operator::ADD, vec![accumulator, one]);
                    let same = self.accumulator();
                    self.call(operator::CONDITIONAL, vec![predicate, more, same])
                },
                {
                    let (accumulator, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                    self.call(operator::EQUALS, vec![accumulator, one])
                },
            ),
        };
        Ok(self.fold(purpose, range, variables, [init, condition, step, result]))
    }

    fn map(&mut self, range: Expr, args: Vec<Expr>) -> Made {
        let (variables, rest) = variables(args, 1, "argument is not an identifier")?;
        let (filter, [value]) = filtered(rest);
        let step = self.append(value);
        Ok(self.collect(Purpose::List, range, variables, filter, step))
    }

    fn filter(&mut self, range: Expr, args: Vec<Expr>) -> Made {
        let variable = args[0].clone();
        let (variables, mut rest) = variables(args, 1, "argument is not an identifier")?;
        let step = self.append(variable);
        let filter = Some(rest.remove(0));
        Ok(self.collect(Purpose::List, range, variables, filter, step))
    }

    fn transform(&mut self, function: &str, range: Expr, args: Vec<Expr>) -> Made {
        let (variables, rest) = variables(args, 2, "argument must be a simple name")?;
        let (filter, [value]) = filtered(rest);
        let (purpose, step) = match function {
            "transformList" => (Purpose::List, self.append(value)),
            _ => {
                let mut args = vec![self.accumulator()];
                if function == "transformMap" {
                    args.push(self.node(Kind::Ident(variables[0].clone())));
                }
                args.push(value);
                (Purpose::Map, self.call("cel.@mapInsert", args))
            }
        };
        Ok(self.collect(purpose, range, variables, filter, step))
    }

    fn optional_map(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Made {
        let [variable, value] = take(args);
        let Kind::Ident(name) = variable.kind else {
            let message = format!("{function}() variable name must be a simple identifier");
            return Err((variable.id, message));
        };
        let has_value = self.member_call("hasValue", target.clone(), vec![]);
        let copy = self.copy(target);
        let init = self.member_call("value", copy, vec![]);
        let bound = self.bind(name, init, value);
        let present = match function {
            "optMap" => self.call("optional.of", vec![bound]),
            _ => bound,
        };
        let none = self.call("optional.none", vec![]);
        Ok(self.call(operator::CONDITIONAL, vec![has_value, present, none]))
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Made {
        const INPUT: &str = "@__sortBy_input__";
        if matches!(target.kind, Kind::Literal(_) | Kind::Map(_) | Kind::Struct { .. }) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, \
                           call or select expression";
            return Err((target.id, message.to_owned()));
        }
        let range = self.node(Kind::Ident(INPUT.into()));
        let keys = self.map(range, args)?;
        let input = self.node(Kind::Ident(INPUT.into()));
        let sorted = self.member_call("@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.bind(INPUT.into(), target, sorted))
    }

    /// A fold over nothing, which only gives `init` a name.
    fn bind(&mut self, name: Box<str>, init: Expr, result: Expr) -> Expr {
        let fold = Fold {
            purpose: Purpose::Bind,
            range: self.node(Kind::List(Vec::new())),
            variable: UNUSED.into(),
            second_variable: None,
            accumulator: name.clone(),
            init,
            condition: self.literal(Literal::Bool(false)),
            step: self.node(Kind::Ident(name)),
            result,
        };
        self.node(Kind::Fold(Box::new(fold)))
    }

    fn append(&mut self, value: Expr) -> Expr {
        let accumulator = self.accumulator();
        let item = self.node(Kind::List(vec![Element { optional: false, value }]));
        self.call(operator::ADD, vec![accumulator, item])
    }

    /// A fold that takes every step whose filter holds.
    fn collect(
        &mut self,
        purpose: Purpose,
        range: Expr,
        variables: Vec<Box<str>>,
        filter: Option<Expr>,
        step: Expr,
    ) -> Expr {
        let step = match filter {
            None => step,
            Some(filter) => {
                let same = self.accumulator();
                self.call(operator::CONDITIONAL, vec![filter, step, same])
            }
        };
        let init = self.node(match purpose {
            Purpose::Map => Kind::Map(Vec::new()),
            _ => Kind::List(Vec::new()),
        });
        let (condition, result) = (self.literal(Literal::Bool(true)), self.accumulator());
        self.fold(purpose, range, variables, [init, condition, step, result])
    }

    fn fold(
        &mut self,
        purpose: Purpose,
        range: Expr,
        variables: Vec<Box<str>>,
        [init, condition, step, result]: [Expr; 4],
    ) -> Expr {
        let mut variables = variables.into_iter();
        let fold = Fold {
            purpose,
            range,
            variable: variables.next().expect("there is at least one"),
            second_variable: variables.next(),
            accumulator: ACCUMULATOR.into(),
            init,
            condition,
            step,
            result,
        };
        self.node(Kind::Fold(Box::new(fold)))
    }

    fn accumulator(&mut self) -> Expr {
        self.node(Kind::Ident(ACCUMULATOR.into()))
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(Kind::Literal(literal))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call(Call { function: function.into(), target: None, args }))
    }

    fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let target = Some(Box::new(target));
        self.node(Kind::Call(Call { function: function.into(), target, args }))
    }

    fn node(&mut self, kind: Kind) -> Expr {
        let id = self.parser.id_at(self.offset);
        self.parser.heights[id] = self.height;
        Expr { id, kind }
    }

    /// The same tree with names of its own.
    fn copy(&mut self, mut expr: Expr) -> Expr {
        self.rename(&mut expr);
        expr
    }

    fn rename(&mut self, expr: &mut Expr) {
        expr.id = self.parser.id_at(self.parser.offsets[expr.id]);
        match &mut expr.kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Struct { .. } | Kind::Broken => {}
            Kind::Select { operand, .. } => self.rename(operand),
            Kind::Call(call) => {
                call.target.iter_mut().for_each(|target| self.rename(target));
                call.args.iter_mut().for_each(|arg| self.rename(arg));
            }
            Kind::List(elements) => {
                elements.iter_mut().for_each(|element| self.rename(&mut element.value));
            }
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                self.rename(&mut entry.key);
                self.rename(&mut entry.value);
            }),
            Kind::Fold(fold) => {
                let Fold { range, init, condition, step, result, .. } = &mut **fold;
                for part in [range, init, condition, step, result] {
                    self.rename(part);
                }
            }
        }
    }
}

/// The names of the variables in front, and what follows them.
fn variables(
    mut args: Vec<Expr>,
    count: usize,
    not_a_name: &str,
) -> Result<(Vec<Box<str>>, Vec<Expr>), Wrong> {
    let rest = args.split_off(count);
    let mut names: Vec<Box<str>> = Vec::with_capacity(count);
    for arg in &args {
        let Kind::Ident(name) = &arg.kind else { return Err((arg.id, not_a_name.to_owned())) };
        names.push(name.clone());
    }
    if let [first, second] = &*names
        && first == second
    {
        return Err((args[1].id, format!("duplicate variable name: {first}")));
    }
    match names.iter().position(|name| [ACCUMULATOR, OLD_ACCUMULATOR].contains(&&**name)) {
        Some(at) => {
            let message = "iteration variable overwrites accumulator variable";
            Err((args[at].id, message.to_owned()))
        }
        None => Ok((names, rest)),
    }
}

/// What remains after the variables: a filter, when there is more than one, and the value.
fn filtered(mut rest: Vec<Expr>) -> (Option<Expr>, [Expr; 1]) {
    let value = rest.pop().expect("the number of arguments was looked at");
    (rest.pop(), [value])
}

fn take<const N: usize>(args: Vec<Expr>) -> [Expr; N] {
    args.try_into().expect("the number of arguments was looked at")
}
