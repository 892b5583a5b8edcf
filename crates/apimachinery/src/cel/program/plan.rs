//! From a checked tree to steps.
//!
//! Constants are computed here, and so are mistakes in them found: a program that holds
//! `int('x')` does not come into being.

use super::{Call, Fold, FoldBody, Node, Select};
use crate::cel::ast::{self, Expr, Field, Kind, Purpose, operator};
use crate::cel::check::Checked;
use crate::cel::function::{self, Body, Overload, regex};
use crate::cel::lint::to_val;
use crate::cel::value::{BuiltMap, Failure, Map, Val};
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
    /// Trees can be deep: what does not go deeper is left to others, so that little of the stack
    /// is used at each level.
    fn node(&mut self, expr: &Expr) -> Result<Node, Failure> {
        match &expr.kind {
            Kind::Select { operand, field, test_only } => {
                let operand = self.boxed(operand)?;
                let mode = if *test_only { Select::Test } else { Select::Value };
                Ok(Node::Select { operand, field: field.clone(), mode })
            }
            Kind::Call(call) => {
                let args = self.args(call)?;
                self.assemble(expr, call, args)
            }
            Kind::List(elements) => {
                let mut nodes = Vec::with_capacity(elements.len());
                for element in elements {
                    nodes.push((element.optional, self.node(&element.value)?));
                }
                Ok(list(nodes))
            }
            Kind::Map(entries) => {
                let mut nodes = Vec::with_capacity(entries.len());
                for entry in entries {
                    let key = self.node(&entry.key)?;
                    nodes.push((entry.optional, key, self.node(&entry.value)?));
                }
                map(nodes)
            }
            Kind::Struct { type_name, fields } => self.structure(type_name, fields),
            Kind::Fold(fold) => self.fold(fold).map(|fold| Node::Fold(Box::new(fold))),
            _ => self.leaf(expr),
        }
    }

    fn structure(&mut self, type_name: &str, fields: &[Field]) -> Result<Node, Failure> {
        let mut nodes = Vec::with_capacity(fields.len());
        for field in fields {
            nodes.push((field.optional, field.name.clone(), self.node(&field.value)?));
        }
        Ok(Node::Struct { type_name: type_name.into(), fields: nodes.into() })
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Node>, Failure> {
        self.node(expr).map(Box::new)
    }

    fn leaf(&self, expr: &Expr) -> Result<Node, Failure> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(Node::Constant(to_val(literal))),
            Kind::Ident(name) if self.checked.type_names.contains(&expr.id) => {
                Ok(Node::Constant(Val::Type(type_name(name)?)))
            }
            Kind::Ident(name) => self.variable(name),
            _ => unreachable!("only whole trees are checked, and others are treated before"),
        }
    }

    fn variable(&self, name: &str) -> Result<Node, Failure> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let slot = self.scope.iter().rposition(|known| **known == *name);
        slot.map(Node::Variable)
            .ok_or_else(|| Failure::new(format!("no such attribute(s): {name}")))
    }

    /// The target, if there is one, and the arguments.
    fn args(&mut self, call: &ast::Call) -> Result<Vec<Node>, Failure> {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        if let Some(target) = &call.target {
            args.push(self.node(target)?);
        }
        for arg in &call.args {
            args.push(self.node(arg)?);
        }
        Ok(args)
    }

    fn assemble(
        &self,
        expr: &Expr,
        call: &ast::Call,
        mut args: Vec<Node>,
    ) -> Result<Node, Failure> {
        let function = &*call.function;
        match function {
            operator::AND => return Ok(Node::And(args.into())),
            operator::OR => return Ok(Node::Or(args.into())),
            operator::CONDITIONAL => {
                let parts: Box<[Node; 3]> = args.try_into().ok().expect("it has three parts");
                return Ok(Node::Conditional(parts));
            }
            operator::OPTIONAL_SELECT
            | operator::INDEX
            | operator::OPTIONAL_INDEX
            | "or"
            | "orValue" => {}
            _ => return self.function(expr, call, args),
        }
        let (Some(second), Some(first)) = (args.pop(), args.pop()) else {
            unreachable!("these have two operands")
        };
        let (first, second) = (Box::new(first), Box::new(second));
        Ok(match (function, *second) {
            (operator::OPTIONAL_SELECT, Node::Constant(Val::String(field))) => {
                Node::Select { operand: first, field: (*field).into(), mode: Select::Optional }
            }
            ("or" | "orValue", other) => {
                let unwrap = function == "orValue";
                Node::OptionalOr { optional: first, other: Box::new(other), unwrap }
            }
            (_, index) => {
                let optional = function == operator::OPTIONAL_INDEX;
                Node::Index { operand: first, index: Box::new(index), optional }
            }
        })
    }

    fn function(&self, expr: &Expr, call: &ast::Call, args: Vec<Node>) -> Result<Node, Failure> {
        let overloads = &self.checked.overloads[expr.id];
        let overload = match &**overloads {
            [only] => Some(*only),
            _ => None,
        };
        let function = overloads.first().map_or("", |overload| overload.function);
        let candidates = function::find(function);

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
            is_member: call.target.is_some(),
            overload,
            pattern,
            looks_at_all,
            args: args.into(),
        })))
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

/// A list of constants is one.
fn list(nodes: Vec<(bool, Node)>) -> Node {
    let constant = |(_, node): &(bool, Node)| match node {
        Node::Constant(value) => Some(value.clone()),
        _ => None,
    };
    match nodes.iter().map(constant).collect::<Option<Vec<_>>>() {
        Some(constants) => Node::Constant(Val::list(constants)),
        None => Node::List(nodes.into()),
    }
}

fn map(nodes: Vec<(bool, Node, Node)>) -> Result<Node, Failure> {
    let mut map = BuiltMap::default();
    for (_, key, value) in &nodes {
        let (Node::Constant(key), Node::Constant(value)) = (key, value) else {
            return Ok(Node::Map(nodes.into()));
        };
        map.set(key.clone(), value.clone())?;
    }
    Ok(Node::Constant(Val::Map(Map::Built(map.into()))))
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
