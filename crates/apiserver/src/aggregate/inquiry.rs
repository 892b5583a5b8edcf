//! What a server tells of the version that it answers for: its resources, and its OpenAPI.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, HOST, HeaderValue, IF_NONE_MATCH};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use kubewright_apimachinery::{builtin, json};
use serde_json::{Value, json};

use super::availability::aggregator;
use super::{Freshness, Lesson, Registration, front};
use crate::document::kind_of;
use crate::openapi::{self, Swagger};
use crate::outbound::Line;
use crate::user::User;

/// How long a server may take to tell of its resources, and of everything.
const RESOURCES_MAX: Duration = Duration::from_secs(5);
const OPEN_API_MAX: Duration = Duration::from_secs(60);
/// The longest document that is read: the one about all that Kubernetes has takes 4 MB.
const BYTES_MAX: usize = 64 << 20;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Asks one server again and again.
#[derive(Default)]
pub(super) struct Inquiry {
    /// What it told of all its groups, and the tag of that.
    groups: Option<(HeaderValue, Value)>,
    /// Its OpenAPI v2, and the tag of that, if it has tags.
    swagger: Option<(Option<HeaderValue>, Swagger)>,
    /// Its documents of OpenAPI v3.
    documents: BTreeMap<String, Value>,
    /// Who was once without is not asked for them again.
    has_no_v3: bool,
    /// All of its OpenAPI v2, if it has no v3.
    only_swagger: Option<Swagger>,
    resources: Vec<Value>,
    freshness: Freshness,
}

impl Inquiry {
    /// What the server has told.
    pub(super) fn lesson(&self) -> Lesson {
        Lesson {
            resources: self.resources.clone(),
            freshness: self.freshness,
            documents: self.documents.clone(),
            swagger: self.swagger.as_ref().map(|(_, swagger)| swagger.clone()),
            only_swagger: self.only_swagger.clone(),
        }
    }

    /// Has the server tell its resources again.
    pub(super) async fn resources(&mut self, registration: &Registration, line: &Line) {
        let told = self.told_resources(registration, line).await;
        (self.resources, self.freshness) = match told {
            Ok(resources) => (resources, Freshness::Current),
            Err(error) => {
                let name = registration.name.as_str();
                tracing::debug!(name, error, "a server does not tell what it serves");
                (Vec::new(), Freshness::Stale)
            }
        };
    }

    async fn told_resources(
        &mut self,
        registration: &Registration,
        line: &Line,
    ) -> Result<Vec<Value>, String> {
        let mut headers = vec![(ACCEPT, HeaderValue::from_static(AGGREGATED))];
        if let Some((tag, _)) = &self.groups {
            headers.push((IF_NONE_MATCH, tag.clone()));
        }
        let asked = get(line, "/apis", &headers, &aggregator(), RESOURCES_MAX).await?;
        let is_aggregated = || {
            let media_type = asked.headers().get(CONTENT_TYPE).and_then(|t| t.to_str().ok());
            media_type.is_some_and(|t| t.contains("as=APIGroupDiscoveryList"))
        };
        match asked.status() {
            StatusCode::NOT_MODIFIED if self.groups.is_some() => {}
            StatusCode::OK if is_aggregated() => {
                let groups = read_groups(asked.body())?;
                let tag = asked.headers().get(ETAG).cloned();
                match tag {
                    Some(tag) => self.groups = Some((tag, groups)),
                    None => {
                        self.groups = None;
                        return Ok(version_of(&groups, registration));
                    }
                }
            }
            StatusCode::SERVICE_UNAVAILABLE => return Err("service unavailable".to_owned()),
            _ => return legacy(registration, line).await,
        }
        let (_, groups) = self.groups.as_ref().expect("it was told, now or before");
        Ok(version_of(groups, registration))
    }

    /// Has the server tell its OpenAPI again.
    pub(super) async fn open_api(
        &mut self,
        registration: &Registration,
        line: &Line,
    ) -> Result<(), String> {
        let user = User { groups: Vec::new(), ..User::new("system:aggregator", []) };
        self.open_api_v3(line, &user).await?;
        let mut headers = vec![(ACCEPT, HeaderValue::from_static("application/json"))];
        let is_known = !self.has_no_v3 || self.only_swagger.is_some();
        if let Some((Some(tag), _)) = self.swagger.as_ref().filter(|_| is_known) {
            headers.push((IF_NONE_MATCH, tag.clone()));
        }
        let told = get(line, "/openapi/v2", &headers, &user, OPEN_API_MAX).await?;
        match told.status() {
            StatusCode::NOT_MODIFIED => {}
            StatusCode::OK => {
                let swagger: Value =
                    serde_json::from_slice(told.body()).map_err(|error| error.to_string())?;
                // Who has no tags tells everything each time, which is seldom news.
                let is_news = |known: Option<&Swagger>, told: &Value| {
                    known.is_none_or(|known| *known.0 != *told)
                };
                if self.has_no_v3 && is_news(self.only_swagger.as_ref(), &swagger) {
                    self.only_swagger = Some(Swagger(Arc::new(swagger.clone())));
                }
                let path = format!("/apis/{}/{}/", registration.group, registration.version);
                let own = openapi::below(swagger, &path);
                let tag = told.headers().get(ETAG).cloned();
                if is_news(self.swagger.as_ref().map(|(_, known)| known), &own) {
                    self.swagger = Some((tag, Swagger(Arc::new(own))));
                }
            }
            // It has none.
            StatusCode::NOT_FOUND => {
                self.swagger = None;
                self.only_swagger = None;
            }
            status => return Err(format!("GET /openapi/v2: {status}")),
        }
        Ok(())
    }

    async fn open_api_v3(&mut self, line: &Line, user: &User) -> Result<(), String> {
        if self.has_no_v3 {
            return Ok(());
        }
        let told = get(line, "/openapi/v3", &[], user, OPEN_API_MAX).await?;
        match told.status() {
            StatusCode::OK => {
                let index: Value =
                    serde_json::from_slice(told.body()).map_err(|error| error.to_string())?;
                let paths = index["paths"].as_object().into_iter().flatten();
                self.documents = paths.map(|(path, entry)| (path.clone(), entry.clone())).collect();
            }
            StatusCode::NOT_FOUND => {
                self.has_no_v3 = true;
                self.documents.clear();
            }
            status => return Err(format!("GET /openapi/v3: {status}")),
        }
        Ok(())
    }
}

async fn get(
    line: &Line,
    path: &'static str,
    headers: &[(http::HeaderName, HeaderValue)],
    user: &User,
    timeout: Duration,
) -> Result<Response<Bytes>, String> {
    get_at(line, path.to_owned(), headers, user, timeout).await
}

async fn get_at(
    line: &Line,
    path: String,
    headers: &[(http::HeaderName, HeaderValue)],
    user: &User,
    timeout: Duration,
) -> Result<Response<Bytes>, String> {
    let line = line.to_endpoint()?;
    let host = line.authority();
    let mut request = Request::new(Empty::<Bytes>::new());
    for (name, value) in headers {
        request.headers_mut().insert(name, value.clone());
    }
    front::introduce(request.headers_mut(), user).map_err(|error| error.to_string())?;
    front::forwarded(request.headers_mut(), host, &path);
    let host = HeaderValue::try_from(host).map_err(|error| error.to_string())?;
    request.headers_mut().insert(HOST, host);
    *request.uri_mut() = path.parse().map_err(|_| "no path".to_owned())?;
    let exchange = async {
        let answer = line.send(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err("too late".to_owned()))
}

/// Everything that a server has told at once, in normal form.
pub(super) fn read_groups(body: &[u8]) -> Result<Value, String> {
    let mut groups = json::decode(body).map_err(|error| error.to_string())?.value;
    // The versions differ in nothing but their name.
    let fields = groups.as_object_mut().ok_or_else(|| "no object".to_owned())?;
    fields.insert("apiVersion".to_owned(), "apidiscovery.k8s.io/v2".into());
    for group in list_mut(&mut groups, "items") {
        for version in list_mut(group, "versions") {
            list_mut(version, "resources").iter_mut().for_each(name_kinds);
        }
    }
    let kind = kind_of("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList");
    Ok(builtin::decode(kind, groups).map_err(|error| error.to_string())?.value)
}

/// The items of a list; none if there is no list, which stays so.
fn list_mut<'a>(value: &'a mut Value, field: &str) -> &'a mut [Value] {
    value.get_mut(field).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// Clients of some versions cannot do without the kinds that answers are of.
fn name_kinds(resource: &mut Value) {
    let nothing = || json!({"group": "", "version": "", "kind": ""});
    let name = |row: &mut Value| {
        // What is no object is refused later.
        if let Some(fields) = row.as_object_mut()
            && fields.get("responseKind").is_none_or(Value::is_null)
        {
            fields.insert("responseKind".to_owned(), nothing());
        }
    };
    name(resource);
    list_mut(resource, "subresources").iter_mut().for_each(name);
}

/// The resources of one version. A server need not know of a version that is registered.
pub(super) fn version_of(groups: &Value, registration: &Registration) -> Vec<Value> {
    let mut items = groups["items"].as_array().into_iter().flatten();
    let group = items
        .find(|group| group["metadata"]["name"].as_str().unwrap_or_default() == registration.group);
    let mut versions = group.and_then(|group| group["versions"].as_array()).into_iter().flatten();
    let version = versions.find(|version| version["version"] == *registration.version);
    let resources = version.and_then(|version| version["resources"].as_array());
    resources.cloned().unwrap_or_default()
}

/// The resources of a server that tells them a version at a time.
async fn legacy(registration: &Registration, line: &Line) -> Result<Vec<Value>, String> {
    let path = match registration.group.as_str() {
        "" => format!("/api/{}", registration.version),
        group => format!("/apis/{group}/{}", registration.version),
    };
    let user = User { groups: Vec::new(), ..aggregator() };
    let accept = [(ACCEPT, HeaderValue::from_static("application/json"))];
    let told = get_at(line, path, &accept, &user, RESOURCES_MAX).await?;
    if told.status() != StatusCode::OK {
        return Err(format!("failed to download legacy discovery: {}", told.status()));
    }
    let list = json::decode(told.body()).map_err(|error| error.to_string())?.value;
    let decoded = builtin::decode(kind_of("", "v1", "APIResourceList"), list);
    let list = decoded.map_err(|error| error.to_string())?.value;
    convert(list["resources"].as_array().map(Vec::as_slice).unwrap_or_default())
}

/// Rows of which parts have their own, as resources that have parts.
pub(super) fn convert(rows: &[Value]) -> Result<Vec<Value>, String> {
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    let scope = |row: &Value| match row["namespaced"] == true {
        true => "Namespaced",
        false => "Cluster",
    };
    let kind = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        json!({"group": text("group"), "version": text("version"), "kind": text("kind")})
    };
    let list = |row: &Value, field: &str| row[field].as_array().cloned().unwrap_or_default();
    let mut resources: Vec<Value> = Vec::new();
    for row in rows.iter().filter(|row| !name(row).contains('/')) {
        let mut resource = json!({
            "resource": name(row),
            "responseKind": kind(row),
            "scope": scope(row),
            "singularResource": row["singularName"].as_str().unwrap_or_default(),
            "verbs": list(row, "verbs"),
        });
        for field in ["shortNames", "categories"] {
            if !list(row, field).is_empty() {
                resource[field] = list(row, field).into();
            }
        }
        resources.push(resource);
    }
    for row in rows {
        let name = name(row);
        let Some((parent, part)) = name.split_once('/') else { continue };
        let at = match resources.iter().position(|resource| resource["resource"] == parent) {
            Some(at) => at,
            None => {
                resources.push(json!({
                    "resource": parent,
                    "responseKind": {"group": "", "version": "", "kind": ""},
                    "scope": scope(row),
                    "singularResource": "",
                    "verbs": [],
                }));
                resources.len() - 1
            }
        };
        if resources[at]["scope"] != scope(row) {
            return Err(format!("{parent} and its part {part} differ in scope"));
        }
        let nothing = || json!({"group": "", "version": "", "kind": ""});
        let row = json!({
            "subresource": part,
            "responseKind": if row["kind"] == "" { nothing() } else { kind(row) },
            "verbs": list(row, "verbs"),
        });
        match resources[at]["subresources"].as_array_mut() {
            Some(parts) => parts.push(row),
            None => resources[at]["subresources"] = json!([row]),
        }
    }
    Ok(resources)
}
