//! Running the steps, and counting what they cost.
//!
//! The costs are upstream's, with its peculiarities: reading a variable or a field costs one, but
//! the place that a condition chooses is free; a constant costs nothing, and neither does looking
//! for a value among constants.

use super::super::cost::{LIST_COST, MAP_COST, actual};
use super::super::function::{self, Body, regex};
use super::super::value::{BuiltMap, Failure, List, Map, Number, Outcome, Val};
use super::{Call, Fold, FoldBody, Node, Select};

pub(super) struct Frame<'v> {
    slots: Vec<Outcome<'v>>,
    cost: u64,
    cost_max: u64,
}

impl<'v> Frame<'v> {
    pub(super) fn new(mut slots: Vec<Outcome<'v>>, n_slots: usize, cost_max: u64) -> Self {
        slots.resize(n_slots, Ok(Val::Null));
        Frame { slots, cost: 0, cost_max }
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
                let Val::List(list) = constants else { return Err(Failure::NO_SUCH_OVERLOAD) };
                let is_equal =
                    |item: Outcome<'v>| item.is_ok_and(|item| item.equals(&value) == Some(true));
                let list: &List<'v> = list;
                Ok(Val::Bool(list.iter().any(is_equal)))
            }
            Node::OptionalOr { optional, other, unwrap } => match self.eval(optional)? {
                Val::Optional(Some(value)) if *unwrap => Ok((*value).clone()),
                Val::Optional(None) => self.eval(other),
                present => Ok(present),
            },
            Node::Call(call) => self.call(call),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
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
                self.slots[*slot].clone()
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

    fn operand(&mut self, node: &'v Node, charged: bool) -> Outcome<'v> {
        if node.is_place() {
            return self.place(node, charged);
        }
        let value = self.eval(node)?;
        self.charge(u64::from(charged))?;
        Ok(value)
    }

    fn select(&mut self, operand: Val<'v>, field: &'v str, mode: Select) -> Outcome<'v> {
        let (operand, was_optional) = match operand {
            Val::Optional(None) if mode == Select::Test => return Ok(Val::Bool(false)),
            Val::Optional(None) => return Ok(Val::NONE),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match &operand {
            Val::Map(map) => map.find_text(field)?,
            Val::List(_) => {
                return Err(Failure::new("unsupported index type 'string' in list"));
            }
            _ => None,
        };
        if mode == Select::Test {
            self.charge(1)?;
            return Ok(Val::Bool(found.is_some()));
        }
        let is_optional = was_optional || mode == Select::Optional;
        self.charge(u64::from(found.is_some() || !is_optional))?;
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
            place if place.is_place() => self.place(place, true)?,
            other => {
                let key = self.eval(other)?;
                self.charge(1)?;
                key
            }
        };
        let found = match &operand {
            Val::Map(map) => map.find(&key)?,
            Val::List(list) => {
                let at = position(&key)?.filter(|at| *at < list.len());
                at.map(|at| list.at(at)).transpose()?
            }
            _ => None,
        };
        match found {
            Some(value @ Val::Optional(_)) if is_optional => Ok(value),
            Some(value) if is_optional => Ok(Val::some(value)),
            Some(value) => Ok(value),
            None if is_optional => Ok(Val::NONE),
            None if matches!(operand, Val::List(_)) => {
                Err(Failure::new(format!("index out of bounds: {key}")))
            }
            None => Err(Failure::new(format!("no such key: {key}"))),
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

    fn call(&mut self, call: &'v Call) -> Outcome<'v> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut failure = None;
        for arg in &call.args {
            match self.eval(arg) {
                Ok(value) => args.push(value),
                // Operators look at both sides and are paid for it before they fail.
                Err(Failure::Error(error)) if call.args.len() <= 2 => {
                    failure.get_or_insert(Failure::Error(error));
                    args.push(Val::Null);
                }
                Err(failure) => return Err(failure),
            }
        }
        let overload = call.overload.map_or("", |overload| &overload.id);
        if let Some(failure) = failure {
            self.charge(actual::call(call.function, overload, &args, None))?;
            return Err(failure);
        }
        let result = match (&call.pattern, call.overload) {
            (Some(pattern), _) => regex::with_pattern(call.function, pattern, &args),
            (_, Some(overload)) => match overload.body {
                Body::Any(body) => body(&args),
                Body::Typed(body) if overload.takes(&args) => body(&args),
                _ => Err(function::no_such_overload(call.function, &args)),
            },
            _ => function::dispatch(call.function, call.candidates, call.is_member, &args),
        };
        self.charge(actual::call(call.function, overload, &args, result.as_ref().ok()))?;
        result
    }

    fn list(&mut self, elements: &'v [(bool, Node)]) -> Outcome<'v> {
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
        self.charge(LIST_COST)?;
        Ok(Val::list(items))
    }

    fn map(&mut self, entries: &'v [(bool, Node, Node)]) -> Outcome<'v> {
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
        self.charge(MAP_COST)?;
        Ok(Val::Map(Map::Built(map.into())))
    }

    fn fold(&mut self, fold: &'v Fold) -> Outcome<'v> {
        if let FoldBody::Bind(result) = &fold.body {
            self.slots[fold.first] = self.eval(&fold.range);
            return self.eval(result);
        }
        let range = match self.eval(&fold.range)? {
            Val::List(list) => Range::List(list),
            Val::Map(map) if fold.second.is_some() => Range::Entries(map.entries()?),
            Val::Map(map) => Range::Keys(map.keys()),
            other => {
                let type_ = go_type(&other);
                return Err(Failure::new(match fold.second {
                    Some(_) => format!("unsupported comprehension range type: {type_}"),
                    None => format!("got '{type_}', expected iterable type"),
                }));
            }
        };
        match &fold.body {
            FoldBody::All(predicate) => self.quantify(fold, &range, predicate, false),
            FoldBody::Exists(predicate) => self.quantify(fold, &range, predicate, true),
            FoldBody::ExistsOne(predicate) => self.count(fold, &range, predicate),
            FoldBody::List { filter, value } => {
                let mut items = Vec::new();
                for at in 0..range.len() {
                    self.bind(fold, &range, at);
                    if self.passes(filter.as_ref())? {
                        let is_constant = matches!(value, Node::Constant(_));
                        // The accumulator, a list of one, and their sum.
                        self.charge(2 + if is_constant { 0 } else { LIST_COST })?;
                        items.push(self.eval(value)?);
                    }
                }
                self.charge(1)?;
                Ok(Val::list(items))
            }
            FoldBody::Map { filter, key, value } => {
                let mut map = BuiltMap::default();
                for at in 0..range.len() {
                    self.bind(fold, &range, at);
                    if self.passes(filter.as_ref())? {
                        self.charge(2)?;
                        self.insert(&mut map, key.as_ref(), value)?;
                    }
                }
                self.charge(1)?;
                Ok(Val::Map(Map::Built(map.into())))
            }
            FoldBody::Bind(_) => unreachable!("treated before"),
        }
    }

    fn bind(&mut self, fold: &Fold, range: &Range<'v>, at: usize) {
        let (first, second) = match (range, fold.second) {
            (Range::List(list), None) => (list.at(at), None),
            (Range::List(list), Some(_)) => (Ok(Val::Int(at as i64)), Some(list.at(at))),
            (Range::Keys(keys), _) => (Ok(keys[at].clone()), None),
            (Range::Entries(entries), _) => {
                let (key, value) = entries[at].clone();
                (Ok(key), Some(Ok(value)))
            }
        };
        self.slots[fold.first] = first;
        if let (Some(slot), Some(second)) = (fold.second, second) {
            self.slots[slot] = second;
        }
    }

    fn passes(&mut self, filter: Option<&'v Node>) -> Result<bool, Failure> {
        let Some(filter) = filter else { return Ok(true) };
        match self.eval(filter)? {
            Val::Bool(passes) => Ok(passes),
            _ => Err(Failure::NO_SUCH_OVERLOAD),
        }
    }

    /// `exists` if `decisive`, else `all`.
    fn quantify(
        &mut self,
        fold: &Fold,
        range: &Range<'v>,
        predicate: &'v Node,
        decisive: bool,
    ) -> Outcome<'v> {
        // Each item looks whether it is settled; `exists` also negates what it looks at.
        let look = if decisive { 3 } else { 2 };
        let mut failure = None;
        let mut settled = false;
        for at in 0..range.len() {
            self.charge(look)?;
            if settled {
                break;
            }
            self.bind(fold, range, at);
            self.charge(1)?;
            match self.eval(predicate) {
                Ok(Val::Bool(value)) => settled = value == decisive,
                Ok(_) => {
                    failure.get_or_insert(Failure::NO_SUCH_OVERLOAD);
                }
                Err(Failure::CostLimit) => return Err(Failure::CostLimit),
                Err(other) => {
                    failure.get_or_insert(other);
                }
            }
        }
        self.charge(1)?;
        match failure {
            Some(failure) if !settled => Err(failure),
            _ => Ok(Val::Bool(settled == decisive)),
        }
    }

    fn count(&mut self, fold: &Fold, range: &Range<'v>, predicate: &'v Node) -> Outcome<'v> {
        let mut count = 0;
        for at in 0..range.len() {
            self.bind(fold, range, at);
            match self.eval(predicate)? {
                Val::Bool(true) => {
                    self.charge(2)?;
                    count += 1;
                }
                Val::Bool(false) => {}
                _ => return Err(Failure::NO_SUCH_OVERLOAD),
            }
        }
        self.charge(2)?;
        Ok(Val::Bool(count == 1))
    }

    fn insert(
        &mut self,
        map: &mut BuiltMap<'v>,
        key: Option<&'v Node>,
        value: &'v Node,
    ) -> Result<(), Failure> {
        if let Some(key) = key {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            return map.insert(key, value);
        }
        match self.eval(value)? {
            Val::Map(entries) => {
                for (key, value) in entries.entries()? {
                    map.insert(key, value)?;
                }
                Ok(())
            }
            _ => Err(Failure::NO_SUCH_OVERLOAD),
        }
    }
}

enum Range<'v> {
    List(List<'v>),
    Keys(Vec<Val<'v>>),
    Entries(Vec<(Val<'v>, Val<'v>)>),
}

impl Range<'_> {
    fn len(&self) -> usize {
        match self {
            Range::List(list) => list.len(),
            Range::Keys(keys) => keys.len(),
            Range::Entries(entries) => entries.len(),
        }
    }
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

/// What Go calls the type, in a message that shows it.
fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::String(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::Optional(_) => "*types.Optional",
        other => other.type_name(),
    }
}
