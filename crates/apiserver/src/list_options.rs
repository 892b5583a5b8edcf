//! What a GET, LIST or WATCH asks for, read off its query.
//!
//! Numbers are read first, then selectors, then combinations are judged: a request with several
//! mistakes hears of the one that upstream finds first.

#[cfg(test)]
mod tests;

use kubewright_apimachinery::field::{self, Path};
use kubewright_apimachinery::gvk::GroupKind;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::{Reason, Status};

use crate::query::Query;
use crate::resource::Resource;
use crate::selection::Selection;

/// The options of a GET.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetOptions {
    pub resource_version: String,
}

/// The options of a LIST, WATCH or deletion of a collection.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    pub selection: Selection,
    /// As it came; empty and `0` have meanings of their own.
    pub resource_version: String,
    pub version_match: Option<VersionMatch>,
    /// None unless positive.
    pub limit: Option<usize>,
    /// Empty unless a page is to be followed by the next.
    pub continue_token: String,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<i64>,
}

/// How a version relates to what is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

impl GetOptions {
    /// Reads a query.
    ///
    /// # Errors
    /// 400 for what is no longer supported.
    pub(crate) fn parse(query: &Query) -> Result<Self, Box<Status>> {
        if query.flag("export") == Some(true) {
            let message = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(Box::new(Status::bad_request(message)));
        }
        Ok(GetOptions { resource_version: query.text("resourceVersion").to_owned() })
    }
}

impl ListOptions {
    /// Reads a query about a collection, or about the object `name` in it unless that is empty.
    ///
    /// # Errors
    /// 400 for what cannot be read, 422 for what cannot be combined.
    pub(crate) fn parse(
        query: &Query,
        resource: &Resource,
        name: &str,
    ) -> Result<Self, Box<Status>> {
        let timeout_seconds = query.number("timeoutSeconds")?;
        let limit = query.number("limit")?.unwrap_or_default();
        let selectors = Selectors::parse(query)?;

        let mut version_match = query.text("resourceVersionMatch").to_owned();
        let mut send_initial_events = query.flag("sendInitialEvents");
        let resource_version = query.text("resourceVersion").to_owned();
        let watch = query.flag("watch") == Some(true);
        let is_anywhere = matches!(resource_version.as_str(), "" | "0");
        if watch && is_anywhere && send_initial_events.is_none() && version_match.is_empty() {
            // Watches that begin anywhere always began with what is there.
            send_initial_events = Some(true);
            version_match = "NotOlderThan".to_owned();
        }
        let continue_token = query.text("continue").to_owned();
        let combination = Combination {
            version_match: &version_match,
            resource_version: &resource_version,
            is_continued: !continue_token.is_empty(),
            send_initial_events: send_initial_events.is_some(),
        };
        let errors = if watch { combination.check_watch() } else { combination.check_list() };
        if !errors.is_empty() {
            let kind = GroupKind::new("meta.k8s.io", "ListOptions");
            return Err(Box::new(Status::invalid(&kind, "", &errors)));
        }
        Ok(ListOptions {
            selection: selectors.selection(resource, name)?,
            resource_version,
            version_match: match version_match.as_str() {
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            limit: usize::try_from(limit).ok().filter(|limit| *limit > 0),
            continue_token,
            allow_bookmarks: query.flag("allowWatchBookmarks") == Some(true),
            send_initial_events,
            timeout_seconds,
        })
    }
}

/// A version as a number; both unset and `0` are zero.
///
/// # Errors
/// The field that is wrong.
pub(crate) fn version(text: &str) -> Result<u64, Box<field::Error>> {
    stated_version(text)
        .map_err(|why| Box::new(field::Error::invalid(&Path::new("resourceVersion"), text, why)))
}

/// The version that an object says it has, as a number.
///
/// # Errors
/// In the words of Go.
pub(crate) fn stated_version(text: &str) -> Result<u64, String> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        _ if text.is_empty() => Ok(0),
        Ok(version) if digits_only => Ok(version),
        _ => {
            let why = if digits_only { "value out of range" } else { "invalid syntax" };
            Err(format!("strconv.ParseUint: parsing {}: {why}", go_quote(text)))
        }
    }
}

/// An error that upstream passes on as it is.
pub(crate) fn unexpected(error: impl ToString) -> Box<Status> {
    Box::new(Status::failure(500, Reason::Unknown, error.to_string()))
}

/// Both selectors, read but not yet understood.
struct Selectors {
    labels: kubewright_apimachinery::selector::label::Selector,
    fields: kubewright_apimachinery::selector::field::Selector,
}

impl Selectors {
    fn parse(query: &Query) -> Result<Self, Box<Status>> {
        use kubewright_apimachinery::selector::{field, label};
        let labels = label::Selector::parse(query.text("labelSelector")).map_err(bad_request)?;
        let fields = field::Selector::parse(query.text("fieldSelector")).map_err(bad_request)?;
        Ok(Selectors { labels, fields })
    }

    fn selection(self, resource: &Resource, name: &str) -> Result<Selection, Box<Status>> {
        let selection = Selection::new(resource, self.labels, self.fields).map_err(bad_request)?;
        if name.is_empty() {
            return Ok(selection);
        }
        match selection.name() {
            Some(selected) if selected == name => Ok(selection),
            None if !selection.has_fields() => Ok(selection.with_name(name)),
            _ => Err(bad_request("fieldSelector metadata.name doesn't match requested name")),
        }
    }
}

fn bad_request(why: impl ToString) -> Box<Status> {
    Box::new(Status::bad_request(why.to_string()))
}

/// Options that do not go with all others.
struct Combination<'a> {
    version_match: &'a str,
    resource_version: &'a str,
    is_continued: bool,
    send_initial_events: bool,
}

impl Combination<'_> {
    fn check_list(&self) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let path = Path::new("resourceVersionMatch");
        if !self.version_match.is_empty() {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(field::Error::forbidden(&path, why));
            }
            if self.is_continued {
                errors.push(field::Error::forbidden(&path, CONTINUED));
            }
            if !matches!(self.version_match, "Exact" | "NotOlderThan") {
                let known = ["Exact", "NotOlderThan", ""];
                errors.push(field::Error::not_supported(&path, self.version_match, &known));
            }
            if self.version_match == "Exact" && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(field::Error::forbidden(&path, why));
            }
        }
        if self.send_initial_events {
            let path = Path::new("sendInitialEvents");
            let why = "sendInitialEvents is forbidden for list";
            errors.push(field::Error::forbidden(&path, why));
        }
        errors
    }

    fn check_watch(&self) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let path = Path::new("resourceVersionMatch");
        if self.send_initial_events && self.version_match != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(field::Error::forbidden(&path, why));
        }
        if self.version_match.is_empty() {
            return errors;
        }
        if !self.send_initial_events {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                       provided";
            errors.push(field::Error::forbidden(&path, why));
        }
        if self.version_match != "NotOlderThan" {
            let known = ["NotOlderThan"];
            errors.push(field::Error::not_supported(&path, self.version_match, &known));
        }
        if self.is_continued {
            errors.push(field::Error::forbidden(&path, CONTINUED));
        }
        errors
    }
}

const CONTINUED: &str = "resourceVersionMatch is forbidden when continue is provided";
