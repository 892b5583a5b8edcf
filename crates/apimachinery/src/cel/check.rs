//! Types of all parts of an expression, and the functions that are meant.

use std::sync::Arc;

use super::Dialect;
use super::ast::{Call, Element, Entry, Expr, Field, Fold, Id, Kind, Literal, operator};
use super::function::{self, Overload, patch};
use super::parse::Parsed;
use super::source::{Issues, Source};
use super::types::{Substitutions, Type, most_general};

/// A tree whose parts have types.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) expr: Expr,
    pub(super) types: Vec<Option<Type>>,
    /// For every call, the overloads its arguments may mean.
    pub(super) overloads: Vec<Vec<&'static Overload>>,
    /// Nodes that name a type.
    pub(super) type_names: Vec<Id>,
    pub(super) offsets: Vec<u32>,
    pub(super) source: Source,
    /// Names of variables that are used.
    pub(super) variables: Vec<Box<str>>,
}

impl Checked {
    pub(super) fn type_of(&self, id: Id) -> &Type {
        self.types[id].as_ref().unwrap_or(&Type::Error)
    }
}

/// Checks a tree; `variables` are what it may refer to.
pub(super) fn check(
    parsed: Parsed,
    variables: &[(&str, Type)],
    dialect: Dialect,
) -> Result<Checked, Issues> {
    let Parsed { mut expr, offsets, source } = parsed;
    let mut scopes: Vec<(Box<str>, Type)> = Vec::new();
    scopes.extend(variables.iter().map(|(name, type_)| (Box::from(*name), type_.clone())));
    let mut checker = Checker {
        types: vec![None; offsets.len()],
        overloads: vec![Vec::new(); offsets.len()],
        type_names: Vec::new(),
        variables: Vec::new(),
        n_global: scopes.len(),
        scopes,
        known: Substitutions::default(),
        params: 0,
        issues: Issues::new(source.clone()),
        offsets: &offsets,
        dialect,
    };
    checker.check(&mut expr);
    let Checker { mut types, overloads, type_names, variables, known, issues, .. } = checker;
    if !issues.is_empty() {
        return Err(issues);
    }
    for type_ in types.iter_mut().flatten() {
        *type_ = known.apply(type_, true);
    }
    Ok(Checked { expr, types, overloads, type_names, offsets, source, variables })
}

struct Checker<'p> {
    types: Vec<Option<Type>>,
    overloads: Vec<Vec<&'static Overload>>,
    type_names: Vec<Id>,
    variables: Vec<Box<str>>,
    /// Innermost last.
    scopes: Vec<(Box<str>, Type)>,
    n_global: usize,
    known: Substitutions,
    params: usize,
    issues: Issues,
    offsets: &'p [u32],
    dialect: Dialect,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        let type_ = match &mut expr.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => match self.lookup(expr.id, name) {
                Some(type_) => type_,
                None => self.undeclared(expr.id, name),
            },
            Kind::Select { .. } => self.select(expr),
            Kind::Call(_) => self.call(expr),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { type_name, fields } => self.structure(expr.id, type_name, fields),
            Kind::Fold(fold) => self.fold(fold),
            Kind::Broken => Type::Error,
        };
        self.types[expr.id] = Some(type_);
    }

    fn report(&mut self, id: Id, message: String) {
        self.issues.report(self.offsets[id], message);
    }

    fn undeclared(&mut self, id: Id, name: &str) -> Type {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn type_of(&self, expr: &Expr) -> Type {
        self.types[expr.id].clone().unwrap_or(Type::Error)
    }

    /// The type of a variable, or the type of a type.
    fn lookup(&mut self, id: Id, name: &str) -> Option<Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(at) = self.scopes.iter().rposition(|(known, _)| **known == *name) {
            if at < self.n_global && !self.variables.iter().any(|known| **known == *name) {
                self.variables.push(name.into());
            }
            return Some(self.scopes[at].1.clone());
        }
        let type_ = named_type(name)?;
        self.type_names.push(id);
        Some(Type::Type(Some(Arc::new(type_))))
    }

    fn fresh(&mut self) -> Type {
        let name = format!("_var{}", self.params);
        self.params += 1;
        Type::Param(name.into())
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        if let Some(name) = expr.qualified_name()
            && let Some(type_) = self.lookup(expr.id, &name)
        {
            expr.kind = Kind::Ident(name.into());
            return type_;
        }
        let id = expr.id;
        let Kind::Select { operand, field, test_only } = &mut expr.kind else {
            unreachable!("the caller matched it")
        };
        let type_ = self.select_field(id, operand, field, false);
        if *test_only { Type::Bool } else { self.known.apply(&type_, false) }
    }

    fn select_field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.known.apply(&self.type_of(operand), false);
        let (target, was_optional) = operand_type.unwrap_optional();
        let result = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.field(field) {
                Some(type_) => type_,
                None => {
                    self.report(
                        id,
                        match object.is_hidden {
                            true => format!("unexpected failed resolution of '{}'", object.name),
                            false => format!("undefined field '{field}'"),
                        },
                    );
                    Type::Error
                }
            },
            Type::Param(_) => {
                self.known.unify(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.report(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let Kind::Call(call) = &mut expr.kind else { unreachable!("the caller matched it") };
        if &*call.function == operator::OPTIONAL_SELECT {
            let [operand, field] = &mut *call.args else { unreachable!("the parser made it") };
            let Kind::Literal(Literal::String(name)) = &field.kind else {
                unreachable!("the parser made it")
            };
            let name = name.clone();
            self.types[field.id] = Some(Type::String);
            let type_ = self.select_field(id, operand, &name, true);
            self.overloads[id].extend(function::find(operator::OPTIONAL_SELECT));
            return self.known.apply(&type_, false);
        }
        for arg in &mut call.args {
            self.check(arg);
        }
        let Some(target) = &mut call.target else {
            let name = call.function.strip_prefix('.').unwrap_or(&call.function);
            let candidates = self.functions(name);
            if candidates.is_empty() {
                let name = call.function.clone();
                return self.undeclared(id, &name);
            }
            return self.resolve(id, candidates, call);
        };
        // A dot may also be part of the function's name.
        if let Some(prefix) = target.qualified_name() {
            let name = format!("{prefix}.{}", call.function);
            let name = name.strip_prefix('.').unwrap_or(&name);
            let candidates = self.functions(name);
            if !candidates.is_empty() {
                call.function = name.into();
                call.target = None;
                return self.resolve(id, candidates, call);
            }
        }
        self.check(target);
        let candidates = self.functions(&call.function);
        if candidates.is_empty() {
            let name = call.function.clone();
            return self.undeclared(id, &name);
        }
        self.resolve(id, candidates, call)
    }

    /// The overloads of a function that this dialect has.
    fn functions(&self, name: &str) -> &'static [Overload] {
        if patch::is_function(name) && self.dialect != Dialect::Patch {
            return &[];
        }
        function::find(name)
    }

    /// An object of a type that the dialect can make.
    fn structure(&mut self, id: Id, type_name: &str, fields: &mut [Field]) -> Type {
        let made = match self.dialect {
            Dialect::Patch => patch::type_named(type_name),
            Dialect::Plain => None,
        };
        let Some(made) = made else { return self.undeclared(id, type_name) };
        let Type::Object(object) = &made else { unreachable!("only objects have fields") };
        for field in fields {
            self.check(&mut field.value);
            let found = self.unwrapped(&field.value, field.optional);
            let Some(expected) = object.field(&field.name) else {
                self.report(field.id, format!("undefined field '{}'", field.name));
                continue;
            };
            if !self.known.unify(&expected, &found) {
                let name = &field.name;
                self.report(
                    field.id,
                    format!(
                        "expected type of field '{name}' is '{expected}' but provided type is \
                         '{found}'"
                    ),
                );
            }
        }
        made
    }

    fn resolve(&mut self, id: Id, candidates: &'static [Overload], call: &Call) -> Type {
        if matches!(&*call.function, operator::AND | operator::OR) {
            return self.logic(id, candidates, call);
        }
        let is_member = call.target.is_some();
        let args: Vec<Type> = call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .map(|arg| self.type_of(arg))
            .collect();
        let mut result: Option<Type> = None;
        for overload in candidates.iter().filter(|overload| overload.is_member == is_member) {
            let fresh = self.instantiate(overload);
            let (params, overload_result) = match &fresh {
                Some((params, result)) => (&**params, result),
                None => (&*overload.params, &overload.result),
            };
            if !self.known.unify_all(&args, params) {
                continue;
            }
            self.overloads[id].push(overload);
            let this = self.known.apply(overload_result, false);
            result = Some(match result {
                None => this,
                Some(known) if known.is_dyn() || known == this => known,
                Some(_) => Type::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let args: Vec<String> =
                args.iter().map(|arg| self.known.apply(arg, true).to_string()).collect();
            let signature = match args.split_first() {
                Some((target, args)) if is_member => format!("{target}.({})", args.join(", ")),
                _ => format!("({})", args.join(", ")),
            };
            let function = &call.function;
            self.report(
                id,
                format!("found no matching overload for '{function}' applied to '{signature}'"),
            );
            Type::Error
        })
    }

    fn logic(&mut self, id: Id, candidates: &'static [Overload], call: &Call) -> Type {
        let mut all = true;
        for arg in &call.args {
            let type_ = self.type_of(arg);
            if !self.known.unify(&type_, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, &type_);
                all = false;
            }
        }
        self.overloads[id].extend(candidates);
        if all { Type::Bool } else { Type::Error }
    }

    /// The overload with parameters of its own; `None` when it has none.
    fn instantiate(&mut self, overload: &Overload) -> Option<(Vec<Type>, Type)> {
        if overload.type_params.is_empty() {
            return None;
        }
        let mut fresh = Substitutions::default();
        for name in &overload.type_params {
            let param = self.fresh();
            fresh.unify(&param, &Type::Param(name.clone()));
        }
        let params = overload.params.iter().map(|param| fresh.apply(param, false)).collect();
        Some((params, fresh.apply(&overload.result, false)))
    }

    fn list(&mut self, elements: &mut [Element]) -> Type {
        let mut item: Option<Type> = None;
        for Element { optional, value } in elements {
            self.check(value);
            let type_ = self.unwrapped(value, *optional);
            item = Some(self.join(item, type_));
        }
        Type::list(item.unwrap_or_else(|| self.fresh()))
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let mut types: (Option<Type>, Option<Type>) = (None, None);
        for Entry { optional, key, value } in entries {
            self.check(key);
            let key_type = self.type_of(key);
            types.0 = Some(self.join(types.0, key_type));
            self.check(value);
            let value_type = self.unwrapped(value, *optional);
            types.1 = Some(self.join(types.1, value_type));
        }
        let key = types.0.unwrap_or_else(|| self.fresh());
        Type::map(key, types.1.unwrap_or_else(|| self.fresh()))
    }

    /// The type of an element that may be left out.
    fn unwrapped(&mut self, value: &Expr, optional: bool) -> Type {
        let type_ = self.type_of(value);
        if !optional {
            return type_;
        }
        let (inner, is_optional) = type_.unwrap_optional();
        if !is_optional && !inner.is_dyn() {
            self.mismatch(value.id, &Type::optional(inner.clone()), inner);
        }
        inner.clone()
    }

    /// The type of items of both types. That these are the same is looked at later, when the
    /// arguments of a format are known from other lists.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        match self.known.unify(&previous, &current) {
            true => most_general(&previous, &current).clone(),
            false => Type::Dyn,
        }
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.known.apply(&self.type_of(&fold.range), false);
        let is_pair = fold.second_variable.is_some();
        let (first, second) = match &range {
            Type::List(item) if is_pair => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.known.unify(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let accumulator = self.type_of(&fold.init);
        self.scopes.push((fold.accumulator.clone(), accumulator.clone()));
        let outer = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        if let Some(variable) = &fold.second_variable {
            self.scopes.push((variable.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.check(&mut fold.step);
        self.assert(&fold.step, &accumulator);
        self.scopes.truncate(outer);
        self.check(&mut fold.result);
        self.scopes.pop();
        self.known.apply(&self.type_of(&fold.result), false)
    }

    fn assert(&mut self, expr: &Expr, expected: &Type) {
        let found = self.type_of(expr);
        if !self.known.unify(expected, &found) {
            self.mismatch(expr.id, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Types that an expression can name.
fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "string" => Type::String,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::Type(None),
        // The short names pass here and fail when the expression is prepared to run.
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
        "net.IP" => Type::Opaque("net.IP", Arc::new([])),
        "net.CIDR" => Type::Opaque("net.CIDR", Arc::new([])),
        "optional_type" => Type::optional(Type::Dyn),
        _ => return None,
    })
}
