//! IPAddresses, each of which is somebody's, and the ServiceCIDRs that Services get theirs from.

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, edit, ip, typed};

pub(super) const RULES: Rules = Rules {
    // An IPv6 address is no DNS name; which of all segments are addresses, validation says.
    name: name::Rule::PathSegment,
    validate: check_address,
    validate_update: |object, old| {
        let mut errors = check_address(object);
        let (new, old): (IPAddress, IPAddress) = (typed(object), typed(old));
        let at = Path::new("spec");
        let (new, old) = (new.spec.parent_ref, old.spec.parent_ref);
        if new != old {
            // Upstream shows the reference of its own type.
            let shown = json!({
                "Group": new.group.unwrap_or_default(),
                "Resource": new.resource,
                "Namespace": new.namespace.unwrap_or_default(),
                "Name": new.name,
            });
            errors.push(Error::invalid(&at.child("parentRef"), shown, "field is immutable"));
        }
        errors
    },
    ..Rules::PLAIN
};

pub(super) const CIDR: Rules = Rules {
    prepare_create: |object, _| object["status"] = json!({}),
    prepare_update: |object, old, _| edit::restore(object, old, "status"),
    validate: |object| check_cidrs(&cidrs(&typed(object))),
    validate_update: |object, old| check_cidrs_change(&cidrs(&typed(object)), &cidrs(&typed(old))),
    parts: &[("status", STATUS)],
    reset: &["status"],
    ..Rules::PLAIN
};

const STATUS: Part =
    Part { prepare_update: keep_all_but_status, reset: &["metadata", "spec"], ..Part::PLAIN };

/// An update of the status leaves the rest as it was, metadata too.
pub(super) fn keep_all_but_status(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "spec");
    for name in [
        "deletionTimestamp",
        "generation",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ] {
        edit::restore(&mut object["metadata"], &old["metadata"], name);
    }
}

fn check_address(object: &Value) -> Vec<Error> {
    let address: IPAddress = typed(object);
    let metadata = Path::new("metadata");
    let name = address.metadata.name.as_deref().unwrap_or_default();
    let mut errors = ip::check(&metadata.child("name"), name);
    let spec = Path::new("spec");
    let at = spec.child("parentRef");
    // The type has an empty reference where the object has none.
    if object["spec"].get("parentRef").is_none_or(Value::is_null) {
        errors.push(Error::required(&at, ""));
        return errors;
    }
    let parent = &address.spec.parent_ref;
    if let Some(group) = parent.group.as_deref().filter(|group| !group.is_empty()) {
        errors.extend(check::dns_subdomain(&at.child("group"), group));
    }
    for (field, segment) in [("resource", &parent.resource), ("name", &parent.name)] {
        let at = at.child(field);
        match segment.as_str() {
            "" => errors.push(Error::required(&at, "")),
            text => errors.extend(check::invalid(&at, text, name::path_segment(text))),
        }
    }
    if let Some(namespace) = &parent.namespace {
        errors.extend(check::invalid(
            &at.child("namespace"),
            namespace,
            name::path_segment(namespace),
        ));
    }
    errors
}

fn check_cidrs(cidrs: &[String]) -> Vec<Error> {
    let spec = Path::new("spec");
    let at = spec.child("cidrs");
    match cidrs.len() {
        0 => return vec![Error::required(&at, "at least one CIDR required")],
        1 | 2 => {}
        _ => {
            // Upstream shows the spec of its own type.
            let shown = json!({"CIDRs": cidrs});
            return vec![Error::invalid(&at, shown, "may only hold up to 2 values")];
        }
    }
    let mut errors = Vec::new();
    for (index, cidr) in cidrs.iter().enumerate() {
        errors.extend(ip::check_cidr(&at.index(index), cidr));
    }
    let family =
        |text: &String| ip::Cidr::parse(text).map(|cidr| cidr.address.to_canonical().is_ipv4());
    if let [one, other] = cidrs
        && family(one).is_some()
        && family(one) == family(other)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        errors.push(Error::invalid(&at, check::shown_list(cidrs), detail));
    }
    errors
}

/// A network of the other family may be added, and that is all.
fn check_cidrs_change(new: &[String], old: &[String]) -> Vec<Error> {
    let spec = Path::new("spec");
    let at = spec.child("cidrs");
    let immutable = "field is immutable";
    if new.len() != old.len() && (old.len(), new.len()) != (1, 2) {
        return vec![Error::invalid(&at, check::shown_list(new), immutable)];
    }
    let mut errors = Vec::new();
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        if new != old {
            errors.push(Error::invalid(&at.index(index), new.as_str(), immutable));
        }
    }
    if new.len() != old.len() {
        errors.extend(check_cidrs(new));
    }
    errors
}

fn cidrs(cidr: &ServiceCIDR) -> Vec<String> {
    cidr.spec.as_ref().and_then(|spec| spec.cidrs.clone()).unwrap_or_default()
}
