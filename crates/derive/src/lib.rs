//! What the crate `kubewright` derives.
//!
//! `kube` derives custom resources, their schemas and rules; that is not repeated here. What it has
//! no answer for is an enum whose variants have fields, in the form that Kubernetes' own kinds use.

mod union;

use proc_macro::TokenStream;

/// Makes a union of an enum: `Serialize`, `Deserialize` and `JsonSchema` in the form that
/// Kubernetes' conventions ask for.
///
/// A field says which variant it is, and each variant that has content has a field of its own:
///
/// ```yaml
/// type: RollingUpdate
/// rollingUpdate:
///   maxSurge: 1
/// ```
///
/// The schema is structural, and rules have the server refuse a field whose variant is another.
/// Whoever reads passes over such a field.
///
/// - `#[union(tag = "kind")]` on the enum names the field that says which; it is `type` otherwise.
/// - `#[union(value = "…")]` on a variant is what that field says; the variant's name otherwise.
/// - `#[union(field = "…")]` on a variant with content names its field; the variant's name with a
///   small letter otherwise.
///
/// Any other attribute is an error.
#[proc_macro_derive(Union, attributes(union))]
pub fn union(input: TokenStream) -> TokenStream {
    union::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
