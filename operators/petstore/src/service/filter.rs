//! What a pet is, and which pets are asked for.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use crate::proto::{BirthdayRange, Pet, PetType, SearchPetsRequest};

/// What fits on a collar.
const NAME_CHARS_MAX: usize = 100;

/// Which pets are asked for. What is empty is not asked for.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) ids: BTreeSet<String>,
    pub(super) keys: BTreeSet<String>,
    names: HashSet<String>,
    types: HashSet<i32>,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Filter {
    /// # Errors
    /// A sentence about what cannot be asked for.
    pub(super) fn new(request: SearchPetsRequest) -> Result<Self, String> {
        let SearchPetsRequest { names, types, birthdays, ids, keys } = request;
        for &kind in &types {
            check_type(kind)?;
        }
        let BirthdayRange { from, until } = birthdays.unwrap_or_default();
        Ok(Filter {
            ids: ids.into_iter().collect(),
            keys: keys.into_iter().collect(),
            names: names.into_iter().collect(),
            types: types.into_iter().collect(),
            from: from.map(|from| moment(&from)).transpose()?,
            until: until.map(|until| moment(&until)).transpose()?,
        })
    }

    pub(super) fn fits(&self, pet: &Pet) -> bool {
        let birthday = || pet.birthday.as_ref().and_then(|birthday| moment(birthday).ok());
        (self.ids.is_empty() || self.ids.contains(&pet.id))
            && (self.keys.is_empty() || self.keys.contains(&pet.key))
            && (self.names.is_empty() || self.names.contains(&pet.name))
            && (self.types.is_empty() || self.types.contains(&pet.r#type))
            && self.from.is_none_or(|from| birthday().is_some_and(|birthday| from <= birthday))
            && self.until.is_none_or(|until| birthday().is_some_and(|birthday| birthday < until))
    }
}

/// Whether something is a pet.
///
/// # Errors
/// A sentence about what is wrong with it.
pub(super) fn check(pet: &Pet) -> Result<(), String> {
    if pet.name.is_empty() {
        return Err("a pet has a name".to_owned());
    }
    if pet.name.chars().count() > NAME_CHARS_MAX {
        return Err(format!("a pet's name has at most {NAME_CHARS_MAX} characters"));
    }
    check_type(pet.r#type)?;
    let birthday = pet.birthday.as_ref().ok_or("a pet has a birthday")?;
    moment(birthday).map(drop)
}

fn check_type(kind: i32) -> Result<(), String> {
    match PetType::try_from(kind) {
        Ok(PetType::Unspecified) | Err(_) => Err(format!("no type of pets is {kind}")),
        Ok(_) => Ok(()),
    }
}

fn moment(timestamp: &prost_types::Timestamp) -> Result<Timestamp, String> {
    Timestamp::new(timestamp.seconds, timestamp.nanos)
        .map_err(|error| format!("{timestamp:?} is no moment: {error}"))
}
