//! Creates and updates: from an object that a client wants to a stored revision.
//!
//! An update decides from the object that is there, again whenever somebody else was faster; what
//! makes the new object of it ([`Revise`]) is a replacement, a patch or an apply.

mod patch;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kubewright_apimachinery::apply::{self, FieldManager, Versions};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupVersionKind};
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_store::{Change, Durability, Expect, Key, Put, PutError, Updated};
use serde_json::Value;
use tokio::time::Instant;

use crate::admission::{Admission, Admitted, Attributes, Operation, Options};
use crate::allocate::Reserved;
use crate::crd::convert::Asked;
use crate::draft::Draft;
use crate::encode;
use crate::index::{self, Index, Store, Stored};
use crate::kinds::Context;
use crate::list_options::{stated_version, unexpected};
use crate::meta;
use crate::options::WriteOptions;
use crate::refusal::{self, Refusal};
use crate::resource::{Origin, Resource};
use crate::services::Services;
use crate::user::User;
use crate::warnings::Warnings;

pub(crate) use patch::{Patch, PatchKind};

/// How often a name is made up before the client is told that it is taken.
const NAME_ATTEMPTS: usize = 8;
/// How long Events are kept.
const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

/// A write under way: who writes what, where.
pub(crate) struct Write<'a> {
    pub(crate) store: &'a Store,
    pub(crate) admission: &'a Admission,
    pub(crate) services: &'a Services,
    pub(crate) user: &'a User,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    /// Empty on creates.
    pub(crate) name: &'a str,
    pub(crate) part: Option<&'a str>,
    pub(crate) options: &'a WriteOptions,
    pub(crate) now: Timestamp,
    pub(crate) warnings: &'a Warnings,
    /// When the client stops waiting.
    pub(crate) deadline: Instant,
    /// Whether the user may also create what is not there.
    pub(crate) may_create: &'a (dyn Fn() -> Result<(), Refusal> + Sync),
    /// What is known of other versions of the object, where a webhook is asked for them.
    pub(crate) asked: Option<&'a Asked<'a>>,
}

/// What came of a write.
#[derive(Debug)]
pub(crate) enum Written {
    Created(Stored),
    Updated(Stored),
    /// What would have been stored, or what was stored last before the object went away; in the
    /// version in which objects are judged.
    Object {
        object: Value,
        created: bool,
    },
}

/// What one attempt at an update leaves behind.
#[derive(Default)]
struct Attempt {
    /// The answer, where it is not what is stored.
    outcome: Option<Written>,
    /// What was taken for a Service.
    reserved: Option<Reserved>,
}

/// Makes the new object of the one that is there. Both are in the version of the request.
pub(crate) trait Revise: Sync {
    /// # Errors
    /// Whatever the client is to be told.
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal>;

    /// Whether an object that is not there may come of it.
    fn creates(&self) -> bool {
        false
    }

    /// The uid the client expects the object to have.
    fn expected_uid(&self) -> Option<&str> {
        None
    }

    /// What is admitted instead of the object, where clients see something else of it.
    fn view(&self) -> Option<&dyn View> {
        None
    }
}

/// Something that is seen and changed of an object through an endpoint below it: its scale. All
/// objects are in the version of the request.
pub(crate) trait View: Sync {
    /// The endpoint, as if it were a resource of its own.
    fn resource(&self) -> &Resource;

    fn part(&self) -> &'static str;

    /// What is seen of an object.
    ///
    /// # Errors
    /// When there is nothing to see.
    fn of(&self, write: &Write<'_>, object: &Value) -> Result<Value, Refusal>;

    /// What the client wants to see of the object that is there.
    ///
    /// # Errors
    /// Whatever the client is to be told.
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal>;

    /// The object of which this is seen.
    ///
    /// # Errors
    /// When there cannot be one.
    fn put(&self, write: &Write<'_>, live: &Value, seen: &Value) -> Result<Value, Refusal>;
}

/// A whole object takes the place of the one that is there.
pub(crate) struct Replace(pub(crate) Value);

impl Revise for Replace {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        Ok(write.track(live, self.0.clone()))
    }

    fn expected_uid(&self) -> Option<&str> {
        Some(meta::text(&self.0, "uid")).filter(|uid| !uid.is_empty())
    }
}

impl Write<'_> {
    /// A new object as its client means it: where the request says, with nothing that is not the
    /// client's to give, and with who manages what.
    pub(crate) fn drafted(&self, mut object: Value) -> Result<Value, Refusal> {
        meta::wipe(&mut object);
        meta::of(&mut object).shift_remove("resourceVersion");
        self.settle(&mut object)?;
        self.warnings.extend(meta::dedup_owners(&mut object, false));
        Ok(self.track(None, object))
    }

    /// Creates an object.
    pub(crate) async fn create(&self, draft: Draft) -> Result<Written, Refusal> {
        let object = draft.into_object();
        let version = meta::text(&object, "resourceVersion").to_owned();
        let drafted = match Asked::of(self.resource) {
            None => self.drafted(object)?,
            Some(asked) => self.asking(&asked, |write| write.drafted(object.clone())).await?,
        };
        let mut object = self.resource.to_hub(drafted);
        let name = meta::text(&object, "name").to_owned();
        let attributes = self.attributes(Operation::Create, &name, None);
        self.admission.mutate(&attributes, &mut object).await?;
        self.settle(&mut object)?;
        self.warnings.extend(meta::dedup_owners(&mut object, true));

        let base = meta::text(&object, "generateName").to_owned();
        let is_generated = meta::text(&object, "name").is_empty() && !base.is_empty();
        let attempts = if is_generated { NAME_ATTEMPTS } else { 1 };
        let said = self.warnings.len();
        let mut refused = None;
        for left in (0..attempts).rev() {
            self.warnings.truncate(said);
            let mut candidate = match left {
                0 => std::mem::take(&mut object),
                _ => object.clone(),
            };
            meta::identify(&mut candidate, self.now);
            if !version.is_empty() {
                let version = version.clone().into();
                meta::of(&mut candidate).insert("resourceVersion".to_owned(), version);
            }
            if is_generated {
                let name = meta::generate_name(&base);
                meta::of(&mut candidate).insert("name".to_owned(), name.into());
            }
            match self.create_named(candidate).await {
                Err(refusal) if is_generated && is_taken(&refusal) => refused = Some(refusal),
                done => return done,
            }
        }
        Err(refused.expect("a name was taken each time"))
    }

    async fn create_named(&self, mut object: Value) -> Result<Written, Refusal> {
        if !Services::concern(self.resource) {
            return self.commit_new(object).await;
        }
        let dry_run = self.options.dry_run;
        let reserved = self.services.reserve(&mut object, None, self.now, dry_run).await?;
        let written = self.commit_new(object).await;
        self.services.settle(reserved, written.is_ok() && !dry_run).await;
        written
    }

    async fn commit_new(&self, object: Value) -> Result<Written, Refusal> {
        let name = meta::text(&object, "name").to_owned();
        let key = self.resource.key(self.namespace, &name);
        let admitted = self.admit_new(object).await?;
        let mut object = admitted.into_object();
        self.resource.normalize(&mut object);
        if self.options.dry_run {
            return match self.store.get(key.as_str()) {
                Some(found) => Err(self.taken(&object, &found)),
                None => {
                    let object = self.resource.rehearsed(object).await?;
                    Ok(Written::Object { object, created: true })
                }
            };
        }
        // Only the storage objects to it, which overlooks what is no version.
        if stated_version(meta::text(&object, "resourceVersion")).is_ok_and(|version| version > 0) {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Box::new(Status::failure(500, Reason::Unknown, why)));
        }
        let value = self.resource.storage_bytes(&mut object).await?;
        let (ttl, durability) = self.keeping();
        let put = Put { key: key.clone(), value, expect: Expect::Absent, ttl, durability };
        match self.store.put(put).await {
            Ok(stored) => Ok(Written::Created(stored)),
            Err(PutError::Conflict { .. }) => match self.store.get(key.as_str()) {
                Some(found) => Err(self.taken(&object, &found)),
                // It went away meanwhile.
                None => {
                    Err(Box::new(Status::already_exists(&self.resource.group_resource(), &name)))
                }
            },
            Err(PutError::TooLarge { .. }) => Err(refusal::too_large()),
            Err(PutError::Unavailable(error)) => Err(refusal::unavailable(&error)),
        }
    }

    /// Prepares, validates and judges an object that has its identity.
    async fn admit_new(&self, mut object: Value) -> Result<Admitted, Refusal> {
        let name = meta::text(&object, "name").to_owned();
        if let Origin::Custom(custom) = &self.resource.origin
            && custom.definition.metadata.contains_key("deletionTimestamp")
        {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Box::new(Status::forbidden(&self.resource.group_resource(), &name, why)));
        }
        self.resource.prepare_create(&mut object, &self.context());
        let mut errors = self.resource.validate_create(&object);
        errors.extend(self.privileges(&object));
        self.refuse_invalid(&name, &errors)?;
        self.warnings.extend(self.resource.warnings(self.part, &object, None));
        let attributes = self.attributes(Operation::Create, &name, None);
        self.admission.judge(&attributes, object).await
    }

    /// Changes the object that is there, or creates it where that is allowed.
    pub(crate) async fn update(&self, revise: &dyn Revise) -> Result<Written, Refusal> {
        let key = self.resource.key(self.namespace, self.name);
        let attempt = Mutex::new(Attempt::default());
        let last = || std::mem::take(&mut *attempt.lock().unwrap_or_else(PoisonError::into_inner));
        let said = self.warnings.len();
        let updated = self
            .store
            .update(&key, |current| {
                let (attempt, key, last) = (&attempt, &key, &last);
                async move {
                    // Somebody else was faster: what was said and taken for the last attempt is
                    // void.
                    self.warnings.truncate(said);
                    self.settle_reserved(last().reserved, false).await;
                    let mut made = Attempt::default();
                    let decided = self.decide(key, current.as_ref(), revise, &mut made).await;
                    *attempt.lock().unwrap_or_else(PoisonError::into_inner) = made;
                    decided
                }
            })
            .await
            .map_err(refusal::of_update);
        let Attempt { outcome, reserved } = last();
        self.settle_reserved(reserved, matches!(updated, Ok(Updated::Put(_)))).await;
        let updated = updated?;
        if let Updated::Deleted(gone) = &updated
            && Services::concern(self.resource)
            && let Some(service) = index::object(&gone.previous)
        {
            self.services.release(&service).await;
        }
        Ok(match (updated, outcome) {
            (_, Some(written)) => written,
            (Updated::Put(stored), None) if stored.created == stored.revision => {
                Written::Created(stored)
            }
            (Updated::Put(stored), None) => Written::Updated(stored),
            (Updated::Kept(Some(stored)), None) => Written::Updated(stored),
            (Updated::Deleted(_) | Updated::Kept(None), None) => {
                unreachable!("what goes away leaves an outcome")
            }
        })
    }

    /// Lets the plugins change and judge an object that is about something else and not stored.
    /// Whether it makes sense is `check`ed in between.
    pub(crate) async fn admit_action(
        &self,
        mut action: Value,
        check: impl FnOnce(&Value) -> Result<(), Refusal>,
    ) -> Result<Admitted, Refusal> {
        self.settle(&mut action)?;
        let below = self.resource.below(GroupVersionKind::interpret(&action).unwrap_or_default());
        let attributes = self.attributes(Operation::Create, self.name, None);
        let attributes = Attributes { resource: &below, ..attributes };
        self.admission.mutate(&attributes, &mut action).await?;
        self.settle(&mut action)?;
        check(&action)?;
        self.admission.judge(&attributes, action).await
    }

    /// The same for what is completed in between.
    pub(crate) async fn admit_completed(
        &self,
        mut action: Value,
        complete: impl FnOnce(&mut Value) -> Result<(), Refusal>,
    ) -> Result<Admitted, Refusal> {
        let attributes = self.attributes(Operation::Create, self.name, None);
        self.admission.mutate(&attributes, &mut action).await?;
        complete(&mut action)?;
        self.admission.judge(&attributes, action).await
    }

    /// Changes an object as the server itself wants it: nobody is asked whether that is allowed.
    pub(crate) async fn amend(&self, revise: &dyn Revise) -> Result<Updated<Index>, Refusal> {
        let key = self.resource.key(self.namespace, self.name);
        let decide = |current: Option<Stored>| {
            let key = &key;
            async move {
                let Some(current) = current else { return Err(self.not_found()) };
                let live = encode::live(self.resource, &current)?;
                self.check_uid(key, &live, revise)?;
                let mut object = revise.revise(self, Some(&live))?;
                if self.options.dry_run || object == live {
                    return Ok(Change::Keep);
                }
                let value = self.resource.to_bytes(&mut object);
                let (ttl, durability) = self.keeping();
                Ok(Change::Put { value, ttl, durability })
            }
        };
        self.store.update(&key, decide).await.map_err(refusal::of_update)
    }

    fn check_uid(&self, key: &Key, live: &Value, revise: &dyn Revise) -> Result<(), Refusal> {
        match revise.expected_uid() {
            Some(expected) if expected != meta::text(live, "uid") => Err(refusal::precondition(
                &self.resource.group_resource(),
                self.name,
                key.as_str(),
                "UID",
                expected,
                meta::text(live, "uid"),
            )),
            _ => Ok(()),
        }
    }

    async fn settle_reserved(&self, reserved: Option<Reserved>, written: bool) {
        if let Some(reserved) = reserved {
            self.services.settle(reserved, written).await;
        }
    }

    /// What to do about the object that is there.
    async fn decide(
        &self,
        key: &Key,
        current: Option<&Stored>,
        revise: &dyn Revise,
        attempt: &mut Attempt,
    ) -> Result<Change, Refusal> {
        let resource = self.resource;
        let Some(current) = current else {
            let creates = revise.creates() || (resource.create_on_update() && self.part.is_none());
            return match creates && self.part.is_none() {
                true => {
                    self.check_uid(key, &Value::Null, revise)?;
                    self.decide_create(revise, attempt).await
                }
                false => Err(self.not_found()),
            };
        };
        let live = resource.live(current).await?;
        self.check_uid(key, &live, revise)?;
        let mut object = self.revised(Some(&live), revise).await?;
        self.check_version(&object, current)?;
        // Who does not say which version it changes means this one.
        index::set_resource_version(&mut object, current.revision);
        if Services::concern(resource) && self.part.is_none() {
            let dry_run = self.options.dry_run;
            let reserved = self.services.reserve(&mut object, Some(&live), self.now, dry_run);
            attempt.reserved = Some(reserved.await?);
        }
        let object = self.admit_update(object, &live, revise.view()).await?;
        if self.is_finished(&object, &live) {
            let change = if self.options.dry_run { Change::Keep } else { Change::Delete };
            let object = object.into_object();
            attempt.outcome = Some(Written::Object { object, created: false });
            return Ok(change);
        }
        let mut object = object.into_object();
        resource.normalize(&mut object);
        index::set_resource_version(&mut object, current.revision);
        // A write that changes nothing is none.
        if object == live && matches!(resource.origin, Origin::Builtin(_)) {
            return Ok(Change::Keep);
        }
        if self.options.dry_run {
            let object = resource.rehearsed(object).await?;
            attempt.outcome = Some(Written::Object { object, created: false });
            return Ok(Change::Keep);
        }
        let value = resource.storage_bytes(&mut object).await?;
        // What would be stored counts: an object that is stored in an old version, or without
        // defaults that it has by now, is stored anew by whoever writes it as it is.
        if value == current.extracted.json(&current.value) {
            return Ok(Change::Keep);
        }
        let (ttl, durability) = self.keeping();
        Ok(Change::Put { value, ttl, durability })
    }

    async fn decide_create(
        &self,
        revise: &dyn Revise,
        attempt: &mut Attempt,
    ) -> Result<Change, Refusal> {
        let mut object = self.revised(None, revise).await?;
        if !meta::text(&object, "uid").is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was \
                 found",
                meta::text(&object, "uid")
            );
            let resource = self.resource.group_resource();
            return Err(Box::new(Status::conflict(&resource, self.name, why)));
        }
        meta::identify(&mut object, self.now);
        if Services::concern(self.resource) {
            let dry_run = self.options.dry_run;
            let reserved = self.services.reserve(&mut object, None, self.now, dry_run);
            attempt.reserved = Some(reserved.await?);
        }
        let admitted = self.admit_new(object).await?;
        (self.may_create)()?;
        let mut object = admitted.into_object();
        self.resource.normalize(&mut object);
        if self.options.dry_run {
            let object = self.resource.rehearsed(object).await?;
            attempt.outcome = Some(Written::Object { object, created: true });
            return Ok(Change::Keep);
        }
        let value = self.resource.storage_bytes(&mut object).await?;
        let (ttl, durability) = self.keeping();
        Ok(Change::Put { value, ttl, durability })
    }

    /// The new object in the version in which it is judged, as the plugins want it.
    async fn revised(&self, live: Option<&Value>, revise: &dyn Revise) -> Result<Value, Refusal> {
        let shown = live.map(|live| self.resource.shown_to_request(live));
        let shown = shown.as_deref();
        if let Some(view) = revise.view() {
            return self.revised_through(view, shown).await;
        }
        let mut object = match Asked::of(self.resource) {
            None => revise.revise(self, shown)?,
            Some(asked) => self.asking(&asked, |write| revise.revise(write, shown)).await?,
        };
        self.recognize(&mut object)?;
        let mut object = self.resource.to_hub(object);
        let operation = match live {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let attributes = self.attributes(operation, self.name, live);
        self.admission.mutate(&attributes, &mut object).await?;
        self.settle(&mut object)?;
        self.warnings.extend(meta::dedup_owners(&mut object, true));
        Ok(object)
    }

    /// The new object of which plugins see only a part, and change only that.
    async fn revised_through(
        &self,
        view: &dyn View,
        live: Option<&Value>,
    ) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(self.not_found()) };
        let mut seen = view.revise(self, Some(live))?;
        let before = view.of(self, live)?;
        let attributes = self.view_attributes(view, &before);
        self.admission.mutate(&attributes, &mut seen).await?;
        let mut object = view.put(self, live, &seen)?;
        self.recognize(&mut object)?;
        Ok(self.resource.to_hub(object))
    }

    fn view_attributes<'b>(&'b self, view: &'b dyn View, old: &'b Value) -> Attributes<'b> {
        Attributes {
            resource: view.resource(),
            part: Some(view.part()),
            ..self.attributes(Operation::Update, self.name, Some(old))
        }
    }

    /// Prepares, validates and judges an object that takes the place of another.
    async fn admit_update(
        &self,
        mut object: Value,
        live: &Value,
        view: Option<&dyn View>,
    ) -> Result<Admitted, Refusal> {
        let resource = self.resource;
        meta::restore(&mut object, live, "generation");
        if meta::text(&object, "uid").is_empty() {
            meta::restore(&mut object, live, "uid");
        }
        resource.prepare_update(self.part, &mut object, live, &self.context());
        meta::restore(&mut object, live, "creationTimestamp");
        if meta::is_deleting(live) {
            meta::restore(&mut object, live, "deletionTimestamp");
        }
        if object["metadata"].get("deletionGracePeriodSeconds").is_none() {
            meta::restore(&mut object, live, "deletionGracePeriodSeconds");
        }
        let mut findings = resource.validate_update(self.part, &object, live);
        findings.errors.extend(self.privileges(&object));
        self.warnings.extend(findings.warnings);
        self.refuse_invalid(self.name, &findings.errors)?;
        self.warnings.extend(resource.warnings(self.part, &object, Some(live)));
        apply::keep_times(live, &mut object);
        if let Some(view) = view {
            let of = |object: &Value| view.of(self, &resource.shown_to_request(object));
            let (before, after) = (of(live)?, of(&object)?);
            let attributes = self.view_attributes(view, &before);
            return self.admission.judge_view(&attributes, &after, object).await;
        }
        let attributes = self.attributes(Operation::Update, self.name, Some(live));
        self.admission.judge(&attributes, object).await
    }

    /// An update that removes the last finalizer of an object being deleted deletes it.
    fn is_finished(&self, object: &Admitted, live: &Value) -> bool {
        let object = object.object();
        let has_finalizers = !meta::finalizers(object).is_empty();
        let grace = live["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        let waits_for_more = self.resource.gvk.kind == "Namespace"
            && self.resource.gvk.group.is_empty()
            && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        meta::is_deleting(live) && !has_finalizers && grace == 0 && !waits_for_more
    }

    /// Whether the client has seen the object as it is.
    fn check_version(&self, object: &Value, current: &Stored) -> Result<(), Refusal> {
        let resource = self.resource.group_resource();
        let stated = stated_version(meta::text(object, "resourceVersion")).map_err(unexpected)?;
        match stated {
            0 if self.resource.unconditional_update() => Ok(()),
            0 => {
                let path = Path::new("metadata");
                let path = path.child("resourceVersion");
                let error = Error::invalid(&path, 0, "must be specified for an update");
                // Upstream names the resource where the kind should be.
                let kind = GroupKind::new(resource.group, resource.resource);
                Err(Box::new(Status::invalid(&kind, self.name, &[error])))
            }
            stated if stated == current.revision.get().unsigned_abs() => Ok(()),
            _ => Err(Box::new(Status::modified(&resource, self.name))),
        }
    }

    pub(crate) fn check_name(&self, object: &Value) -> Result<(), Refusal> {
        let name = meta::text(object, "name");
        if name.is_empty() {
            return Err(Box::new(Status::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be \
                 provided",
                self.name
            ))));
        }
        if name != self.name {
            return Err(Box::new(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.name
            ))));
        }
        Ok(())
    }

    /// Fails unless an object is the one that the request names.
    pub(crate) fn recognize(&self, object: &mut Value) -> Result<(), Refusal> {
        self.settle(object)?;
        self.check_name(object)
    }

    pub(crate) fn settle(&self, object: &mut Value) -> Result<(), Refusal> {
        let namespace = self.namespace.filter(|_| self.resource.namespaced);
        meta::settle_namespace(object, namespace)
    }

    /// What containers ask for that none may have here.
    fn privileges(&self, object: &Value) -> Vec<Error> {
        match self.admission.allows_privileged || self.part == Some("status") {
            true => Vec::new(),
            false => self.resource.privileged_containers(object),
        }
    }

    fn refuse_invalid(&self, name: &str, errors: &[Error]) -> Result<(), Refusal> {
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Box::new(Status::invalid(&self.resource.group_kind(), name, errors))),
        }
    }

    /// Does what needs other versions of the object, again each time one more of them is known.
    async fn asking<T>(
        &self,
        asked: &Asked<'_>,
        work: impl Fn(&Write<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let said = self.warnings.len();
        loop {
            let done = work(&Write { asked: Some(asked), ..*self });
            if !asked.learn().await {
                return done;
            }
            self.warnings.truncate(said);
        }
    }

    /// Records in the managed fields what the client changed.
    pub(crate) fn track(&self, live: Option<&Value>, object: Value) -> Value {
        self.with_manager(|manager| manager.update(live, object, &self.options.manager, self.now))
    }

    pub(crate) fn with_manager<T>(&self, use_it: impl FnOnce(&FieldManager<'_>) -> T) -> T {
        let resource = self.resource;
        let tracking = resource.tracking();
        let api_version = resource.gvk.api_version();
        let with = |versions: &dyn Versions| {
            use_it(&FieldManager {
                api_version: &api_version,
                kind: &resource.gvk.kind,
                subresource: self.part.unwrap_or_default(),
                versions,
                reset: tracking.reset(self.part),
                empty: &tracking.empty,
            })
        };
        match self.asked {
            Some(asked) => with(asked),
            None => resource.with_versions(with),
        }
    }

    fn attributes<'b>(
        &'b self,
        operation: Operation,
        name: &'b str,
        old: Option<&'b Value>,
    ) -> Attributes<'b> {
        Attributes {
            user: self.user,
            resource: self.resource,
            part: self.part,
            namespace: self.namespace,
            name,
            operation,
            dry_run: self.options.dry_run,
            old,
            warnings: self.warnings,
            options: Options::Write(self.options),
            deadline: self.deadline,
        }
    }

    fn context(&self) -> Context<'_> {
        Context { user: self.user, now: self.now, warnings: self.warnings }
    }

    /// Events are many and worth little: they go after a while, and need not be on disk before
    /// the answer.
    fn keeping(&self) -> (Option<Duration>, Durability) {
        match self.resource.hub.kind.as_str() {
            "Event" if self.resource.hub.group.is_empty() => (Some(EVENT_TTL), Durability::Written),
            _ => (None, Durability::Synced),
        }
    }

    pub(crate) fn not_found(&self) -> Refusal {
        Box::new(Status::not_found(&self.resource.group_resource(), self.name))
    }

    /// Why a name cannot be used: it is taken, maybe not for long.
    fn taken(&self, object: &Value, found: &Stored) -> Refusal {
        let resource = self.resource.group_resource();
        let name = meta::text(object, "name");
        let mut status = match meta::text(object, "generateName") {
            "" => Status::already_exists(&resource, name),
            _ => Status::generate_name_conflict(&resource, name, 1),
        };
        if index::object(found).is_some_and(|found| meta::is_deleting(&found)) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        Box::new(status)
    }
}

fn is_taken(refusal: &Refusal) -> bool {
    refusal.reason == Reason::AlreadyExists
}
