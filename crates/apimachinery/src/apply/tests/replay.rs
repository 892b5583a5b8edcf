//! Replays the recorded cases, step by step, as a server that knows nothing but apply.
//!
//! Each write is decided by our code on the object as upstream left it; what comes out must be
//! what upstream answered, its managed fields and their times included. What other parts of a
//! server do is taken from the answer: defaults, and what strategies put back.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::apply::value::equal;
use crate::apply::{
    ApplyError, BuiltinVersions, FieldManager, PathElement, ReplicasPaths, ResetFields,
    ResetFilter, SameInAllVersions, Schema, Set, Versions, keep_times, manager_from_user_agent,
    scale_from_parent, scale_to_parent,
};
use crate::builtin;
use crate::fixtures::{self, Case, Step};
use crate::gvk::GroupVersion;
use crate::patch;
use crate::status::Status;

/// What the recorder says of itself.
const USER_AGENT: &str = "kubewright-conformance/1";

#[test]
fn every_write_comes_out_as_upstream_answered() {
    let cases = fixtures::load("apply");
    let mut wrong = Vec::new();
    for case in &cases {
        let mut server = Server::default();
        for (index, step) in case.steps.iter().enumerate() {
            if let Err(difference) = server.play(step, index) {
                wrong.push(format!("{}, step {}: {difference}", case.name, index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} steps differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(n_steps(&cases) > 250, "the recordings are there");
}

fn n_steps(cases: &[Case]) -> usize {
    cases.iter().map(|case| case.steps.len()).sum()
}

/// What a case has written so far.
#[derive(Default)]
struct Server {
    /// By the path of the resource.
    objects: BTreeMap<String, Value>,
    /// By group and plural.
    custom: BTreeMap<(String, String), Custom>,
}

/// A kind that a CRD has defined.
struct Custom {
    kind: String,
    versions: SameInAllVersions,
    with_status: Vec<String>,
    replicas: ReplicasPaths,
}

/// Where a request goes.
struct Target {
    group: String,
    version: String,
    plural: String,
    subresource: String,
    /// The path of the resource itself.
    resource: String,
}

/// A kind as the request sees it.
struct Served<'a> {
    api_version: String,
    kind: String,
    versions: &'a dyn Versions,
    reset: ResetFields,
    empty: Value,
    custom: bool,
}

impl Server {
    fn play(&mut self, step: &Step, index: usize) -> Result<(), String> {
        let answer = step.answer.body.as_ref().ok_or("no answer")?;
        let target = Target::of(step);
        if target.plural == "customresourcedefinitions" {
            self.define(answer);
            return Ok(());
        }
        let now = "2000-01-01T00:00:00Z".parse::<Timestamp>().unwrap()
            + SignedDuration::from_secs(index as i64);
        if step.request.method == "GET" {
            let stored = self.objects.get(&target.resource).ok_or("nothing stored")?;
            return same("the managed fields", managed_fields(stored), managed_fields(answer));
        }
        // Found invalid by others, after apply has had its say.
        if step.answer.status == 422 {
            return Ok(());
        }
        if target.subresource == "scale" {
            return self.scale(step, &target, now);
        }
        let outcome = self.write(step, &target, now);
        if step.answer.status < 300 {
            self.objects.insert(target.resource, answer.clone());
        }
        match outcome? {
            Ok(()) if step.answer.status < 300 => Ok(()),
            Ok(()) => Err(format!("succeeded, but upstream said {answer}")),
            Err(error) => same("the status", &status(error), answer),
        }
    }

    /// Runs the write and compares what came out, unless it failed.
    fn write(
        &self,
        step: &Step,
        target: &Target,
        now: Timestamp,
    ) -> Result<Result<(), ApplyError>, String> {
        let answer = step.answer.body.as_ref().ok_or("no answer")?;
        let builtin;
        let served = match self.custom.get(&(target.group.clone(), target.plural.clone())) {
            Some(custom) => custom.served(target),
            None => {
                builtin = BuiltinVersions::new(builtin_kind(target).kind);
                builtin_served(target, &builtin)
            }
        };
        let live = self.objects.get(&target.resource);
        let live = live.map(|live| served.versions.convert(live, &served.api_version));
        let live = live.transpose().map_err(|error| error.to_string())?;
        let live = live.as_ref();
        let manager = match step.request.query.get("fieldManager") {
            Some(manager) => manager.clone(),
            None => manager_from_user_agent(USER_AGENT),
        };
        let field_manager = FieldManager {
            api_version: &served.api_version,
            kind: &served.kind,
            subresource: &target.subresource,
            versions: served.versions,
            reset: &served.reset,
            empty: &served.empty,
        };

        let is_apply = step.request.content_type == "application/apply-patch+yaml";
        let mut ours = if is_apply {
            let config = step.request.body.as_ref().ok_or("no body")?;
            let force = step.request.query.get("force").is_some_and(|force| force == "true");
            match field_manager.apply(live, config, &manager, force, now) {
                Ok(object) => object,
                Err(error) => return Ok(Err(error)),
            }
        } else {
            let new = new_object(step, live, &served)?;
            field_manager.update(live, new, &manager, now)
        };
        if step.answer.status >= 300 {
            return Ok(Ok(()));
        }
        if let Some(live) = live {
            take_server_fields(&mut ours, answer);
            keep_times(live, &mut ours);
        }
        same("the managed fields", managed_fields(&ours), managed_fields(answer))?;
        let (ours, answer) = comparable(step, target, &served, live, ours, answer.clone());
        same("the object", &ours, &answer)?;
        Ok(Ok(()))
    }

    /// A write to `/scale` answers with the scale; a later GET shows what it did to its parent.
    fn scale(&mut self, step: &Step, target: &Target, now: Timestamp) -> Result<(), String> {
        let answer = step.answer.body.as_ref().ok_or("no answer")?;
        let paths = match self.custom.get(&(target.group.clone(), target.plural.clone())) {
            Some(custom) => custom.replicas.clone(),
            None => {
                let path = ["spec", "replicas"].map(PathElement::field).to_vec();
                ReplicasPaths::from([(target.api_version(), Some(path))])
            }
        };
        let parent = self.objects.get_mut(&target.resource).ok_or("no parent")?;
        let entries = managed_fields(parent).as_array().cloned().unwrap_or_default();
        let mut live = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": parent["metadata"]["name"], "namespace": parent["metadata"]["namespace"], "uid": "u"},
            "spec": {"replicas": parent["spec"]["replicas"]},
        });
        live["metadata"]["managedFields"] =
            scale_from_parent(&entries, &paths).map_err(|error| error.to_string())?.into();

        let kind = builtin::kind("autoscaling", "v1", "Scale").ok_or("no Scale")?;
        let (versions, reset, empty) =
            (BuiltinVersions::new("Scale"), ResetFields::none(), empty_object(kind));
        let field_manager = FieldManager {
            api_version: "autoscaling/v1",
            kind: "Scale",
            subresource: "scale",
            versions: &versions,
            reset: &reset,
            empty: &empty,
        };
        let body = step.request.body.clone().ok_or("no body")?;
        let manager = &step.request.query["fieldManager"];
        let scaled = if step.request.content_type == "application/apply-patch+yaml" {
            match field_manager.apply(Some(&live), &body, manager, false, now) {
                Ok(scaled) => scaled,
                Err(error) => return same("the status", &status(error), answer),
            }
        } else {
            let new = patch::merge::apply(live.clone(), body).map_err(|error| error.to_string())?;
            field_manager.update(Some(&live), new, manager, now)
        };
        let scaled_entries = managed_fields(&scaled).as_array().cloned().unwrap_or_default();
        let entries = scale_to_parent(&entries, &scaled_entries, &target.api_version(), &paths);
        parent["spec"]["replicas"] = scaled["spec"]["replicas"].clone();
        parent["metadata"]["managedFields"] = entries.map_err(|error| error.to_string())?.into();
        same("the replicas", &scaled["spec"]["replicas"], &answer["spec"]["replicas"])
    }

    fn define(&mut self, crd: &Value) {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let group = text(&spec["group"]);
        let versions = || spec["versions"].as_array().into_iter().flatten();
        let api_version = |version: &Value| format!("{group}/{}", text(&version["name"]));
        let schemas = versions().map(|version| {
            (api_version(version), Schema::structural(&version["schema"]["openAPIV3Schema"]))
        });
        let replicas = versions().map(|version| {
            let path = version["subresources"]["scale"]["specReplicasPath"].as_str();
            let path = path.map(|path| path.split('.').skip(1).map(PathElement::field).collect());
            (api_version(version), path)
        });
        let custom = Custom {
            kind: text(&spec["names"]["kind"]),
            versions: SameInAllVersions::new(schemas),
            with_status: versions()
                .filter(|version| version["subresources"].get("status").is_some())
                .map(api_version)
                .collect(),
            replicas: replicas.collect(),
        };
        self.custom.insert((group.clone(), text(&spec["names"]["plural"])), custom);
    }
}

impl Custom {
    fn served(&self, target: &Target) -> Served<'_> {
        let api_version = target.api_version();
        let mut reset = ResetFields::none();
        for version in &self.with_status {
            let fields = match target.subresource.as_str() {
                "status" => Set::of_fields([&["metadata"], &["spec"]]),
                // A version's own endpoint knows only its own status.
                _ if *version == api_version => Set::of_fields([&["status"]]),
                _ => continue,
            };
            reset = reset.with(version, ResetFilter::Except(fields));
        }
        Served {
            empty: json!({"apiVersion": api_version, "kind": self.kind}),
            kind: self.kind.clone(),
            versions: &self.versions,
            reset,
            custom: true,
            api_version,
        }
    }
}

impl Target {
    fn of(step: &Step) -> Self {
        let mut parts: Vec<&str> = step.request.path.trim_matches('/').split('/').collect();
        let is_core = parts.remove(0) == "api";
        let group = if is_core { String::new() } else { parts.remove(0).to_owned() };
        let version = parts.remove(0).to_owned();
        if parts.first() == Some(&"namespaces") {
            parts.drain(..2);
        }
        let name = parts.get(1).map(|name| (*name).to_owned()).or_else(|| {
            let body = step.request.body.as_ref()?;
            Some(body["metadata"]["name"].as_str()?.to_owned())
        });
        let name = name.unwrap_or_default();
        Target {
            plural: parts[0].to_owned(),
            subresource: parts.get(2).map(|name| (*name).to_owned()).unwrap_or_default(),
            resource: format!("{group}/{}/{name}", parts[0]),
            group,
            version,
        }
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

fn builtin_kind(target: &Target) -> &'static builtin::Kind {
    let kind = match target.plural.as_str() {
        "configmaps" => "ConfigMap",
        "services" => "Service",
        "deployments" => "Deployment",
        "horizontalpodautoscalers" => "HorizontalPodAutoscaler",
        other => panic!("no recorded case writes {other}"),
    };
    builtin::kind(&target.group, &target.version, kind).expect("a built-in kind")
}

fn builtin_served<'a>(target: &Target, versions: &'a BuiltinVersions) -> Served<'a> {
    let kind = builtin_kind(target);
    let api_version = target.api_version();
    let reset = match (kind.kind, target.subresource.as_str()) {
        ("ConfigMap", _) => ResetFields::none(),
        ("Deployment", "status") => {
            let fields = Set::of_fields([&["spec"][..], &["metadata", "labels"]]);
            ResetFields::none().with(&api_version, ResetFilter::Except(fields))
        }
        _ => ResetFields::none()
            .with(&api_version, ResetFilter::Except(Set::of_fields([&["status"]]))),
    };
    Served {
        kind: kind.kind.to_owned(),
        versions,
        reset,
        empty: empty_object(kind),
        custom: false,
        api_version,
    }
}

/// The object that a write other than apply asks for.
fn new_object(step: &Step, live: Option<&Value>, served: &Served<'_>) -> Result<Value, String> {
    let body = step.request.body.clone().ok_or("no body")?;
    let answer = step.answer.body.as_ref().ok_or("no answer")?;
    let requested_fields = || body["metadata"].get("managedFields").cloned();
    // What defaults made of it, upstream has said.
    if !served.custom || step.request.more.get("defaulted").is_some() {
        let mut new = answer.clone();
        new["metadata"]["managedFields"] = requested_fields()
            .or_else(|| live.map(|live| managed_fields(live).clone()))
            .unwrap_or_default();
        return Ok(new);
    }
    let live = live.cloned().unwrap_or_default();
    let new = match (step.request.method.as_str(), step.request.content_type.as_str()) {
        ("POST" | "PUT", _) => Ok(body),
        ("PATCH", "application/merge-patch+json") => {
            patch::merge::apply(live, body).map_err(|error| error.to_string())
        }
        ("PATCH", "application/json-patch+json") => {
            let patch = patch::json::Patch::decode(body).map_err(|error| error.to_string())?;
            patch.apply(&live).map_err(|error| error.to_string())
        }
        (method, content_type) => Err(format!("no case has a {method} of {content_type}")),
    };
    // The metadata of a custom resource has types too: its empty lists and maps are not written.
    let mut new = new?;
    if let Some(metadata) = new["metadata"].as_object_mut() {
        let is_empty =
            |value: &Value| *value == json!([]) || *value == json!({}) || value.is_null();
        metadata.retain(|_, value| !is_empty(value));
    }
    Ok(new)
}

/// Gives our object what a server sets itself.
fn take_server_fields(ours: &mut Value, answer: &Value) {
    for name in ["uid", "resourceVersion", "creationTimestamp", "generation", "namespace", "name"] {
        match answer["metadata"].get(name) {
            Some(value) => ours["metadata"][name] = value.clone(),
            None => {
                drop(ours["metadata"].as_object_mut().map(|metadata| metadata.shift_remove(name)))
            }
        }
    }
}

/// Both objects without what apply does not decide.
fn comparable(
    step: &Step,
    target: &Target,
    served: &Served<'_>,
    live: Option<&Value>,
    mut ours: Value,
    mut answer: Value,
) -> (Value, Value) {
    if !served.custom {
        ours = builtin::decode(builtin_kind(target), ours).expect("an object of its kind").value;
    }
    take_server_fields(&mut ours, &answer);
    for object in [&mut ours, &mut answer] {
        object["metadata"].as_object_mut().map(|metadata| metadata.shift_remove("managedFields"));
        if served.reset.of(&served.api_version).is_some() && target.subresource.is_empty() {
            object.as_object_mut().map(|object| object.shift_remove("status"));
        }
    }
    for path in step.request.more.get("pruned").and_then(Value::as_array).into_iter().flatten() {
        let (parent, name) = path.as_str().and_then(|path| path.rsplit_once('/')).expect("a path");
        ours.pointer_mut(parent)
            .and_then(Value::as_object_mut)
            .map(|parent| parent.shift_remove(name));
    }
    if !served.custom || step.request.more.get("defaulted").is_some() {
        fill_defaults(&mut ours, &answer, live);
    }
    // A status write decides on nothing else.
    if target.subresource == "status" {
        return (ours["status"].take(), answer["status"].take());
    }
    (ours, answer)
}

/// An object of a built-in kind in which nothing is set.
fn empty_object(kind: &builtin::Kind) -> Value {
    let api_version = GroupVersion::new(kind.group, kind.version).to_string();
    let empty = json!({"apiVersion": api_version, "kind": kind.kind});
    builtin::decode(kind, empty).expect("an empty object").value
}

/// Gives `ours` the defaults that the answer shows: fields that it alone has, unless they are
/// those of the live object, which nobody had a reason to remove.
fn fill_defaults(ours: &mut Value, answer: &Value, live: Option<&Value>) {
    match (ours, answer) {
        (Value::Array(ours), Value::Array(answer)) => {
            for (ours, answer) in ours.iter_mut().zip(answer) {
                let same_item = |item: &&Value| {
                    ["name", "port", "containerPort", "type", "key"]
                        .iter()
                        .all(|key| item.get(key) == answer.get(key))
                };
                fill_defaults(
                    ours,
                    answer,
                    live.and_then(Value::as_array).and_then(|live| live.iter().find(same_item)),
                );
            }
        }
        (Value::Object(ours), Value::Object(answer)) => {
            for (key, value) in answer {
                let live = live.and_then(|live| live.get(key));
                let is_default = live != Some(value);
                match ours.get_mut(key) {
                    // A zero that Go cannot leave out.
                    Some(zero) if *zero == 0 && is_default => *zero = value.clone(),
                    Some(ours) => fill_defaults(ours, value, live),
                    None if is_default => drop(ours.insert(key.clone(), value.clone())),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

fn managed_fields(object: &Value) -> &Value {
    &object["metadata"]["managedFields"]
}

fn status(error: ApplyError) -> Value {
    serde_json::to_value(Status::from(error)).expect("a status is JSON")
}

fn same(what: &str, ours: &Value, upstream: &Value) -> Result<(), String> {
    let (ours, upstream) = (sorted_causes(ours), sorted_causes(upstream));
    if equal(&ours, &upstream) {
        return Ok(());
    }
    Err(format!("{what} is\n  {ours}\nand upstream's\n  {upstream}"))
}

/// Upstream lists the causes of several managers in no order.
fn sorted_causes(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(causes) = value.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(Value::to_string);
    }
    value
}
