//! Where the pets are: on disk, in fjall.
//!
//! A pet is a record under its id; beside it is a record that leads from its key to its id. Both
//! come and go in one batch, which is on the disk when it is acknowledged. Whoever calls waits for
//! the disk.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use prost::Message as _;
use uuid::Uuid;

use super::filter::Filter;
use crate::proto::Pet;

/// Pets are small and few.
const MEMTABLE_BYTES: u64 = 4 << 20;
/// The least that fjall takes.
const JOURNAL_BYTES: u64 = 64 << 20;
const CACHE_BYTES: u64 = 1 << 20;

/// The pets of one directory.
pub struct Store {
    pets: Keyspace,
    keys: Keyspace,
    database: Database,
    /// Who writes has read before what is there, and nobody changes it between.
    writing: Mutex<()>,
}

/// Why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Stop the other process, or choose another directory.
    #[error("open {}, which another process has open", dir.display())]
    Locked { dir: PathBuf },
    #[error("open {}", dir.display())]
    Disk { dir: PathBuf, source: fjall::Error },
}

/// Why the store did not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// The caller's mistake, or somebody was faster.
    #[error("there is no pet {id}")]
    Missing { id: String },
    /// Restore a backup.
    #[error("pet {id} cannot be read")]
    Damaged { id: String, source: prost::DecodeError },
    /// Try again.
    #[error("the store cannot reach its disk")]
    Disk(#[from] fjall::Error),
}

/// The pets that were found, as they were when they were asked for.
pub(super) type Found = Box<dyn Iterator<Item = Result<Pet, StoreError>> + Send>;

impl Store {
    /// Opens the store in a directory, or makes one if there is none.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let failed = |source| match source {
            fjall::Error::Locked => OpenError::Locked { dir: dir.to_owned() },
            source => OpenError::Disk { dir: dir.to_owned(), source },
        };
        let database = Database::builder(dir)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(1)
            .open()
            .map_err(failed)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        let pets = database.keyspace("pets", options).map_err(failed)?;
        let keys = database.keyspace("keys", options).map_err(failed)?;
        Ok(Store { pets, keys, database, writing: Mutex::default() })
    }

    /// Takes pets in, and gives their ids. Those with a known key are there already.
    pub(super) fn add(&self, pets: Vec<Pet>) -> Result<Vec<String>, StoreError> {
        let (_writing, mut batch) = self.batch();
        let mut taken: HashMap<String, String> = HashMap::new();
        let mut ids = Vec::with_capacity(pets.len());
        for pet in pets {
            let known = match taken.get(&pet.key) {
                Some(id) => Some(id.clone()),
                None => self.id_of(&pet.key)?,
            };
            if let Some(id) = known {
                ids.push(id);
                continue;
            }
            let id = Uuid::new_v4().to_string();
            let pet = Pet { id: id.clone(), ..pet };
            batch.insert(&self.pets, id.as_str(), pet.encode_to_vec());
            if !pet.key.is_empty() {
                batch.insert(&self.keys, pet.key.as_str(), id.as_str());
                taken.insert(pet.key, id.clone());
            }
            ids.push(id);
        }
        batch.commit()?;
        Ok(ids)
    }

    /// Puts pets in the place of those with their ids, or none if one is not there.
    pub(super) fn update(&self, pets: Vec<Pet>) -> Result<(), StoreError> {
        let (_writing, mut batch) = self.batch();
        for pet in pets {
            let Some(known) = self.pet(&pet.id)? else {
                return Err(StoreError::Missing { id: pet.id });
            };
            let pet = Pet { key: known.key, ..pet };
            batch.insert(&self.pets, pet.id.as_str(), pet.encode_to_vec());
        }
        Ok(batch.commit()?)
    }

    /// Lets pets go, if they are there.
    pub(super) fn delete(&self, ids: &[String]) -> Result<(), StoreError> {
        let (_writing, mut batch) = self.batch();
        for id in ids {
            let Some(pet) = self.pet(id)? else { continue };
            batch.remove(&self.pets, id.as_str());
            if !pet.key.is_empty() {
                batch.remove(&self.keys, pet.key);
            }
        }
        Ok(batch.commit()?)
    }

    /// The pets that fit, in the order of their ids.
    pub(super) fn search(&self, filter: Filter) -> Result<Found, StoreError> {
        if filter.ids.is_empty() && filter.keys.is_empty() {
            let pets = self.pets.iter().map(|record| {
                let (id, pet) = record.into_inner()?;
                decode(&String::from_utf8_lossy(&id), &pet)
            });
            return Ok(Box::new(pets.filter(move |pet| {
                // What cannot be read is told, not left out.
                pet.as_ref().map_or(true, |pet| filter.fits(pet))
            })));
        }
        // Those who ask for few do not wait until all are read. Between the reads nothing changes.
        let _writing = self.lock();
        let mut ids = filter.ids.clone();
        if ids.is_empty() {
            for key in &filter.keys {
                ids.extend(self.id_of(key)?);
            }
        }
        let pets: Result<Vec<_>, _> = ids.iter().map(|id| self.pet(id)).collect();
        let pets = pets?.into_iter().flatten().filter(move |pet| filter.fits(pet));
        Ok(Box::new(pets.map(Ok)))
    }

    fn pet(&self, id: &str) -> Result<Option<Pet>, StoreError> {
        let record = if id.is_empty() { None } else { self.pets.get(id)? };
        record.map(|record| decode(id, &record)).transpose()
    }

    fn id_of(&self, key: &str) -> Result<Option<String>, StoreError> {
        let id = if key.is_empty() { None } else { self.keys.get(key)? };
        Ok(id.map(|id| String::from_utf8_lossy(&id).into_owned()))
    }

    /// Changes that are made together, by nobody else meanwhile.
    fn batch(&self) -> (MutexGuard<'_, ()>, OwnedWriteBatch) {
        (self.lock(), self.database.batch().durability(Some(PersistMode::SyncData)))
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn decode(id: &str, record: &[u8]) -> Result<Pet, StoreError> {
    Pet::decode(record).map_err(|source| StoreError::Damaged { id: id.to_owned(), source })
}
