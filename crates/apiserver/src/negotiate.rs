//! In which form an answer goes out: the client's `Accept` against what an endpoint can give.
//!
//! The rules are upstream's, down to which of its two layers refuses. Built-in endpoints are
//! routes, and a router looks at the bare media types first; what passes is matched again, now
//! with parameters, which ask for another view of the object (`as=Table`) or for a stream.
//! Failures are negotiated apart: they know no views, and are sent in any case.

#[cfg(test)]
mod tests;

use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::table::Include;

use crate::resource::{Origin, Resource};

/// How an answer is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    pub encoding: Encoding,
    pub view: View,
    /// How a failure is written, should there be one.
    pub failure: Encoding,
}

/// An encoding of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    Json,
    /// Over lines, for people.
    JsonPretty,
    Yaml,
    Protobuf,
}

/// What of an object is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    Object,
    Table {
        version: MetaVersion,
        /// How much of each object goes into its row, or the word that says nothing about it:
        /// upstream complains about that only when it has an object to show.
        include: Result<Include, Box<str>>,
    },
    PartialObjectMetadata(MetaVersion),
    PartialObjectMetadataList(MetaVersion),
}

/// A version of `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

/// What an endpoint can answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Custom resources have no protobuf, and no route of their own.
    pub custom: bool,
    /// Reviews and bindings have no rows.
    pub table: bool,
    /// Collections can be watched.
    pub collection: bool,
}

/// What a client accepts.
#[derive(Debug, Clone, Default)]
pub struct Accept<'a> {
    /// As it came; empty when the client did not say.
    header: &'a str,
    /// In the order of preference.
    clauses: Vec<Clause<'a>>,
    /// Whether a person reads the answer.
    pretty: bool,
    /// The value of `includeObject`.
    include: String,
}

/// One of the media types that a client takes, with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Clause<'a> {
    ty: &'a str,
    subtype: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// The order in which upstream offers them.
const OFFERED: [Encoding; 3] = [Encoding::Json, Encoding::Yaml, Encoding::Protobuf];

impl Format {
    /// JSON without any views: what a client gets that does not say what it wants.
    pub const JSON: Format =
        Format { encoding: Encoding::Json, view: View::Object, failure: Encoding::Json };

    /// Whether events can be sent this way.
    ///
    /// # Errors
    /// YAML has no frames.
    pub fn check_stream(&self) -> Result<(), Box<Status>> {
        match self.encoding {
            Encoding::Yaml => Err(Box::new(Status::not_acceptable(&STREAMS))),
            _ => Ok(()),
        }
    }
}

const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// What upstream's router knows: the encodings that are offered, and the streams.
static ROUTED: [&str; 5] = [
    Encoding::Json.media_type(),
    Encoding::Yaml.media_type(),
    Encoding::Protobuf.media_type(),
    STREAMS[0],
    STREAMS[1],
];

impl Encoding {
    /// The value of `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Encoding::Json | Encoding::JsonPretty => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn has_stream(self) -> bool {
        self != Encoding::Yaml
    }

    fn readable(self, pretty: bool) -> Self {
        match self {
            Encoding::Json if pretty => Encoding::JsonPretty,
            other => other,
        }
    }
}

impl MetaVersion {
    pub fn as_str(self) -> &'static str {
        match self {
            MetaVersion::V1 => "v1",
            MetaVersion::V1Beta1 => "v1beta1",
        }
    }

    /// `meta.k8s.io/v1`
    pub fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Endpoint {
    /// The objects of a resource one by one, or their collection.
    pub fn of(resource: &Resource, collection: bool) -> Self {
        let custom = matches!(resource.origin, Origin::Custom(_));
        Endpoint { custom, table: true, collection }
    }

    /// The same for what has no rows: reviews, bindings, evictions, tokens.
    pub fn without_table(self) -> Self {
        Endpoint { table: false, ..self }
    }

    /// What a router lets through.
    fn routed(self) -> &'static [&'static str] {
        if self.collection { &ROUTED } else { &ROUTED[..OFFERED.len()] }
    }
}

impl<'a> Accept<'a> {
    /// Reads what a request says about its answer: in the header of that name, by the program that
    /// it comes from, and in its query.
    pub fn of(header: &'a str, user_agent: &str, query: &str) -> Self {
        Accept {
            header,
            clauses: clauses(header),
            pretty: is_pretty(query, user_agent),
            include: parameter(query, "includeObject").unwrap_or_default(),
        }
    }

    /// How an endpoint answers.
    ///
    /// # Errors
    /// It can give nothing of what the client accepts.
    pub fn format(&self, endpoint: Endpoint) -> Result<Format, Box<Status>> {
        if !endpoint.custom {
            self.route(endpoint.routed())?;
        }
        let failure = self.failure();
        if self.header.is_empty() {
            let encoding = Encoding::Json.readable(self.pretty);
            return Ok(Format { encoding, view: View::Object, failure });
        }
        let found = self.first_match(|clause, encoding| self.allows(endpoint, clause, encoding));
        match found {
            Some((encoding, view)) => Ok(Format { encoding, view, failure }),
            None => {
                let offered = OFFERED.map(Encoding::media_type);
                Err(Box::new(Status::not_acceptable(&offered)))
            }
        }
    }

    /// How a failure is written, whatever the endpoint. A client that accepts none of our forms
    /// gets readable JSON.
    pub fn failure(&self) -> Encoding {
        self.plain().unwrap_or(Encoding::JsonPretty)
    }

    /// How something is written that has no views.
    pub(crate) fn plain(&self) -> Option<Encoding> {
        if self.header.is_empty() {
            return Some(Encoding::Json.readable(self.pretty));
        }
        let plain = |clause: &Clause<'_>, encoding| clause.is_plain(encoding).then_some(());
        self.first_match(plain).map(|(encoding, ())| encoding)
    }

    /// Which of these the client likes best, each known by several media types. Parameters are
    /// overlooked.
    pub(crate) fn best(&self, choices: &[&[&str]]) -> Option<usize> {
        self.clauses.iter().find_map(|clause| {
            choices.iter().position(|names| names.iter().any(|name| clause.names(name)))
        })
    }

    /// Fails unless a route is found: the router knows no parameters and only one wildcard.
    pub(crate) fn route(&self, types: &[&str]) -> Result<(), Box<Status>> {
        let is_routed = self.header.is_empty()
            || self.header.split(',').any(|accepted| {
                let ty = accepted.split(';').next().unwrap_or_default().trim_matches(' ');
                ty == "*/*" || types.contains(&ty)
            });
        if is_routed {
            return Ok(());
        }
        let said =
            format!("406: Not Acceptable\n\nAvailable representations: {}", types.join(", "));
        Err(Box::new(Status::generic(406, "", &said)))
    }

    /// The first clause that some encoding satisfies, as `allows` judges.
    pub(crate) fn first_match<T>(
        &self,
        allows: impl Fn(&Clause<'_>, Encoding) -> Option<T>,
    ) -> Option<(Encoding, T)> {
        self.clauses.iter().find_map(|clause| {
            let mut offered = OFFERED.into_iter().filter(|encoding| clause.matches(*encoding));
            offered.find_map(|encoding| {
                let found = allows(clause, encoding)?;
                let pretty = self.pretty || clause.parameter("pretty") == Some("1");
                Some((encoding.readable(pretty), found))
            })
        })
    }

    fn allows(&self, endpoint: Endpoint, clause: &Clause<'_>, encoding: Encoding) -> Option<View> {
        for (name, value) in &clause.parameters {
            let is_allowed = match *name {
                "stream" => value.is_empty() || (encoding.has_stream() && *value == "watch"),
                "sv" => value.is_empty() || *value == "v1",
                _ => true,
            };
            if !is_allowed {
                return None;
            }
        }
        let [kind, group, version] = ["as", "g", "v"].map(|name| clause.parameter(name));
        if kind.is_none() && group.is_none() && version.is_none() {
            let allowed = !endpoint.custom || encoding != Encoding::Protobuf;
            return allowed.then_some(View::Object);
        }
        let version = match (group, version) {
            (Some("meta.k8s.io"), Some("v1")) => MetaVersion::V1,
            (Some("meta.k8s.io"), Some("v1beta1")) => MetaVersion::V1Beta1,
            _ => return None,
        };
        match kind? {
            "Table" if endpoint.table && encoding != Encoding::Protobuf => {
                Some(View::Table { version, include: self.include() })
            }
            "PartialObjectMetadata" => Some(View::PartialObjectMetadata(version)),
            "PartialObjectMetadataList" => Some(View::PartialObjectMetadataList(version)),
            _ => None,
        }
    }

    fn include(&self) -> Result<Include, Box<str>> {
        match self.include.as_str() {
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            "None" => Ok(Include::None),
            other => Err(other.into()),
        }
    }
}

impl Clause<'_> {
    /// The last value that it gives a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().rfind(|(known, _)| *known == name);
        found.map(|(_, value)| *value)
    }

    /// Whether it asks for nothing but an encoding, or for a stream that there is.
    fn is_plain(&self, encoding: Encoding) -> bool {
        let views = ["as", "g", "v"];
        !views.iter().any(|name| self.parameter(name).is_some()) && self.is_unversioned(encoding)
    }

    /// Whether it asks for no version of its own, nor for a stream that there is not.
    pub(crate) fn is_unversioned(&self, encoding: Encoding) -> bool {
        self.parameters.iter().all(|(name, value)| match *name {
            "sv" => value.is_empty(),
            "stream" => value.is_empty() || (encoding.has_stream() && *value == "watch"),
            _ => true,
        })
    }

    fn matches(&self, encoding: Encoding) -> bool {
        self.names(encoding.media_type())
    }

    /// Whether a media type without parameters is one of those meant.
    fn names(&self, media_type: &str) -> bool {
        let (ty, subtype) = media_type.split_once('/').unwrap_or((media_type, ""));
        match (self.ty, self.subtype) {
            ("*", "*") => true,
            (own, "*") => own == ty,
            (own, sub) => own == ty && sub == subtype,
        }
    }

    /// Whether it comes before another one. This is no order (upstream's is none either), so how
    /// it is sorted by matters.
    fn is_before(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || (self.ty != "*" && other.ty == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses of a header, the most wanted first. What cannot be read is skipped.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(clause).collect();
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && clauses[at].is_before(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.trim_matches(' ').split(';');
    let range = parts.next()?;
    let (ty, subtype) = match range.split_once('/').unwrap_or((range, "")) {
        // Some clients mean everything by a single star.
        (ty, "") if ty.trim_matches(' ') == "*" => ("*", "*"),
        (_, "") => return None,
        (_, subtype) if subtype.contains('/') => return None,
        (ty, subtype) => (ty.trim_matches(' '), subtype.trim_matches(' ')),
    };
    let mut clause = Clause { ty, subtype, quality: 1.0, parameters: Vec::new() };
    for part in parts {
        let Some((name, value)) = part.split_once('=') else { continue };
        if value.is_empty() || value.contains('=') {
            continue;
        }
        match name.trim_matches(' ') {
            "q" => clause.quality = value.parse().unwrap_or(0.0),
            name => clause.parameters.push((name, value.trim_matches(' '))),
        }
    }
    Some(clause)
}

/// Whether a person reads the answer: the query says so, or the client is one that people use.
fn is_pretty(query: &str, user_agent: &str) -> bool {
    if let Some(said) = parameter(query, "pretty").filter(|said| !said.is_empty()) {
        return matches!(said.as_str(), "1" | "t" | "T" | "TRUE" | "true" | "True");
    }
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| user_agent.starts_with(known))
}

/// The first value of a parameter.
fn parameter(query: &str, name: &str) -> Option<String> {
    if !query.contains(name) {
        return None;
    }
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}
