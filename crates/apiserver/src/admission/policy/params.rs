//! The parameters that bindings choose for their policies.

use std::sync::Arc;

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::selector::label::Selector;
use serde_json::Value;

use crate::admission::criteria::selector;
use crate::admission::text;
use crate::catalog::Catalog;
use crate::index::{Store, Stored};
use crate::resource::Resource;

/// Which parameters a binding wants.
pub(super) struct Wanted {
    choice: Choice,
    /// Empty for the namespace of the request.
    namespace: String,
    /// That there are none is a failure.
    is_required: bool,
}

enum Choice {
    Named(String),
    Selected(Result<Selector, String>),
}

impl Wanted {
    pub(super) fn read(reference: &Value) -> Self {
        let choice = match text(&reference["name"]) {
            "" => Choice::Selected(selector(&reference["selector"])),
            name => Choice::Named(name.to_owned()),
        };
        Wanted {
            choice,
            namespace: text(&reference["namespace"]).to_owned(),
            is_required: reference["parameterNotFoundAction"] == "Deny",
        }
    }
}

/// The resource whose objects are parameters.
pub(super) fn resource(
    catalog: &Catalog,
    kind: &GroupVersionKind,
) -> Result<Arc<Resource>, String> {
    let is_it = |resource: &&Arc<Resource>| resource.gvk == *kind;
    let found = Catalog::builtin().find(is_it).or_else(|| catalog.custom().find(is_it));
    let why = || format!("failed to find resource referenced by paramKind: '{kind}'");
    found.cloned().ok_or_else(why)
}

/// The parameters that are wanted for a request in a namespace.
pub(super) async fn find(
    store: &Store,
    catalog: &Catalog,
    kind: &GroupVersionKind,
    wanted: &Wanted,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let resource = resource(catalog, kind)?;
    let namespace = match (resource.namespaced, wanted.namespace.as_str()) {
        (false, "") => None,
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                .to_owned());
        }
        (true, "") if namespace.is_empty() => {
            return Err("cannot use namespaced paramRef in policy binding that matches \
                        cluster-scoped resources"
                .to_owned());
        }
        (true, "") => Some(namespace),
        (true, stated) => Some(stated),
    };
    let stored: Vec<Stored> = match &wanted.choice {
        Choice::Named(name) => {
            store.get(resource.key(namespace, name).as_str()).into_iter().collect()
        }
        Choice::Selected(selector) => {
            let selector = selector.as_ref().map_err(Clone::clone)?;
            let found = store.snapshot().range(&resource.prefix_in(namespace), None, None);
            let selected = found.iter().filter(|rev| selector.matches(&rev.extracted.labels));
            selected.cloned().collect()
        }
    };
    if stored.is_empty() && wanted.is_required {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    let mut found = Vec::with_capacity(stored.len());
    for rev in &stored {
        let object = resource.live(rev).await.map_err(|refusal| refusal.message.clone())?;
        found.push(resource.to_request(object));
    }
    Ok(found)
}
