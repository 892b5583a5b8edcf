//! CustomResourceDefinitions; what makes one valid is in `apimachinery::schema::crd`.

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::schema::crd::{self, Definition};
use serde_json::{Value, json};

use super::{Context, Part, Rules};

pub(super) const RULES: Rules = Rules {
    default: crd::default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    parts: &[("status", STATUS)],
    reset: &["status"],
    unconditional_update: false,
    ..Rules::PLAIN
};

const STATUS: Part = Part {
    prepare_update: prepare_status_update,
    validate_update: validate_status_update,
    ..Part::STATUS
};

fn prepare_create(object: &mut Value, _context: &Context<'_>) {
    object["status"] = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": null,
    });
    object["metadata"]["generation"] = 1.into();
    remember_storage_version(object);
}

fn prepare_update(object: &mut Value, old: &Value, _context: &Context<'_>) {
    object["status"] = old["status"].clone();
    if object["spec"] != old["spec"] {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        object["metadata"]["generation"] = (generation + 1).into();
    }
    remember_storage_version(object);
}

/// Objects may have been stored in every version that ever was the one to store in.
fn remember_storage_version(object: &mut Value) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let stored = versions.into_iter().find(|version| version["storage"] == true);
    let Some(name) = stored.map(|version| version["name"].clone()) else { return };
    let remembered = &mut object["status"]["storedVersions"];
    match remembered {
        Value::Array(names) if names.contains(&name) => {}
        Value::Array(names) => names.push(name),
        other => *other = json!([name]),
    }
}

fn prepare_status_update(object: &mut Value, old: &Value, _context: &Context<'_>) {
    object["spec"] = old["spec"].clone();
}

fn validate(object: &Value) -> Vec<Error> {
    match Definition::parse(object) {
        Ok(definition) => crd::validate_create(&definition),
        Err(error) => vec![Error::internal(&Path::new("spec"), error.to_string())],
    }
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    both(object, old, crd::validate_update)
}

fn validate_status_update(object: &Value, old: &Value) -> Vec<Error> {
    both(object, old, crd::validate_status_update)
}

fn both(
    object: &Value,
    old: &Value,
    judge: fn(&Definition, &Definition) -> Vec<Error>,
) -> Vec<Error> {
    match (Definition::parse(object), Definition::parse(old)) {
        (Ok(new), Ok(old)) => judge(&new, &old),
        (Err(error), _) | (_, Err(error)) => {
            vec![Error::internal(&Path::new("spec"), error.to_string())]
        }
    }
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let Ok(definition) = Definition::parse(object) else { return Vec::new() };
    let old = old.and_then(|old| Definition::parse(old).ok());
    crd::warnings(&definition, old.as_ref())
}
