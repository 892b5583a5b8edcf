//! What a JSON decoder must know of a kind to report unknown fields while it reads.

use super::{Kind, Ty, Type};
use crate::json::strict;

/// The shape of a kind, for [`crate::json::decode_shaped`].
pub fn shape(kind: &Kind) -> Shape {
    Shape::Struct(kind.ty())
}

/// A Go type, seen by what fields it has.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Struct(&'static Type),
    Of(&'static Ty),
}

impl Shape {
    fn of(ty: &'static Ty) -> Self {
        match ty {
            Ty::Struct(id) => Shape::Struct(id.get()),
            other => Shape::Of(other),
        }
    }
}

impl strict::Shape for Shape {
    fn field(self, name: &str) -> Option<Self> {
        match self {
            Shape::Struct(ty) => ty.field(name).map(|field| Shape::of(&field.ty)),
            Shape::Of(Ty::Map(of)) => Some(Shape::of(of)),
            // An object here is an error of its own.
            Shape::Of(_) => Some(self),
        }
    }

    fn item(self) -> Self {
        match self {
            Shape::Of(Ty::List(of)) => Shape::of(of),
            _ => self,
        }
    }

    fn is_opaque(self) -> bool {
        !matches!(self, Shape::Struct(_) | Shape::Of(Ty::Map(_) | Ty::List(_)))
    }
}
