//! What is kept of certificates, and what should become of it.
//!
//! An authority is followed by another one in three steps, so that at no time somebody shows a
//! certificate that others do not believe yet, or not any more: the next one is made and the
//! server told to believe both; when it has had time to hear of that, the next one signs; and the
//! former is believed until it ends.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::authority::{Authority, IssueError, Pair, Term, split};

/// An authority and what it has signed, as a Secret keeps it. Whatever is not there, or cannot be
/// read, is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The one that signs.
    pub authority: Pair,
    /// The one that will.
    pub next: Option<Pair>,
    /// All who may have signed what is shown somewhere, in PEM.
    pub believed: Vec<String>,
    /// What servers show.
    pub serving: Pair,
}

/// What certificates there should be.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What authorities are called.
    pub authority: String,
    /// Names and addresses of the server.
    pub names: Vec<String>,
    pub lifetimes: Lifetimes,
}

/// How long certificates last. They are replaced when two thirds of that are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    pub authority: Duration,
    pub serving: Duration,
    /// How long an authority is believed before it signs.
    pub overlap: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Lifetimes { authority: 365 * DAY, serving: 90 * DAY, overlap: Duration::from_hours(1) }
    }
}

impl Wanted {
    /// Certificates for a Service in a cluster.
    pub fn for_service(namespace: &str, service: &str) -> Self {
        let names = ["svc", "svc.cluster.local"];
        let names = names.iter().map(|domain| format!("{service}.{namespace}.{domain}"));
        Wanted {
            authority: format!("{service}.{namespace}"),
            names: names.collect(),
            lifetimes: Lifetimes::default(),
        }
    }

    /// Certificates for a process that is called at a host, or on its own machine.
    pub fn for_host(host: &str) -> Self {
        let mut wanted = Wanted::for_localhost();
        if !wanted.names.iter().any(|it| it == host) {
            wanted.names.push(host.to_owned());
        }
        wanted
    }

    /// Certificates for a process that is called on its own machine.
    pub fn for_localhost() -> Self {
        Wanted {
            authority: "localhost".to_owned(),
            names: ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into(),
            lifetimes: Lifetimes::default(),
        }
    }
}

/// What should be kept instead; the same if all is well. `is_told` is whether everybody who must
/// believe has heard of all that [`Kept::bundle`] has.
///
/// # Errors
/// If certificates cannot be made at all.
pub fn plan(
    kept: &Kept,
    wanted: &Wanted,
    is_told: bool,
    now: Timestamp,
) -> Result<Kept, IssueError> {
    let Lifetimes { authority: lifetime, serving, overlap } = wanted.lifetimes;
    let new = || Authority::new(&wanted.authority, lifetime, now);
    let (current, next) = (usable(&kept.authority, now), kept.next.as_ref());
    let next = next.and_then(|next| usable(next, now));
    let (authority, term, next) = match (current, next) {
        (None, None) => {
            let authority = new()?;
            let term = Term::of(&authority.pair().certificate);
            (authority, term, None)
        }
        // Nobody can wait any longer.
        (None, Some((next, term))) => (next, Some(term), None),
        (Some(_), Some((next, term))) if is_told && now >= term.begin + overlap => {
            (next, Some(term), None)
        }
        (Some((authority, term)), Some((next, _))) => (authority, Some(term), Some(next)),
        (Some((authority, term)), None) => {
            let next = if term.is_late(now) { Some(new()?) } else { None };
            (authority, Some(term), next)
        }
    };
    let is_good = authority.stands_by(&kept.serving, &wanted.names)
        && Term::of(&kept.serving.certificate).is_some_and(|term| !term.is_late(now));
    let serving = match is_good {
        true => kept.serving.clone(),
        false => {
            // Nobody is believed for longer than who vouches for them.
            let rest = term.and_then(|term| term.end.duration_since(now).try_into().ok());
            let lifetime = rest.map_or(serving, |rest| serving.min(rest));
            authority.issue(&wanted.names, lifetime, now)?
        }
    };
    let next = next.map(|next| next.pair().clone());
    let mut believed = vec![authority.pair().certificate.clone()];
    believed.extend(next.iter().map(|next| next.certificate.clone()));
    for former in &kept.believed {
        let is_over = Term::of(former).is_none_or(|term| term.is_over(now));
        if !is_over && !believed.contains(former) {
            believed.push(former.clone());
        }
    }
    Ok(Kept { authority: authority.pair().clone(), next, believed, serving })
}

fn usable(pair: &Pair, now: Timestamp) -> Option<(Authority, Term)> {
    let authority = Authority::from_pair(pair).ok()?;
    let term = Term::of(&pair.certificate)?;
    (!term.is_over(now)).then_some((authority, term))
}

impl Kept {
    /// Whom to believe, in PEM.
    pub fn bundle(&self) -> String {
        self.believed.concat()
    }

    /// Whether what it has for servers can be shown now.
    pub(super) fn is_servable(&self, now: Timestamp) -> bool {
        let is_running = Term::of(&self.serving.certificate).is_some_and(|term| !term.is_over(now));
        is_running && !self.serving.key.is_empty()
    }

    /// From the `data` of a Secret.
    pub fn read(data: &BTreeMap<String, ByteString>) -> Self {
        let text = |name: &str| {
            let bytes = data.get(name).map(|bytes| bytes.0.clone()).unwrap_or_default();
            String::from_utf8(bytes).unwrap_or_default()
        };
        let believed = split(&text("ca.crt"));
        let pair = |certificate: String, key| Pair { certificate, key: text(key) };
        Kept {
            authority: pair(believed.first().cloned().unwrap_or_default(), "ca.key"),
            next: data.get("next.key").map(|_| pair(text("next.crt"), "next.key")),
            serving: pair(text("tls.crt"), "tls.key"),
            believed,
        }
    }

    /// The `data` of a Secret of type `kubernetes.io/tls`.
    pub fn write(&self) -> BTreeMap<String, ByteString> {
        let Kept { authority, next, serving, .. } = self;
        let next =
            next.clone().map(|next| [("next.crt", next.certificate), ("next.key", next.key)]);
        [
            ("ca.crt", self.bundle()),
            ("ca.key", authority.key.clone()),
            ("tls.crt", serving.certificate.clone()),
            ("tls.key", serving.key.clone()),
        ]
        .into_iter()
        .chain(next.into_iter().flatten())
        .map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())))
        .collect()
    }
}
