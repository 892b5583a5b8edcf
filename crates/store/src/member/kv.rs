//! Reading and writing keys.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

use prost::Message as _;
use tonic::{Request, Response, Status};

use super::keys::{self, Meta, Span};
use super::{Member, refusal, txn};
use crate::etcd::wire::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
    kv_server::Kv,
    range_request::{SortOrder, SortTarget},
};
use crate::image::Image;
use crate::{At, Query, Rev, Revision};

#[tonic::async_trait]
impl Kv for Member {
    async fn range(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeResponse>, Status> {
        let request = request.into_inner();
        check_range(&request)?;
        let snapshot = self.0.image.snapshot();
        let span = Span::new(request.key.clone(), request.range_end.clone());
        let found = match request.revision {
            revision if revision <= 0 => latest(&snapshot, &span),
            revision => self.at(Revision::new(revision), &span)?,
        };
        let header = self.header(snapshot.revision());
        Ok(Response::new(RangeResponse { header, ..select(&request, found) }))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let request = request.into_inner();
        self.check_size(request.encoded_len())?;
        txn::check_put(&request)?;
        let (answer, revision) =
            self.transact(move |view, leases| txn::put(view, leases, &request)).await?;
        Ok(Response::new(PutResponse { header: self.header(revision), ..answer }))
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let request = request.into_inner();
        self.check_size(request.encoded_len())?;
        txn::check_delete(&request)?;
        let (answer, revision) =
            self.transact(move |view, _| Ok(txn::delete(view, &request))).await?;
        Ok(Response::new(DeleteRangeResponse { header: self.header(revision), ..answer }))
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let request = request.into_inner();
        self.check_size(request.encoded_len())?;
        txn::check(&request, self.0.options.txn_ops_max)?;
        let member = self.clone();
        let (mut answer, revision) =
            self.transact(move |view, leases| txn::run(view, leases, &member, &request)).await?;
        txn::date(&mut answer, revision);
        Ok(Response::new(TxnResponse { header: self.header(revision), ..answer }))
    }

    async fn compact(
        &self,
        request: Request<CompactionRequest>,
    ) -> Result<Response<CompactionResponse>, Status> {
        let revision = Revision::new(request.into_inner().revision);
        let current = self.0.image.revision();
        if revision > current {
            return Err(refusal::future());
        }
        if self.0.compacted.fetch_max(revision.get(), AcqRel) >= revision.get() {
            return Err(refusal::compacted());
        }
        self.0.image.compact(revision);
        Ok(Response::new(CompactionResponse { header: self.header(current) }))
    }
}

impl Member {
    /// What keys held at a revision that is past.
    pub(super) fn at(
        &self,
        revision: Revision,
        span: &Span,
    ) -> Result<Vec<Arc<Rev<Meta>>>, Status> {
        if revision < self.compacted() {
            return Err(refusal::compacted());
        }
        at(&self.0.image, revision, span)
    }

    fn check_size(&self, bytes: usize) -> Result<(), Status> {
        match bytes > self.0.options.request_bytes_max {
            true => Err(refusal::too_large()),
            false => Ok(()),
        }
    }
}

fn at(
    image: &Arc<Image<Meta>>,
    revision: Revision,
    span: &Span,
) -> Result<Vec<Arc<Rev<Meta>>>, Status> {
    let snapshot = image.snapshot();
    if revision == snapshot.revision() {
        return Ok(latest(&snapshot, span));
    }
    let query = Query { at: At::Exactly(revision), ..Query::prefix(span.prefix()) };
    let found = image.range(&query)?;
    let inside = found.iter().filter(|rev| span.contains(rev.key.as_str().as_bytes()));
    Ok(inside.cloned().collect())
}

fn latest(snapshot: &crate::Snapshot<Meta>, span: &Span) -> Vec<Arc<Rev<Meta>>> {
    if let Some(key) = span.only() {
        return snapshot.get(key).cloned().into_iter().collect();
    }
    let (start, end) = span.bounds();
    snapshot.between(start, end.as_deref()).iter().cloned().collect()
}

pub(super) fn check_range(request: &RangeRequest) -> Result<(), Status> {
    if request.key.is_empty() {
        return Err(refusal::empty_key());
    }
    let known = SortOrder::try_from(request.sort_order).is_ok()
        && SortTarget::try_from(request.sort_target).is_ok();
    match known {
        true => Ok(()),
        false => Err(Status::invalid_argument("etcdserver: invalid sort option")),
    }
}

/// What of the keys that were found is asked for. They come in order of key.
pub(super) fn select(request: &RangeRequest, mut found: Vec<Arc<Rev<Meta>>>) -> RangeResponse {
    let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
    if request.count_only {
        return RangeResponse { count, ..RangeResponse::default() };
    }
    let within = |number: i64, min: i64, max: i64| {
        (min == 0 || number >= min) && (max == 0 || number <= max)
    };
    found.retain(|rev| {
        let (changed, created) = (rev.revision.get(), rev.created.get());
        within(changed, request.min_mod_revision, request.max_mod_revision)
            && within(created, request.min_create_revision, request.max_create_revision)
    });
    sort(request, &mut found);
    let limit = usize::try_from(request.limit).unwrap_or(0);
    let more = limit > 0 && found.len() > limit;
    if more {
        found.truncate(limit);
    }
    let form = if request.keys_only { keys::key_only } else { keys::key_value };
    let kvs = found.iter().map(|rev| form(rev)).collect();
    RangeResponse { header: None, kvs, more, count }
}

fn sort(request: &RangeRequest, found: &mut [Arc<Rev<Meta>>]) {
    let target = request.sort_target();
    let descend = match request.sort_order() {
        // Only by key are they in order already.
        SortOrder::None if target == SortTarget::Key => return,
        SortOrder::None | SortOrder::Ascend => false,
        SortOrder::Descend => true,
    };
    let compare = |a: &Arc<Rev<Meta>>, b: &Arc<Rev<Meta>>| -> Ordering {
        match target {
            SortTarget::Key => a.key.cmp(&b.key),
            SortTarget::Version => a.extracted.version.cmp(&b.extracted.version),
            SortTarget::Create => a.created.cmp(&b.created),
            SortTarget::Mod => a.revision.cmp(&b.revision),
            SortTarget::Value => keys::value(a).cmp(keys::value(b)),
        }
    };
    found.sort_by(|a, b| if descend { compare(b, a) } else { compare(a, b) });
}
