//! Watches: any number of them on one stream, each a cursor into the same history.
//!
//! The stream itself does all the work when the connection asks it for more, so a client that does
//! not read holds up nobody, and needs no queue.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch as channel;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tonic::{Request, Response, Status, Streaming};

use super::Member;
use super::keys::{self, Meta, Span};
use crate::etcd::wire::{
    Event as EventMessage, KeyValue, WatchCreateRequest, WatchRequest, WatchResponse,
    event::EventType, watch_create_request::FilterType, watch_request::RequestUnion,
    watch_server::Watch as WatchApi,
};
use crate::{Event, Revision, Start, Watch, WatchError};

/// All watches of one stream.
struct Session {
    member: Member,
    requests: Streaming<WatchRequest>,
    watchers: BTreeMap<i64, Watcher>,
    next_id: i64,
    /// To be sent.
    ready: VecDeque<WatchResponse>,
    /// Rings when there may be more.
    changed: channel::Receiver<()>,
    closing: channel::Receiver<bool>,
    ticks: Interval,
    /// The client wants to know how far it has come.
    progress_asked: bool,
}

struct Watcher {
    span: Span,
    watch: Watch<Meta>,
    /// Nothing older is told, though it comes.
    start: Revision,
    filters: Vec<FilterType>,
    prev_kv: bool,
    progress_notify: bool,
    last_told: Instant,
}

/// Not the number of any watch.
const ALL: i64 = -1;

#[tonic::async_trait]
impl WatchApi for Member {
    type WatchStream = BoxStream<'static, Result<WatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let session = Session::new(self.clone(), request.into_inner());
        let responses = stream::unfold(session, |mut session| async {
            let response = session.next().await?;
            Some((Ok(response), session))
        });
        Ok(Response::new(responses.boxed()))
    }
}

impl Session {
    fn new(member: Member, requests: Streaming<WatchRequest>) -> Self {
        let interval = member.0.options.progress_interval;
        let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Session {
            requests,
            watchers: BTreeMap::new(),
            next_id: 0,
            ready: VecDeque::new(),
            changed: member.0.image.resource("").subscribe(),
            closing: member.0.closing.subscribe(),
            ticks,
            progress_asked: false,
            member,
        }
    }

    /// The next response; waits for it. None when the client has gone or the member stops.
    async fn next(&mut self) -> Option<WatchResponse> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            // Before looking, so that whatever comes later rings again.
            self.changed.borrow_and_update();
            let seen = self.member.0.image.revision();
            self.collect();
            if !self.ready.is_empty() {
                continue;
            }
            // Everything up to here has been told.
            if std::mem::take(&mut self.progress_asked) {
                return Some(self.response(ALL, seen));
            }
            tokio::select! {
                () = closed(&mut self.closing) => return None,
                request = self.requests.message() => match request {
                    Ok(Some(request)) => self.obey(request),
                    // A client that asks for no more may still listen, but none does.
                    Ok(None) | Err(_) => return None,
                },
                _ = self.changed.changed() => {}
                now = self.ticks.tick() => self.notify(now, seen),
            }
        }
    }

    fn obey(&mut self, request: WatchRequest) {
        match request.request_union {
            Some(RequestUnion::CreateRequest(create)) => self.create(create),
            Some(RequestUnion::CancelRequest(cancel)) => self.cancel(cancel.watch_id),
            Some(RequestUnion::ProgressRequest(_)) => self.progress_asked = true,
            None => {}
        }
    }

    fn cancel(&mut self, id: i64) {
        if self.watchers.remove(&id).is_some() {
            let response = self.response(id, self.member.0.image.revision());
            self.ready.push_back(WatchResponse { canceled: true, ..response });
        }
    }

    fn create(&mut self, request: WatchCreateRequest) {
        let revision = self.member.0.image.revision();
        // The first key there could be.
        let first = Bytes::from_static(&[0]);
        let key = if request.key.is_empty() { first } else { request.key.clone() };
        let span = Span::new(key, request.range_end.clone());
        let id = match request.watch_id {
            0 => {
                while self.watchers.contains_key(&self.next_id) {
                    self.next_id += 1;
                }
                self.next_id += 1;
                self.next_id - 1
            }
            taken if self.watchers.contains_key(&taken) => {
                let refused = self.response(ALL, revision);
                self.ready.push_back(WatchResponse {
                    created: true,
                    canceled: true,
                    cancel_reason: "mvcc: duplicate watch ID provided on the WatchStream".into(),
                    ..refused
                });
                return;
            }
            id => id,
        };
        let created = WatchResponse { created: true, ..self.response(id, revision) };
        self.ready.push_back(created);
        let asked = Revision::new(request.start_revision);
        let compacted = self.member.compacted();
        let start = match request.start_revision {
            // A watch may well begin in the future; what is written from here on is not missed.
            start if start <= 0 || asked > revision => Ok(Start::After(revision)),
            _ if asked < compacted => Err(compacted),
            start => Ok(Start::After(Revision::new(start - 1))),
        };
        let watch = start.and_then(|start| {
            self.watch(&span, start).map_err(|oldest| Revision::new(oldest.get() + 1))
        });
        match watch {
            Ok(watch) => {
                let watcher = Watcher {
                    watch,
                    start: asked,
                    filters: request.filters().collect(),
                    prev_kv: request.prev_kv,
                    progress_notify: request.progress_notify,
                    last_told: Instant::now(),
                    span,
                };
                self.watchers.insert(id, watcher);
            }
            Err(oldest) => self.ready.push_back(self.compacted(id, oldest)),
        }
    }

    /// Or the oldest revision after which a watch can begin.
    fn watch(&self, span: &Span, start: Start) -> Result<Watch<Meta>, Revision> {
        let image = &self.member.0.image;
        Watch::new(image.clone(), span.prefix(), start).map_err(|error| match error {
            WatchError::Compacted { oldest, .. } => oldest,
            WatchError::Future { current, .. } => current,
            WatchError::Closed => image.revision(),
        })
    }

    /// Gets ready what the watchers have not told yet.
    fn collect(&mut self) {
        let mut ended = Vec::new();
        for (id, watcher) in &mut self.watchers {
            match watcher.take() {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    let revision = watcher.watch.progress();
                    watcher.last_told = Instant::now();
                    self.ready.push_back(WatchResponse {
                        header: self.member.header(revision),
                        watch_id: *id,
                        events,
                        ..WatchResponse::default()
                    });
                }
                Err(oldest) => ended.push((*id, oldest)),
            }
        }
        for (id, oldest) in ended {
            self.watchers.remove(&id);
            let response = self.compacted(id, Revision::new(oldest.get() + 1));
            self.ready.push_back(response);
        }
    }

    /// Tells quiet watchers that asked for it how far they have come.
    fn notify(&mut self, now: Instant, seen: Revision) {
        let interval = self.member.0.options.progress_interval;
        let mut quiet = Vec::new();
        for (id, watcher) in &mut self.watchers {
            if watcher.progress_notify && now.duration_since(watcher.last_told) >= interval {
                watcher.last_told = now;
                quiet.push(*id);
            }
        }
        for id in quiet {
            let response = self.response(id, seen);
            self.ready.push_back(response);
        }
    }

    fn response(&self, watch_id: i64, revision: Revision) -> WatchResponse {
        WatchResponse { header: self.member.header(revision), watch_id, ..WatchResponse::default() }
    }

    fn compacted(&self, watch_id: i64, oldest: Revision) -> WatchResponse {
        let revision = self.member.0.image.revision();
        WatchResponse {
            canceled: true,
            compact_revision: oldest.get(),
            ..self.response(watch_id, revision)
        }
    }
}

async fn closed(closing: &mut channel::Receiver<bool>) {
    // An error says that there is nobody left to stop, which means the same.
    let _ = closing.wait_for(|closing| *closing).await;
}

impl Watcher {
    /// The events to tell; an error is the oldest revision after which they are known.
    fn take(&mut self) -> Result<Vec<EventMessage>, Revision> {
        let mut messages = Vec::new();
        loop {
            let events = match self.watch.take() {
                Ok(events) => events,
                Err(WatchError::Compacted { oldest, .. }) => return Err(oldest),
                Err(_) => return Ok(messages),
            };
            if events.is_empty() {
                return Ok(messages);
            }
            let told = events.iter().filter(|event| self.tells(event));
            messages.extend(told.map(|event| message(event, self.prev_kv)));
            if !messages.is_empty() {
                return Ok(messages);
            }
        }
    }

    fn tells(&self, event: &Event<Meta>) -> bool {
        let filter = match event.current {
            Some(_) => FilterType::Noput,
            None => FilterType::Nodelete,
        };
        event.revision >= self.start
            && self.span.contains(event.key.as_str().as_bytes())
            && !self.filters.contains(&filter)
    }
}

fn message(event: &Event<Meta>, prev_kv: bool) -> EventMessage {
    let (kind, kv) = match &event.current {
        Some(rev) => (EventType::Put, keys::key_value(rev)),
        None => {
            let key = event.key.as_str().as_bytes().to_vec();
            let mod_revision = event.revision.get();
            (EventType::Delete, KeyValue { key, mod_revision, ..KeyValue::default() })
        }
    };
    EventMessage {
        r#type: kind.into(),
        kv: Some(kv),
        prev_kv: event.previous.as_ref().filter(|_| prev_kv).map(|rev| keys::key_value(rev)),
    }
}
