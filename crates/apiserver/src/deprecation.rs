//! What should not be used any more, which every request for it is told.

use std::cmp::Ordering;

use kubewright_apimachinery::gvk::compare_versions;

use crate::resource::{Custom, Origin, Resource};

/// The kinds of the core group that are served although they are deprecated: since when, and what
/// to use instead.
const DEPRECATED: [(&str, &str, &str); 2] = [
    ("ComponentStatus", "v1.19+", ""),
    ("Endpoints", "v1.33+", "; use discovery.k8s.io/v1 EndpointSlice"),
];

/// What to say of a resource that is deprecated.
pub(crate) fn warning(resource: &Resource) -> Option<String> {
    match &resource.origin {
        Origin::Builtin(_) => {
            let gvk = &resource.gvk;
            let is_it = |(kind, ..): &&(&str, _, _)| gvk.group.is_empty() && gvk.kind == *kind;
            let (kind, since, instead) = DEPRECATED.iter().find(is_it)?;
            Some(format!("{} {kind} is deprecated in {since}{instead}", gvk.api_version()))
        }
        Origin::Custom(custom) => of_custom(resource, custom),
    }
}

fn of_custom(resource: &Resource, custom: &Custom) -> Option<String> {
    let version = custom.version();
    if !version.deprecated {
        return None;
    }
    if let Some(warning) = &version.deprecation_warning {
        return Some(warning.clone());
    }
    let (group, kind) = (&resource.gvk.group, &resource.gvk.kind);
    let mut warning = format!("{group}/{} {kind} is deprecated", version.name);
    let better = custom.definition.versions().iter().filter(|other| {
        let is_newer = compare_versions(&version.name, &other.name) == Ordering::Less;
        other.served && !other.deprecated && is_newer
    });
    if let Some(best) = better.max_by(|a, b| compare_versions(&a.name, &b.name)) {
        warning.push_str(&format!("; use {group}/{} {kind}", best.name));
    }
    Some(warning)
}
