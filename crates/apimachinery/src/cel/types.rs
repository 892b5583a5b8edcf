//! Types of expressions, and which of them fit where.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::escape;

#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Of what was found wrong; it fits everywhere, so that one mistake is reported once.
    Error,
    /// Known only when the expression runs.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Object(Arc<Object>),
    /// A type with its own functions and nothing to look into.
    Opaque(&'static str, Arc<[Type]>),
    /// The type of a type.
    Type(Option<Arc<Type>>),
    /// Stands for a type that is still to be found.
    Param(Arc<str>),
}

/// An object with named fields. Two are the same when their names are.
#[derive(Debug)]
pub struct Object {
    pub name: String,
    pub fields: BTreeMap<Box<str>, Type>,
    /// Whether it has all other fields as well, of which nothing is known.
    pub is_open: bool,
    /// Whether nobody can tell which fields it has.
    pub is_hidden: bool,
}

impl Object {
    /// The type of a field, if there is such a field. One that is called like a word of the
    /// language may be written as it is, too, since behind a dot only a field can stand.
    pub(super) fn field(&self, name: &str) -> Option<Type> {
        let escaped =
            || escape::is_reserved(name).then(|| self.fields.get(&*format!("__{name}__")));
        let declared = self.fields.get(name).or_else(|| escaped().flatten()).cloned();
        declared.or_else(|| self.is_open.then_some(Type::Dyn))
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

pub(super) const OPTIONAL: &str = "optional_type";

impl Type {
    pub fn list(item: Type) -> Self {
        Type::List(Arc::new(item))
    }

    pub fn map(key: Type, value: Type) -> Self {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    pub fn optional(inner: Type) -> Self {
        Type::Opaque(OPTIONAL, Arc::new([inner]))
    }

    /// An object nobody looks into.
    pub fn named(name: &str) -> Self {
        let (name, fields) = (name.to_owned(), BTreeMap::new());
        Type::Object(Arc::new(Object { name, fields, is_open: false, is_hidden: true }))
    }

    /// An object with these fields and no others.
    pub fn object(name: impl Into<String>, fields: BTreeMap<Box<str>, Type>) -> Self {
        Type::Object(Arc::new(Object {
            name: name.into(),
            fields,
            is_open: false,
            is_hidden: false,
        }))
    }

    /// What an optional may hold, and whether it is one.
    pub(super) fn unwrap_optional(&self) -> (&Type, bool) {
        match self {
            Type::Opaque(OPTIONAL, params) => (&params[0], true),
            other => (other, false),
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn)
    }

    fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Holds null as well, for historical reasons.
    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Type::Opaque(..) | Type::Object(_) | Type::Duration | Type::Timestamp | Type::Null
        )
    }

    /// The name by which values are told apart, with parameters.
    pub fn full_name(&self) -> String {
        let full_names = |types: &[&Type]| {
            let names: Vec<_> = types.iter().map(|type_| type_.full_name()).collect();
            format!("{}({})", self.name(), names.join(", "))
        };
        match self {
            Type::List(item) => full_names(&[item]),
            Type::Map(key, value) => full_names(&[key, value]),
            Type::Type(Some(inner)) => full_names(&[inner]),
            Type::Opaque(_, params) if !params.is_empty() => {
                full_names(&params.iter().collect::<Vec<_>>())
            }
            other => other.name().to_owned(),
        }
    }

    /// The name without parameters.
    pub(super) fn name(&self) -> &str {
        match self {
            Type::Error => "error",
            Type::Dyn => "dyn",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Object(object) => &object.name,
            Type::Opaque(name, _) => name,
            Type::Type(_) => "type",
            Type::Param(name) => name,
        }
    }
}

/// As complaints write it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Type(Some(inner)) => write!(f, "type({inner})"),
            Type::Opaque(name, params) if !params.is_empty() => {
                let params: Vec<_> = params.iter().map(Type::to_string).collect();
                write!(f, "{name}({})", params.join(", "))
            }
            other => f.write_str(other.name()),
        }
    }
}

/// What the parameters met so far stand for.
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    known: HashMap<Arc<str>, Type>,
    /// What the attempt under way has replaced.
    undo: Vec<(Arc<str>, Option<Type>)>,
}

impl Substitutions {
    /// Whether every type fits its counterpart; what that says about parameters is remembered
    /// only if all do.
    pub(super) fn unify_all(&mut self, types: &[Type], into: &[Type]) -> bool {
        if types.len() != into.len() {
            return false;
        }
        self.undo.clear();
        let all = types.iter().zip(into).all(|(type_, into)| self.fits(type_, into));
        if !all {
            while let Some((name, before)) = self.undo.pop() {
                match before {
                    Some(before) => self.known.insert(name, before),
                    None => self.known.remove(&name),
                };
            }
        }
        all
    }

    fn learn(&mut self, name: &Arc<str>, type_: Type) {
        let before = self.known.insert(name.clone(), type_);
        self.undo.push((name.clone(), before));
    }

    pub(super) fn unify(&mut self, type_: &Type, into: &Type) -> bool {
        self.unify_all(std::slice::from_ref(type_), std::slice::from_ref(into))
    }

    /// The type with parameters replaced by what they stand for. Free ones stay, or become dyn.
    pub(super) fn apply(&self, type_: &Type, free_is_dyn: bool) -> Type {
        let apply = |inner: &Arc<Type>| Arc::new(self.apply(inner, free_is_dyn));
        match type_ {
            Type::Param(name) => match self.known.get(name) {
                Some(found) => self.apply(found, free_is_dyn),
                None if free_is_dyn => Type::Dyn,
                None => type_.clone(),
            },
            Type::List(item) => Type::List(apply(item)),
            Type::Map(key, value) => Type::Map(apply(key), apply(value)),
            Type::Type(Some(inner)) => Type::Type(Some(apply(inner))),
            Type::Opaque(name, params) => {
                let params = params.iter().map(|param| self.apply(param, free_is_dyn));
                Type::Opaque(name, params.collect())
            }
            other => other.clone(),
        }
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Param(name) = b {
            match self.bind(name, b, a) {
                Bound::Fits => return true,
                Bound::Conflicts => return false,
                Bound::Circular => {}
            }
        }
        if let Type::Param(name) = a {
            return matches!(self.bind(name, a, b), Bound::Fits);
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        if matches!(a, Type::Null) {
            return b.is_nullable();
        }
        if matches!(b, Type::Null) {
            return a.is_nullable();
        }
        match (a, b) {
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.fits(a, b),
            (Type::Map(ak, av), Type::Map(bk, bv)) => self.fits(ak, bk) && self.fits(av, bv),
            (Type::Opaque(a, ap), Type::Opaque(b, bp)) => {
                a == b && ap.len() == bp.len() && ap.iter().zip(&**bp).all(|(a, b)| self.fits(a, b))
            }
            (a, b) => a == b,
        }
    }

    /// Lets a parameter stand for `type_`, or for something more general.
    fn bind(&mut self, name: &Arc<str>, param: &Type, type_: &Type) -> Bound {
        if param == type_ {
            return Bound::Fits;
        }
        let Some(known) = self.known.get(name).cloned() else {
            return match self.occurs(name, type_) {
                true => Bound::Circular,
                false => {
                    self.learn(name, type_.clone());
                    Bound::Fits
                }
            };
        };
        if *type_ == known {
            return Bound::Fits;
        }
        if !self.fits(type_, &known) {
            return Bound::Conflicts;
        }
        let general = most_general(type_, &known).clone();
        if !self.occurs(name, &general) {
            self.learn(name, general);
        }
        Bound::Fits
    }

    fn occurs(&self, name: &Arc<str>, within: &Type) -> bool {
        match within {
            Type::Param(other) if other == name => true,
            Type::Param(other) => {
                self.known.get(other).is_some_and(|found| self.occurs(name, found))
            }
            Type::List(item) => self.occurs(name, item),
            Type::Map(key, value) => self.occurs(name, key) || self.occurs(name, value),
            Type::Type(Some(inner)) => self.occurs(name, inner),
            Type::Opaque(_, params) => params.iter().any(|param| self.occurs(name, param)),
            _ => false,
        }
    }
}

enum Bound {
    Fits,
    Conflicts,
    /// The parameter is part of what it would stand for.
    Circular,
}

/// Of two types that fit each other, the one that says less.
pub(super) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if is_no_more_specific(a, b) { a } else { b }
}

fn is_no_more_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) => is_no_more_specific(a, b),
        (Type::Map(ak, av), Type::Map(bk, bv)) => {
            is_no_more_specific(ak, bk) && is_no_more_specific(av, bv)
        }
        (Type::Opaque(a, ap), Type::Opaque(b, bp)) => {
            a == b
                && ap.len() == bp.len()
                && ap.iter().zip(&**bp).all(|(a, b)| is_no_more_specific(a, b))
        }
        (Type::Type(_), Type::Type(_)) => true,
        (a, b) => a == b,
    }
}
