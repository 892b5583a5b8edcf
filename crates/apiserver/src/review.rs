//! Reviews: questions about access that are asked by creating an object, and answered in its
//! status. Nothing is stored.
//!
//! Rules about access alone decide. Selectors narrow what is asked for: what nodes may list depends
//! on fields. Nobody heeds labels, so they are only checked.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::GroupKind;
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::{field, label};
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::time::Time;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::authn::Authenticator;
use crate::authz::{Attributes, Authorizer, Decision, Resource, Rule, aggregate};
use crate::user::User;

/// What an answer depends on besides the question.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub authenticator: &'a Authenticator,
    pub authorizer: &'a Authorizer,
    /// Who asks.
    pub user: &'a User,
    /// Of the request's path.
    pub namespace: Option<&'a str>,
    pub now: Timestamp,
}

/// Answers a review in normal form, or `None` if the kind is no review.
pub async fn answer(
    cx: &Context<'_>,
    kind: &str,
    review: &Value,
) -> Option<Result<Value, Box<Status>>> {
    Some(match kind {
        "SubjectAccessReview" => subject_access(cx, review),
        "SelfSubjectAccessReview" => self_subject_access(cx, review),
        "LocalSubjectAccessReview" => local_subject_access(cx, review),
        "SelfSubjectRulesReview" => self_subject_rules(cx, review),
        "TokenReview" => token(cx, review).await,
        "SelfSubjectReview" => Ok(self_subject(cx, review)),
        _ => return None,
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AccessSpec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Option<Vec<String>>,
    uid: String,
    extra: Option<std::collections::BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<SelectorAttributes>,
    label_selector: Option<SelectorAttributes>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NonResourceAttributes {
    path: String,
    verb: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectorAttributes {
    raw_selector: String,
    requirements: Option<Vec<Requirement>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

/// How much of a selector could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    All,
    Part,
    Nothing,
}

fn subject_access(cx: &Context<'_>, review: &Value) -> Result<Value, Box<Status>> {
    let spec: AccessSpec = spec_of(review);
    let mut errors = access_errors(&spec, Whom::Named);
    errors.extend(metadata_errors(review, &[], "must be empty"));
    refuse(&errors)?;
    Ok(answered(review, access_status(cx.authorizer, &spec.user(), &spec)))
}

fn self_subject_access(cx: &Context<'_>, review: &Value) -> Result<Value, Box<Status>> {
    let spec: AccessSpec = spec_of(review);
    let mut errors = access_errors(&spec, Whom::Oneself);
    errors.extend(metadata_errors(review, &[], "must be empty"));
    refuse(&errors)?;
    Ok(answered(review, access_status(cx.authorizer, cx.user, &spec)))
}

fn local_subject_access(cx: &Context<'_>, review: &Value) -> Result<Value, Box<Status>> {
    let spec: AccessSpec = spec_of(review);
    let own = review["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut errors = access_errors(&spec, Whom::Named);
    errors.extend(metadata_errors(review, &["namespace"], "must be empty except for namespace"));
    if let Some(of) = spec.resource_attributes.as_ref().filter(|of| of.namespace != own) {
        let path = Path::new("spec.resourceAttributes.namespace");
        errors.push(Error::invalid(&path, of.namespace.as_str(), "must match metadata.namespace"));
    }
    if let Some(of) = &spec.non_resource_attributes {
        let path = Path::new("spec.nonResourceAttributes");
        errors.push(Error::invalid(&path, of.go(), "disallowed on this kind of request"));
    }
    refuse(&errors)?;
    let namespace = cx.namespace.unwrap_or_default();
    if namespace.is_empty() {
        return Err(Box::new(Status::bad_request("namespace is required on this type: ")));
    }
    if namespace != own {
        let message =
            format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
        return Err(Box::new(Status::bad_request(message)));
    }
    Ok(answered(review, access_status(cx.authorizer, &spec.user(), &spec)))
}

fn self_subject_rules(cx: &Context<'_>, review: &Value) -> Result<Value, Box<Status>> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Box::new(Status::bad_request("no namespace on request")));
    }
    let found = cx.authorizer.rules_for(cx.user, namespace);
    let of_resources = found.rules.iter().filter(|rule| !rule.resources.is_empty());
    let of_paths = found.rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
    let mut status = json!({
        "resourceRules": of_resources
            .map(|rule| json!(Rule { non_resource_urls: Vec::new(), ..rule.clone() }))
            .collect::<Vec<Value>>(),
        "nonResourceRules": of_paths
            .map(|rule| json!({
                "verbs": rule.verbs,
                "nonResourceURLs": rule.non_resource_urls,
            }))
            .collect::<Vec<Value>>(),
        "incomplete": found.is_incomplete,
    });
    if !found.problems.is_empty() {
        status["evaluationError"] = aggregate(found.problems.iter()).into();
    }
    // Upstream answers with a new object: nothing of the question is in it.
    Ok(json!({
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

async fn token(cx: &Context<'_>, review: &Value) -> Result<Value, Box<Status>> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(Box::new(Status::bad_request(message)));
    }
    let wanted: Option<Vec<String>> =
        Option::deserialize(&review["spec"]["audiences"]).ok().flatten();
    let wanted = wanted
        .filter(|audiences| !audiences.is_empty())
        .unwrap_or_else(|| cx.authenticator.service_accounts.audiences.clone());
    let mut found = cx.authenticator.token(token, &wanted);
    if found.is_err() && cx.authenticator.catch_up(token).await {
        found = cx.authenticator.token(token, &wanted);
    }
    let status = match found {
        Ok(found) => {
            let mut status = json!({ "authenticated": true, "user": user_info(&found.user) });
            if !found.audiences.is_empty() {
                status["audiences"] = found.audiences.into();
            }
            status
        }
        Err(error) => json!({ "user": {}, "error": error }),
    };
    Ok(answered(review, status))
}

fn self_subject(cx: &Context<'_>, review: &Value) -> Value {
    json!({
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "metadata": { "creationTimestamp": Time::from_unix(cx.now.as_second()).to_value() },
        "status": { "userInfo": user_info(cx.user) },
    })
}

/// A user as `authentication.k8s.io` has it.
pub(crate) fn user_info(user: &User) -> Value {
    let mut info = Map::new();
    info.insert("username".to_owned(), user.name.as_str().into());
    info.insert("uid".to_owned(), user.uid.as_str().into());
    info.insert("groups".to_owned(), json!(user.groups));
    info.insert("extra".to_owned(), json!(user.extra));
    info.retain(|_, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
    info.into()
}

/// Whose access a review is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    Named,
    Oneself,
}

fn access_errors(spec: &AccessSpec, whom: Whom) -> Vec<Error> {
    let root = Path::new("spec");
    let mut errors = Vec::new();
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(of)) => errors.push(Error::invalid(
            &root.child("nonResourceAttributes"),
            of.go(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(Error::invalid(
            &root.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let nobody = spec.user.is_empty() && spec.groups.as_ref().is_none_or(Vec::is_empty);
    if whom == Whom::Named && nobody {
        let path = root.child("user");
        errors.push(Error::invalid(&path, "", "at least one of user or group must be specified"));
    }
    if let Some(of) = &spec.resource_attributes {
        let root = root.child("resourceAttributes");
        let path = root.child("fieldSelector");
        errors.extend(of.field_selector.iter().flat_map(|s| selector_errors(s, &path, false)));
        let path = root.child("labelSelector");
        errors.extend(of.label_selector.iter().flat_map(|s| selector_errors(s, &path, true)));
    }
    errors
}

fn selector_errors(selector: &SelectorAttributes, path: &Path<'_>, labels: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    let list = selector.requirements.as_deref().unwrap_or_default();
    let raw = selector.raw_selector.as_str();
    if !raw.is_empty() && !list.is_empty() {
        let problem = "may not specified at the same time as requirements";
        errors.push(Error::invalid(&path.child("rawSelector"), raw, problem));
    }
    let lists = path.child("requirements");
    if raw.is_empty() && list.is_empty() {
        let problem = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(Error::required(&lists, problem));
    }
    for (index, requirement) in list.iter().enumerate() {
        let path = lists.index(index);
        let values_path = path.child("values");
        let values = requirement.values.as_deref().unwrap_or_default();
        if !labels && requirement.key.is_empty() {
            errors.push(Error::required(&path.child("key"), "must be specified"));
        }
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => errors.push(Error::required(
                &values_path,
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(Error::forbidden(
                &values_path,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            // Younger clients may know operators that we do not.
            _ => {}
        }
        if labels {
            let key = requirement.key.as_str();
            let problems = name::label_key(key);
            errors.extend(
                problems.into_iter().map(|why| Error::invalid(&path.child("key"), key, why)),
            );
            for (index, value) in values.iter().enumerate() {
                let path = values_path.index(index);
                let problems = name::label_value(value);
                errors.extend(
                    problems.into_iter().map(|why| Error::invalid(&path, value.as_str(), why)),
                );
            }
        }
    }
    errors
}

/// A review has no identity of its own.
fn metadata_errors(review: &Value, allowed: &[&str], problem: &str) -> Option<Error> {
    let metadata = review["metadata"].as_object()?;
    let said = |(field, value): (&String, &Value)| {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        !empty && field != "managedFields" && !allowed.contains(&field.as_str())
    };
    metadata
        .iter()
        .any(said)
        .then(|| Error::invalid(&Path::new("metadata"), review["metadata"].clone(), problem))
}

fn refuse(errors: &[Error]) -> Result<(), Box<Status>> {
    match errors.is_empty() {
        true => Ok(()),
        // Upstream has forgotten the kind by then.
        false => {
            Err(Box::new(Status::invalid(&GroupKind::new("authorization.k8s.io", ""), "", errors)))
        }
    }
}

fn access_status(authorizer: &Authorizer, user: &User, spec: &AccessSpec) -> Value {
    let selector = spec.resource_attributes.as_ref().and_then(|of| of.field_selector.as_ref());
    let fields = selector.map(SelectorAttributes::terms).unwrap_or_default();
    let attributes = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(of), _) => Attributes::resource(
            &of.verb,
            Resource {
                group: &of.group,
                resource: &of.resource,
                subresource: &of.subresource,
                namespace: &of.namespace,
                name: &of.name,
                fields: &fields,
            },
        ),
        (None, Some(of)) => Attributes::path(&of.verb, &of.path),
        (None, None) => unreachable!("one of them was required"),
    };
    let (allowed, reason) = match authorizer.decide(user, &attributes) {
        Decision::Allowed(grant) => (true, grant.to_string()),
        Decision::Denied(denial) => (false, denial.to_string()),
    };
    let mut status = json!({ "allowed": allowed });
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    let problems = spec.resource_attributes.as_ref().map(ResourceAttributes::problems);
    if let Some(problems) = problems.filter(|problems| !problems.is_empty()) {
        status["evaluationError"] = problems.join("; ").into();
    }
    status
}

impl AccessSpec {
    fn user(&self) -> User {
        User {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone().unwrap_or_default(),
            extra: self.extra.clone().unwrap_or_default(),
        }
    }
}

impl NonResourceAttributes {
    /// As upstream shows it in errors, where fields go by their names in Go.
    fn go(&self) -> Value {
        json!({ "Path": self.path, "Verb": self.verb })
    }
}

impl ResourceAttributes {
    /// What of the selectors could not be taken into account.
    fn problems(&self) -> Vec<String> {
        let fields = self.field_selector.as_ref().map_or(Read::All, SelectorAttributes::fields);
        let labels = self.label_selector.as_ref().map_or(Read::All, SelectorAttributes::labels);
        [("fieldSelector", fields), ("labelSelector", labels)]
            .into_iter()
            .filter_map(|(selector, read)| {
                let how = match read {
                    Read::All => return None,
                    Read::Part => "partially ignored",
                    Read::Nothing => "ignored",
                };
                Some(format!("spec.resourceAttributes.{selector} {how} due to parse error"))
            })
            .collect()
    }
}

impl SelectorAttributes {
    fn fields(&self) -> Read {
        if !self.raw_selector.is_empty() {
            let parsed = field::Selector::parse(&self.raw_selector);
            return if parsed.is_ok() { Read::All } else { Read::Nothing };
        }
        self.read(|requirement, values| requirement.term(values).is_some())
    }

    /// What of the fields is understood. The rest is left out, which asks for more, never for less.
    fn terms(&self) -> Vec<field::Term> {
        if !self.raw_selector.is_empty() {
            return field::Selector::parse(&self.raw_selector).unwrap_or_default().terms;
        }
        let list = self.requirements.as_deref().unwrap_or_default();
        let terms = list.iter().filter_map(|one| one.term(one.values.as_deref()?));
        terms.collect()
    }

    fn labels(&self) -> Read {
        if !self.raw_selector.is_empty() {
            let parsed = label::Selector::parse(&self.raw_selector);
            return if parsed.is_ok() { Read::All } else { Read::Nothing };
        }
        self.read(|requirement, values| {
            let operator = match requirement.operator.as_str() {
                "In" => label::Operator::In,
                "NotIn" => label::Operator::NotIn,
                "Exists" => label::Operator::Exists,
                "DoesNotExist" => label::Operator::DoesNotExist,
                _ => return false,
            };
            let key = requirement.key.as_str();
            label::Requirement::new(key, operator, values.to_vec()).is_ok()
        })
    }

    fn read(&self, understood: impl Fn(&Requirement, &[String]) -> bool) -> Read {
        let list = self.requirements.as_deref().unwrap_or_default();
        let count = list
            .iter()
            .filter(|one| understood(one, one.values.as_deref().unwrap_or_default()))
            .count();
        match count {
            count if count == list.len() => Read::All,
            0 => Read::Nothing,
            _ => Read::Part,
        }
    }
}

impl Requirement {
    /// The same as a condition on a field, if there is one.
    fn term(&self, values: &[String]) -> Option<field::Term> {
        let operator = match self.operator.as_str() {
            "In" => field::Operator::Equals,
            "NotIn" => field::Operator::NotEquals,
            _ => return None,
        };
        let [value] = values else { return None };
        Some(field::Term { field: self.key.clone(), operator, value: value.clone() })
    }
}

fn spec_of<T: DeserializeOwned + Default>(review: &Value) -> T {
    T::deserialize(&review["spec"]).unwrap_or_default()
}

fn answered(review: &Value, status: Value) -> Value {
    let mut review = review.clone();
    review["status"] = status;
    review
}
