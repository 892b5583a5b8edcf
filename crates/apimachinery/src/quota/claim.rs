//! How much a claim of a volume counts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Trait, count};
use crate::quantity::Quantity;
use crate::resources::pod::Side;
use crate::resources::{Amounts, amounts, text};

/// Where the class of a claim was named before there was a field for it.
pub const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const OBJECTS: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";

/// Whether a quota for this is about claims.
pub(super) fn counts(name: &str) -> bool {
    let own = [CLAIMS, STORAGE];
    let by_class = || name.rsplit_once(BY_STORAGE_CLASS).map(|(_, rest)| rest);
    name == OBJECTS || own.contains(&name) || by_class().is_some_and(|rest| own.contains(&rest))
}

/// The storage class that a claim names, empty if none.
pub fn storage_class(claim: &Value) -> &str {
    let old = claim["metadata"]["annotations"].get(BETA_STORAGE_CLASS);
    let class = old.or_else(|| claim["spec"].get("storageClassName"));
    class.and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::new();
    let class = storage_class(claim);
    let mut put = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{BY_STORAGE_CLASS}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    };
    put(CLAIMS, count(1));
    if let Some(storage) = storage(claim) {
        put(STORAGE, storage);
    }
    usage.insert(OBJECTS.to_owned(), count(1));
    usage
}

/// What a claim asks for, or was given already if that is more; in whole bytes.
fn storage(claim: &Value) -> Option<Quantity> {
    let mut asked = Side::Requests.of(&claim["spec"]).remove("storage")?;
    asked.round_up(0);
    let given = amounts(claim["status"].get("allocatedResources")).remove("storage");
    Some(match given {
        Some(mut given) if given > asked => {
            given.round_up(0);
            given
        }
        _ => asked,
    })
}

/// The classes of attributes that a claim has, had or will have.
pub(super) fn traits(claim: &Value) -> BTreeMap<&'static str, Trait> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let classes = [
        &spec["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let named = classes.into_iter().map(text).filter(|class| !class.is_empty());
    let classes: BTreeSet<String> = named.map(str::to_owned).collect();
    BTreeMap::from([("VolumeAttributesClass", Trait::Classes(classes))])
}
