//! What can be done at each path, apart from how a version of OpenAPI writes it down.

mod parameter;

use std::collections::BTreeMap;

use kubewright_apimachinery::builtin::{self, Resource, Subresource, Version};

pub(super) use parameter::{Parameter, Place};

use super::model;

/// The operations of each path.
pub(super) type Paths = BTreeMap<String, Vec<Operation>>;

/// One method at a path.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) id: String,
    pub(super) description: String,
    pub(super) tag: String,
    pub(super) action: Option<&'static str>,
    /// Group, version and kind of what travels.
    pub(super) kind: Option<(String, String, String)>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// By their codes, apart from 401, which is everywhere.
    pub(super) answers: Vec<u16>,
    pub(super) gives: Content,
    /// Media types of answers.
    pub(super) produces: &'static [&'static str],
}

/// In the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Method {
    Get,
    Put,
    Post,
    Delete,
    Options,
    Head,
    Patch,
}

impl Method {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Put => "put",
            Method::Post => "post",
            Method::Delete => "delete",
            Method::Options => "options",
            Method::Head => "head",
            Method::Patch => "patch",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) model: String,
    pub(super) required: bool,
    pub(super) types: &'static [&'static str],
}

/// What an answer holds.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Model(String),
    Text,
}

const FORMS: &[&str] =
    &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];

const STREAMS: &[&str] = &[
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];

const LOG_FORMS: &[&str] =
    &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "text/plain"];

const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Custom resources have neither protobuf nor strategic merge.
const CUSTOM_FORMS: &[&str] = &["application/json", "application/yaml"];

const CUSTOM_PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

const ANY: &[&str] = &["*/*"];

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
pub(super) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// The operations of a built-in version.
pub(super) fn of_version(version: &'static Version) -> Paths {
    let base = base(version.group, version.version);
    let mut paths = Paths::new();
    let title = title(version.group, version.version);
    let list = Operation {
        action: None,
        kind: None,
        parameters: Vec::new(),
        ..document(
            format!("get{title}APIResources"),
            "get available resources",
            tag(version.group, Some(version.version)),
            "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
        )
    };
    paths.insert(format!("{base}/"), vec![list]);
    for resource in &version.resources {
        Maker::builtin(resource).write(resource, &base, &mut paths);
    }
    for operations in paths.values_mut() {
        operations.sort_by_key(|operation| operation.method);
    }
    paths
}

/// What is known of a custom resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Custom<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) plural: &'a str,
    pub(super) kind: &'a str,
    pub(super) namespaced: bool,
    pub(super) model: &'a str,
    pub(super) list_model: &'a str,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
}

/// The operations of a custom resource.
pub(super) fn of_custom(custom: Custom<'_>, paths: &mut Paths) {
    let base = base(custom.group, custom.version);
    let maker = Maker {
        group: custom.group,
        version: custom.version,
        kind: custom.kind,
        plural: custom.plural,
        namespaced: custom.namespaced,
        model: custom.model.to_owned(),
        list_model: custom.list_model.to_owned(),
        custom: true,
        watches: false,
        returns_deleted: false,
    };
    const VERBS: [&str; 7] =
        ["get", "list", "create", "update", "patch", "delete", "deletecollection"];
    maker.collection(&VERBS, &base, paths);
    maker.item(&VERBS, &base, paths);
    let part = ["get", "update", "patch"];
    let own = (custom.group, custom.version, custom.kind);
    if custom.has_status {
        maker.part("status", own, custom.model, &part, &base, paths);
    }
    if custom.has_scale {
        maker.part("scale", own, SCALE, &part, &base, paths);
    }
    for operations in paths.values_mut() {
        operations.sort_by_key(|operation| operation.method);
    }
}

/// The operation of a document that only describes.
pub(super) fn document(
    id: impl Into<String>,
    description: &str,
    tag: String,
    model: &str,
) -> Operation {
    Operation {
        method: Method::Get,
        id: id.into(),
        description: description.to_owned(),
        tag,
        action: None,
        kind: None,
        parameters: Vec::new(),
        body: None,
        answers: vec![200],
        gives: Content::Model(model.to_owned()),
        produces: FORMS,
    }
}

/// The path of a version.
pub(super) fn base(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

/// `RbacAuthorizationV1`, as the identifiers of operations have it.
pub(super) fn title(group: &str, version: &str) -> String {
    format!("{}{}", group_title(group), capital(version))
}

pub(super) fn group_title(group: &str) -> String {
    group_words(group).map(capital).collect()
}

/// `rbacAuthorization_v1`
pub(super) fn tag(group: &str, version: Option<&str>) -> String {
    let mut words = group_words(group);
    let first = words.next().unwrap_or_default().to_owned();
    let group = words.fold(first, |tag, word| tag + &capital(word));
    match version {
        Some(version) => format!("{group}_{version}"),
        None => group,
    }
}

fn group_words(group: &str) -> impl Iterator<Item = &str> {
    let name = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    name.split(['.', '-'])
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `a Pod`, `an Event`
fn with_article(kind: &str) -> String {
    // `Endpoints` is taken for a plural, `Ingress` is not.
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Makes the operations of one resource.
struct Maker<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    plural: &'a str,
    namespaced: bool,
    model: String,
    list_model: String,
    custom: bool,
    watches: bool,
    returns_deleted: bool,
}

impl<'a> Maker<'a> {
    fn builtin(resource: &'static Resource) -> Maker<'static> {
        let Resource { group, version, kind, .. } = *resource;
        let model = |kind: &str| model::of_kind(group, version, kind).unwrap_or_default();
        Maker {
            group,
            version,
            kind,
            plural: resource.name,
            namespaced: resource.namespaced,
            model: model(kind),
            list_model: model(&format!("{kind}List")),
            custom: false,
            watches: resource.verbs.contains(&"watch"),
            returns_deleted: returns_deleted(resource),
        }
    }

    fn write(&self, resource: &'static Resource, base: &str, paths: &mut Paths) {
        self.collection(&resource.verbs, base, paths);
        self.item(&resource.verbs, base, paths);
        if self.watches {
            self.watch_paths(base, paths);
        }
        for subresource in &resource.subresources {
            self.subresource(subresource, base, paths);
        }
    }

    fn subresource(&self, part: &'static Subresource, base: &str, paths: &mut Paths) {
        let kind = (part.group, part.version, part.kind);
        let model = model::of_kind(part.group, part.version, part.kind).unwrap_or_default();
        if part.kind.ends_with("Options") {
            self.connect(part, base, paths);
        } else if part.name == "log" {
            let path = format!("{}/log", self.item_path(base));
            let mut read = self.read_part("log", kind, &model);
            read.parameters.extend(Parameter::of_options(LOG_OPTIONS));
            read.parameters.sort();
            read.gives = Content::Text;
            read.produces = LOG_FORMS;
            paths.insert(path, vec![read]);
        } else {
            self.part(part.name, kind, &model, &part.verbs, base, paths);
        }
    }

    fn collection(&self, verbs: &[&str], base: &str, paths: &mut Paths) {
        let mut operations = Vec::new();
        if verbs.contains(&"list") {
            operations.push(self.list(self.id("list", ""), self.scoped()));
        }
        if verbs.contains(&"create") {
            operations.push(Operation {
                method: Method::Post,
                action: Some("post"),
                description: format!("create {}", with_article(self.kind)),
                parameters: self.with(self.scoped(), parameter::WRITE),
                body: Some(self.body(&self.model)),
                answers: vec![200, 201, 202],
                ..self.operation(self.id("create", ""), &self.model)
            });
        }
        if verbs.contains(&"deletecollection") {
            let (parameters, body) = match self.custom {
                true => (parameter::LIST, None),
                false => (parameter::DELETE_COLLECTION, Some(self.delete_options())),
            };
            operations.push(Operation {
                method: Method::Delete,
                action: Some("deletecollection"),
                description: format!("delete collection of {}", self.kind),
                parameters: self.with(self.scoped(), parameters),
                body,
                ..self.operation(self.id("delete", "Collection"), STATUS)
            });
        }
        if !operations.is_empty() {
            paths.insert(self.collection_path(base), operations);
        }
        if self.namespaced && verbs.contains(&"list") {
            let title = title(self.group, self.version);
            let id = format!("list{title}{}ForAllNamespaces", self.kind);
            let parameters = vec![Parameter::pretty()];
            paths.insert(format!("{base}/{}", self.plural), vec![self.list(id, parameters)]);
        }
    }

    fn item(&self, verbs: &[&str], base: &str, paths: &mut Paths) {
        let named = || self.named(self.kind);
        let mut operations = Vec::new();
        if verbs.contains(&"get") {
            let more: &[parameter::Known] = if self.custom { parameter::READ } else { &[] };
            operations.push(Operation {
                action: Some("get"),
                description: format!("read the specified {}", self.kind),
                parameters: self.with(named(), more),
                ..self.operation(self.id("read", ""), &self.model)
            });
        }
        if verbs.contains(&"update") {
            operations.push(Operation {
                method: Method::Put,
                action: Some("put"),
                description: format!("replace the specified {}", self.kind),
                parameters: self.with(named(), parameter::WRITE),
                body: Some(self.body(&self.model)),
                answers: vec![200, 201],
                ..self.operation(self.id("replace", ""), &self.model)
            });
        }
        if verbs.contains(&"delete") {
            let gives = if self.returns_deleted { &self.model } else { STATUS };
            operations.push(Operation {
                method: Method::Delete,
                action: Some("delete"),
                description: format!("delete {}", with_article(self.kind)),
                parameters: self.with(named(), parameter::DELETE),
                body: Some(self.delete_options()),
                answers: vec![200, 202],
                ..self.operation(self.id("delete", ""), gives)
            });
        }
        if verbs.contains(&"patch") {
            operations.push(Operation {
                method: Method::Patch,
                action: Some("patch"),
                description: format!("partially update the specified {}", self.kind),
                parameters: self.with(named(), parameter::PATCH),
                body: Some(self.patch()),
                answers: self.patch_answers(),
                ..self.operation(self.id("patch", ""), &self.model)
            });
        }
        if !operations.is_empty() {
            paths.insert(self.item_path(base), operations);
        }
    }

    /// A part that is read and written like an object.
    fn part(
        &self,
        name: &str,
        kind: (&str, &str, &str),
        model: &str,
        verbs: &[&str],
        base: &str,
        paths: &mut Paths,
    ) {
        let suffix = format!("{}{}", self.kind, capital(name));
        let operation = |verb: &str, known: &[parameter::Known]| Operation {
            kind: Some((kind.0.to_owned(), kind.1.to_owned(), kind.2.to_owned())),
            parameters: self.with(self.named(kind.2), known),
            ..self.operation(self.id_of(verb, "", &suffix), model)
        };
        let mut operations = Vec::new();
        if verbs.contains(&"get") {
            operations.push(self.read_part(name, kind, model));
        }
        if verbs.contains(&"update") {
            operations.push(Operation {
                method: Method::Put,
                action: Some("put"),
                description: format!("replace {name} of the specified {}", self.kind),
                body: Some(self.body(model)),
                answers: vec![200, 201],
                ..operation("replace", parameter::WRITE)
            });
        }
        if verbs.contains(&"create") {
            operations.push(Operation {
                method: Method::Post,
                action: Some("post"),
                description: format!("create {name} of {}", with_article(self.kind)),
                body: Some(self.body(model)),
                answers: vec![200, 201, 202],
                ..operation("create", parameter::WRITE)
            });
        }
        if verbs.contains(&"patch") {
            operations.push(Operation {
                method: Method::Patch,
                action: Some("patch"),
                description: format!("partially update {name} of the specified {}", self.kind),
                body: Some(self.patch()),
                answers: self.patch_answers(),
                ..operation("patch", parameter::PATCH)
            });
        }
        paths.insert(format!("{}/{name}", self.item_path(base)), operations);
    }

    fn read_part(&self, name: &str, kind: (&str, &str, &str), model: &str) -> Operation {
        let more: &[parameter::Known] = if self.custom { parameter::READ } else { &[] };
        let suffix = format!("{}{}", self.kind, capital(name));
        Operation {
            action: Some("get"),
            description: format!("read {name} of the specified {}", self.kind),
            kind: Some((kind.0.to_owned(), kind.1.to_owned(), kind.2.to_owned())),
            parameters: self.with(self.named(kind.2), more),
            ..self.operation(self.id_of("read", "", &suffix), model)
        }
    }

    /// A part that is a connection: what is sent over it is nobody's business.
    fn connect(&self, part: &'static Subresource, base: &str, paths: &mut Paths) {
        let mut methods: Vec<Method> = Vec::new();
        for verb in &part.verbs {
            methods.extend(match *verb {
                "get" => &[Method::Get][..],
                "create" => &[Method::Post],
                // Whoever proxies everything proxies these too, though nobody has verbs for them.
                "update" => &[Method::Put, Method::Options, Method::Head],
                "delete" => &[Method::Delete],
                _ => &[Method::Patch],
            });
        }
        let operations = |with_path: bool| -> Vec<Operation> {
            methods.iter().map(|&method| self.connection(part, method, with_path)).collect()
        };
        let path = format!("{}/{}", self.item_path(base), part.name);
        if part.name == "proxy" {
            paths.insert(format!("{path}/{{path}}"), operations(true));
        }
        paths.insert(path, operations(false));
    }

    fn connection(&self, part: &Subresource, method: Method, with_path: bool) -> Operation {
        let verb = method.as_str();
        let suffix = format!("{}{}", self.kind, capital(part.name));
        let id = self.id_of("connect", &capital(verb), &suffix);
        let mut parameters = self.named(part.kind);
        parameters.retain(|parameter| parameter.name != "pretty");
        parameters.extend(Parameter::of_options(part.kind));
        if with_path {
            parameters.push(Parameter::path());
        }
        parameters.sort();
        let upper = verb.to_uppercase();
        Operation {
            method,
            action: Some("connect"),
            description: format!("connect {upper} requests to {} of {}", part.name, self.kind),
            kind: Some((part.group.to_owned(), part.version.to_owned(), part.kind.to_owned())),
            parameters,
            gives: Content::Text,
            produces: ANY,
            ..self.operation(if with_path { id + "WithPath" } else { id }, "")
        }
    }

    /// Watching by path, older than watching by parameter.
    fn watch_paths(&self, base: &str, paths: &mut Paths) {
        const INSTEAD: &str = "deprecated: use the 'watch' parameter with a list operation instead";
        let watch = |id: String, action, description: String, own: Vec<Parameter>| Operation {
            action: Some(action),
            description,
            parameters: self.with(own, parameter::LIST),
            produces: STREAMS,
            ..self.operation(id, WATCH_EVENT)
        };
        let many = format!("watch individual changes to a list of {}. {INSTEAD}.", self.kind);
        let list = format!("{}List", self.kind);
        let base = format!("{base}/watch");
        if self.namespaced {
            let title = title(self.group, self.version);
            let id = format!("watch{title}{list}ForAllNamespaces");
            let everywhere = watch(id, "watchlist", many.clone(), vec![Parameter::pretty()]);
            paths.insert(format!("{base}/{}", self.plural), vec![everywhere]);
        }
        let collection = watch(self.id_of("watch", "", &list), "watchlist", many, self.scoped());
        paths.insert(self.collection_path(&base), vec![collection]);
        let one = format!(
            "watch changes to an object of kind {}. {INSTEAD}, filtered to a single item with \
             the 'fieldSelector' parameter.",
            self.kind
        );
        let item = watch(self.id("watch", ""), "watch", one, self.named(self.kind));
        paths.insert(self.item_path(&base), vec![item]);
    }

    fn list(&self, id: String, own: Vec<Parameter>) -> Operation {
        let what = if self.watches { "list or watch" } else { "list" };
        Operation {
            action: Some("list"),
            description: format!("{what} objects of kind {}", self.kind),
            parameters: self.with(own, parameter::LIST),
            produces: if self.custom { CUSTOM_FORMS } else { STREAMS },
            ..self.operation(id, &self.list_model)
        }
    }

    /// A GET, to be changed where it differs.
    fn operation(&self, id: String, gives: &str) -> Operation {
        Operation {
            method: Method::Get,
            id,
            description: String::new(),
            tag: tag(self.group, Some(self.version)),
            action: None,
            kind: Some((self.group.to_owned(), self.version.to_owned(), self.kind.to_owned())),
            parameters: Vec::new(),
            body: None,
            answers: vec![200],
            gives: Content::Model(gives.to_owned()),
            produces: if self.custom { CUSTOM_FORMS } else { FORMS },
        }
    }

    fn body(&self, model: &str) -> Body {
        let types = if self.custom { CUSTOM_FORMS } else { ANY };
        Body { model: model.to_owned(), required: true, types }
    }

    fn delete_options(&self) -> Body {
        Body { required: false, ..self.body(DELETE_OPTIONS) }
    }

    fn patch(&self) -> Body {
        let types = if self.custom { CUSTOM_PATCHES } else { PATCHES };
        Body { model: PATCH.to_owned(), required: true, types }
    }

    fn patch_answers(&self) -> Vec<u16> {
        if self.custom { vec![200] } else { vec![200, 201] }
    }

    fn id(&self, verb: &str, infix: &str) -> String {
        self.id_of(verb, infix, self.kind)
    }

    fn id_of(&self, verb: &str, infix: &str, what: &str) -> String {
        let scope = if self.namespaced { "Namespaced" } else { "" };
        format!("{verb}{}{infix}{scope}{what}", title(self.group, self.version))
    }

    fn collection_path(&self, base: &str) -> String {
        let scope = if self.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{base}{scope}/{}", self.plural)
    }

    fn item_path(&self, base: &str) -> String {
        format!("{}/{{name}}", self.collection_path(base))
    }

    fn scoped(&self) -> Vec<Parameter> {
        let mut parameters = vec![Parameter::pretty()];
        if self.namespaced {
            parameters.push(Parameter::namespace());
        }
        parameters
    }

    fn named(&self, kind: &str) -> Vec<Parameter> {
        let mut parameters = self.scoped();
        parameters.push(Parameter::name(kind));
        parameters
    }

    fn with(&self, mut own: Vec<Parameter>, known: &[parameter::Known]) -> Vec<Parameter> {
        own.extend(known.iter().map(Parameter::known));
        own.sort();
        own
    }
}

const LOG_OPTIONS: &str = "PodLogOptions";

/// Whether a delete is answered with what was deleted, not with a Status.
fn returns_deleted(resource: &builtin::Resource) -> bool {
    match resource.group {
        "" => matches!(
            resource.name,
            "persistentvolumeclaims"
                | "persistentvolumes"
                | "pods"
                | "podtemplates"
                | "resourcequotas"
                | "serviceaccounts"
                | "services"
        ),
        "resource.k8s.io" => true,
        "storage.k8s.io" => resource.name != "csistoragecapacities",
        _ => false,
    }
}

/// Takes the parameters that all operations have out of each.
pub(super) fn share(operations: &mut [Operation]) -> Vec<Parameter> {
    let Some((first, others)) = operations.split_first() else { return Vec::new() };
    let everywhere = |parameter: &&Parameter| {
        others.iter().all(|operation| operation.parameters.contains(parameter))
    };
    let shared: Vec<Parameter> = first.parameters.iter().filter(everywhere).cloned().collect();
    for operation in operations {
        operation.parameters.retain(|parameter| !shared.contains(parameter));
    }
    shared
}

/// What an HTTP status says.
pub(super) fn reason(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        401 => "Unauthorized",
        _ => "OK",
    }
}
