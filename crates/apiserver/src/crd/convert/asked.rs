//! The versions of a kind as apply wants them: at once.
//!
//! Who owns which field is worked out by pure functions, and a webhook is asked over the network.
//! So the work is done with what is known; a conversion that is not known is noted, asked for, and
//! the work is done again. Nothing comes of work that lacked something.

use std::sync::{Mutex, PoisonError};

use kubewright_apimachinery::apply::{ConvertError, Schema, Versions};
use serde_json::Value;

use crate::resource::{Custom, Origin, Resource};

/// The versions of a resource whose webhook is asked for each conversion once.
pub(crate) struct Asked<'a> {
    custom: &'a Custom,
    /// The version of the request, by way of which all others are reached.
    api_version: String,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    known: Vec<(Wanted, Result<Value, String>)>,
    wanted: Option<Wanted>,
}

/// An object, and the version it is wanted in.
struct Wanted {
    object: Value,
    to: String,
}

impl<'a> Asked<'a> {
    /// `None` where nobody need be asked.
    pub(crate) fn of(resource: &'a Resource) -> Option<Self> {
        let Origin::Custom(custom) = &resource.origin else { return None };
        resource.is_converted().then(|| Asked {
            custom,
            api_version: resource.gvk.api_version(),
            memory: Mutex::default(),
        })
    }

    /// Asks for what was wanted and not known; false if there was no such thing.
    pub(crate) async fn learn(&self) -> bool {
        let wanted = self.memory.lock().unwrap_or_else(PoisonError::into_inner).wanted.take();
        let Some(wanted) = wanted else { return false };
        let learned = self.convert_by_way(&wanted).await;
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.known.push((wanted, learned));
        true
    }

    async fn convert_by_way(&self, wanted: &Wanted) -> Result<Value, String> {
        let mut object = wanted.object.clone();
        for to in [&self.api_version, &wanted.to] {
            let converted = self.custom.convert(vec![object], to).await?;
            object = converted.into_iter().next().unwrap_or_default();
        }
        Ok(object)
    }
}

impl Versions for Asked<'_> {
    fn schema(&self, api_version: &str) -> Result<&Schema, ConvertError> {
        self.custom.versions.schema(api_version)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |wanted: &Wanted| wanted.to == api_version && wanted.object == *object;
        match memory.known.iter().find(|(wanted, _)| is_same(wanted)) {
            Some((_, known)) => known.clone().map_err(ConvertError::Failed),
            None => {
                let wanted = Wanted { object: object.clone(), to: api_version.to_owned() };
                memory.wanted.get_or_insert(wanted);
                Err(ConvertError::Failed("the conversion is to be asked for".to_owned()))
            }
        }
    }
}
