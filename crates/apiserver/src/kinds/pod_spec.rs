//! What pods are made from: their spec, which Pods have themselves and workloads have in a
//! template, with the same defaults and the same rules.

mod defaults;
mod image;
pub(super) mod resources;
mod validate;

pub(super) use defaults::{
    default_pod_spec, default_template, drop_init_container_annotations, each, fill, round_up,
    round_up_resources, within,
};
pub(super) use validate::{validate_pod_spec, validate_template};
