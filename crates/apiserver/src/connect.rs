//! Endpoints that lead to a node or a pod: logs, commands, forwarded ports, proxies.
//!
//! A client says how it wants to be connected (`Connect::options`), which admission may have a
//! say about; then it is found out where that is (`destination`), with all that upstream finds
//! wrong before it would connect; and then bytes are passed on (`passage`).

mod destination;
mod kubelet;
mod page;
mod passage;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{Response, Uri};
use kubewright_apimachinery::field::{self, Path};
use kubewright_apimachinery::gvk::GroupKind;
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::time::{self, Time};
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::query::Query;
use crate::refusal::Refusal;
use crate::target::ResourceTarget;

pub(crate) use destination::Scene;
pub use kubelet::Access;
pub(crate) use kubelet::Kubelets;
pub(crate) use passage::Asked;

/// Where a client wants to be connected to.
#[derive(Clone, Copy)]
pub(crate) enum Connect {
    Log,
    /// `exec` or `attach`, which are about one container.
    Stream,
    PortForward,
    Proxy,
}

impl Connect {
    /// None if a part of an object leads nowhere.
    pub(crate) fn of(part: &str) -> Option<Self> {
        match part {
            "log" => Some(Connect::Log),
            "exec" | "attach" => Some(Connect::Stream),
            "portforward" => Some(Connect::PortForward),
            "proxy" => Some(Connect::Proxy),
            _ => None,
        }
    }

    /// Connects a client.
    ///
    /// # Errors
    /// Say what is wrong, or who cannot be reached.
    pub(crate) async fn answer<B>(
        self,
        scene: Scene<'_>,
        asked: Asked<'_, B>,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match scene.find(self)? {
            Some(destination) => passage::pass(destination, asked).await,
            None => Ok(passage::nothing()),
        }
    }

    /// How a client wants to be connected. Refuses what makes no sense, whether or not there is
    /// anything to connect to.
    pub(crate) fn options(self, target: &ResourceTarget, uri: &Uri) -> Result<Value, Refusal> {
        let query = Query::parse(uri.query());
        let mut options = Map::new();
        let mut add = |field: &str, value: Value| options.insert(field.to_owned(), value);
        match self {
            Connect::Log => return log_options(&target.name, &query),
            Connect::Stream => {
                for field in ["stdin", "stdout", "stderr", "tty"] {
                    if query.flag(field) == Some(true) {
                        add(field, true.into());
                    }
                }
                if let Some(container) = query.get("container").filter(|name| !name.is_empty()) {
                    add("container", container.into());
                }
                let command: Vec<&str> = query.all("command").collect();
                if target.subresource == "exec" {
                    add("command", json!(command));
                }
            }
            Connect::PortForward => {
                // Each may be a list, as kube-rs writes it.
                let ports = query.all("ports").flat_map(|ports| ports.split(','));
                let ports: Result<Vec<u16>, Refusal> = ports.map(port).collect();
                let ports = ports?;
                if !ports.is_empty() {
                    add("ports", json!(ports));
                }
            }
            Connect::Proxy => {
                let mut path = target.rest.join("/");
                if !path.is_empty() {
                    path.insert(0, '/');
                }
                if uri.path().ends_with('/') && !path.ends_with('/') {
                    path.push('/');
                }
                if !path.is_empty() {
                    add("path", path.into());
                }
            }
        }
        Ok(options.into())
    }

    /// Whether admission has a say. A log is read.
    pub(crate) fn is_admitted(self) -> bool {
        !matches!(self, Connect::Log)
    }

    /// Whether it is not enough that a client may get the part of an object.
    pub(crate) fn needs_create(self) -> bool {
        matches!(self, Connect::Stream | Connect::PortForward)
    }
}

/// Which part of a log is wanted.
fn log_options(pod: &str, query: &Query) -> Result<Value, Refusal> {
    let since_seconds = query.number("sinceSeconds")?;
    let since_time = query.get("sinceTime").filter(|text| *text != "null");
    let bad_request = |error: time::ParseError| Box::new(Status::bad_request(error.to_string()));
    let since_time = since_time.map(Time::parse).transpose().map_err(bad_request)?;
    let tail_lines = query.number("tailLines")?;
    let limit_bytes = query.number("limitBytes")?;

    let mut errors = Vec::new();
    let mut at_least = |field: &str, number: Option<i64>, least: i64, why: &str| {
        if let Some(number) = number.filter(|number| *number < least) {
            errors.push(field::Error::invalid(&Path::new(field), number, why));
        }
    };
    at_least("tailLines", tail_lines, 0, "must be greater than or equal to 0");
    at_least("limitBytes", limit_bytes, 1, "must be greater than 0");
    match (since_seconds, query.all("sinceTime").next()) {
        (Some(_), Some(_)) => {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            // So upstream shows a field without a name.
            errors.push(field::Error::forbidden(&Path::new("[]"), why));
        }
        _ => at_least("sinceSeconds", since_seconds, 1, "must be greater than 0"),
    }
    if query.all("stream").next().is_some() {
        errors.push(field::Error::forbidden(&Path::new("stream"), "may not be specified"));
    }
    if !errors.is_empty() {
        let kind = GroupKind::new("", "PodLogOptions");
        return Err(Box::new(Status::invalid(&kind, pod, &errors)));
    }
    let mut options = Map::new();
    let mut add = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(field.to_owned(), value);
        }
    };
    add("container", query.get("container").map(Value::from));
    for field in ["follow", "previous", "timestamps", "insecureSkipTLSVerifyBackend"] {
        add(field, (query.flag(field) == Some(true)).then_some(Value::Bool(true)));
    }
    add("sinceSeconds", since_seconds.map(Value::from));
    add("sinceTime", since_time.map(|time| time.to_string().into()));
    add("tailLines", tail_lines.map(Value::from));
    add("limitBytes", limit_bytes.map(Value::from));
    Ok(options.into())
}

fn port(text: &str) -> Result<u16, Refusal> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let why = match text.parse::<u16>() {
        Ok(port) if is_digits => return Ok(port),
        _ if is_digits => "value out of range",
        _ => "invalid syntax",
    };
    let text = json::go_quote(text);
    let why = format!("cannot convert to []int32: strconv.ParseUint: parsing {text}: {why}");
    Err(Box::new(Status::bad_request(why)))
}
