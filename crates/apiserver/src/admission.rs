//! Whether a write may happen, and what is added to it: upstream's admission plugins, in
//! upstream's order.
//!
//! A plugin is a function in a table. Those that change objects run first, on the object as the
//! client sent it; those that only judge run last, on the object as it would be stored.

mod namespace_lifecycle;

use serde_json::Value;

use crate::index::Store;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::user::User;
use crate::warnings::Warnings;

/// What is about to happen.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub user: &'a User,
    pub resource: &'a Resource,
    /// The endpoint below the object: `status`, `binding`.
    pub part: Option<&'a str>,
    pub namespace: Option<&'a str>,
    /// Empty when a name is yet to be made.
    pub name: &'a str,
    pub operation: Operation,
    pub dry_run: bool,
    /// The object that is there, on updates and deletes.
    pub old: Option<&'a Value>,
    pub warnings: &'a Warnings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What plugins may look at besides.
pub struct Scene<'a> {
    pub store: &'a Store,
}

/// An object that may be stored. Only [`Admission::judge`] makes one.
#[derive(Debug)]
pub struct Admitted(Value);

/// A plugin that may change the object; there is none on deletes.
type Mutate = fn(&Scene<'_>, &Attributes<'_>, Option<&mut Value>) -> Result<(), Refusal>;
/// A plugin that only judges the object.
type Judge = fn(&Scene<'_>, &Attributes<'_>, Option<&Value>) -> Result<(), Refusal>;

const MUTATING: &[Mutate] = &[namespace_lifecycle::admit];
const JUDGING: &[Judge] = &[];

/// Runs the plugins.
pub struct Admission {
    store: Store,
}

impl Admission {
    pub(crate) fn new(store: Store) -> Self {
        Admission { store }
    }

    /// Lets the plugins change an object.
    pub(crate) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), Refusal> {
        let scene = Scene { store: &self.store };
        MUTATING.iter().try_for_each(|plugin| plugin(&scene, attributes, Some(&mut *object)))
    }

    /// Lets the plugins judge an object that is valid otherwise.
    pub(crate) async fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: Value,
    ) -> Result<Admitted, Refusal> {
        let scene = Scene { store: &self.store };
        JUDGING.iter().try_for_each(|plugin| plugin(&scene, attributes, Some(&object)))?;
        Ok(Admitted(object))
    }

    /// Lets the plugins judge a deletion.
    pub(crate) async fn judge_delete(&self, attributes: &Attributes<'_>) -> Result<(), Refusal> {
        let scene = Scene { store: &self.store };
        MUTATING.iter().try_for_each(|plugin| plugin(&scene, attributes, None))?;
        JUDGING.iter().try_for_each(|plugin| plugin(&scene, attributes, None))
    }
}

impl Admitted {
    pub(crate) fn object(&self) -> &Value {
        &self.0
    }

    pub(crate) fn into_object(self) -> Value {
        self.0
    }
}
