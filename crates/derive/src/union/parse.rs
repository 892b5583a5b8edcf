//! What an author says about a union.

use proc_macro2::{Ident, Span};
use quote::format_ident;
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Lit, LitStr, Meta, Result, Type};

/// An enum that is to be a union.
pub(super) struct Union {
    pub(super) name: Ident,
    /// The field that says which variant it is.
    pub(super) tag: String,
    pub(super) variants: Vec<Variant>,
}

pub(super) struct Variant {
    pub(super) ident: Ident,
    /// What the tag says.
    pub(super) value: String,
    /// None for a variant that has no content.
    pub(super) member: Option<Member>,
}

/// The content of a variant.
pub(super) struct Member {
    /// What it is called in Rust.
    pub(super) ident: Ident,
    /// And in the object.
    pub(super) field: String,
    pub(super) ty: Type,
    pub(super) description: Option<String>,
}

impl Union {
    pub(super) fn parse(input: DeriveInput) -> Result<Self> {
        let Data::Enum(data) = input.data else {
            return Err(Error::new(input.ident.span(), "only an enum can be a union"));
        };
        if !input.generics.params.is_empty() {
            return Err(Error::new(input.generics.span(), "a union cannot be generic"));
        }
        let [tag] = options(&input.attrs, ["tag"])?;
        let tag = tag.map_or_else(|| "type".to_owned(), |tag| tag.value());
        let variants = data.variants.into_iter().map(Variant::parse).collect::<Result<Vec<_>>>()?;
        if variants.is_empty() {
            return Err(Error::new(input.ident.span(), "a union needs variants"));
        }
        let union = Union { name: input.ident, tag, variants };
        union.check_names()?;
        Ok(union)
    }

    /// Two things of one name would be one.
    fn check_names(&self) -> Result<()> {
        let mut values = Vec::new();
        let mut fields = vec![&self.tag];
        for Variant { ident, value, member } in &self.variants {
            let twice = |name: &str| {
                Error::new(ident.span(), format!("there is another {name:?} in this union"))
            };
            if values.contains(&value) {
                return Err(twice(value));
            }
            values.push(value);
            if let Some(Member { field, .. }) = member {
                if fields.contains(&field) {
                    return Err(twice(field));
                }
                fields.push(field);
            }
        }
        Ok(())
    }
}

impl Variant {
    fn parse(variant: syn::Variant) -> Result<Self> {
        let [value, field] = options(&variant.attrs, ["value", "field"])?;
        let ident = variant.ident;
        let value = value.map_or_else(|| ident.to_string(), |value| value.value());
        let member = match variant.fields {
            Fields::Unit => {
                if let Some(field) = field {
                    return Err(Error::new(field.span(), "a variant without content has no field"));
                }
                None
            }
            Fields::Unnamed(mut fields) if fields.unnamed.len() == 1 => {
                let ty = fields.unnamed.pop().expect("it has one").ty;
                let field = field.map_or_else(|| with_small_letter(&ident), |field| field.value());
                let description = description(&variant.attrs);
                let ident = format_ident!("member_{}", ident, span = Span::call_site());
                Some(Member { ident, field, ty, description })
            }
            other => {
                let message = "the content of a variant is one struct: `Variant(Content)`";
                return Err(Error::new(other.span(), message));
            }
        };
        Ok(Variant { ident, value, member })
    }
}

/// The values of `#[union(name = "value")]` for each name that is known; no other is.
fn options<const N: usize>(
    attributes: &[Attribute],
    known: [&str; N],
) -> Result<[Option<LitStr>; N]> {
    let mut values = [const { None }; N];
    for attribute in attributes.iter().filter(|it| it.path().is_ident("union")) {
        attribute.parse_nested_meta(|meta| {
            let Some(at) = known.iter().position(|name| meta.path.is_ident(name)) else {
                return Err(meta.error(format!("only {} can be said here", known.join(" and "))));
            };
            if values[at].is_some() {
                return Err(meta.error("this has been said before"));
            }
            let value: LitStr = meta.value()?.parse()?;
            if value.value().is_empty() {
                return Err(Error::new(value.span(), "an empty name is none"));
            }
            values[at] = Some(value);
            Ok(())
        })?;
    }
    Ok(values)
}

fn with_small_letter(ident: &Ident) -> String {
    let name = ident.to_string();
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The doc comment, as one text.
fn description(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<_> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(meta) => match &meta.value {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(text) => Some(text.value().trim().to_owned()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
