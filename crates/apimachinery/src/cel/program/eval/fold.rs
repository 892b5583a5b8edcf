//! Running the same step for every item.

use super::{Frame, Slot};
use crate::cel::cost::LIST_COST;
use crate::cel::program::{Fold, FoldBody, Node};
use crate::cel::value::{BuiltMap, Failure, List, Map, Outcome, Val};

impl<'v> Frame<'_, 'v> {
    pub(super) fn fold(&mut self, fold: &'v Fold) -> Outcome<'v> {
        if let FoldBody::Bind(result) = &fold.body {
            self.slots[fold.first] = Slot::Deferred(&fold.range);
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
                let filter = filter.as_ref();
                self.collect_list(fold, &range, filter, value)
            }
            FoldBody::Map { filter, key, value } => {
                let (filter, key) = (filter.as_ref(), key.as_ref());
                self.collect_map(fold, &range, filter, (key, value))
            }
            FoldBody::Bind(_) => unreachable!("treated before"),
        }
    }

    /// Once something failed the rest is still looked at, and paid for.
    fn collect_list(
        &mut self,
        fold: &Fold,
        range: &Range<'v>,
        filter: Option<&'v Node>,
        value: &'v Node,
    ) -> Outcome<'v> {
        // The accumulator, a list of one, and their sum.
        let step = 2 + if matches!(value, Node::Constant(_)) { 0 } else { LIST_COST };
        let mut items = Ok(Vec::new());
        for at in 0..range.len() {
            self.bind(fold, range, at);
            match self.passes(filter) {
                Err(failure) => items = Err(failure),
                Ok(false) => {}
                Ok(true) => {
                    self.charge(step)?;
                    match (self.eval(value), &mut items) {
                        (Ok(value), Ok(items)) => items.push(value),
                        (Err(failure), Ok(_)) => items = Err(failure),
                        (Err(Failure::CostLimit), Err(_)) => return Err(Failure::CostLimit),
                        (_, Err(_)) => {}
                    }
                }
            }
            if matches!(items, Err(Failure::CostLimit)) {
                return Err(Failure::CostLimit);
            }
        }
        self.charge(1)?;
        items.map(Val::list)
    }

    fn collect_map(
        &mut self,
        fold: &Fold,
        range: &Range<'v>,
        filter: Option<&'v Node>,
        (key, value): (Option<&'v Node>, &'v Node),
    ) -> Outcome<'v> {
        let mut map = Ok(BuiltMap::default());
        for at in 0..range.len() {
            self.bind(fold, range, at);
            match self.passes(filter) {
                Err(failure) => map = Err(failure),
                Ok(false) => {}
                Ok(true) => {
                    // The accumulator.
                    self.charge(1)?;
                    let inserted = match &mut map {
                        Ok(map) => self.insert(map, key, value),
                        Err(_) if key.is_some() => Ok(()),
                        Err(_) => self.insert(&mut BuiltMap::default(), key, value),
                    };
                    if let (Err(failure), true) = (inserted, map.is_ok()) {
                        map = Err(failure);
                    }
                }
            }
            if matches!(map, Err(Failure::CostLimit)) {
                return Err(Failure::CostLimit);
            }
        }
        self.charge(1)?;
        map.map(|map| Val::Map(Map::Built(map.into())))
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
        self.slots[fold.first] = Slot::Value(first);
        if let (Some(slot), Some(second)) = (fold.second, second) {
            self.slots[slot] = Slot::Value(second);
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
        let mut count = Ok(0);
        for at in 0..range.len() {
            self.bind(fold, range, at);
            match self.eval(predicate) {
                Ok(Val::Bool(true)) => {
                    self.charge(2)?;
                    count = count.map(|count| count + 1);
                }
                Ok(Val::Bool(false)) => {}
                Ok(_) => count = Err(Failure::NO_SUCH_OVERLOAD),
                Err(Failure::CostLimit) => return Err(Failure::CostLimit),
                Err(failure) => count = Err(failure),
            }
        }
        self.charge(2)?;
        count.map(|count| Val::Bool(count == 1))
    }

    fn insert(
        &mut self,
        map: &mut BuiltMap<'v>,
        key: Option<&'v Node>,
        value: &'v Node,
    ) -> Result<(), Failure> {
        let key = key.map(|key| self.eval(key)).transpose()?;
        let value = self.eval(value);
        self.charge(1)?;
        match (key, value?) {
            (Some(key), value) => map.insert(key, value),
            (None, Val::Map(entries)) => {
                for (key, value) in entries.entries()? {
                    map.insert(key, value)?;
                }
                Ok(())
            }
            (None, _) => Err(Failure::NO_SUCH_OVERLOAD),
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
