//! How an informer keeps objects: as they are read, or as the texts they came in.
//!
//! Texts take a fraction of the room, since they are written in [`shorthand`](super::shorthand), and
//! must be read when somebody looks; those who look soon after [share](lately) what was read. What
//! is read is projected, so that readers cannot tell the difference; and if what is left can be
//! written as a text, that is the one that is kept.

mod lately;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::warn;

use self::lately::Lately;
use super::shorthand::Model;
use super::{Object, version};
use crate::key::ObjectKey;
use crate::panics::Panics;

/// Takes from an object what nobody will read.
pub(crate) type Project<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// Makes a text of an object.
pub(crate) type WriteText<K> = fn(&K) -> serde_json::Result<String>;

/// One object.
pub(super) enum Kept<K> {
    Object {
        object: Arc<K>,
        /// How long the text was that it was read from.
        bytes: usize,
    },
    Text {
        short: Arc<[u8]>,
        /// How long the text is.
        bytes: usize,
    },
}

/// An object that has come, and what must be known of it before it is looked at.
pub(super) struct Arrival<K> {
    pub(super) key: ObjectKey,
    pub(super) version: String,
    pub(super) kept: Kept<K>,
}

/// Makes objects of texts.
pub(super) struct Opener<K> {
    pub(super) kind: Arc<str>,
    pub(super) project: Option<Project<K>>,
    /// How texts are written of what is left of objects; without, they are kept as they come.
    pub(super) write: Option<WriteText<K>>,
    pub(super) texts: Option<Arc<Texts<K>>>,
    pub(super) panics: Panics,
}

/// What is known of texts besides them.
pub(super) struct Texts<K> {
    /// What they are like, once there was one.
    model: OnceLock<Model>,
    lately: Mutex<Lately<K>>,
}

/// Something that is not of the kind. It has been told of.
pub(super) struct Misfit {
    pub(super) key: ObjectKey,
    pub(super) version: String,
}

/// What every object has.
#[derive(Deserialize, Default)]
struct Outline<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, default)]
    managed_fields: Option<&'a RawValue>,
}

impl<K> Kept<K> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Kept::Object { bytes, .. } | Kept::Text { bytes, .. } => *bytes,
        }
    }
}

impl<K> Default for Texts<K> {
    fn default() -> Self {
        Texts { model: OnceLock::new(), lately: Mutex::default() }
    }
}

impl<K> Texts<K> {
    fn lately(&self) -> MutexGuard<'_, Lately<K>> {
        // Nothing that holds it panics half-way.
        self.lately.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Self {
        match self {
            Kept::Object { object, bytes } => {
                Kept::Object { object: Arc::clone(object), bytes: *bytes }
            }
            Kept::Text { short, bytes } => Kept::Text { short: Arc::clone(short), bytes: *bytes },
        }
    }
}

impl<K> Clone for Opener<K> {
    fn clone(&self) -> Self {
        let (kind, project, write) = (Arc::clone(&self.kind), self.project.clone(), self.write);
        Opener { kind, project, write, texts: self.texts.clone(), panics: self.panics.clone() }
    }
}

impl<K: Object> Opener<K> {
    /// Takes an object as it came. If it `is_awaited`, somebody will look at once.
    ///
    /// One that is not what its type says is told of and left out: the others are still of use. A
    /// text that nobody awaits is not looked into.
    pub(super) fn take(&self, json: &str, is_awaited: bool) -> Result<Arrival<K>, Misfit> {
        if self.texts.is_none()
            && let Some(object) = self.read(json, self.project.as_ref())
        {
            let key = ObjectKey::of(object.meta());
            let version = version(object.meta()).to_owned();
            let kept = Kept::Object { object: Arc::new(object), bytes: json.len() };
            return Ok(Arrival { key, version, kept });
        }
        let Outline { metadata } = serde_json::from_str(json).unwrap_or_default();
        let version = metadata.resource_version.into_owned();
        let key = ObjectKey::new(metadata.namespace.as_deref(), &metadata.name);
        let Some(texts) = &self.texts else { return Err(Misfit { key, version }) };
        let text = match self.rewrite(json) {
            Some(text) => text.into(),
            None => without(json, metadata.managed_fields),
        };
        let object = match is_awaited.then(|| self.read(&text, self.project_of_texts())) {
            Some(None) => return Err(Misfit { key, version }),
            object => object.flatten(),
        };
        let short = texts.model.get_or_init(|| Model::new(&text)).shorten(&text).into();
        if let Some(object) = object {
            texts.lately().add(&short, text.len(), &Arc::new(object));
        }
        Ok(Arrival { key, version, kept: Kept::Text { short, bytes: text.len() } })
    }

    /// The object. None if a text is not what the type says, which is told of.
    pub(super) fn open(&self, kept: &Kept<K>) -> Option<Arc<K>> {
        match kept {
            Kept::Object { object, .. } => Some(Arc::clone(object)),
            Kept::Text { short, bytes } => {
                let texts = self.texts.as_ref()?;
                if let Some(object) = texts.lately().find(short) {
                    return Some(object);
                }
                let object = Arc::new(self.read(&self.text(short)?, self.project_of_texts())?);
                texts.lately().add(short, *bytes, &object);
                Some(object)
            }
        }
    }

    /// What was taken away before a text was written is not there any more.
    fn project_of_texts(&self) -> Option<&Project<K>> {
        self.project.as_ref().filter(|_| self.write.is_none())
    }

    /// None before there was any text.
    fn text(&self, short: &[u8]) -> Option<String> {
        Some(self.texts.as_ref()?.model.get()?.expand(short))
    }

    /// A text of what is left of an object, if it is to be kept so.
    fn rewrite(&self, json: &str) -> Option<String> {
        let write = self.write?;
        write(&self.read(json, self.project.as_ref())?).ok()
    }

    fn read(&self, json: &str, project: Option<&Project<K>>) -> Option<K> {
        let read = || {
            let mut object = serde_json::from_str::<K>(json)?;
            if let Some(project) = project {
                project(&mut object);
            }
            Ok::<K, serde_json::Error>(object)
        };
        match self.panics.caught("a type or a projection", read)? {
            Ok(object) => Some(object),
            Err(error) => {
                let Outline { metadata } = serde_json::from_str(json).unwrap_or_default();
                let key = ObjectKey::new(metadata.namespace.as_deref(), &metadata.name);
                warn!(kind = &*self.kind, %key, %error, "an object is not what its type says");
                None
            }
        }
    }
}

/// A text with an empty list in the place of a part of it.
fn without<'a>(json: &'a str, part: Option<&RawValue>) -> Cow<'a, str> {
    let Some(part) = part.map(RawValue::get) else { return json.into() };
    // The part was borrowed from the text.
    let start = part.as_ptr() as usize - json.as_ptr() as usize;
    [&json[..start], "[]", &json[start + part.len()..]].concat().into()
}
