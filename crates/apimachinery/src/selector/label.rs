//! Label selectors: the text of a query (`app in (a,b),!old`), and the object that stands in
//! specs (`matchLabels`, `matchExpressions`).

mod object;
mod parse;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::field::{Error, Path};
use crate::name;

pub use object::{Expression, LabelSelector, Leniency, NotASelector};
pub use parse::ParseError;

/// What an object's labels must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// No labels at all will do. What the absence of a [`LabelSelector`] means.
    Nothing,
    /// All of these must hold. None means that anything will do.
    All(Vec<Requirement>),
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// How a label relates to the values of a [`Requirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    /// Means the same, and prints as it was written.
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Exists,
    DoesNotExist,
}

/// Something that can tell the value of a label.
pub trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// The labels of a decoded object.
impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

/// An object without labels.
impl<L: Labels> Labels for Option<&L> {
    fn label(&self, key: &str) -> Option<&str> {
        self.and_then(|labels| labels.label(key))
    }
}

impl Selector {
    /// Anything will do.
    pub const EVERYTHING: Selector = Selector::All(Vec::new());

    /// Reads the text of a query. Requirements come out in the order of their keys.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut requirements = parse::requirements(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Selector::All(requirements))
    }

    /// Exactly these labels, which are taken to be valid.
    pub fn from_labels<K, V>(labels: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let mut requirements: Vec<_> = labels
            .into_iter()
            .map(|(key, value)| Requirement {
                key: key.into(),
                operator: Operator::Equals,
                values: vec![value.into()],
            })
            .collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Selector::All(requirements)
    }

    pub fn matches(&self, labels: &impl Labels) -> bool {
        match self {
            Selector::Nothing => false,
            Selector::All(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Whether anything will do.
    pub fn is_everything(&self) -> bool {
        *self == Selector::EVERYTHING
    }

    /// The one value that a label must have, if there is one.
    pub fn exact(&self, key: &str) -> Option<&str> {
        let Selector::All(requirements) = self else { return None };
        let requirement = requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, &requirement.values[..]) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl Requirement {
    /// Checks that key, operator and values go together.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: Vec<String>,
    ) -> Result<Self, Vec<Error>> {
        let key = key.into();
        let mut errors = Vec::new();
        errors.extend(key_error(&key, &Path::new("key")));
        let path = Path::new("values");
        let printed = || match values.is_empty() {
            true => Value::Null,
            false => Value::from(values.clone()),
        };
        let count_problem = match (operator, values.len()) {
            (Operator::In | Operator::NotIn, 0) => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            (Operator::Equals | Operator::DoubleEquals | Operator::NotEquals, 0 | 2..) => {
                Some("exact-match compatibility requires one single value")
            }
            (Operator::Exists | Operator::DoesNotExist, 1..) => {
                Some("values set must be empty for exists and does not exist")
            }
            (Operator::GreaterThan | Operator::LessThan, 0 | 2..) => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        errors.extend(count_problem.map(|problem| Error::invalid(&path, printed(), problem)));
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    let problem = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(Error::invalid(&path.index(index), value.as_str(), problem));
                }
            }
        }
        for (index, value) in values.iter().enumerate() {
            let problems = name::label_value(value);
            if !problems.is_empty() {
                let problem = problems.join("; ");
                let path = path.index(index);
                errors.push(Error::invalid(&path.key(&key), value.as_str(), problem));
            }
        }
        match errors.is_empty() {
            true => Ok(Requirement { key, operator, values }),
            false => Err(errors),
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    pub fn values(&self) -> &[String] {
        &self.values
    }

    pub fn matches(&self, labels: &impl Labels) -> bool {
        let label = labels.label(&self.key);
        let listed = |value: &str| self.values.iter().any(|listed| listed == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compare(label, |label, bound| label > bound),
            Operator::LessThan => self.compare(label, |label, bound| label < bound),
        }
    }

    fn compare(&self, label: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let label = label.and_then(|label| label.parse().ok());
        let bound = self.values.first().and_then(|bound| bound.parse().ok());
        label.zip(bound).is_some_and(|(label, bound)| holds(label, bound))
    }
}

/// In the form of a query; of no use for [`Selector::Nothing`], which prints as nothing.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selector::All(requirements) = self else { return Ok(()) };
        for (n, requirement) in requirements.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = || {
            let mut sorted = self.values.clone();
            sorted.sort();
            sorted.join(",")
        };
        match self.operator {
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::In => write!(f, "{key} in ({})", values()),
            Operator::NotIn => write!(f, "{key} notin ({})", values()),
            Operator::Equals => write!(f, "{key}={}", values()),
            Operator::DoubleEquals => write!(f, "{key}=={}", values()),
            Operator::NotEquals => write!(f, "{key}!={}", values()),
            Operator::GreaterThan => write!(f, "{key}>{}", values()),
            Operator::LessThan => write!(f, "{key}<{}", values()),
        }
    }
}

fn key_error(key: &str, path: &Path<'_>) -> Option<Error> {
    let problems = name::label_key(key);
    (!problems.is_empty()).then(|| Error::invalid(path, key, problems.join("; ")))
}

#[cfg(test)]
mod tests;
