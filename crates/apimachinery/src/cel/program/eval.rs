//! Running the steps, and counting what they cost.
//!
//! The costs are upstream's, with its peculiarities: reading a variable or a field costs one, but
//! the place that a condition chooses is free; a constant costs nothing, and neither does looking
//! for a value among constants.

mod fold;

use super::{Call, Composition, Node, Select};
use crate::cel::cost::{LIST_COST, MAP_COST, STRUCT_COST, actual};
use crate::cel::function::{self, Body, regex};
use crate::cel::value::{BuiltMap, Failure, Map, Number, Outcome, Struct, Val};

pub(super) struct Frame<'f, 'v> {
    slots: Vec<Slot<'v>>,
    composition: Option<&'f mut Composition<'v>>,
    cost: u64,
    cost_max: u64,
}

/// What a variable stands for.
enum Slot<'v> {
    Value(Outcome<'v>),
    /// A value that is computed when somebody asks for it.
    Deferred(&'v Node),
}

impl<'f, 'v> Frame<'f, 'v> {
    pub(super) fn new(
        values: Vec<Outcome<'v>>,
        n_slots: usize,
        cost_max: u64,
        composition: Option<&'f mut Composition<'v>>,
    ) -> Self {
        let mut slots: Vec<Slot<'v>> = values.into_iter().map(Slot::Value).collect();
        slots.resize_with(n_slots, || Slot::Value(Ok(Val::Null)));
        Frame { slots, composition, cost: 0, cost_max }
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.cost_max { Err(Failure::CostLimit) } else { Ok(()) }
    }

    pub(super) fn eval(&mut self, node: &'v Node) -> Outcome<'v> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            place if place.is_place() => self.place(place, true),
            Node::And(terms) => self.logic(terms, false),
            Node::Or(terms) => self.logic(terms, true),
            Node::Member { value, constants } => {
                let value = self.eval(value)?;
                member(&value, constants)
            }
            Node::OptionalOr { optional, other, unwrap } => {
                self.optional_or(optional, other, *unwrap)
            }
            Node::Call(call) => self.call(call),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Struct { type_name, fields } => self.structure(type_name, fields),
            Node::Fold(fold) => self.fold(fold),
            _ => unreachable!("places were treated before"),
        }
    }

    /// A variable, or what is found from it. `charged` when it is read for itself, rather than as
    /// a way to something else.
    fn place(&mut self, node: &'v Node, charged: bool) -> Outcome<'v> {
        match node {
            Node::Variable(slot) => {
                self.charge(u64::from(charged))?;
                self.variable(*slot)
            }
            Node::Select { operand, field, mode } => {
                let charged = charged && *mode != Select::Test;
                let operand = self.operand(operand, charged)?;
                self.select(operand, field, *mode)
            }
            Node::Index { operand, index, optional } => {
                let operand = self.operand(operand, charged)?;
                self.index(operand, index, *optional)
            }
            Node::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                let branch = match self.eval(condition)? {
                    Val::Bool(true) => yes,
                    Val::Bool(false) => no,
                    _ => return Err(Failure::NO_SUCH_OVERLOAD),
                };
                if branch.is_place() { self.place(branch, false) } else { self.eval(branch) }
            }
            other => self.eval(other),
        }
    }

    fn variable(&mut self, slot: usize) -> Outcome<'v> {
        match &self.slots[slot] {
            Slot::Value(value) => value.clone(),
            Slot::Deferred(node) => {
                let value = self.eval(node);
                self.slots[slot] = Slot::Value(value.clone());
                value
            }
        }
    }

    fn operand(&mut self, node: &'v Node, charged: bool) -> Outcome<'v> {
        if node.is_place() {
            return self.place(node, charged);
        }
        let value = self.eval(node);
        self.charge(u64::from(charged))?;
        value
    }

    fn select(&mut self, operand: Val<'v>, field: &'v str, mode: Select) -> Outcome<'v> {
        let (operand, was_optional) = match operand {
            Val::Optional(None) if mode == Select::Test => return Ok(Val::Bool(false)),
            Val::Optional(None) => return Ok(Val::NONE),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match &operand {
            Val::Map(map) => map.find_text(field),
            Val::Struct(made) => Ok(made.field(field).cloned()),
            Val::Composed => self.composed(field),
            Val::List(_) => Err(Failure::new("unsupported index type 'string' in list")),
            _ => Ok(None),
        };
        let is_optional = was_optional || mode == Select::Optional;
        let is_absent = matches!(found, Ok(None) | Err(_)) && is_optional;
        self.charge(u64::from(!is_absent || mode == Select::Test))?;
        let found = found?;
        if mode == Select::Test {
            return Ok(Val::Bool(found.is_some()));
        }
        match found {
            Some(value @ Val::Optional(_)) if is_optional => Ok(value),
            Some(value) if is_optional => Ok(Val::some(value)),
            Some(value) => Ok(value),
            None if is_optional => Ok(Val::NONE),
            None => Err(Failure::new(format!("no such key: {field}"))),
        }
    }

    fn index(&mut self, operand: Val<'v>, index: &'v Node, optional: bool) -> Outcome<'v> {
        let (operand, is_optional) = match operand {
            Val::Optional(None) => return Ok(Val::NONE),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, optional),
        };
        let key = match index {
            place if place.is_place() => self.place(place, false),
            other => self.eval(other),
        };
        let found = key.and_then(|key| {
            let found = match &operand {
                Val::Map(map) => map.find(&key)?,
                Val::Composed => match &key {
                    Val::String(name) => self.composed(name)?,
                    _ => return Err(Failure::NO_SUCH_OVERLOAD),
                },
                Val::List(list) => {
                    let at = position(&key)?.filter(|at| *at < list.len());
                    at.map(|at| list.at(at)).transpose()?
                }
                _ => None,
            };
            Ok((found, key))
        });
        // What may be missing and is costs nothing.
        let is_there = matches!(found, Ok((Some(_), _)));
        self.charge(u64::from(is_there || !is_optional))?;
        match found? {
            (Some(value @ Val::Optional(_)), _) if is_optional => Ok(value),
            (Some(value), _) if is_optional => Ok(Val::some(value)),
            (Some(value), _) => Ok(value),
            (None, _) if is_optional => Ok(Val::NONE),
            (None, key) => Err(Failure::new(match operand {
                Val::List(_) => format!("index out of bounds: {key}"),
                _ => format!("no such key: {key}"),
            })),
        }
    }

    /// The value of a named expression.
    fn composed(&mut self, name: &str) -> Result<Option<Val<'v>>, Failure> {
        match &mut self.composition {
            Some(composition) => composition.find(name),
            None => Ok(None),
        }
    }

    /// Terms of which one that is `decisive` settles the matter, whatever failed before.
    fn logic(&mut self, terms: &'v [Node], decisive: bool) -> Outcome<'v> {
        let mut failure = None;
        for term in terms {
            match self.eval(term) {
                Ok(Val::Bool(value)) if value == decisive => return Ok(Val::Bool(decisive)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => {
                    failure.get_or_insert(Failure::NO_SUCH_OVERLOAD);
                }
                Err(Failure::CostLimit) => return Err(Failure::CostLimit),
                Err(other) => {
                    failure.get_or_insert(other);
                }
            }
        }
        failure.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    fn optional_or(&mut self, optional: &'v Node, other: &'v Node, unwrap: bool) -> Outcome<'v> {
        match self.eval(optional)? {
            Val::Optional(Some(value)) if unwrap => Ok((*value).clone()),
            Val::Optional(None) => self.eval(other),
            present => Ok(present),
        }
    }

    fn call(&mut self, call: &'v Call) -> Outcome<'v> {
        let mut failure = None;
        let args = self.args(call, &mut failure)?;
        let result = match failure {
            Some(failure) => Err(failure),
            None => call.invoke(&args),
        };
        let overload = call.overload.map_or("", |overload| &overload.id);
        self.charge(actual::call(call.function, overload, &args, result.as_ref().ok()))?;
        result
    }

    /// The arguments, with nothing for one that fails after all have been looked at: what has
    /// looked at all is paid for.
    fn args(
        &mut self,
        call: &'v Call,
        failure: &mut Option<Failure>,
    ) -> Result<Vec<Val<'v>>, Failure> {
        let mut args = Vec::with_capacity(call.args.len());
        for (index, arg) in call.args.iter().enumerate() {
            let is_last = index + 1 == call.args.len();
            match self.eval(arg) {
                Ok(value) => args.push(value),
                Err(Failure::Error(error)) if is_last || call.looks_at_all => {
                    failure.get_or_insert(Failure::Error(error));
                    args.push(Val::Null);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(args)
    }

    fn list(&mut self, elements: &'v [(bool, Node)]) -> Outcome<'v> {
        let items = self.items(elements);
        // Paid for even if one of the items fails.
        self.charge(LIST_COST)?;
        items.map(Val::list)
    }

    fn items(&mut self, elements: &'v [(bool, Node)]) -> Result<Vec<Val<'v>>, Failure> {
        let mut items = Vec::with_capacity(elements.len());
        for (optional, element) in elements {
            match self.eval(element)? {
                Val::Optional(value) if *optional => {
                    items.extend(value.map(|value| (*value).clone()));
                }
                other if *optional => {
                    return Err(Failure::new(format!(
                        "cannot initialize optional list element from non-optional value {other}"
                    )));
                }
                value => items.push(value),
            }
        }
        Ok(items)
    }

    fn map(&mut self, entries: &'v [(bool, Node, Node)]) -> Outcome<'v> {
        let map = self.entries(entries);
        self.charge(MAP_COST)?;
        map.map(|map| Val::Map(Map::Built(map.into())))
    }

    fn structure(
        &mut self,
        type_name: &'v str,
        fields: &'v [(bool, Box<str>, Node)],
    ) -> Outcome<'v> {
        let made = self.fields(fields).and_then(|fields| Struct::new(type_name, fields));
        self.charge(STRUCT_COST)?;
        made.map(|made| Val::Struct(made.into()))
    }

    fn fields(
        &mut self,
        fields: &'v [(bool, Box<str>, Node)],
    ) -> Result<Vec<(&'v str, Val<'v>)>, Failure> {
        let mut values = Vec::with_capacity(fields.len());
        for (optional, name, value) in fields {
            match self.eval(value)? {
                Val::Optional(Some(value)) if *optional => values.push((&**name, (*value).clone())),
                Val::Optional(None) if *optional => {}
                other if *optional => {
                    return Err(Failure::new(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {other}"
                    )));
                }
                value => values.push((&**name, value)),
            }
        }
        Ok(values)
    }

    fn entries(&mut self, entries: &'v [(bool, Node, Node)]) -> Result<BuiltMap<'v>, Failure> {
        let mut map = BuiltMap::default();
        for (optional, key, value) in entries {
            let key = self.eval(key)?;
            match self.eval(value)? {
                Val::Optional(Some(value)) if *optional => map.set(key, (*value).clone())?,
                Val::Optional(None) if *optional => {}
                other if *optional => {
                    return Err(Failure::new(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {other}"
                    )));
                }
                value => map.set(key, value)?,
            }
        }
        Ok(map)
    }
}

impl Call {
    fn invoke<'v>(&self, args: &[Val<'v>]) -> Outcome<'v> {
        match (&self.pattern, self.overload) {
            (Some(pattern), _) => regex::with_pattern(self.function, pattern, args),
            (_, Some(overload)) => match overload.body {
                Body::Any(body) => body(args),
                Body::Typed(body) if overload.takes(args) => body(args),
                _ => Err(function::no_such_overload(self.function, args)),
            },
            _ => function::dispatch(self.function, self.candidates, self.is_member, args),
        }
    }
}

fn member<'v>(value: &Val<'v>, constants: &Val<'v>) -> Outcome<'v> {
    let Val::List(list) = constants else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let is_equal = |item: Outcome<'v>| item.is_ok_and(|item| item.equals(value) == Some(true));
    Ok(Val::Bool(list.iter().any(is_equal)))
}

/// The position that a number means; `None` when no list is that long.
fn position(key: &Val<'_>) -> Result<Option<usize>, Failure> {
    let wrong = || {
        let type_ = key.type_name();
        Failure::new(format!("unsupported index type '{type_}' in list"))
    };
    match Number::of(key).ok_or_else(wrong)? {
        Number::Whole(at) => Ok(usize::try_from(at).ok()),
        Number::Double(at) if at.fract() == 0.0 => Ok((at >= 0.0).then_some(at as usize)),
        Number::Double(at) => Err(Failure::new(format!("unsupported index value {at} in list"))),
    }
}
