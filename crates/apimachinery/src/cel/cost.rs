//! What running an expression may cost at most.
//!
//! Estimates decide whether a definition is accepted, so they are upstream's to the last unit,
//! oddities included. They rest on how large values can be: constants have a size, results of
//! functions derive one, and everything found from a variable has what the schema declares for
//! the way to it.

pub(super) mod actual;
mod call;
mod size;

use std::collections::HashMap;

use self::size::Size;
use super::ast::{Call, Expr, Field, Fold, Id, Kind, Literal, Purpose, operator};
use super::check::Checked;
use super::declared::{Declared, Shape};
use super::types::Type;

/// Making a list, a map or an object.
pub(super) const LIST_COST: u64 = 10;
pub(super) const MAP_COST: u64 = 30;
pub(super) const STRUCT_COST: u64 = 40;
/// Per character of a string that is looked through, and of a pattern.
const STRING_FACTOR: f64 = 0.1;
const PATTERN_FACTOR: f64 = 0.25;

pub(super) fn estimate(checked: &Checked, root: &Declared) -> u64 {
    let mut estimator = Estimator {
        checked,
        root,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(&checked.expr)
}

/// The way from a variable to a value: names of fields, `@items`, `@keys`, `@values`.
type Way = Vec<Box<str>>;

struct Estimator<'c> {
    checked: &'c Checked,
    root: &'c Declared,
    paths: HashMap<Id, Way>,
    sizes: HashMap<Id, Size>,
    entries: HashMap<Id, Entries>,
    /// Variables of folds, innermost last.
    locals: Vec<Local>,
}

/// Sizes of the keys or indices of a container, and of its values.
#[derive(Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Size,
    value: Size,
}

impl Entries {
    fn union(a: Option<Entries>, b: Option<Entries>) -> Option<Entries> {
        let (a, b) = (a?, b?);
        Some(Entries { key: a.key.union(b.key), value: a.value.union(b.value), ..a })
    }
}

struct Local {
    name: Box<str>,
    path: Way,
    size: Option<Size>,
    entries: Option<Entries>,
}

/// What an argument is known by.
struct Known<'e> {
    expr: Option<&'e Expr>,
    type_: Type,
    path: Way,
    size: Option<Size>,
}

/// What a call costs without its target, and how large its result can be.
struct Estimate {
    cost: u64,
    size: Option<Size>,
}

impl Estimator<'_> {
    fn cost(&mut self, expr: &Expr) -> u64 {
        match &expr.kind {
            Kind::Literal(_) | Kind::Broken => 0,
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![name.clone()],
                };
                self.paths.insert(expr.id, path);
                1
            }
            Kind::Select { operand, field, test_only } => {
                let cost = self.cost(operand);
                if *test_only {
                    return cost;
                }
                let mut path = self.path(operand);
                path.push(field.clone());
                self.paths.insert(expr.id, path);
                let target = self.checked.type_of(operand.id);
                let is_paid = matches!(target, Type::Map(..) | Type::Object(_) | Type::Param(_));
                cost.saturating_add(u64::from(is_paid))
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => {
                let mut cost = LIST_COST;
                let mut item = Size::NOTHING_YET;
                for element in elements {
                    cost = cost.saturating_add(self.cost(&element.value));
                    item = item.union(self.size_or_unknown(&element.value));
                }
                if elements.is_empty() {
                    item.min = 0;
                }
                let entries = Entries { is_list: true, key: Size::fixed(1), value: item };
                self.entries.insert(expr.id, entries);
                cost
            }
            Kind::Map(entries) => {
                let mut cost = MAP_COST;
                let (mut key, mut value) = (Size::NOTHING_YET, Size::NOTHING_YET);
                for entry in entries {
                    cost = cost.saturating_add(self.cost(&entry.key));
                    cost = cost.saturating_add(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                if entries.is_empty() {
                    (key.min, value.min) = (0, 0);
                }
                self.entries.insert(expr.id, Entries { is_list: false, key, value });
                cost
            }
            Kind::Struct { fields, .. } => self.structure(fields),
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn structure(&mut self, fields: &[Field]) -> u64 {
        let costs = fields.iter().map(|field| self.cost(&field.value));
        costs.fold(STRUCT_COST, u64::saturating_add)
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> u64 {
        let mut cost = self.cost(&fold.range);
        cost = cost.saturating_add(self.cost(&fold.init));
        let init = Local {
            name: fold.accumulator.clone(),
            path: self.path(&fold.init),
            size: self.size(&fold.init),
            entries: self.entries_of(&fold.init),
        };
        self.locals.push(init);
        if fold.purpose == Purpose::Bind {
            cost = cost.saturating_add(self.cost(&fold.result));
            self.locals.pop();
            self.copy_sizes(expr, &fold.result);
            return cost;
        }
        let outer = self.locals.len();
        self.push_variables(fold);
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.truncate(outer);
        cost = cost.saturating_add(self.cost(&fold.result));
        self.locals.pop();

        let count = self.size_or_unknown(&fold.range);
        cost = cost.saturating_add(count.max.saturating_mul(step.saturating_add(condition)));
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            _ => {
                self.sizes.insert(expr.id, count);
                if let Some(entries) = self.entries_of(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
        }
        cost
    }

    fn push_variables(&mut self, fold: &Fold) {
        let entries = self.entries_of(&fold.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.checked.type_of(fold.range.id), Type::List(_)),
        };
        let path = self.path(&fold.range);
        let mut push = |name: &str, step: &str, size: Option<Size>| {
            let mut path = path.clone();
            path.push(step.into());
            self.locals.push(Local { name: name.into(), path, size, entries: None });
        };
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        match &fold.second_variable {
            Some(second) => {
                push(&fold.variable, if is_list { "@indices" } else { "@keys" }, key);
                push(second, if is_list { "@items" } else { "@values" }, value);
            }
            None if is_list => push(&fold.variable, "@items", value),
            None => push(&fold.variable, "@keys", key),
        }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> u64 {
        if &*call.function == "dyn" {
            let cost = self.cost(&call.args[0]).saturating_add(1);
            self.copy_sizes(expr, &call.args[0]);
            return cost;
        }
        let mut arg_costs = Vec::with_capacity(call.args.len());
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            arg_costs.push(self.cost(arg));
            args.push(self.known(arg));
        }
        let overloads = &self.checked.overloads[expr.id];
        if overloads.is_empty() {
            return 0;
        }
        let mut cost = 0;
        let target = call.target.as_deref().map(|target| {
            cost = self.cost(target);
            self.known(target)
        });
        let mut most = 0;
        let mut size: Option<Size> = None;
        for overload in overloads {
            let estimate = self.function(
                expr,
                &call.function,
                &overload.id,
                target.as_ref(),
                &args,
                &arg_costs,
            );
            most = most.max(estimate.cost);
            size = match (size, estimate.size) {
                (Some(a), Some(b)) => Some(a.union(b)),
                (a, b) => a.or(b),
            };
            let step = match &*overload.id {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let Some(step) = step {
                size = self.entries_of(&call.args[0]).map(|entries| entries.value);
                let mut path = self.path(&call.args[0]);
                path.push(step.into());
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        cost.saturating_add(most)
    }

    fn function(
        &mut self,
        expr: &Expr,
        function: &str,
        overload: &str,
        target: Option<&Known<'_>>,
        args: &[Known<'_>],
        arg_costs: &[u64],
    ) -> Estimate {
        let arg_sum = arg_costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        let plus = |estimate: Estimate| Estimate {
            cost: estimate.cost.saturating_add(arg_sum),
            size: estimate.size,
        };
        match (function, args) {
            (operator::AND | operator::OR, _) => return Estimate { cost: arg_sum, size: None },
            (operator::CONDITIONAL, [_, yes, no]) => {
                let size = yes.size_or_unknown().union(no.size_or_unknown());
                let [yes, no] = [yes, no].map(|arg| arg.expr.and_then(|arg| self.entries_of(arg)));
                if let Some(entries) = Entries::union(yes, no) {
                    self.entries.insert(expr.id, entries);
                }
                let branches = arg_costs[1].max(arg_costs[2]);
                return Estimate { cost: arg_costs[0].saturating_add(branches), size: Some(size) };
            }
            (operator::ADD, [a, b])
                if matches!(overload, "add_string" | "add_bytes" | "add_list") =>
            {
                let [ae, be] = [a, b].map(|arg| arg.expr.and_then(|arg| self.entries_of(arg)));
                if let Some(entries) = Entries::union(ae, be) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        plus(call::estimate(self, function, overload, target, args))
    }

    fn known<'e>(&mut self, expr: &'e Expr) -> Known<'e> {
        Known {
            expr: Some(expr),
            type_: self.checked.type_of(expr.id).clone(),
            path: self.path(expr),
            size: self.size(expr),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rfind(|local| *local.name == *name)
    }

    fn path(&self, expr: &Expr) -> Way {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Size {
        self.size(expr).unwrap_or(Size::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<Size> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(size);
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr.id)) {
            return Some(Size::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// The size that the schema allows at the end of a way. Its first step, the variable, is not
    /// looked at.
    fn declared_size(&self, path: &[Box<str>]) -> Option<Size> {
        let (_, steps) = path.split_first()?;
        let mut at = self.root;
        for step in steps {
            at = match (&**step, &at.shape) {
                ("@items" | "@values", Shape::List(inner) | Shape::Map(inner)) => inner,
                // Nobody says how long keys can be; upstream counts them as nothing.
                ("@keys", Shape::Map(_)) => return Some(Size { min: 0, max: 0 }),
                (field, Shape::Object(fields)) => fields.get(field)?,
                _ => return None,
            };
        }
        Some(Size { min: 0, max: at.elements_max })
    }

    fn entries_of(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }
}

impl Known<'_> {
    fn size_or_unknown(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }

    /// The value of an argument that is a whole number in the text.
    fn int(&self) -> Option<i64> {
        match self.expr?.kind {
            Kind::Literal(Literal::Int(value)) => Some(value),
            _ => None,
        }
    }
}

fn literal_size(expr: &Expr) -> Option<Size> {
    Some(Size::fixed(match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List(elements) => elements.len() as u64,
        Kind::Map(entries) => entries.len() as u64,
        _ => return None,
    }))
}

fn is_scalar(type_: &Type) -> bool {
    match type_ {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        other => {
            let (inner, is_optional) = other.unwrap_optional();
            is_optional && is_scalar(inner)
        }
    }
}
