//! Which handler answers.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Response, StatusCode};
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json;
use kubewright_apimachinery::name;
use kubewright_apimachinery::status::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::router::{self, Missing};
use super::{Authorized, Inner, Sent};
use crate::admission::{self, Operation, Options};
use crate::authn::token;
use crate::authz::{Attributes, Decision};
use crate::body::Body;
use crate::catalog::Catalog;
use crate::component_status;
use crate::connect::{self, Connect};
use crate::crd;
use crate::delete::{Delete, Deleted, Whose};
use crate::deprecation;
use crate::document::{self, Question};
use crate::draft::{self, Expected, Media, Shape, identity};
use crate::edge;
use crate::encode::{self, Answer};
use crate::health;
use crate::index::Stored;
use crate::list_options::{GetOptions, ListOptions};
use crate::meta;
use crate::metrics::{self, Route};
use crate::negotiate::{Accept, Endpoint, Format};
use crate::observe::Observed;
use crate::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::pod_actions;
use crate::read::Reader;
use crate::refusal::{self, Refusal};
use crate::resource::Resource;
use crate::review;
use crate::scale;
use crate::services::Services;
use crate::target::{ResourceTarget, Target, Verb};
use crate::version;
use crate::write::{Patch, PatchKind, Replace, Revise, Write, Written};

/// What is served besides resources, discovery and health.
const PATHS: [&str; 8] = [
    "/.well-known/openid-configuration",
    metrics::PATH,
    metrics::SLIS_PATH,
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/version",
];

/// What is served besides resources and discovery.
pub(super) fn paths() -> Vec<String> {
    let mut paths: Vec<String> = PATHS.map(str::to_owned).into_iter().collect();
    paths.extend(health::paths());
    paths.sort();
    paths
}

/// How many objects of a collection are being deleted at a time: enough to share syncs.
const DELETES_AT_ONCE: usize = 64;

type Reading<'a> = Pin<Box<dyn Future<Output = Result<Bytes, Refusal>> + Send + 'a>>;

/// What a handler is told of its request.
pub(super) struct Call<'a> {
    server: &'a Inner,
    authorized: &'a Authorized,
    target: &'a ResourceTarget,
    resource: &'a Arc<Resource>,
    accept: &'a Accept<'a>,
    observed: &'a Observed,
}

impl Inner {
    /// Answers what is no resource.
    pub(super) async fn document(
        &self,
        authorized: &Authorized,
        observed: &Observed,
    ) -> Result<Response<Body>, Refusal> {
        let question = Question::new(&authorized.parts);
        let method = &authorized.parts.method;
        observed.under_way(method != Method::GET);
        if let Some(route) = Route::document(method, question.path()) {
            observed.about(&route);
        }
        let catalog = self.shelf.catalog();
        let whole = |response: Response<Bytes>| response.map(Body::from);
        if let Some(answer) = version::answer(&self.version, question) {
            return answer.map(whole);
        }
        if question.path() == metrics::PATH {
            let scene = metrics::Scene {
                store: &self.store,
                catalog: &catalog,
                audit: self.audit.as_ref(),
                version: &self.version,
            };
            return Ok(whole(self.metrics.answer(&scene)));
        }
        if question.path() == metrics::SLIS_PATH {
            return Ok(whole(metrics::answer_slis(&self.health)));
        }
        let (path, scene) = (question.path(), self.health_scene());
        if let Some(answer) = self.health.answer(path, &authorized.query, &scene).await {
            return Ok(whole(answer));
        }
        if let Some(document) = self.token_document(question) {
            return document;
        }
        if let Some(answer) = catalog.open_api.answer(question, self.now()) {
            return Ok(whole(answer));
        }
        match catalog.discovery.answer(question) {
            Some(answer) => answer.map(whole),
            None => Ok(whole(document::page_not_found())),
        }
    }

    pub(crate) fn health_scene(&self) -> health::Scene<'_> {
        health::Scene { store: &self.store, shutdown: &self.shutdown }
    }

    /// Where others learn how to verify the tokens of service accounts.
    fn token_document(&self, question: Question<'_>) -> Option<Result<Response<Body>, Refusal>> {
        let issuer = self.issuer.as_ref()?;
        let keys = &self.authenticator.service_accounts.keys;
        let (media_type, document) = match question.path() {
            token::CONFIGURATION_PATH => {
                let own = || format!("https://{}{}", self.address, token::KEYS_PATH);
                let keys_url = issuer.keys_url.clone().unwrap_or_else(own);
                ("application/json", token::configuration(&issuer.url, &keys_url, keys))
            }
            token::KEYS_PATH => (token::KEYS_MEDIA_TYPE, token::keys(keys)),
            _ => return None,
        };
        let respond = || {
            let response = document::respond(media_type, json::to_string(&document));
            let mut response = response.map(Body::from);
            let cache = HeaderValue::from_static(token::CACHE_CONTROL);
            response.headers_mut().insert(CACHE_CONTROL, cache);
            response
        };
        Some(question.routed(&[media_type]).map(|()| respond()))
    }

    /// Answers a request about a resource.
    pub(super) async fn resource(
        &self,
        authorized: &Authorized,
        target: &ResourceTarget,
        body: Sent,
        accept: &Accept<'_>,
        observed: &Observed,
    ) -> Result<Response<Body>, Refusal> {
        if authorized.parts.uri.path().starts_with("//") {
            // May be asked, as the path it resembles may be, and is none.
            return Ok(document::page_not_found().map(Body::from));
        }
        let catalog = self.shelf.catalog();
        let found = catalog.resource(&target.group, &target.version, &target.resource);
        let Some(resource) = found.cloned() else {
            return self.unknown(target);
        };
        let resource = &resource;
        let call = Call { server: self, authorized, target, resource, accept, observed };
        match router::find(resource, target, &authorized.parts.method) {
            Ok(()) => {}
            Err(Missing::Page) => return Ok(document::page_not_found().map(Body::from)),
            Err(Missing::Path) => return Err(Box::new(Status::generic(404, "", ""))),
            // Upstream says of the object what is true of its part.
            Err(Missing::Part) => return Err(call.not_found()),
            Err(Missing::Method) => return Err(call.not_allowed()),
        }
        authorized.warnings.extend(deprecation::warning(resource));
        call.answer(body).await
    }

    fn unknown(&self, target: &ResourceTarget) -> Result<Response<Body>, Refusal> {
        let is_builtin = kubewright_apimachinery::builtin::versions()
            .iter()
            .any(|version| version.group == target.group);
        match is_builtin {
            true => Err(Box::new(Status::generic(404, "", ""))),
            false => Ok(document::page_not_found().map(Body::from)),
        }
    }
}

impl Call<'_> {
    async fn answer(&self, body: Sent) -> Result<Response<Body>, Refusal> {
        let part = self.part();
        let verb = self.target.verb;
        self.check_name()?;
        let Authorized { parts, query, .. } = self.authorized;
        self.observed.about(&Route::resource(self.target, parts, query));
        if deprecation::warning(self.resource).is_some() {
            self.observed.deprecated(&self.resource.gvr, part.unwrap_or_default());
        }
        if verb != Verb::Watch {
            self.observed.under_way(!matches!(verb, Verb::Get | Verb::List));
        }
        if let Some(connect) = part.and_then(Connect::of) {
            return self.connect(connect, body).await;
        }
        // Who only reads brings nothing.
        match (verb, part) {
            (Verb::Get, Some("scale")) => return self.get_scale().await,
            (Verb::Get, _) => return self.get().await,
            (Verb::List, None) => return self.list().await,
            (Verb::Watch, None) => return self.watch().await,
            _ => {}
        }
        let body: Reading<'_> = Box::pin(super::read(body));
        match (verb, part) {
            (Verb::Create, None) => self.create(body).await,
            (Verb::Create, Some("token")) => self.token(body).await,
            (Verb::Create, Some("binding")) => self.bind(body).await,
            (Verb::Create, Some("eviction")) => self.evict(body).await,
            (Verb::Update, part) => self.update(part, body).await,
            (Verb::Patch, part) => self.patch(part, body).await,
            (Verb::Delete, None) => self.delete(body).await,
            (Verb::DeleteCollection, None) => self.delete_collection(body).await,
            _ => Err(self.not_allowed()),
        }
    }

    /// The endpoint below the object.
    fn part(&self) -> Option<&str> {
        Some(self.target.subresource.as_str()).filter(|part| !part.is_empty())
    }

    /// A name is one part of a key, as it is one part of a path.
    fn check_name(&self) -> Result<(), Refusal> {
        let name = self.target.name.as_str();
        let errors = name::path_segment(name);
        match errors.is_empty() {
            true => Ok(()),
            false => {
                let (name, errors) = (json::go_quote(name), errors.join(";"));
                let message = format!("Name parameter invalid: {name}: {errors}");
                Err(Box::new(Status::bad_request(message)))
            }
        }
    }

    async fn create(&self, body: Reading<'_>) -> Result<Response<Body>, Refusal> {
        if self.resource.gvk.kind == "Binding" && self.resource.gvk.group.is_empty() {
            return self.bind(body).await;
        }
        let format = self.format(false)?;
        let media = Media::of(self.headers(), self.resource.takes_protobuf())?;
        let body = body.await?;
        let options = self.write_options(WriteKind::Create)?;
        let warnings = &self.authorized.warnings;
        let draft = self.resource.draft(media, &body, options.validation, warnings)?;
        self.observed.received(draft.object());
        let write = self.write(&options, "", None, &|| Ok(()));
        if self.is_review() {
            let review = write.drafted(draft.into_object())?;
            let review = write.admit_action(review, |_| Ok(())).await?.into_object();
            let reviewed = self.review(&review).await.ok_or_else(|| self.not_allowed())?;
            return Ok(self.answered(Answer::Own(reviewed?), &format, StatusCode::CREATED));
        }
        let written = write.create(draft).await?;
        self.settle_definitions().await;
        self.written(written, &format).await
    }

    /// Reviews are answered, not stored.
    async fn review(&self, object: &Value) -> Option<Result<Value, Refusal>> {
        let context = review::Context {
            authenticator: &self.server.authenticator,
            authorizer: &self.server.authorizer,
            user: &self.authorized.user,
            namespace: self.namespace(),
            now: self.server.now(),
        };
        review::answer(&context, &self.resource.gvk.kind, object).await
    }

    /// A log, a stream or a proxy.
    async fn connect(&self, connect: Connect, body: Sent) -> Result<Response<Body>, Refusal> {
        if connect.is_admitted() && self.authorized.query.all("dryRun").next().is_some() {
            return Err(Box::new(Status::bad_request("dryRun is not supported")));
        }
        let mut options = connect.options(self.target, &self.authorized.parts.uri)?;
        if connect.is_admitted() {
            self.admit_connect(&mut options).await?;
        }
        if connect.needs_create() {
            self.check_may_create()?;
        }
        let (parts, name) = (&self.authorized.parts, self.target.name.as_str());
        let scene = connect::Scene {
            store: &self.server.store,
            kubelets: &self.server.kubelets,
            resource: self.resource,
            namespace: self.namespace(),
            name,
            part: self.target.subresource.as_str(),
            options: &options,
        };
        connect.answer(scene, connect::Asked { parts, body, name }).await
    }

    /// Who runs commands changes things, also where it looks like reading: a browser cannot but
    /// get a WebSocket.
    fn check_may_create(&self) -> Result<(), Refusal> {
        let Authorized { user, target, .. } = self.authorized;
        let attributes = Attributes { verb: "create", ..Attributes::of(target) };
        match self.server.authorizer.decide(user, &attributes) {
            Decision::Allowed(_) => Ok(()),
            Decision::Denied(denial) => {
                let (resource, name) = (self.resource.group_resource(), &self.target.name);
                Err(Box::new(Status::forbidden(&resource, name, denial)))
            }
        }
    }

    /// Lets the plugins see how a client wants to be connected.
    async fn admit_connect(&self, options: &mut Value) -> Result<(), Refusal> {
        let Some(gvk) = self.part().and_then(|part| self.resource.part_kind(part)) else {
            return Ok(());
        };
        identity::label(options, &gvk);
        let below = self.resource.below(gvk);
        let attributes = admission::Attributes {
            user: &self.authorized.user,
            resource: &below,
            part: self.part(),
            namespace: self.namespace(),
            name: &self.target.name,
            operation: Operation::Connect,
            dry_run: false,
            old: None,
            warnings: &self.authorized.warnings,
            options: Options::None,
            deadline: admission::deadline(None),
        };
        self.server.admission.judge_connect(&attributes, options).await
    }

    /// A token of a service account.
    async fn token(&self, body: Reading<'_>) -> Result<Response<Body>, Refusal> {
        let gvk = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
        let mut request = self.action(&gvk, token::default, body).await?;
        let options = self.write_options(WriteKind::Create)?;
        let write = self.write(&options, &self.target.name, self.part(), &|| Ok(()));
        let requests = self.resource.below(gvk);
        let write = Write { resource: &requests, ..write };
        write.settle(&mut request)?;
        let request = write.track(None, request);
        let Some(issuer) = &self.server.issuer else {
            return Err(Box::new(Status::service_unavailable("no key to sign tokens with")));
        };
        let namespace = self.namespace().unwrap_or_default();
        let (store, now) = (&self.server.store, self.server.now());
        // Accounts and pods that another server has just made have tokens too.
        store.latest().await.map_err(|error| refusal::unavailable(&error))?;
        let complete = |request: &mut Value| {
            issuer.complete(store, namespace, &self.target.name, request, now)
        };
        let request = write.admit_completed(request, complete).await?.into_object();
        let warnings = &self.authorized.warnings;
        let answer = issuer.issue(store, namespace, &self.target.name, &request, now, warnings)?;
        let issued = "authentication.kubernetes.io/issued-credential-id";
        self.observed.annotate(issued, || token::credential_id(&answer).unwrap_or_default());
        let format = self.accept.format(Endpoint::of(self.resource, false).without_table())?;
        Ok(self.answered(Answer::Own(answer), &format, StatusCode::CREATED))
    }

    /// The body of a request to do something to an object, which has a kind of its own.
    async fn action(
        &self,
        gvk: &GroupVersionKind,
        default: fn(&mut Value),
        body: Reading<'_>,
    ) -> Result<Value, Refusal> {
        let media = Media::of(self.headers(), true)?;
        let body = body.await?;
        let options = self.write_options(WriteKind::Create)?;
        let kind = builtin::kind(&gvk.group, &gvk.version, &gvk.kind).expect("it is in the table");
        let expected = Expected { gvk, shape: Shape::Builtin(kind) };
        let warnings = &self.authorized.warnings;
        let mut object = draft::decode(expected, media, &body, options.validation, warnings)?;
        default(&mut object);
        self.observed.received(&object);
        Ok(object)
    }

    async fn update(
        &self,
        part: Option<&str>,
        body: Reading<'_>,
    ) -> Result<Response<Body>, Refusal> {
        self.require_name()?;
        let format = self.format(false)?;
        let body = body.await?;
        let options = self.write_options(WriteKind::Update)?;
        let media = Media::of(self.headers(), self.resource.takes_protobuf())?;
        let warnings = &self.authorized.warnings;
        let may_create = || self.may_create();
        let write = self.write(&options, &self.target.name, part, &may_create);
        if part == Some("scale") {
            let scale = scale::resource(self.resource);
            let mut draft = scale.draft(media, &body, options.validation, warnings)?;
            self.observed.received(draft.object());
            write.recognize(draft.object_mut())?;
            let replace = Replace(draft.into_object());
            return self.write_scale(&options, &replace, &scale, &format).await;
        }
        let mut draft = self.resource.draft(media, &body, options.validation, warnings)?;
        self.observed.received(draft.object());
        write.recognize(draft.object_mut())?;
        warnings.extend(crate::meta::dedup_owners(draft.object_mut(), false));
        let written = write.update(&Replace(draft.into_object())).await?;
        self.settle_definitions().await;
        self.written(written, &format).await
    }

    async fn patch(
        &self,
        part: Option<&str>,
        body: Reading<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let content_type = self.header(CONTENT_TYPE.as_str());
        let kind = PatchKind::of(content_type, self.resource)?;
        self.require_name()?;
        let format = self.format(false)?;
        let body = body.await?;
        let options = self.write_options(match kind {
            PatchKind::Apply => WriteKind::Apply,
            _ => WriteKind::Patch,
        })?;
        self.observed.received_patch(&body);
        let patch = Patch::read(kind, &body);
        if part == Some("scale") {
            let scale = scale::resource(self.resource);
            return self.write_scale(&options, &patch, &scale, &format).await;
        }
        let may_create = || self.may_create();
        let write = self.write(&options, &self.target.name, part, &may_create);
        let written = write.update(&patch).await?;
        self.settle_definitions().await;
        self.written(written, &format).await
    }

    /// What is changed has a name; built-in collections cannot be asked to change at all.
    fn require_name(&self) -> Result<(), Refusal> {
        match self.target.name.is_empty() {
            true => Err(Box::new(Status::bad_request("name must be provided"))),
            false => Ok(()),
        }
    }

    /// Changes an object through its scale, and answers with the scale.
    async fn write_scale(
        &self,
        options: &WriteOptions,
        revise: &dyn Revise,
        scale: &Resource,
        format: &Format,
    ) -> Result<Response<Body>, Refusal> {
        let through = scale::Through { revise, scale };
        let write = self.write(options, &self.target.name, None, &|| Ok(()));
        let object = match write.update(&through).await? {
            Written::Created(stored) | Written::Updated(stored) => {
                self.resource.live(&stored).await?
            }
            Written::Object { object, .. } => object,
        };
        let scale = scale::of(self.resource, &self.resource.to_request(object))?;
        Ok(self.answered(Answer::Own(scale), format, StatusCode::OK))
    }

    async fn get_scale(&self) -> Result<Response<Body>, Refusal> {
        let format = self.format(false)?;
        let key = self.resource.key(self.namespace(), &self.target.name);
        let found =
            self.server.store.latest().await.map_err(|error| refusal::unavailable(&error))?;
        let Some(stored) = found.get(key.as_str()) else { return Err(self.not_found()) };
        let shown = self.resource.shown_anew(stored).await?;
        let object = encode::value(self.resource, &shown)?;
        let scale = scale::of(self.resource, &object)?;
        Ok(self.answered(Answer::Own(scale), &format, StatusCode::OK))
    }

    /// Puts a pod on a node.
    async fn bind(&self, body: Reading<'_>) -> Result<Response<Body>, Refusal> {
        let gvk = GroupVersionKind::new("", "v1", "Binding");
        let binding = self.action(&gvk, |_| (), body).await?;
        let name = match self.target.name.as_str() {
            "" => meta::text(&binding, "name").to_owned(),
            name => name.to_owned(),
        };
        if name.is_empty() {
            return Err(Box::new(Status::bad_request("Name parameter required.")));
        }
        let options = self.write_options(WriteKind::Create)?;
        let write = self.write(&options, &name, self.part(), &|| Ok(()));
        pod_actions::bind(&write, binding).await?;
        self.done()
    }

    /// Asks a pod to leave its node, if its budget allows.
    async fn evict(&self, body: Reading<'_>) -> Result<Response<Body>, Refusal> {
        let gvk = GroupVersionKind::new("policy", "v1", "Eviction");
        let eviction = self.action(&gvk, |_| (), body).await?;
        let options = self.write_options(WriteKind::Create)?;
        let write = self.write(&options, &self.target.name, self.part(), &|| Ok(()));
        pod_actions::evict(&write, eviction).await?;
        self.done()
    }

    /// What was asked for is done, and there is nothing to show.
    fn done(&self) -> Result<Response<Body>, Refusal> {
        let format = self.accept.format(Endpoint::of(self.resource, false).without_table())?;
        let mut status = Status::success();
        status.code = 201;
        Ok(self.answered(Answer::Status(Box::new(status)), &format, StatusCode::CREATED))
    }

    fn not_found(&self) -> Refusal {
        Box::new(Status::not_found(&self.resource.group_resource(), &self.target.name))
    }

    async fn delete(&self, body: Reading<'_>) -> Result<Response<Body>, Refusal> {
        let format = self.format(false)?;
        let body = body.await?;
        let options = self.delete_options(&body)?;
        let deleted = self.deletion(&options).run(&self.target.name).await?;
        self.release(&deleted, &options).await;
        self.settle_definitions().await;
        let code = |gone: bool| match options.orphan_dependents {
            Some(false) if !gone => StatusCode::ACCEPTED,
            _ => StatusCode::OK,
        };
        Ok(match deleted {
            Deleted::Marked(stored) => {
                let shown = self.shown(stored).await?;
                self.answered(Answer::Stored(&shown), &format, code(false))
            }
            Deleted::Object { object, gone } => {
                self.answered(Answer::Hub(object), &format, code(gone))
            }
            Deleted::Status(status) => {
                self.answered(Answer::Status(status), &format, StatusCode::OK)
            }
        })
    }

    async fn delete_collection(&self, body: Reading<'_>) -> Result<Response<Body>, Refusal> {
        let format = self.format(false)?;
        let wanted = self.list_options()?;
        let body = body.await?;
        let options = self.delete_options(&body)?;
        let reader = self.reader(&format);
        let list = reader.find(&wanted).await?;
        // Collected, because a closure over references held across an await is not `Send` to rustc.
        let deletes: Vec<_> = list.items.iter().map(|rev| self.delete_one(rev, &options)).collect();
        let mut deletes = stream::iter(deletes).buffer_unordered(DELETES_AT_ONCE);
        while let Some(done) = deletes.next().await {
            done?;
        }
        drop(deletes);
        self.settle_definitions().await;
        list.respond(&self.server.encoder, &format)
    }

    async fn delete_one(&self, rev: &Stored, options: &DeleteOptions) -> Result<(), Refusal> {
        let rest = rev.key.as_str().strip_prefix(&self.resource.prefix).unwrap_or_default();
        let (namespace, name) = match rest.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, rest),
        };
        let whose = Whose::Collection;
        let deletion = Delete { namespace, whose, ..self.deletion(options) };
        match deletion.run(name).await {
            Ok(deleted) => {
                self.release(&deleted, options).await;
                Ok(())
            }
            // It went by itself.
            Err(refusal) if refusal.code == 404 => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// A Service that is gone needs its addresses and ports no more, and nobody is to be sent to
    /// its endpoints if another one takes its name.
    async fn release(&self, deleted: &Deleted, options: &DeleteOptions) {
        let Deleted::Object { object, gone: true } = deleted else { return };
        if !Services::concern(self.resource) || options.is_dry_run() {
            return;
        }
        let options = DeleteOptions::default();
        let namespace = Some(meta::text(object, "namespace"));
        let resource = Catalog::endpoints();
        let whose = Whose::Server;
        let endpoints = Delete { resource, namespace, whose, ..self.deletion(&options) };
        match endpoints.run(meta::text(object, "name")).await {
            Err(refusal) if refusal.code != 404 => {
                tracing::warn!(error = refusal.message, "endpoints outlive their service");
            }
            _ => {}
        }
        self.server.services.release(object).await;
    }

    async fn get(&self) -> Result<Response<Body>, Refusal> {
        let format = self.format(false)?;
        let options = GetOptions::parse(&self.authorized.query)?;
        if component_status::concerns(self.resource) {
            let name = self.target.name.as_str();
            let component = component_status::get(self.server, name).await?;
            return Ok(self.answered(Answer::Own(component), &format, StatusCode::OK));
        }
        self.reader(&format).get(&self.target.name, &options).await
    }

    async fn list(&self) -> Result<Response<Body>, Refusal> {
        let format = self.format(true)?;
        let options = self.list_options()?;
        if component_status::concerns(self.resource) {
            let components = component_status::list(self.server, &options.selection).await;
            return Ok(self.answered(Answer::Own(components), &format, StatusCode::OK));
        }
        let list = self.reader(&format).find(&options).await?;
        self.server.metrics.listed(&self.resource.gvr, list.fetched, list.items.len());
        list.respond(&self.server.encoder, &format)
    }

    async fn watch(&self) -> Result<Response<Body>, Refusal> {
        let format = self.format(true)?;
        let options = self.list_options()?;
        if component_status::concerns(self.resource) {
            let resource = self.resource.group_resource();
            return Err(Box::new(Status::method_not_supported(&resource, "watch")));
        }
        let sizes = self.server.metrics.watch(&self.resource.gvr);
        self.reader(&format).watch(&options, self.server.shutdown.clone(), sizes).await
    }

    fn reader<'a>(&'a self, format: &'a Format) -> Reader<'a> {
        Reader {
            store: &self.server.store,
            encoder: &self.server.encoder,
            resource: self.resource,
            namespace: self.namespace(),
            format,
        }
    }

    fn list_options(&self) -> Result<ListOptions, Refusal> {
        ListOptions::parse(&self.authorized.query, self.resource, &self.target.name)
    }

    fn write<'a>(
        &'a self,
        options: &'a WriteOptions,
        name: &'a str,
        part: Option<&'a str>,
        may_create: &'a (dyn Fn() -> Result<(), Refusal> + Sync),
    ) -> Write<'a> {
        Write {
            store: &self.server.store,
            admission: &self.server.admission,
            services: &self.server.services,
            user: &self.authorized.user,
            resource: self.resource,
            namespace: self.namespace(),
            name,
            part,
            options,
            now: self.server.now(),
            warnings: &self.authorized.warnings,
            deadline: self.deadline(),
            may_create,
            asked: None,
        }
    }

    fn deletion<'a>(&'a self, options: &'a DeleteOptions) -> Delete<'a> {
        Delete {
            store: &self.server.store,
            admission: &self.server.admission,
            user: &self.authorized.user,
            resource: self.resource,
            namespace: self.namespace(),
            options,
            now: self.server.now(),
            warnings: &self.authorized.warnings,
            whose: Whose::Client,
            deadline: self.deadline(),
        }
    }

    /// When the client stops waiting.
    fn deadline(&self) -> Instant {
        let asked = edge::asked_timeout(&self.authorized.parts.uri);
        admission::deadline(asked.ok().flatten())
    }

    fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref().filter(|_| self.resource.namespaced)
    }

    /// Whether the user may create the object that an update would create.
    fn may_create(&self) -> Result<(), Refusal> {
        let target = ResourceTarget { verb: Verb::Create, ..self.target.clone() };
        let target = Target::Resource(target);
        let attributes = Attributes::of(&target);
        self.server.authorizer.require(&self.authorized.user, &attributes).map(|_| ())
    }

    fn write_options(&self, kind: WriteKind) -> Result<WriteOptions, Refusal> {
        WriteOptions::parse(&self.authorized.query, kind, self.header(USER_AGENT.as_str()))
    }

    /// What a client says of how to delete. Who deletes jobs and says nothing of their pods is
    /// reminded of them: they stay, unlike those of others.
    fn delete_options(&self, body: &[u8]) -> Result<DeleteOptions, Refusal> {
        let options = self.stated_delete_options(body)?;
        let is_job = self.resource.gvk.kind == "Job" && self.resource.gvk.group == "batch";
        let says_nothing =
            options.propagation_policy.is_none() && options.orphan_dependents.is_none();
        if is_job && says_nothing {
            self.authorized.warnings.extend([
                "child pods are preserved by default when jobs are deleted; set \
                 propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                 suppress this warning"
                    .to_owned(),
            ]);
        }
        Ok(options)
    }

    fn stated_delete_options(&self, body: &[u8]) -> Result<DeleteOptions, Refusal> {
        if body.is_empty() {
            return DeleteOptions::from_query(&self.authorized.query);
        }
        let mut tree = DeleteOptions::tree(Media::of(self.headers(), true)?, body)?;
        if let Some(tree) = tree.as_object_mut() {
            // So upstream's audit log has them, whatever they say they are.
            tree.shift_insert(0, "kind".to_owned(), "DeleteOptions".into());
            tree.shift_insert(1, "apiVersion".to_owned(), "meta.k8s.io/__internal".into());
        }
        self.observed.received(&tree);
        DeleteOptions::of(&tree)
    }

    fn format(&self, collection: bool) -> Result<Format, Refusal> {
        let endpoint = Endpoint::of(self.resource, collection);
        self.accept.format(match self.is_review() {
            true => endpoint.without_table(),
            false => endpoint,
        })
    }

    fn is_review(&self) -> bool {
        let group = self.resource.gvk.group.as_str();
        matches!(group, "authentication.k8s.io" | "authorization.k8s.io")
    }

    /// What is defined or registered is served before the client knows that it was.
    async fn settle_definitions(&self) {
        if Arc::ptr_eq(self.resource, Catalog::api_services()) {
            self.server.shelf.refresh();
        }
        if !Arc::ptr_eq(self.resource, Catalog::definitions()) {
            return;
        }
        if let Err(refusal) = crd::life::settle(self.server).await {
            tracing::warn!(error = refusal.message, "definitions are not settled");
        }
    }

    /// What is stored, as the client sees it.
    async fn shown(&self, stored: Stored) -> Result<Stored, Refusal> {
        let mut shown = self.resource.shown(vec![stored]).await?;
        Ok(shown.remove(0))
    }

    async fn written(&self, written: Written, format: &Format) -> Result<Response<Body>, Refusal> {
        Ok(match written {
            Written::Created(stored) => {
                let shown = self.shown(stored).await?;
                self.answered(Answer::Stored(&shown), format, StatusCode::CREATED)
            }
            Written::Updated(stored) => {
                let shown = self.shown(stored).await?;
                self.answered(Answer::Stored(&shown), format, StatusCode::OK)
            }
            Written::Object { mut object, created } => {
                if self.resource.takes_protobuf() {
                    meta::arrange(&mut object);
                }
                let code = if created { StatusCode::CREATED } else { StatusCode::OK };
                self.answered(Answer::Hub(object), format, code)
            }
        })
    }

    fn answered(&self, answer: Answer<'_>, format: &Format, code: StatusCode) -> Response<Body> {
        self.server.encoder.answer(answer, self.resource, format, code)
    }

    fn headers(&self) -> &HeaderMap {
        &self.authorized.parts.headers
    }

    fn header(&self, name: &str) -> &str {
        self.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Upstream's router does not know the method here.
    fn not_allowed(&self) -> Refusal {
        match self.resource.takes_protobuf() {
            true => Box::new(Status::generic(405, self.target.verb.as_str(), "")),
            false => Box::new(Status::method_not_supported(
                &self.resource.group_resource(),
                self.target.verb.as_str(),
            )),
        }
    }
}
