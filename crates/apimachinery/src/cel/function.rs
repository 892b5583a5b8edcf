//! The functions of the language and of Kubernetes' libraries: their types, and what they do.
//!
//! The set is that of custom resources at 1.36, and what only patches have. Signatures are written
//! as text and read once.

mod authorizer;
pub(super) mod convert;
pub(super) mod format;
mod lists;
pub(super) mod named_format;
pub(super) mod network;
pub(super) mod operators;
mod optional;
pub(super) mod patch;
mod quantity;
pub(super) mod regex;
pub(super) mod semver;
mod strings;
mod time;
pub(super) mod url;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::types::Type;
use super::value::{Failure, Outcome, Val};

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) function: &'static str,
    pub(super) id: Box<str>,
    /// Called with something before the dot, which is the first parameter.
    pub(super) is_member: bool,
    pub(super) params: Vec<Type>,
    pub(super) result: Type,
    pub(super) type_params: Vec<Arc<str>>,
    pub(super) body: Body,
}

#[derive(Clone, Copy)]
pub(super) enum Body {
    /// Called when the arguments have the types of the parameters.
    Typed(Function),
    /// One for all overloads: looks at its arguments itself.
    Any(Function),
    /// Part of the evaluation itself.
    BuiltIn,
}

pub(super) type Function = for<'v> fn(&[Val<'v>]) -> Outcome<'v>;

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

/// All overloads of a function; none when there is no such function.
pub(super) fn find(name: &str) -> &'static [Overload] {
    FUNCTIONS.get(name).map_or(&[], |overloads| overloads)
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut table = Table::default();
    operators::declare(&mut table);
    convert::declare(&mut table);
    time::declare(&mut table);
    strings::declare(&mut table);
    regex::declare(&mut table);
    lists::declare(&mut table);
    optional::declare(&mut table);
    url::declare(&mut table);
    network::declare(&mut table);
    quantity::declare(&mut table);
    semver::declare(&mut table);
    named_format::declare(&mut table);
    authorizer::declare(&mut table);
    patch::declare(&mut table);
    table.0
});

/// Types that order their values, with the names that overloads have for them.
const COMPARABLE: [&str; 8] =
    ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];

#[derive(Default)]
struct Table(HashMap<&'static str, Vec<Overload>>);

impl Table {
    /// A function called by its name: `"string, int -> string"`.
    fn global(&mut self, name: &'static str, id: impl Into<Box<str>>, signature: &str, body: Body) {
        self.add(name, id.into(), false, signature, body);
    }

    /// A function called on its first parameter.
    fn member(&mut self, name: &'static str, id: impl Into<Box<str>>, signature: &str, body: Body) {
        self.add(name, id.into(), true, signature, body);
    }

    fn add(
        &mut self,
        function: &'static str,
        id: Box<str>,
        is_member: bool,
        signature: &str,
        body: Body,
    ) {
        let (params, result) = signature.split_once("->").expect("a signature has a result");
        let params = types(params.trim());
        let result = types(result.trim()).pop().expect("a result has a type");
        let mut type_params = Vec::new();
        for type_ in params.iter().chain([&result]) {
            collect_params(type_, &mut type_params);
        }
        let overload = Overload { function, id, is_member, params, result, type_params, body };
        self.0.entry(function).or_default().push(overload);
    }
}

fn collect_params(type_: &Type, found: &mut Vec<Arc<str>>) {
    match type_ {
        Type::Param(name) if !found.contains(name) => found.push(name.clone()),
        Type::List(item) | Type::Type(Some(item)) => collect_params(item, found),
        Type::Map(key, value) => {
            collect_params(key, found);
            collect_params(value, found);
        }
        Type::Opaque(_, params) => params.iter().for_each(|param| collect_params(param, found)),
        _ => {}
    }
}

/// Types between commas.
fn types(text: &str) -> Vec<Type> {
    let (mut depth, mut start) = (0, 0);
    let mut types = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                types.push(type_(text[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        types.push(type_(last));
    }
    types
}

fn type_(text: &str) -> Type {
    if let Some((name, params)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut params = types(params);
        let last = params.pop().expect("there is a parameter");
        return match (name, params.pop()) {
            ("list", None) => Type::list(last),
            ("optional", None) => Type::optional(last),
            ("type", None) => Type::Type(Some(Arc::new(last))),
            ("map", Some(key)) => Type::map(key, last),
            _ => panic!("no such type: {text}"),
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "net.IP" => Type::Opaque("net.IP", Arc::new([])),
        "net.CIDR" => Type::Opaque("net.CIDR", Arc::new([])),
        name if name.starts_with("kubernetes.") => Type::named(name),
        param => Type::Param(param.into()),
    }
}

impl Overload {
    /// Whether these are arguments for it, when types were not known before.
    pub(super) fn takes(&self, args: &[Val<'_>]) -> bool {
        args.len() == self.params.len()
            && self.params.iter().zip(args).all(|(param, arg)| match param {
                Type::Dyn | Type::Param(_) => true,
                other => other.name() == arg.type_name(),
            })
    }
}

/// Calls the overload that takes these arguments.
pub(super) fn dispatch<'v>(
    function: &str,
    candidates: &[Overload],
    is_member: bool,
    args: &[Val<'v>],
) -> Outcome<'v> {
    for overload in candidates {
        match overload.body {
            Body::Any(body) => return body(args),
            Body::Typed(body) if overload.is_member == is_member && overload.takes(args) => {
                return body(args);
            }
            _ => {}
        }
    }
    Err(no_such_overload(function, args))
}

pub(super) fn no_such_overload(function: &str, args: &[Val<'_>]) -> Failure {
    let types: Vec<&str> = args.iter().map(Val::type_name).collect();
    Failure::new(format!("no such overload: {function}({})", types.join(", ")))
}
