//! Values of expressions.
//!
//! What comes out of an object stays where it is: a list or a map is a borrowed piece of JSON with
//! its schema beside it, and an item becomes a value when somebody looks at it. Values that an
//! expression makes are shared.

mod adapt;
mod bucket;
mod equality;
mod json;
mod list;
mod made;
mod map;
mod moment;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

pub use self::adapt::Data;
pub use self::json::Large;
pub(super) use self::list::{Items, List, ListKind};
pub use self::made::Struct;
pub(super) use self::map::{BuiltMap, Map};
pub(super) use self::moment::{Timestamp, Zone};
use super::function::named_format::NamedFormat;
use super::function::network::Cidr;
use super::function::semver::Version;
use super::function::url::Url;
use crate::quantity::Quantity;

#[derive(Clone)]
pub enum Val<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'v>),
    Bytes(Arc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(&'static str),
    List(List<'v>),
    Map(Map<'v>),
    Optional(Option<Arc<Val<'v>>>),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Arc<Url>),
    Quantity {
        amount: Arc<Quantity>,
        /// Made by `add` or `sub`. Such a quantity equals nothing when it stands on the right of
        /// `==`: upstream keeps it behind a pointer, which its comparison does not look through.
        computed: bool,
    },
    Semver(Arc<Version>),
    Format(&'static NamedFormat),
    /// What `x-kubernetes-preserve-unknown-fields` kept; it can only be compared.
    Preserved(&'v Value),
    /// An object of a type that the expression named.
    Struct(Arc<Struct<'v>>),
    /// Through which named expressions are found, see [`Composition`].
    ///
    /// [`Composition`]: super::Composition
    Composed,
    /// A value that somebody outside this module answers for.
    Foreign(Arc<dyn Foreign>),
}

/// A value whose functions are implemented elsewhere, such as the authorizer of an admission
/// policy.
pub trait Foreign: Send + Sync {
    fn type_name(&self) -> &'static str;

    /// Calls a member function with this value as its receiver.
    fn call<'v>(&self, function: &str, args: &[Val<'v>]) -> Outcome<'v>;
}

/// A string: borrowed from an object or an expression, or made.
#[derive(Clone)]
pub enum Text<'v> {
    Borrowed(&'v str),
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It went wrong; logic may still do without it.
    Error(Cow<'static, str>),
    /// It cost more than it may. Nothing absorbs this.
    CostLimit,
}

pub type Outcome<'v> = Result<Val<'v>, Failure>;

/// How long a text may be that an expression makes. Prices are upstream's, and do not keep all
/// functions from making more than there is memory.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 20;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(text) => f.write_str(text),
            Failure::CostLimit => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

impl Failure {
    pub(super) const NO_SUCH_OVERLOAD: Failure = Failure::Error(Cow::Borrowed("no such overload"));

    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Failure::Error(text.into())
    }

    /// No such overload of an operator or function that one of the operands does not have.
    pub(super) fn no_function(function: &str) -> Self {
        Failure::new(format!("no such overload: {function}"))
    }
}

impl<'v> Val<'v> {
    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Val::String(Text::Shared(text.into()))
    }

    pub(super) fn borrowed(text: &'v str) -> Self {
        Val::String(Text::Borrowed(text))
    }

    pub(super) fn list(items: Vec<Val<'v>>) -> Self {
        Val::List(List::built(items))
    }

    pub(super) fn some(value: Val<'v>) -> Self {
        Val::Optional(Some(Arc::new(value)))
    }

    pub(super) const NONE: Val<'static> = Val::Optional(None);

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::String(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Type(_) => "type",
            Val::List(_) => "list",
            Val::Map(_) => "map",
            Val::Optional(_) => super::types::OPTIONAL,
            Val::Ip(_) => "net.IP",
            Val::Cidr(_) => "net.CIDR",
            Val::Url(_) => "kubernetes.URL",
            Val::Quantity { .. } => "kubernetes.Quantity",
            Val::Semver(_) => "kubernetes.Semver",
            Val::Format(_) => "kubernetes.NamedFormat",
            Val::Preserved(_) => "unknown",
            Val::Struct(made) => made.kind(),
            Val::Composed => "kubernetes.variables",
            Val::Foreign(foreign) => foreign.type_name(),
        }
    }

    /// What `size()` says, for what has a size.
    pub(super) fn size(&self) -> Option<u64> {
        Some(match self {
            Val::String(text) => text.chars().count() as u64,
            Val::Bytes(bytes) => bytes.len() as u64,
            Val::List(list) => list.len() as u64,
            Val::Map(map) => map.len() as u64,
            Val::Ip(address) => match address {
                IpAddr::V4(_) => 4,
                IpAddr::V6(_) => 16,
            },
            Val::Cidr(cidr) => u64::from(cidr.bits.div_ceil(8)),
            _ => return None,
        })
    }

    /// The order of two values of types that have one; numbers compare across types.
    pub(super) fn compare(&self, other: &Val<'_>) -> Result<Ordering, Failure> {
        if let (Some(a), Some(b)) = (Number::of(self), Number::of(other)) {
            let nan = || Failure::new("NaN values cannot be ordered");
            return a.compare(b).ok_or_else(nan);
        }
        Ok(match (self, other) {
            (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
            (Val::String(a), Val::String(b)) => (**a).cmp(&**b),
            (Val::Bytes(a), Val::Bytes(b)) => a.cmp(b),
            (Val::Duration(a), Val::Duration(b)) => a.cmp(b),
            (Val::Timestamp(a), Val::Timestamp(b)) => a.instant().cmp(&b.instant()),
            _ => return Err(Failure::NO_SUCH_OVERLOAD),
        })
    }

    /// Whether it has an order at all.
    pub(super) fn is_comparable(&self) -> bool {
        matches!(
            self,
            Val::Bool(_)
                | Val::Int(_)
                | Val::Uint(_)
                | Val::Double(_)
                | Val::String(_)
                | Val::Bytes(_)
                | Val::Duration(_)
                | Val::Timestamp(_)
        )
    }

    pub(super) fn is_zero(&self) -> bool {
        match self {
            Val::Null => true,
            Val::Bool(value) => !value,
            Val::Int(value) => *value == 0,
            Val::Uint(value) => *value == 0,
            Val::Double(value) => *value == 0.0,
            Val::Duration(nanos) => *nanos == 0,
            Val::Timestamp(moment) => moment.is_zero(),
            Val::String(_) | Val::Bytes(_) => self.size() == Some(0),
            Val::List(list) => list.is_built() && list.len() == 0,
            Val::Map(map) => map.is_built() && map.len() == 0,
            Val::Optional(inner) => inner.is_none(),
            Val::Struct(made) => made.is_empty(),
            _ => false,
        }
    }
}

/// As it stands in a message about a missing key or a bad index.
impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Val::Null => f.write_str("null"),
            Val::Bool(value) => write!(f, "{value}"),
            Val::Int(value) => write!(f, "{value}"),
            Val::Uint(value) => write!(f, "{value}"),
            Val::Double(value) => f.write_str(&super::function::convert::double_text(*value)),
            Val::String(text) => f.write_str(text),
            other => f.write_str(other.type_name()),
        }
    }
}

/// A number of any of the three types.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Whole(i128),
    Double(f64),
}

impl Number {
    pub(super) fn of(value: &Val<'_>) -> Option<Self> {
        match value {
            Val::Int(value) => Some(Number::Whole(i128::from(*value))),
            Val::Uint(value) => Some(Number::Whole(i128::from(*value))),
            Val::Double(value) => Some(Number::Double(*value)),
            _ => None,
        }
    }

    pub(super) fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(&b)),
            (Number::Double(a), Number::Double(b)) => a.partial_cmp(&b),
            (Number::Double(_), Number::Whole(_)) => other.compare(self).map(Ordering::reverse),
            (Number::Whole(a), Number::Double(b)) => {
                if b.is_nan() {
                    return None;
                }
                // Beyond these bounds no whole number lies; within, the integral part is exact.
                if b >= 18_446_744_073_709_551_616.0 {
                    return Some(Ordering::Less);
                }
                if b < -9_223_372_036_854_775_808.0 {
                    return Some(Ordering::Greater);
                }
                (a as f64).partial_cmp(&b)
            }
        }
    }
}
