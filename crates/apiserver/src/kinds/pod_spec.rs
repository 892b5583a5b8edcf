//! What pods are made from: their spec, which Pods have themselves and workloads have in a
//! template, with the same defaults and the same rules.

mod defaults;
mod disabled;
mod image;
mod privileged;
pub(super) mod validate;
mod warnings;

pub(super) use defaults::{
    default_pod_spec, default_template, drop_init_container_annotations, round_up_resources,
};
pub(super) use disabled::{drop_disabled_fields, drop_disabled_template_fields};
pub(crate) use privileged::privileged_containers;
pub(super) use validate::{validate_pod_spec, validate_template};
pub(super) use warnings::{pod_warnings, template_warnings};
