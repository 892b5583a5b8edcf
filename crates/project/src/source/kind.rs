//! Kinds as sources have them: in the attributes that a custom resource is derived by.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, Item, Lit, Meta, Token};

use super::{EditError, parse, range, spliced};

/// A custom resource that a source defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: Option<String>,
    pub(crate) namespaced: bool,
    /// Where the version is in the source, quotes included.
    version_at: std::ops::Range<usize>,
}

/// The custom resources that a source defines.
pub(crate) fn kinds(text: &str) -> Result<Vec<Kind>, EditError> {
    let structs = parse(text)?.items.into_iter().filter_map(|item| match item {
        Item::Struct(found) => kind(&found.attrs),
        _ => None,
    });
    Ok(structs.collect())
}

/// The source with another version of the kind that it defines.
pub(crate) fn with_version(text: &str, kind: &Kind, version: &str) -> String {
    spliced(text, kind.version_at.clone(), &format!("{version:?}"))
}

fn kind(attributes: &[Attribute]) -> Option<Kind> {
    let (mut group, mut version, mut name, mut plural) = (None, None, None, None);
    let (mut namespaced, mut version_at) = (false, 0..0);
    for attribute in attributes.iter().filter(|it| it.path().is_ident("kube")) {
        let Ok(list) = attribute.meta.require_list() else { continue };
        let parsed = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        for meta in parsed.into_iter().flatten() {
            if let Meta::Path(path) = &meta {
                namespaced |= path.is_ident("namespaced");
            }
            let Meta::NameValue(pair) = &meta else { continue };
            let Some(text) = string(&pair.value) else { continue };
            match pair.path.get_ident().map(ToString::to_string).as_deref() {
                Some("group") => group = Some(text),
                Some("kind") => name = Some(text),
                Some("plural") => plural = Some(text),
                Some("version") => {
                    version = Some(text);
                    version_at = range(pair.value.span());
                }
                _ => {}
            }
        }
    }
    let (group, version, kind) = (group?, version?, name?);
    Some(Kind { group, version, kind, plural, namespaced, version_at })
}

fn string(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
