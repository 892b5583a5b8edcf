//! From a checked tree to steps.
//!
//! Constants are computed here, and so are mistakes in them found: a program that holds
//! `int('x')` does not come into being.

use super::super::ast::{self, Expr, Kind, Purpose, operator};
use super::super::check::Checked;
use super::super::function::{self, Body, Overload, regex};
use super::super::lint::to_val;
use super::super::value::{BuiltMap, Failure, Map, Val};
use super::{Call, Fold, FoldBody, Node, Select};
use crate::regex::Regex;

/// The steps, and how many slots they need.
pub(super) fn plan(checked: &Checked, variables: &[&str]) -> Result<(Node, usize), Failure> {
    let scope: Vec<Box<str>> = variables.iter().map(|name| Box::from(*name)).collect();
    let mut planner = Planner { checked, n_slots: scope.len(), scope };
    let root = planner.node(&checked.expr)?;
    Ok((root, planner.n_slots))
}

struct Planner<'c> {
    checked: &'c Checked,
    /// Names of variables; their positions are their slots.
    scope: Vec<Box<str>>,
    n_slots: usize,
}

impl Planner<'_> {
    fn boxed(&mut self, expr: &Expr) -> Result<Box<Node>, Failure> {
        self.node(expr).map(Box::new)
    }

    fn nodes(&mut self, exprs: &[Expr]) -> Result<Box<[Node]>, Failure> {
        exprs.iter().map(|expr| self.node(expr)).collect()
    }

    fn node(&mut self, expr: &Expr) -> Result<Node, Failure> {
        Ok(match &expr.kind {
            Kind::Literal(literal) => Node::Constant(to_val(literal)),
            Kind::Ident(name) if self.checked.type_names.contains(&expr.id) => {
                Node::Constant(Val::Type(type_name(name)?))
            }
            Kind::Ident(name) => self.variable(name)?,
            Kind::Select { operand, field, test_only } => Node::Select {
                operand: self.boxed(operand)?,
                field: field.clone(),
                mode: if *test_only { Select::Test } else { Select::Value },
            },
            Kind::Call(call) => self.call(expr, call)?,
            Kind::List(elements) => self.list(elements)?,
            Kind::Map(entries) => self.map(entries)?,
            Kind::Fold(fold) => Node::Fold(Box::new(self.fold(fold)?)),
            Kind::Struct { type_name } => {
                return Err(Failure::new(format!("unknown type: {type_name}")));
            }
            Kind::Broken => unreachable!("only whole trees are checked"),
        })
    }

    fn variable(&self, name: &str) -> Result<Node, Failure> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let slot = self.scope.iter().rposition(|known| **known == *name);
        slot.map(Node::Variable)
            .ok_or_else(|| Failure::new(format!("no such attribute(s): {name}")))
    }

    fn call(&mut self, expr: &Expr, call: &ast::Call) -> Result<Node, Failure> {
        match (&*call.function, &*call.args) {
            (operator::AND, terms) => return Ok(Node::And(self.nodes(terms)?)),
            (operator::OR, terms) => return Ok(Node::Or(self.nodes(terms)?)),
            (operator::CONDITIONAL, [condition, yes, no]) => {
                let branches = [self.node(condition)?, self.node(yes)?, self.node(no)?];
                return Ok(Node::Conditional(Box::new(branches)));
            }
            (operator::OPTIONAL_SELECT, [operand, field]) => {
                let Kind::Literal(ast::Literal::String(field)) = &field.kind else {
                    unreachable!("the parser made it")
                };
                let (operand, field) = (self.boxed(operand)?, (&**field).into());
                return Ok(Node::Select { operand, field, mode: Select::Optional });
            }
            (function @ (operator::INDEX | operator::OPTIONAL_INDEX), [operand, index]) => {
                return Ok(Node::Index {
                    operand: self.boxed(operand)?,
                    index: self.boxed(index)?,
                    optional: function == operator::OPTIONAL_INDEX,
                });
            }
            (function @ ("or" | "orValue"), [other]) => {
                if let Some(target) = &call.target {
                    let unwrap = function == "orValue";
                    let (optional, other) = (self.boxed(target)?, self.boxed(other)?);
                    return Ok(Node::OptionalOr { optional, other, unwrap });
                }
            }
            _ => {}
        }
        self.function(expr, call)
    }

    fn function(&mut self, expr: &Expr, call: &ast::Call) -> Result<Node, Failure> {
        let overloads = &self.checked.overloads[expr.id];
        let overload = match &**overloads {
            [only] => Some(*only),
            _ => None,
        };
        let function = overloads.first().map_or("", |overload| overload.function);
        let candidates = function::find(function);
        let is_member = call.target.is_some();
        let args = call.target.as_deref().into_iter().chain(&call.args);
        let args: Box<[Node]> = args.map(|arg| self.node(arg)).collect::<Result<_, _>>()?;

        if let [Node::Constant(value)] = &*args
            && is_conversion(function)
        {
            let value = std::slice::from_ref(value);
            return function::dispatch(function, candidates, false, value).map(Node::Constant);
        }
        let is_list = overload.is_some_and(|overload| &*overload.id == "in_list");
        if let [_, Node::Constant(Val::List(list))] = &*args
            && is_list
        {
            if list.len() == 0 {
                return Ok(Node::Constant(Val::Bool(false)));
            }
            let constants = Val::List(list.clone());
            if list.iter().all(|item| item.is_ok_and(|item| is_primitive(&item))) {
                let value = args.into_iter().next().map(Box::new).expect("there are two");
                return Ok(Node::Member { value, constants });
            }
        }
        let pattern = match args.get(1) {
            Some(Node::Constant(Val::String(pattern))) if regex::takes_pattern(function) => {
                let pattern =
                    Regex::new(pattern).map_err(|error| Failure::new(error.to_string()))?;
                Some(pattern)
            }
            _ => None,
        };
        let is_known = overload.is_some() || is_single(candidates);
        let looks_at_all = args.len() == 2 && is_known && pattern.is_none() && function != "format";
        Ok(Node::Call(Box::new(Call {
            function,
            candidates,
            is_member,
            overload,
            pattern,
            looks_at_all,
            args,
        })))
    }

    fn list(&mut self, elements: &[ast::Element]) -> Result<Node, Failure> {
        let nodes: Box<[(bool, Node)]> = elements
            .iter()
            .map(|element| Ok((element.optional, self.node(&element.value)?)))
            .collect::<Result<_, Failure>>()?;
        let constants: Option<Vec<Val<'static>>> = nodes
            .iter()
            .map(|(_, node)| match node {
                Node::Constant(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        Ok(match constants {
            Some(constants) => Node::Constant(Val::list(constants)),
            None => Node::List(nodes),
        })
    }

    fn map(&mut self, entries: &[ast::Entry]) -> Result<Node, Failure> {
        let nodes: Box<[(bool, Node, Node)]> = entries
            .iter()
            .map(|entry| Ok((entry.optional, self.node(&entry.key)?, self.node(&entry.value)?)))
            .collect::<Result<_, Failure>>()?;
        let mut map = BuiltMap::default();
        for (_, key, value) in &nodes {
            let (Node::Constant(key), Node::Constant(value)) = (key, value) else {
                return Ok(Node::Map(nodes));
            };
            map.set(key.clone(), value.clone())?;
        }
        Ok(Node::Constant(Val::Map(Map::Built(map.into()))))
    }

    fn fold(&mut self, fold: &ast::Fold) -> Result<Fold, Failure> {
        let outer = self.scope.len();
        if fold.purpose == Purpose::Bind {
            let range = self.node(&fold.init)?;
            self.scope.push(fold.accumulator.clone());
            self.n_slots = self.n_slots.max(self.scope.len());
            let result = self.node(&fold.result)?;
            self.scope.truncate(outer);
            return Ok(Fold { range, first: outer, second: None, body: FoldBody::Bind(result) });
        }
        let range = self.node(&fold.range)?;
        self.scope.push(fold.variable.clone());
        self.scope.extend(fold.second_variable.clone());
        self.n_slots = self.n_slots.max(self.scope.len());
        let body = self.fold_body(fold)?;
        self.scope.truncate(outer);
        let second = fold.second_variable.as_ref().map(|_| outer + 1);
        Ok(Fold { range, first: outer, second, body })
    }

    /// What the macro was made from, found again in the shape of its step.
    fn fold_body(&mut self, fold: &ast::Fold) -> Result<FoldBody, Failure> {
        let step = args(&fold.step);
        Ok(match fold.purpose {
            Purpose::All => FoldBody::All(self.node(&step[1])?),
            Purpose::Exists => FoldBody::Exists(self.node(&step[1])?),
            Purpose::ExistsOne => FoldBody::ExistsOne(self.node(&step[0])?),
            Purpose::List | Purpose::Map => {
                let (filter, step) = match step {
                    [filter, step, _] if is_conditional(&fold.step) => {
                        (Some(self.node(filter)?), args(step))
                    }
                    step => (None, step),
                };
                match (fold.purpose, step) {
                    (Purpose::Map, [_, key, value]) => {
                        let key = Some(self.node(key)?);
                        FoldBody::Map { filter, key, value: self.node(value)? }
                    }
                    (Purpose::Map, [_, value]) => {
                        FoldBody::Map { filter, key: None, value: self.node(value)? }
                    }
                    (_, [_, Expr { kind: Kind::List(items), .. }]) => {
                        FoldBody::List { filter, value: self.node(&items[0].value)? }
                    }
                    _ => unreachable!("the macro made it"),
                }
            }
            Purpose::Bind => unreachable!("the caller treated it"),
        })
    }
}

fn args(expr: &Expr) -> &[Expr] {
    match &expr.kind {
        Kind::Call(call) => &call.args,
        _ => unreachable!("the macro made a call"),
    }
}

/// One body serves all overloads.
fn is_single(candidates: &[Overload]) -> bool {
    candidates.iter().any(|overload| matches!(overload.body, Body::Any(_)))
}

fn is_conditional(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Call(call) if &*call.function == operator::CONDITIONAL)
}

fn is_primitive(value: &Val<'_>) -> bool {
    matches!(
        value,
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_) | Val::Null
    )
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

/// The name under which a type compares.
fn type_name(name: &str) -> Result<&'static str, Failure> {
    const NAMES: &[&str] = &[
        "bool",
        "bytes",
        "double",
        "int",
        "uint",
        "string",
        "null_type",
        "list",
        "map",
        "type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "net.IP",
        "net.CIDR",
        "optional_type",
    ];
    let name = name.strip_prefix('.').unwrap_or(name);
    let known = NAMES.iter().find(|known| **known == name);
    known.copied().ok_or_else(|| Failure::new(format!("reference to undefined type: {name}")))
}
