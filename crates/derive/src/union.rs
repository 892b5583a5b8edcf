//! From an enum to a union.

mod parse;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;

use parse::{Union, Variant};

pub(crate) fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let union = Union::parse(syn::parse2(input)?)?;
    let (serialize, deserialize) = (serialize(&union), deserialize(&union));
    let schema = schema(&union);
    Ok(quote! {
        const _: () = {
            #serialize
            #deserialize
            #schema
        };
    })
}

fn serialize(Union { name, tag, variants }: &Union) -> TokenStream {
    let arms = variants.iter().map(|Variant { ident, value, member }| match member {
        None => quote! {
            #name::#ident => map.serialize_entry(#tag, #value)?,
        },
        Some(member) => {
            let field = &member.field;
            quote! {
                #name::#ident(content) => {
                    map.serialize_entry(#tag, #value)?;
                    map.serialize_entry(#field, content)?;
                }
            }
        }
    });
    quote! {
        impl ::serde::Serialize for #name {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(::core::option::Option::None)?;
                match self { #(#arms)* }
                map.end()
            }
        }
    }
}

fn deserialize(Union { name, tag, variants }: &Union) -> TokenStream {
    let members = variants.iter().filter_map(|variant| variant.member.as_ref());
    let fields = members.map(|member| {
        let (ident, ty, field) = (&member.ident, &member.ty, &member.field);
        quote! {
            #[serde(rename = #field, default = "none")]
            #ident: ::core::option::Option<#ty>,
        }
    });
    let arms = variants.iter().map(|Variant { ident, value, member }| match member {
        None => quote! { #value => ::core::result::Result::Ok(#name::#ident), },
        Some(member) => {
            let (content, field) = (&member.ident, &member.field);
            quote! {
                #value => fields.#content.map(#name::#ident)
                    .ok_or_else(|| <D::Error as ::serde::de::Error>::missing_field(#field)),
            }
        }
    });
    let values = variants.iter().map(|variant| &variant.value);
    quote! {
        impl<'de> ::serde::Deserialize<'de> for #name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                fn none<T>() -> ::core::option::Option<T> {
                    ::core::option::Option::None
                }
                #[derive(::serde::Deserialize)]
                struct Fields {
                    #[serde(rename = #tag)]
                    union_tag: ::std::string::String,
                    #(#fields)*
                }
                let fields = <Fields as ::serde::Deserialize>::deserialize(deserializer)?;
                match fields.union_tag.as_str() {
                    #(#arms)*
                    other => ::core::result::Result::Err(
                        <D::Error as ::serde::de::Error>::unknown_variant(other, &[#(#values),*]),
                    ),
                }
            }
        }
    }
}

fn schema(Union { name, tag, variants }: &Union) -> TokenStream {
    let title = name.to_string();
    let values = variants.iter().map(|variant| &variant.value);
    let members = variants.iter().filter_map(|variant| Some((variant, variant.member.as_ref()?)));
    let inserts = members.clone().map(|(_, member)| {
        let (field, ty) = (&member.field, &member.ty);
        let describe = member.description.as_ref().map(|text| {
            quote! {
                schema.insert(::std::string::String::from("description"), #text.into());
            }
        });
        quote! {
            let mut schema = generator.subschema_for::<#ty>();
            #describe
            properties.insert(::std::string::String::from(#field), schema.to_value());
        }
    });
    let rules = members.map(|(variant, member)| {
        let (value, field) = (&variant.value, &member.field);
        let rule = format!(
            "has(self.{}) == (self.{} == {})",
            cel_name(field),
            cel_name(tag),
            cel_text(value)
        );
        let message = format!("{field} is required when {tag} is {value}, and forbidden otherwise");
        quote! { { "rule": #rule, "message": #message } }
    });
    let rules = rules.collect::<Vec<_>>();
    // An empty list of rules is none.
    let rules = (!rules.is_empty()).then(|| quote! { "x-kubernetes-validations": [#(#rules),*], });
    quote! {
        impl ::schemars::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                #title.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let mut union = ::schemars::json_schema!({
                    "type": "object",
                    "required": [#tag],
                    "properties": { #tag: { "type": "string", "enum": [#(#values),*] } },
                    #rules
                });
                let properties = union
                    .get_mut("properties")
                    .and_then(|properties| properties.as_object_mut())
                    .expect("they are an object");
                #(#inserts)*
                union
            }
        }
    }
}

/// A field's name as CEL has it, where some words mean something else.
fn cel_name(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) { format!("__{name}__") } else { name.to_owned() }
}

fn cel_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
