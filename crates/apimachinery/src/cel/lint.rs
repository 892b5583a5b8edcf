//! Constants in an expression that cannot work.

use std::sync::Arc;

use super::ast::{Expr, Id, Kind, Literal};
use super::check::Checked;
use super::function;
use super::function::format::{self, Clause};
use super::source::Issues;
use super::types::Type;
use super::value::Val;
use crate::regex::Regex;

pub(super) fn lint(checked: &Checked) -> Result<(), Issues> {
    let mut linter = Linter { checked, issues: Issues::new(checked.source.clone()) };
    checked.expr.walk(&mut |expr| linter.call(expr));
    linter.literals(&checked.expr);
    if linter.issues.is_empty() { Ok(()) } else { Err(linter.issues) }
}

struct Linter<'c> {
    checked: &'c Checked,
    issues: Issues,
}

impl Linter<'_> {
    fn report(&mut self, id: Id, message: impl Into<String>) {
        self.issues.report(self.checked.offsets[id], message);
    }

    fn call(&mut self, expr: &Expr) {
        let Kind::Call(call) = &expr.kind else { return };
        let function = &*call.function;
        if function == "format" && call.target.is_some() {
            return self.format(expr);
        }
        let Some(Expr { id, kind: Kind::Literal(literal) }) = call.args.first() else { return };
        let is_wrong = match (function, literal) {
            ("duration" | "timestamp", literal) => {
                let value = to_val(literal);
                function::dispatch(function, function::find(function), false, &[value]).is_err()
            }
            ("matches", Literal::String(pattern)) => Regex::new(pattern).is_err(),
            _ => false,
        };
        if is_wrong {
            self.report(*id, format!("invalid {function} argument"));
        }
    }

    /// A format that is known together with the number and the types of its arguments.
    fn format(&mut self, expr: &Expr) {
        let Kind::Call(call) = &expr.kind else { return };
        let Some(target) = call.target.as_deref() else { return };
        let (Kind::Literal(Literal::String(text)), [Expr { kind: Kind::List(args), .. }]) =
            (&target.kind, &*call.args)
        else {
            return;
        };
        let mut used = 0;
        let read = format::read(text, args.len(), |index, clause| {
            used += 1;
            match self.misfit(&args[index].value, clause) {
                None => Ok(String::new()),
                Some(id) => {
                    let refusal = clause.refusal(self.checked.type_of(id).name());
                    Err(Mistake {
                        id: Some(id),
                        text: format!("error during formatting: {refusal}"),
                    })
                }
            }
        });
        match read {
            Err(mistake) => self.report(mistake.id.unwrap_or(expr.id), mistake.text),
            Ok(_) if args.len() > used => {
                let n = args.len();
                let message = format!(
                    "too many arguments supplied to string.format (expected {used}, got {n})"
                );
                self.report(expr.id, message);
            }
            Ok(_) => {}
        }
    }

    /// The node that a clause cannot show.
    fn misfit(&self, arg: &Expr, clause: Clause) -> Option<Id> {
        let type_ = self.checked.type_of(arg.id);
        let fits = match clause {
            _ if type_.is_dyn() => true,
            Clause::String => !matches!(type_, Type::Object(_) | Type::Opaque(..)),
            Clause::Decimal | Clause::Octal => matches!(type_, Type::Int | Type::Uint),
            Clause::Fixed(_) | Clause::Scientific(_) => {
                matches!(type_, Type::Double | Type::String)
            }
            Clause::Binary => matches!(type_, Type::Int | Type::Uint | Type::Bool),
            Clause::Hex { .. } => {
                matches!(type_, Type::Int | Type::Uint | Type::String | Type::Bytes)
            }
        };
        if !fits {
            return Some(arg.id);
        }
        match &arg.kind {
            _ if clause != Clause::String => None,
            Kind::List(elements) => {
                elements.iter().find_map(|element| self.misfit(&element.value, clause))
            }
            Kind::Map(entries) => entries.iter().find_map(|entry| {
                self.misfit(&entry.key, clause).or_else(|| self.misfit(&entry.value, clause))
            }),
            _ => None,
        }
    }

    /// Lists and maps hold values of one type, except among the arguments of a format.
    fn literals(&mut self, expr: &Expr) {
        let type_of = |id: Id, optional: bool| {
            let type_ = self.checked.type_of(id);
            if optional { type_.unwrap_optional().0.clone() } else { type_.clone() }
        };
        let mut mistakes: Vec<(Id, Type, Type)> = Vec::new();
        let mut compare = |first: (Id, bool), other: (Id, bool)| {
            let (expected, found) = (type_of(first.0, first.1), type_of(other.0, other.1));
            if expected != found {
                mistakes.push((other.0, expected, found));
            }
            mistakes.len()
        };
        match &expr.kind {
            Kind::Call(call) if &*call.function == "format" => return,
            Kind::List(elements) => {
                if let Some((first, rest)) = elements.split_first() {
                    for other in rest {
                        let first = (first.value.id, first.optional);
                        if compare(first, (other.value.id, other.optional)) > 0 {
                            break;
                        }
                    }
                }
            }
            Kind::Map(entries) => {
                if let Some((first, rest)) = entries.split_first() {
                    for other in rest {
                        compare((first.key.id, false), (other.key.id, false));
                        let value = (first.value.id, first.optional);
                        compare(value, (other.value.id, other.optional));
                    }
                }
            }
            _ => {}
        }
        for (id, expected, found) in mistakes {
            self.report(id, format!("expected type '{expected}' but found '{found}'"));
        }
        let mut children = Vec::new();
        expr.children(&mut |child| children.push(child));
        children.into_iter().for_each(|child| self.literals(child));
    }
}

/// What is wrong with a format, and where if not with all of it.
struct Mistake {
    id: Option<Id>,
    text: String,
}

impl From<String> for Mistake {
    fn from(text: String) -> Self {
        Mistake { id: None, text }
    }
}

pub(super) fn to_val(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(text) => Val::text(Arc::clone(text)),
        Literal::Bytes(bytes) => Val::Bytes(bytes.clone()),
    }
}
