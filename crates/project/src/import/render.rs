//! The plan as Rust source.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::Options;
use super::model::{Body, Field, Item, Model, TypeRef};
use super::names::ident;

/// What is known of a kind beside its fields.
pub(super) struct Identity<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    pub(super) plural: &'a str,
    pub(super) is_namespaced: bool,
}

/// The source of a version, without imports.
pub(super) fn version(identity: &Identity<'_>, model: &Model, options: &Options) -> TokenStream {
    let root = root(identity, model);
    let resource = resource(identity, model);
    let accessors = accessors(identity, model, options);
    let items = model.items.iter().map(|item| declaration(item, model));
    let quantity = uses(model, &TypeRef::Quantity).then(quantity);
    quote! { #root #accessors #resource #(#items)* #quantity }
}

/// What the source of a version imports.
pub(super) fn imports(identity: &Identity<'_>, model: &Model, options: &Options) -> TokenStream {
    let meta = match uses(model, &TypeRef::Condition) {
        true => quote! { {Condition, ObjectMeta} },
        false => quote! { ObjectMeta },
    };
    let has_maps = model.bodies().any(|body| match body {
        Body::Struct { fields, rest } => {
            rest.is_some() || fields.iter().any(|field| contains(&field.type_, &is_map))
        }
        Body::Union { variants } => {
            variants.iter().any(|(_, _, type_, _)| contains(type_, &is_map))
        }
        Body::Choice { .. } => false,
    });
    let has_rest = model.bodies().any(|body| matches!(body, Body::Struct { rest: Some(_), .. }));
    let maps = has_maps.then(|| quote! { use std::collections::BTreeMap; });
    let int_or_string = uses(model, &TypeRef::IntOrString)
        .then(|| quote! { use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString; });
    let scope = match identity.is_namespaced {
        true => quote! { use k8s_openapi::NamespaceResourceScope; },
        false => quote! { use k8s_openapi::ClusterResourceScope; },
    };
    let object = uses(model, &TypeRef::Object).then(|| quote! { use kube::core::DynamicObject; });
    let cache = options.cache.then(|| {
        quote! {
            use kubewright::Cache;
            use kubewright::informer::{Informer, Scope};
        }
    });
    let value =
        (uses(model, &TypeRef::Value) || has_rest).then(|| quote! { use serde_json::Value; });
    quote! {
        use std::borrow::Cow;
        #maps
        #scope
        use k8s_openapi::apimachinery::pkg::apis::meta::v1::#meta;
        #int_or_string
        #object
        use kube::{Api, Client, Resource};
        #cache
        use serde::ser::SerializeMap as _;
        use serde::{Deserialize, Serialize, Serializer};
        #value
    }
}

impl Model {
    fn bodies(&self) -> impl Iterator<Item = &Body> {
        std::iter::once(&self.root.body).chain(self.items.iter().map(|item| &item.body))
    }

    fn root_fields(&self) -> (&[Field], Option<&str>) {
        match &self.root.body {
            Body::Struct { fields, rest } => (fields, rest.as_deref()),
            Body::Choice { .. } | Body::Union { .. } => (&[], None),
        }
    }
}

fn is_map(type_: &TypeRef) -> bool {
    matches!(type_, TypeRef::Map(_))
}

/// Whether some field has this type, or a list or a map of it.
fn uses(model: &Model, wanted: &TypeRef) -> bool {
    let is_wanted = |type_: &TypeRef| type_ == wanted;
    model.bodies().any(|body| match body {
        Body::Struct { fields, .. } => {
            fields.iter().any(|field| contains(&field.type_, &is_wanted))
        }
        Body::Union { variants } => {
            variants.iter().any(|(_, _, type_, _)| contains(type_, &is_wanted))
        }
        Body::Choice { .. } => false,
    })
}

fn contains(type_: &TypeRef, is_wanted: &dyn Fn(&TypeRef) -> bool) -> bool {
    is_wanted(type_)
        || match type_ {
            TypeRef::List(inner) | TypeRef::Map(inner) | TypeRef::Optional(inner) => {
                contains(inner, is_wanted)
            }
            _ => false,
        }
}

fn root(identity: &Identity<'_>, model: &Model) -> TokenStream {
    let name = ident(&model.root.name);
    let docs = docs(&model.root.docs);
    let (fields, rest) = model.root_fields();
    let default = model.body_has_default(&model.root.body).then(|| quote! { Default, });
    let declared = fields.iter().map(field);
    let rest_field = rest.map(rest_field);
    let (kind, api_version) = (identity.kind, format!("{}/{}", identity.group, identity.version));
    let written = fields.iter().map(|field| {
        let member = ident(&field.name);
        let key = field.rename.clone().unwrap_or_else(|| super::names::camel(&field.name));
        match field.is_optional {
            true => quote! {
                if let Some(value) = &self.#member {
                    object.serialize_entry(#key, value)?;
                }
            },
            false => quote! { object.serialize_entry(#key, &self.#member)?; },
        }
    });
    let rest_written = rest.map(|rest| {
        let rest = ident(rest);
        quote! {
            // What kind it is was said already.
            for (key, value) in &self.#rest {
                if key != "apiVersion" && key != "kind" {
                    object.serialize_entry(key, value)?;
                }
            }
        }
    });
    quote! {
        #docs
        #[derive(Clone, Debug, #default Deserialize, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct #name {
            #[serde(default)]
            pub metadata: ObjectMeta,
            #(#declared)*
            #rest_field
        }

        impl Serialize for #name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_map(None)?;
                object.serialize_entry("apiVersion", #api_version)?;
                object.serialize_entry("kind", #kind)?;
                object.serialize_entry("metadata", &self.metadata)?;
                #(#written)*
                #rest_written
                object.end()
            }
        }
    }
}

fn resource(identity: &Identity<'_>, model: &Model) -> TokenStream {
    let name = ident(&model.root.name);
    let Identity { group, version, kind, plural, .. } = identity;
    let scope = match identity.is_namespaced {
        true => quote! { NamespaceResourceScope },
        false => quote! { ClusterResourceScope },
    };
    quote! {
        impl Resource for #name {
            type DynamicType = ();
            type Scope = #scope;

            fn group((): &()) -> Cow<'_, str> { #group.into() }
            fn version((): &()) -> Cow<'_, str> { #version.into() }
            fn kind((): &()) -> Cow<'_, str> { #kind.into() }
            fn plural((): &()) -> Cow<'_, str> { #plural.into() }
            fn meta(&self) -> &ObjectMeta { &self.metadata }
            fn meta_mut(&mut self) -> &mut ObjectMeta { &mut self.metadata }
        }
    }
}

fn accessors(identity: &Identity<'_>, model: &Model, options: &Options) -> TokenStream {
    let name = ident(&model.root.name);
    let (fields, rest) = model.root_fields();
    // An optional spec is what an object is made for all the same.
    let is_given = |field: &Field| !field.is_optional || field.name == "spec";
    let parameters = fields.iter().filter(|field| is_given(field)).map(|field| {
        let (member, type_) = (ident(&field.name), type_tokens(given(field)));
        quote! { #member: #type_ }
    });
    let members = fields.iter().map(|field| {
        let member = ident(&field.name);
        match (is_given(field), field.is_optional) {
            (true, false) => quote! { #member },
            (true, true) => quote! { #member: Some(#member) },
            (false, _) => quote! { #member: None },
        }
    });
    let rest = rest.map(|rest| {
        let rest = ident(rest);
        quote! { #rest: BTreeMap::new(), }
    });
    let clients = match identity.is_namespaced {
        true => quote! {
            /// A client for the objects of a namespace.
            pub fn api(client: Client, namespace: &str) -> Api<Self> {
                Api::namespaced(client, namespace)
            }

            /// A client for the objects of all namespaces.
            pub fn api_everywhere(client: Client) -> Api<Self> {
                Api::all(client)
            }
        },
        false => quote! {
            /// A client for all objects, which are in no namespace.
            pub fn api(client: Client) -> Api<Self> {
                Api::all(client)
            }
        },
    };
    let cached = options.cache.then(|| {
        quote! {
            /// The objects as a cache has them, which begins to watch them if nobody did.
            pub fn cached(cache: &Cache, scope: &Scope) -> Informer<Self> {
                cache.informer(scope)
            }
        }
    });
    quote! {
        impl #name {
            /// An object of this name, and nothing else that it need not have.
            pub fn new(name: &str, #(#parameters),*) -> Self {
                let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
                Self { metadata, #(#members,)* #rest }
            }

            #clients
            #cached
        }
    }
}

/// The type of a field that is there.
fn given(field: &Field) -> &TypeRef {
    match &field.type_ {
        TypeRef::Optional(inner) if field.is_optional => inner,
        type_ => type_,
    }
}

fn declaration(item: &Item, model: &Model) -> TokenStream {
    let (name, docs) = (ident(&item.name), docs(&item.docs));
    match &item.body {
        Body::Struct { fields, rest } => {
            let default = model.body_has_default(&item.body).then(|| quote! { Default, });
            let fields = fields.iter().map(field);
            let rest = rest.as_deref().map(rest_field);
            quote! {
                #docs
                #[derive(Clone, Debug, #default Deserialize, PartialEq, Serialize)]
                #[serde(rename_all = "camelCase")]
                pub struct #name { #(#fields)* #rest }
            }
        }
        Body::Choice { variants, other } => {
            let other = ident(other);
            let variants = variants.iter().map(|(variant, value)| {
                let (rename, variant) = (
                    (variant != value).then(|| quote! { #[serde(rename = #value)] }),
                    ident(variant),
                );
                quote! { #rename #variant, }
            });
            quote! {
                #docs
                #[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
                pub enum #name {
                    #(#variants)*
                    /// A value that the definition did not know when this was generated.
                    #[serde(untagged)]
                    #other(String),
                }
            }
        }
        Body::Union { variants } => {
            let variants = variants.iter().map(|(variant, key, type_, lines)| {
                let lines = self::docs(lines);
                let (variant, type_) = (ident(variant), type_tokens(type_));
                quote! { #lines #[serde(rename = #key)] #variant(#type_), }
            });
            quote! {
                #docs
                #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
                pub enum #name { #(#variants)* }
            }
        }
    }
}

fn field(field: &Field) -> TokenStream {
    let (name, type_) = (ident(&field.name), type_tokens(&field.type_));
    let docs = docs(&field.docs);
    let rename = field.rename.as_ref().map(|name| quote! { #[serde(rename = #name)] });
    let optional = field
        .is_optional
        .then(|| quote! { #[serde(default, skip_serializing_if = "Option::is_none")] });
    quote! { #docs #rename #optional pub #name: #type_, }
}

fn rest_field(name: &str) -> TokenStream {
    let name = ident(name);
    quote! {
        /// What the definition keeps and does not describe.
        #[serde(flatten)]
        pub #name: BTreeMap<String, Value>,
    }
}

fn docs(lines: &[String]) -> TokenStream {
    let lines = lines.iter().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!(" {line}"),
    });
    quote! { #(#[doc = #lines])* }
}

fn type_tokens(type_: &TypeRef) -> TokenStream {
    match type_ {
        TypeRef::Bool => quote! { bool },
        TypeRef::I32 => quote! { i32 },
        TypeRef::I64 => quote! { i64 },
        TypeRef::F64 => quote! { f64 },
        TypeRef::Text => quote! { String },
        TypeRef::IntOrString => quote! { IntOrString },
        TypeRef::Quantity => quote! { Quantity },
        TypeRef::Value => quote! { Value },
        TypeRef::Condition => quote! { Condition },
        TypeRef::ObjectMeta => quote! { ObjectMeta },
        TypeRef::Object => quote! { DynamicObject },
        TypeRef::List(inner) => {
            let inner = type_tokens(inner);
            quote! { Vec<#inner> }
        }
        TypeRef::Map(inner) => {
            let inner = type_tokens(inner);
            quote! { BTreeMap<String, #inner> }
        }
        TypeRef::Optional(inner) => {
            let inner = type_tokens(inner);
            quote! { Option<#inner> }
        }
        TypeRef::Named(name) => {
            let name = format_ident!("{name}");
            quote! { #name }
        }
    }
}

/// Declared where it is used: Kubernetes' own type is a string, and objects may have numbers.
fn quantity() -> TokenStream {
    quote! {
        /// An amount as people write it: a number, or a number with a unit.
        #[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Quantity {
            Number(i64),
            Text(String),
        }
    }
}
