//! From a value and steps to the values found.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Filter, Slice, Step};
use crate::json::go;

/// Why an expression finds nothing that could be shown. A printer column is then empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    #[error("{0} is not array or slice")]
    NotAList(&'static str),
    #[error("{0} is not array or slice and cannot be filtered")]
    NotFilterable(&'static str),
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds { index: i64, length: i64 },
    #[error("starting index {start} is greater than ending index {end}")]
    Backwards { start: i64, end: i64 },
    #[error("step must be > 0")]
    Step,
    #[error("can only compare one element at a time")]
    ManyCompared,
    #[error("incompatible types for comparison")]
    Incomparable,
    #[error("invalid type for comparison")]
    NotComparable,
    #[error("unrecognized filter operator {0}")]
    Operator(String),
    #[error("unrecognized identifier {0}")]
    Identifier(String),
    #[error("more than {VISITS_MAX} values on the way")]
    TooMany,
}

/// Repeated descents and unions multiply: an evaluation may not look at more values than this.
const VISITS_MAX: usize = 4_000_000;

/// How many values an evaluation has looked at.
#[derive(Default)]
pub(super) struct Visits(Cell<usize>);

impl Visits {
    fn add(&self, count: usize) -> Result<(), EvalError> {
        self.0.set(self.0.get().saturating_add(count));
        if self.0.get() > VISITS_MAX { Err(EvalError::TooMany) } else { Ok(()) }
    }
}

type Found<'v> = Vec<Cow<'v, Value>>;

pub(super) fn walk<'v>(
    values: Found<'v>,
    steps: &[Step],
    visits: &Visits,
) -> Result<Found<'v>, EvalError> {
    steps.iter().try_fold(values, |values, step| {
        visits.add(values.len())?;
        take(values, step, visits)
    })
}

fn take<'v>(values: Found<'v>, step: &Step, visits: &Visits) -> Result<Found<'v>, EvalError> {
    match step {
        // A text stands for itself, even where nothing was found; other literals do not.
        Step::Literal(text @ Value::String(_)) => Ok(vec![Cow::Owned(text.clone())]),
        Step::Literal(value) => Ok(values.iter().map(|_| Cow::Owned(value.clone())).collect()),
        Step::Field(name) => {
            Ok(values.into_iter().filter_map(|value| member(value, name)).collect())
        }
        Step::Wildcard => {
            let mut found = Vec::new();
            for value in values {
                let children = children(value);
                visits.add(children.len())?;
                found.extend(children);
            }
            Ok(found)
        }
        Step::Recursive => {
            let mut found = Vec::new();
            for value in values {
                descend(value, &mut found, visits)?;
            }
            Ok(found)
        }
        Step::Slice(slice) => {
            let mut found = Vec::new();
            for value in values.into_iter().filter(|value| !value.is_null()) {
                let kind = go::type_name(&value);
                let items = items(value).ok_or(EvalError::NotAList(kind))?;
                visits.add(items.len())?;
                match slice.range(items.len())? {
                    Some((range, step)) => {
                        let items = items.into_iter().skip(range.start).take(range.len());
                        found.extend(items.step_by(step));
                    }
                    // Asking for no items ends the search, as upstream has it.
                    None => return Ok(found),
                }
            }
            Ok(found)
        }
        Step::Filter(filter) => {
            let mut found = Vec::new();
            for value in values {
                let kind = go::type_name(&value);
                let items = items(value).ok_or(EvalError::NotFilterable(kind))?;
                visits.add(items.len())?;
                for item in items {
                    if filter.passes(&item, visits)? {
                        found.push(item);
                    }
                }
            }
            Ok(found)
        }
        Step::Union(alternatives) => {
            let mut found = Vec::new();
            for steps in alternatives {
                visits.add(values.len())?;
                found.extend(walk(values.clone(), steps, visits)?);
            }
            Ok(found)
        }
        Step::Identifier(name) => Err(EvalError::Identifier(name.clone())),
    }
}

impl Slice {
    /// The positions and the step, or `None` for an empty slice.
    fn range(self, length: usize) -> Result<Option<(std::ops::Range<usize>, usize)>, EvalError> {
        let length = length as i64;
        let mut start = self.start.unwrap_or(0);
        if start < 0 {
            start = start.saturating_add(length);
        }
        let mut end = self.end.unwrap_or(length);
        if end < 0 || (end == 0 && self.end_is_derived) {
            end = end.saturating_add(length);
        }
        if start == end {
            return Ok(None);
        }
        if !(0..length).contains(&start) {
            return Err(EvalError::OutOfBounds { index: start, length });
        }
        if !(0..=length).contains(&end) {
            return Err(EvalError::OutOfBounds { index: end.saturating_sub(1), length });
        }
        if start > end {
            return Err(EvalError::Backwards { start, end });
        }
        let step = match self.step {
            None => 1,
            Some(step) => {
                usize::try_from(step).ok().filter(|step| *step > 0).ok_or(EvalError::Step)?
            }
        };
        Ok(Some((start as usize..end as usize, step)))
    }
}

impl Filter {
    fn passes(&self, item: &Value, visits: &Visits) -> Result<bool, EvalError> {
        let left = walk(vec![Cow::Borrowed(item)], &self.left, visits);
        let Some((operator, right)) = &self.comparison else {
            return Ok(left.is_ok_and(|found| !found.is_empty()));
        };
        let Some(left) = only(left?)? else { return Ok(false) };
        let Some(right) = only(walk(vec![Cow::Borrowed(item)], right, visits)?)? else {
            return Ok(false);
        };
        match operator.as_str() {
            "==" => equal(&left, &right),
            "!=" => Ok(!equal(&left, &right)?),
            "<" => less(&left, &right),
            "<=" => Ok(less(&left, &right)? || equal(&left, &right)?),
            ">" => Ok(!less(&left, &right)? && !equal(&left, &right)?),
            ">=" => Ok(!less(&left, &right)?),
            other => Err(EvalError::Operator(other.to_owned())),
        }
    }
}

fn only(found: Found<'_>) -> Result<Option<Cow<'_, Value>>, EvalError> {
    match found.len() {
        0 | 1 => Ok(found.into_iter().next()),
        _ => Err(EvalError::ManyCompared),
    }
}

fn equal(left: &Value, right: &Value) -> Result<bool, EvalError> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        _ => Ok(order(left, right)? == Some(Ordering::Equal)),
    }
}

fn less(left: &Value, right: &Value) -> Result<bool, EvalError> {
    match (left, right) {
        (Value::Bool(_), Value::Bool(_)) => Err(EvalError::NotComparable),
        _ => Ok(order(left, right)? == Some(Ordering::Less)),
    }
}

/// Strings compare with strings, whole numbers with whole numbers, others with others.
fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, EvalError> {
    let comparable =
        |value: &Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
    if !comparable(left) || !comparable(right) {
        return Err(EvalError::NotComparable);
    }
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
        (Value::Number(left), Value::Number(right)) => {
            match (left.as_i64(), right.as_i64(), left.as_f64(), right.as_f64()) {
                (Some(left), Some(right), ..) => Ok(Some(left.cmp(&right))),
                (None, None, Some(left), Some(right)) => Ok(left.partial_cmp(&right)),
                _ => Err(EvalError::Incomparable),
            }
        }
        _ => Err(EvalError::Incomparable),
    }
}

fn member<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(mut value) => value.get_mut(name).map(|value| Cow::Owned(value.take())),
    }
}

fn items(value: Cow<'_, Value>) -> Option<Found<'_>> {
    match value {
        Cow::Borrowed(Value::Array(items)) => Some(items.iter().map(Cow::Borrowed).collect()),
        Cow::Owned(Value::Array(items)) => Some(items.into_iter().map(Cow::Owned).collect()),
        _ => None,
    }
}

/// What is inside a value; of a string, its bytes, as Go's reflection has it.
fn children(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Object(members)) => members.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Object(members)) => {
            members.into_iter().map(|(_, value)| Cow::Owned(value)).collect()
        }
        other => match other.as_ref() {
            Value::String(text) => text.bytes().map(|byte| Cow::Owned(byte.into())).collect(),
            _ => items(other).unwrap_or_default(),
        },
    }
}

/// The value and all below it, but only those that have something inside.
fn descend<'v>(
    value: Cow<'v, Value>,
    found: &mut Found<'v>,
    visits: &Visits,
) -> Result<(), EvalError> {
    visits.add(1)?;
    let has_children = match value.as_ref() {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    };
    if has_children {
        let is_string = value.is_string();
        found.push(value.clone());
        if !is_string {
            for child in children(value) {
                descend(child, found, visits)?;
            }
        }
    }
    Ok(())
}
