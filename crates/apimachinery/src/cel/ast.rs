//! The tree of an expression, after macros are expanded.

use std::sync::Arc;

/// Names a node; types, overloads and places in the text are kept by it.
pub(super) type Id = usize;

#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) id: Id,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    Ident(Box<str>),
    Select {
        operand: Box<Expr>,
        field: Box<str>,
        /// Asks whether the field is there.
        test_only: bool,
    },
    Call(Call),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// An object of a named type.
    Struct {
        type_name: Box<str>,
        fields: Vec<Field>,
    },
    Fold(Box<Fold>),
    /// Stands for what could not be read; a complaint was made.
    Broken,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) function: Box<str>,
    /// What stands before the dot.
    pub(super) target: Option<Box<Expr>>,
    pub(super) args: Vec<Expr>,
}

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) optional: bool,
    pub(super) value: Expr,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) optional: bool,
    pub(super) key: Expr,
    pub(super) value: Expr,
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Of the field itself, which stands at its colon.
    pub(super) id: Id,
    pub(super) optional: bool,
    pub(super) name: Box<str>,
    pub(super) value: Expr,
}

/// What all macros over lists and maps become: an accumulator that is carried from item to item.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    /// Which macro it comes from; the shape of the other parts follows from it.
    pub(super) purpose: Purpose,
    pub(super) range: Expr,
    /// The item of a list or the key of a map; beside a second variable, the index or the key.
    pub(super) variable: Box<str>,
    pub(super) second_variable: Option<Box<str>>,
    pub(super) accumulator: Box<str>,
    pub(super) init: Expr,
    pub(super) condition: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    All,
    Exists,
    ExistsOne,
    /// Makes a list of what each step appends.
    List,
    /// Makes a map of what each step inserts.
    Map,
    /// Repeats nothing: the accumulator only gives a name to a value.
    Bind,
}

impl Expr {
    /// Names joined by dots, as `a.b.c`, if that is all it is.
    pub(super) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test_only: false } => {
                Some(format!("{}.{field}", operand.qualified_name()?))
            }
            _ => None,
        }
    }

    /// Calls `visit` with this node and all below it, parents first.
    pub(super) fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        self.children(&mut |child| child.walk(visit));
    }

    pub(super) fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Broken => {}
            Kind::Select { operand, .. } => visit(operand),
            Kind::Call(call) => {
                call.target.iter().for_each(|target| visit(target));
                call.args.iter().for_each(visit);
            }
            Kind::List(elements) => elements.iter().for_each(|element| visit(&element.value)),
            Kind::Map(entries) => entries.iter().for_each(|entry| {
                visit(&entry.key);
                visit(&entry.value);
            }),
            Kind::Struct { fields, .. } => fields.iter().for_each(|field| visit(&field.value)),
            Kind::Fold(fold) => {
                let Fold { range, init, condition, step, result, .. } = &**fold;
                [range, init, condition, step, result].into_iter().for_each(visit);
            }
        }
    }
}

/// Names of the operators, as functions.
pub(super) mod operator {
    pub(in crate::cel) const CONDITIONAL: &str = "_?_:_";
    pub(in crate::cel) const AND: &str = "_&&_";
    pub(in crate::cel) const OR: &str = "_||_";
    pub(in crate::cel) const NOT: &str = "!_";
    pub(in crate::cel) const EQUALS: &str = "_==_";
    pub(in crate::cel) const NOT_EQUALS: &str = "_!=_";
    pub(in crate::cel) const ADD: &str = "_+_";
    pub(in crate::cel) const NEGATE: &str = "-_";
    pub(in crate::cel) const INDEX: &str = "_[_]";
    pub(in crate::cel) const OPTIONAL_INDEX: &str = "_[?_]";
    pub(in crate::cel) const OPTIONAL_SELECT: &str = "_?._";
    pub(in crate::cel) const IN: &str = "@in";
    pub(in crate::cel) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
}
