//! LimitRanges: what a single pod, container or claim may ask for, and what it asks for by default.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::quantity::{Format, Quantity};
use kubewright_apimachinery::resources;
use serde_json::{Map, Value, json};

use super::{Context, Rules, check, resource_name, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    validate,
    validate_update: |object, _| validate(object),
    create_on_update: true,
    ..Rules::PLAIN
};

const POD: &str = "Pod";
const CONTAINER: &str = "Container";
const CLAIM: &str = "PersistentVolumeClaim";
/// Whole numbers from here on have no thousandths.
const MILLI_VALUE_MAX: i64 = i64::MAX / 1000;

fn default(object: &mut Value) {
    let limits = object.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        if limit["type"] == CONTAINER {
            default_container(limit);
        }
        for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            resource_name::round_amounts(limit.get_mut(list));
        }
    }
}

/// The limit of a container is the most there may be; it requests its limit, or else the least.
fn default_container(limit: &mut Value) {
    let list = |name: &str| limit[name].as_object().cloned().unwrap_or_default();
    let complete = |list: &mut Map<String, Value>, from: &Map<String, Value>| {
        for (name, amount) in from {
            list.entry(name).or_insert_with(|| amount.clone());
        }
        list.sort_keys();
    };
    let mut limits = list("default");
    complete(&mut limits, &list("max"));
    let mut requests = list("defaultRequest");
    complete(&mut requests, &limits);
    complete(&mut requests, &list("min"));
    for (name, list) in [("default", limits), ("defaultRequest", requests)] {
        if !list.is_empty() {
            limit[name] = list.into();
        }
    }
}

/// One without a name gets one that is certain to be free.
fn prepare_create(object: &mut Value, _: &Context<'_>) {
    let metadata = &mut object["metadata"];
    if metadata["name"].as_str().is_none_or(str::is_empty) && metadata["uid"].is_string() {
        metadata["name"] = json!(metadata["uid"]);
    }
}

fn validate(object: &Value) -> Vec<Error> {
    let range: LimitRange = typed(object);
    let limits = range.spec.unwrap_or_default().limits;
    let spec = Path::new("spec");
    let path = spec.child("limits");
    let mut errors = Vec::new();
    let mut types = BTreeSet::new();
    for (index, limit) in limits.iter().enumerate() {
        let path = path.index(index);
        errors.extend(check_type(&limit.type_, &path.child("type")));
        if !types.insert(&limit.type_) {
            errors.push(Error::duplicate(&path.child("type"), limit.type_.as_str()));
        }
        errors.extend(check_limit(limit, &path));
    }
    errors
}

fn check_type(limit: &str, path: &Path<'_>) -> Vec<Error> {
    let errors: Vec<_> = check::qualified_name(path, limit);
    if errors.is_empty() && !limit.contains('/') && ![POD, CONTAINER, CLAIM].contains(&limit) {
        let detail = "must be a standard limit type or fully qualified";
        return vec![Error::invalid(path, limit, detail)];
    }
    errors
}

type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// The amounts of one limit by resource.
#[derive(Default)]
struct Amounted<'a> {
    min: Amounts<'a>,
    max: Amounts<'a>,
    default: Amounts<'a>,
    default_request: Amounts<'a>,
    ratio: Amounts<'a>,
}

fn check_limit(limit: &LimitRangeItem, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut amounted = Amounted {
        max: amounts(&limit.max),
        min: amounts(&limit.min),
        ratio: amounts(&limit.max_limit_request_ratio),
        ..Amounted::default()
    };
    if limit.type_ == POD {
        let defaults = [("default", &limit.default), ("defaultRequest", &limit.default_request)];
        for (name, list) in defaults {
            if list.as_ref().is_some_and(|list| !list.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(Error::forbidden(&path.child(name), detail));
            }
        }
    } else {
        amounted.default = amounts(&limit.default);
        amounted.default_request = amounts(&limit.default_request);
    }
    let lists = [
        ("max", &amounted.max),
        ("min", &amounted.min),
        ("default", &amounted.default),
        ("defaultRequest", &amounted.default_request),
        ("maxLimitRequestRatio", &amounted.ratio),
    ];
    let is_of_pods = [POD, CONTAINER].contains(&limit.type_.as_str());
    let mut resources = BTreeSet::new();
    for (name, list) in lists {
        for resource in list.keys() {
            let path = path.child(name);
            let path = path.key(resource);
            errors.extend(match is_of_pods {
                true => resource_name::validate_of_container(resource, &path),
                false => resource_name::validate(resource, &path),
            });
            resources.insert(*resource);
        }
    }
    let is_bounded = amounted.min.contains_key("storage") || amounted.max.contains_key("storage");
    if limit.type_ == CLAIM && !is_bounded {
        errors.push(Error::required(
            &path.child("limits"),
            "either minimum or maximum storage value is required, but neither was provided",
        ));
    }
    for resource in resources {
        errors.extend(amounted.check(resource, path));
    }
    errors
}

fn amounts(list: &Option<BTreeMap<String, resource::Quantity>>) -> Amounts<'_> {
    let list = list.iter().flatten();
    list.map(|(name, amount)| (name.as_str(), check::quantity(amount))).collect()
}

impl Amounted<'_> {
    /// What contradicts itself about one resource.
    fn check(&self, resource: &str, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut refuse = |list: &str, shown: &Quantity, detail: String| {
            let path = path.child(list);
            errors.push(Error::invalid(&path.key(resource), shown.to_string(), detail));
        };
        let (min, max) = (self.min.get(resource), self.max.get(resource));
        let default = self.default.get(resource);
        let request = self.default_request.get(resource);
        // Which amount may not exceed which, in whose list that is told, and which of both is shown.
        let first = |a, _| a;
        let second = |_, b| b;
        type Shown<'a> = fn(&'a Quantity, &'a Quantity) -> &'a Quantity;
        let orders: [(_, &str, _, &str, &str, Shown<'_>); 6] = [
            (min, "min", max, "max", "min", first),
            (min, "min", request, "default request", "defaultRequest", second),
            (request, "default request", max, "max", "defaultRequest", first),
            (request, "default request", default, "default limit", "defaultRequest", first),
            (min, "min", default, "default", "default", first),
            (default, "default", max, "max", "default", second),
        ];
        for (low, low_name, high, high_name, list, shown) in orders {
            if let (Some(low), Some(high)) = (low, high)
                && low > high
            {
                let detail =
                    format!("{low_name} value {low} is greater than {high_name} value {high}");
                refuse(list, shown(low, high), detail);
            }
        }
        if let Some(ratio) = self.ratio.get(resource) {
            if *ratio < Quantity::new(1, 0, Format::DecimalSi) {
                refuse("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let (Some(min), Some(max)) = (min, max)
                && let Some(bound) = exceeded_bound(ratio, min, max)
            {
                let detail = format!("ratio {ratio} is greater than max/min = {bound}");
                refuse("maxLimitRequestRatio", ratio, detail);
            }
        }
        if let (Some(default), Some(request)) = (default, request)
            && !resources::is_overcommit_allowed(resource)
            && default != request
        {
            let detail = format!(
                "default value {default} must equal to defaultRequest value {request} in {resource}"
            );
            refuse("defaultRequest", request, detail);
        }
        errors
    }
}

/// The most that a limit can be of a request, as Go prints it, when the ratio is beyond that.
fn exceeded_bound(ratio: &Quantity, min: &Quantity, max: &Quantity) -> Option<String> {
    let fine = [ratio, min, max].iter().all(|amount| amount.value() < MILLI_VALUE_MAX);
    let (ratio, min, max) = match fine {
        true => (ratio.milli_value() as f64 / 1000.0, min.milli_value(), max.milli_value()),
        false => (ratio.value() as f64, min.value(), max.value()),
    };
    let bound = max as f64 / min as f64;
    (ratio > bound).then(|| match bound.is_infinite() {
        true => if bound > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        false => format!("{bound:.6}"),
    })
}
