//! Devices: classes of them, claims on them, and the slices in which drivers offer them.
//!
//! Expressions that select devices are not compiled.

mod claim;
mod rule;
mod slice;

use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassSpec};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::resources;
use serde_json::{Value, json};

use super::{Field, Part, Rules, edit, typed};

pub(super) const CLASS: Rules = Rules {
    prepare_create: |object, _| edit::first_generation(object),
    prepare_update: |object, old, _| edit::next_generation(object, old, "spec"),
    validate: validate_class,
    validate_update: |object, _| validate_class(object),
    ..Rules::PLAIN
};

pub(super) const CLAIM: Rules = Rules {
    default: |object| {
        claim::default(object, "/spec");
        claim::default_status(object);
    },
    prepare_create: |object, _| object["status"] = json!({}),
    prepare_update: |object, old, _| edit::restore(object, old, "status"),
    validate: |object| claim::check(&object["spec"], &Path::new("spec")),
    validate_update: claim::check_same,
    parts: &[(
        "status",
        Part {
            prepare_update: |object, old, _| {
                edit::restore(object, old, "spec");
                edit::restore_meta_for_status(object, old);
                claim::drop_released(object, old);
            },
            validate_update: claim::check_status,
            reset: &["metadata", "spec"],
            ..Part::PLAIN
        },
    )],
    reset: &["status"],
    ..Rules::PLAIN
};

pub(super) const CLAIM_TEMPLATE: Rules = Rules {
    default: |object| claim::default(object, "/spec/spec"),
    validate: claim::check_template,
    validate_update: |object, old| {
        let mut errors = claim::check_template(object);
        errors.extend(claim::check_same_template(object, old));
        errors
    },
    ..Rules::PLAIN
};

pub(super) const SLICE: Rules = Rules {
    default: slice::default,
    prepare_create: |object, context| {
        slice::date_taints(object, context);
        edit::first_generation(object);
        slice::drop_disabled(object, None);
    },
    prepare_update: |object, old, context| {
        slice::date_taints(object, context);
        edit::next_generation(object, old, "spec");
        slice::drop_disabled(object, Some(old));
    },
    validate: |object| slice::check(object, None),
    validate_update: |object, old| slice::check(object, Some(old)),
    warnings: slice::warnings,
    fields: &[Field::At("spec.nodeName"), Field::At("spec.driver")],
    ..Rules::PLAIN
};

fn validate_class(object: &Value) -> Vec<Error> {
    let class: DeviceClass = typed(object);
    let DeviceClassSpec { config, extended_resource_name, selectors } = class.spec;
    let at = Path::new("spec");
    let selectors = selectors.unwrap_or_default();
    let mut errors = rule::check_selectors(&selectors, &at.child("selectors"));
    let config = config.unwrap_or_default();
    errors.extend(rule::check_list(&config, rule::CONFIG_MAX, &at.child("config"), |one, at| {
        rule::check_opaque(one.opaque.as_ref(), at)
    }));
    if let Some(name) = extended_resource_name.filter(|name| !resources::is_extended(name)) {
        let at = at.child("extendedResourceName");
        errors.push(Error::invalid(&at, name, "must be a valid extended resource name"));
    }
    errors
}
