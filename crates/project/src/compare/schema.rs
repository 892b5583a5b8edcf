//! Changes of schemas: a walk along what both have.

use kubewright_apimachinery::schema::{AdditionalProperties, Structural, Type};
use serde_json::Value;

use super::Hurt::{Clients, Stored};
use super::{Findings, Place, values};

pub(super) fn compare(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    if !kind(old, new, at, findings) {
        // What is below has nothing in common.
        return;
    }
    nullability(old, new, at, findings);
    default(old, new, at, findings);
    values::compare(old, new, at, findings);
    extensions(old, new, at, findings);
    properties(old, new, at, findings);
    additional(old, new, at, findings);
    match (&old.items, &new.items) {
        (Some(old), Some(new)) => compare(old, new, &at.element(), findings),
        (None, Some(_)) if new.is_type(&Type::Array) && old.is_type(&Type::Array) => {
            let message = "elements must fit a schema now".to_owned();
            findings.breaking(at, &[Stored, Clients], "schema-added", message);
        }
        _ => {}
    }
}

/// What the type and the keywords that stand for types say.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Nothing is said.
    Any,
    IntOrString,
    Of(Type),
}

impl Shape {
    fn of(schema: &Structural) -> Self {
        match &schema.type_ {
            _ if schema.extensions.int_or_string => Shape::IntOrString,
            Some(type_) => Shape::Of(type_.clone()),
            None => Shape::Any,
        }
    }

    fn word(&self) -> &str {
        match self {
            Shape::Any => "anything",
            Shape::IntOrString => "integer or string",
            Shape::Of(type_) => type_.as_str(),
        }
    }

    /// Whether all values of the other are values of this.
    fn holds(&self, other: &Shape) -> bool {
        use Shape::{Any, IntOrString, Of};
        matches!(
            (self, other),
            (Any, _)
                | (IntOrString, IntOrString | Of(Type::Integer | Type::String))
                | (Of(Type::Number), Of(Type::Integer))
        ) || self == other
    }
}

/// Whether what was taken still is, as far as types go.
fn kind(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) -> bool {
    let (before, after) = (Shape::of(old), Shape::of(new));
    if before == after {
        return true;
    }
    let message = format!("was {}, is {}", before.word(), after.word());
    if after.holds(&before) {
        let message = format!("{message}: clients must be ready to read more than they were");
        findings.warning(at, &[Clients], "type-widened", message);
        return true;
    }
    findings.breaking(at, &[Stored, Clients], "type-changed", message);
    false
}

fn nullability(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    if old.nullable && !new.nullable {
        let message = "null is no longer taken".to_owned();
        findings.breaking(at, &[Stored, Clients], "nullable-removed", message);
    }
    if !old.nullable && new.nullable {
        let message = "may be null: clients must be ready to read it".to_owned();
        findings.warning(at, &[Clients], "nullable-added", message);
    }
}

fn default(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    match (&old.default, &new.default) {
        (Some(before), Some(after)) if before != after => {
            let message = format!(
                "the default was {before}, is {after}: objects that do not say it mean something \
                 else, stored ones included if they were stored without it"
            );
            findings.warning(at, &[Stored, Clients], "default-changed", message);
        }
        (None, Some(after)) => {
            let message = format!("has the default {after}: it appears in objects without it");
            findings.warning(at, &[Stored, Clients], "default-added", message);
        }
        // Whether that breaks anybody is a matter of `required`.
        (Some(before), None) => {
            let message = format!("has no default any more, which was {before}");
            findings.warning(at, &[Clients], "default-removed", message);
        }
        _ => {}
    }
}

fn properties(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    // What is required of a map's keys is no matter of properties.
    for (name, before) in old.properties.iter() {
        let at = at.field(name);
        match new.properties.get(name) {
            Some(after) => compare(before, after, &at, findings),
            None if new.preserves_unknown_fields() => {
                let message = "no schema knows it any more: it is kept as it is".to_owned();
                findings.warning(&at, &[Clients], "field-removed", message);
            }
            None => {
                let message = "is gone: stored values are dropped when objects are next written, \
                               and not shown before";
                findings.breaking(&at, &[Stored, Clients], "field-removed", message.to_owned());
            }
        }
    }
    for (name, added) in new.properties.iter() {
        if old.properties.get(name).is_some() || is_required(new, name) {
            continue;
        }
        let at = at.field(name);
        if old.preserves_unknown_fields() {
            let message = "has a schema now: what objects have there must fit it".to_owned();
            findings.breaking(&at, &[Stored, Clients], "field-described", message);
        } else if let Some(default) = &added.default {
            let message = format!("is new, with the default {default}");
            findings.compatible(&at, "field-added", message);
        } else {
            findings.compatible(&at, "field-added", "is new, and may be left out".to_owned());
        }
    }
    required(old, new, at, findings);
}

fn required(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    for name in required_fields(new) {
        if is_required(old, name) {
            let lost = |schema: &Structural| schema.properties.get(name)?.default.clone();
            if let (Some(default), None) = (lost(old), lost(new)) {
                let message = format!("is required, and has lost its default {default}");
                findings.breaking(&at.field(name), &[Stored, Clients], "required-added", message);
            }
            continue;
        }
        let default = new.properties.get(name).and_then(|field| field.default.as_ref());
        let is_new = old.properties.get(name).is_none();
        let at = at.field(name);
        match default {
            Some(default) => {
                let message = format!("is required, and has the default {default}");
                findings.compatible(&at, "required-added", message);
            }
            None => {
                let word = if is_new { "is new and required" } else { "is required" };
                let message = format!("{word}: objects without it cannot be written");
                findings.breaking(&at, &[Stored, Clients], "required-added", message);
            }
        }
    }
    for name in required_fields(old).filter(|name| !is_required(new, name)) {
        if new.properties.get(name).is_some() {
            let message = "may be left out: clients must be ready to miss it".to_owned();
            findings.warning(&at.field(name), &[Clients], "required-removed", message);
        }
    }
}

fn required_fields(schema: &Structural) -> impl Iterator<Item = &str> {
    schema.constraints.iter().flat_map(|it| &it.required).map(|name| &**name)
}

fn is_required(schema: &Structural, name: &str) -> bool {
    required_fields(schema).any(|it| it == name)
}

/// What may stand beside properties.
fn additional(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    use AdditionalProperties::{Allowed, Schema};
    let is_open = |schema: &Structural| {
        schema.preserves_unknown_fields()
            || !matches!(&schema.additional_properties, None | Some(Allowed(false)))
    };
    match (&old.additional_properties, &new.additional_properties) {
        (Some(Schema(old)), Some(Schema(new))) => compare(old, new, &at.element(), findings),
        (Some(Allowed(true)), Some(Schema(_))) => {
            let message = "values must fit a schema now".to_owned();
            findings.breaking(at, &[Stored, Clients], "schema-added", message);
        }
        _ if is_open(old) && !is_open(new) => {
            let message = "keys that the schema does not name are dropped".to_owned();
            findings.breaking(at, &[Stored, Clients], "pruning-began", message);
        }
        _ if !is_open(old) && is_open(new) => {
            let message = "takes keys that the schema does not name".to_owned();
            findings.compatible(at, "pruning-ended", message);
        }
        _ => {}
    }
}

fn extensions(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    let (before, after) = (&old.extensions, &new.extensions);
    if !before.embedded_resource && after.embedded_resource {
        let message = "must be a whole object, with apiVersion and kind".to_owned();
        findings.breaking(at, &[Stored, Clients], "embedded-resource-added", message);
    }
    list_type(old, new, at, findings);
    let map = |schema: &Structural| {
        schema.extensions.map_type.as_deref().unwrap_or("granular").to_owned()
    };
    match (map(old).as_str(), map(new).as_str()) {
        ("granular", "atomic") => {
            let message = "belongs as a whole to whoever applies it: others lose their keys";
            findings.breaking(at, &[Clients], "map-type-changed", message.to_owned());
        }
        ("atomic", "granular") => {
            let message = "has an owner for each key: keys that are left out stay".to_owned();
            findings.warning(at, &[Clients], "map-type-changed", message);
        }
        _ => {}
    }
    for rule in after.validations.iter().filter(|it| !before.validations.contains(it)) {
        if before.validations.iter().any(|it| it.rule == rule.rule) {
            let message = format!("the rule `{}` is told in other words", rule.rule);
            findings.compatible(at, "rule-reworded", message);
            continue;
        }
        // A rule about a change is asked whatever stays the same.
        let hurts: &[_] =
            if rule.rule.contains("oldSelf") { &[Stored, Clients] } else { &[Clients] };
        let message = format!("objects must keep the rule `{}`", rule.rule);
        findings.breaking(at, hurts, "rule-added", message);
    }
    for rule in &before.validations {
        if !after.validations.iter().any(|it| it.rule == rule.rule) {
            let message = format!("the rule `{}` is gone", rule.rule);
            findings.compatible(at, "rule-removed", message);
        }
    }
}

fn list_type(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    let (before, after) = (&old.extensions, &new.extensions);
    let word =
        |schema: &Structural| schema.extensions.list_type.as_deref().unwrap_or("atomic").to_owned();
    let (was, is) = (word(old), word(new));
    if was != is {
        let message = format!("was a list of type {was}, is one of type {is}");
        match is.as_str() {
            "atomic" => {
                let message = format!("{message}: whoever applies it owns it as a whole");
                findings.breaking(at, &[Clients], "list-type-changed", message);
            }
            _ => {
                let message = format!("{message}: lists with equals cannot be written");
                findings.breaking(at, &[Stored, Clients], "list-type-changed", message);
            }
        }
    } else if before.list_map_keys != after.list_map_keys {
        let message = format!(
            "elements were told apart by {}, are by {}",
            words(&before.list_map_keys),
            words(&after.list_map_keys)
        );
        findings.breaking(at, &[Stored, Clients], "list-keys-changed", message);
    }
}

fn words(names: &[Box<str>]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Values as a list for people.
pub(super) fn listed<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let values: Vec<_> = values.into_iter().map(Value::to_string).collect();
    values.join(", ")
}
