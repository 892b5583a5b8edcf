//! Transactions: comparisons, then one of two lists of operations, all at one revision.

use std::collections::HashSet;
use std::sync::Arc;

use tonic::Status;

use super::keys::{self, Meta, Span};
use super::kv::{check_range, select};
use super::lease::Leases;
use super::{Member, refusal};
use crate::commit::Transaction;
use crate::etcd::wire::{
    Compare, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest,
    RangeResponse, RequestOp, ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op, response_op,
};
use crate::{Key, Rev, Revision};

/// Which way each transaction of a tree goes: every comparison is made before anything changes.
struct Path<'a> {
    succeeded: bool,
    steps: Vec<Step<'a>>,
}

enum Step<'a> {
    Range(&'a RangeRequest),
    Put(&'a PutRequest),
    Delete(&'a DeleteRangeRequest),
    Txn(Path<'a>),
    Nothing,
}

/// Whether a request makes sense, whatever the keys are.
pub(super) fn check(request: &TxnRequest, ops_max: usize) -> Result<(), Status> {
    let longest = request.compare.len().max(request.success.len()).max(request.failure.len());
    if longest > ops_max {
        return Err(refusal::too_many_operations());
    }
    if request.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(refusal::empty_key());
    }
    for ops in [&request.success, &request.failure] {
        for op in ops {
            match &op.request {
                Some(request_op::Request::RequestRange(range)) => check_range(range)?,
                Some(request_op::Request::RequestPut(put)) => check_put(put)?,
                Some(request_op::Request::RequestDeleteRange(delete)) => check_delete(delete)?,
                Some(request_op::Request::RequestTxn(nested)) => check(nested, ops_max)?,
                None => return Err(refusal::key_not_found()),
            }
        }
        check_once(ops)?;
    }
    Ok(())
}

/// No key is written twice by one list.
fn check_once(ops: &[RequestOp]) -> Result<(), Status> {
    let (mut puts, mut deletes) = (Vec::new(), Vec::new());
    written(ops, &mut puts, &mut deletes);
    let mut seen = HashSet::new();
    let twice = puts.iter().any(|key| !seen.insert(key.clone()));
    let overlap = puts.iter().any(|key| deletes.iter().any(|span| span.contains(key)));
    match twice || overlap {
        true => Err(refusal::duplicate_key()),
        false => Ok(()),
    }
}

fn written(ops: &[RequestOp], puts: &mut Vec<bytes::Bytes>, deletes: &mut Vec<Span>) {
    for op in ops {
        match &op.request {
            Some(request_op::Request::RequestPut(put)) => puts.push(put.key.clone()),
            Some(request_op::Request::RequestDeleteRange(delete)) => {
                deletes.push(Span::new(delete.key.clone(), delete.range_end.clone()));
            }
            // Only one of the two lists of a nested one is carried out, so each is checked with
            // what is around it.
            Some(request_op::Request::RequestTxn(nested)) => {
                written(&nested.success, puts, deletes);
            }
            _ => {}
        }
    }
}

pub(super) fn check_put(request: &PutRequest) -> Result<(), Status> {
    if request.key.is_empty() {
        return Err(refusal::empty_key());
    }
    if request.ignore_value && !request.value.is_empty() {
        return Err(refusal::value_provided());
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(refusal::lease_provided());
    }
    match str::from_utf8(&request.key) {
        Ok(_) => Ok(()),
        Err(_) => Err(refusal::key_not_text()),
    }
}

pub(super) fn check_delete(request: &DeleteRangeRequest) -> Result<(), Status> {
    match request.key.is_empty() {
        true => Err(refusal::empty_key()),
        false => Ok(()),
    }
}

/// Carries out a transaction that [`check`] let pass.
pub(super) fn run(
    view: &mut Transaction<'_, Meta>,
    leases: &Leases,
    member: &Member,
    request: &TxnRequest,
) -> Result<TxnResponse, Status> {
    let path = choose(view, request);
    apply(view, leases, member, path)
}

fn choose<'a>(view: &Transaction<'_, Meta>, request: &'a TxnRequest) -> Path<'a> {
    let succeeded = request.compare.iter().all(|compare| holds(view, compare));
    let ops = if succeeded { &request.success } else { &request.failure };
    let step = |op: &'a RequestOp| match &op.request {
        Some(request_op::Request::RequestRange(range)) => Step::Range(range),
        Some(request_op::Request::RequestPut(put)) => Step::Put(put),
        Some(request_op::Request::RequestDeleteRange(delete)) => Step::Delete(delete),
        Some(request_op::Request::RequestTxn(nested)) => Step::Txn(choose(view, nested)),
        None => Step::Nothing,
    };
    Path { succeeded, steps: ops.iter().map(step).collect() }
}

fn apply(
    view: &mut Transaction<'_, Meta>,
    leases: &Leases,
    member: &Member,
    path: Path<'_>,
) -> Result<TxnResponse, Status> {
    let mut responses = Vec::with_capacity(path.steps.len());
    for step in path.steps {
        let response = match step {
            Step::Range(range) => {
                Some(response_op::Response::ResponseRange(read(view, member, range)?))
            }
            Step::Put(request) => {
                Some(response_op::Response::ResponsePut(put(view, leases, request)?))
            }
            Step::Delete(request) => {
                Some(response_op::Response::ResponseDeleteRange(delete(view, request)))
            }
            Step::Txn(path) => {
                Some(response_op::Response::ResponseTxn(apply(view, leases, member, path)?))
            }
            Step::Nothing => None,
        };
        responses.push(ResponseOp { response });
    }
    Ok(TxnResponse { header: None, succeeded: path.succeeded, responses })
}

fn read(
    view: &Transaction<'_, Meta>,
    member: &Member,
    request: &RangeRequest,
) -> Result<RangeResponse, Status> {
    let span = Span::new(request.key.clone(), request.range_end.clone());
    let revision = Revision::new(request.revision);
    let found = match request.revision {
        at if at <= 0 || revision == view.as_of() => within(view, &span),
        // What is decided and not yet visible has no history yet.
        _ => member.at(revision, &span)?,
    };
    Ok(select(request, found))
}

pub(super) fn put(
    view: &mut Transaction<'_, Meta>,
    leases: &Leases,
    request: &PutRequest,
) -> Result<PutResponse, Status> {
    let key = str::from_utf8(&request.key).map_err(|_| refusal::key_not_text())?;
    let previous = view.get(key).cloned();
    let known = || previous.as_ref().ok_or_else(refusal::key_not_found);
    let value = match request.ignore_value {
        true => keys::value(known()?),
        false => &request.value,
    };
    let mut meta = previous.as_ref().map_or_else(Meta::default, |rev| rev.extracted);
    meta.version += 1;
    if request.ignore_lease {
        known()?;
    } else {
        meta.lease = request.lease;
        meta.lease_seconds = match request.lease {
            0 => 0,
            lease => leases.seconds(lease).ok_or_else(refusal::lease_not_found)?,
        };
    }
    view.put(&Key::from(key), keys::stored(meta, value), meta);
    let prev_kv = previous.filter(|_| request.prev_kv).map(|rev| keys::key_value(&rev));
    Ok(PutResponse { header: None, prev_kv })
}

pub(super) fn delete(
    view: &mut Transaction<'_, Meta>,
    request: &DeleteRangeRequest,
) -> DeleteRangeResponse {
    let span = Span::new(request.key.clone(), request.range_end.clone());
    let found = within(view, &span);
    for rev in &found {
        view.delete(&rev.key);
    }
    let prev_kvs = if request.prev_kv { keys::key_values(&found) } else { Vec::new() };
    let deleted = i64::try_from(found.len()).unwrap_or(i64::MAX);
    DeleteRangeResponse { header: None, deleted, prev_kvs }
}

/// Tells every answer of a transaction the revision it was given at.
pub(super) fn date(answer: &mut TxnResponse, revision: Revision) {
    let header = || Some(ResponseHeader { revision: revision.get(), ..ResponseHeader::default() });
    for response in &mut answer.responses {
        match &mut response.response {
            Some(response_op::Response::ResponseRange(range)) => range.header = header(),
            Some(response_op::Response::ResponsePut(put)) => put.header = header(),
            Some(response_op::Response::ResponseDeleteRange(delete)) => delete.header = header(),
            Some(response_op::Response::ResponseTxn(nested)) => {
                nested.header = header();
                date(nested, revision);
            }
            None => {}
        }
    }
}

fn within(view: &Transaction<'_, Meta>, span: &Span) -> Vec<Arc<Rev<Meta>>> {
    if let Some(key) = span.only() {
        return view.get(key).cloned().into_iter().collect();
    }
    let (start, end) = span.bounds();
    view.between(start, end.as_deref())
}

fn holds(view: &Transaction<'_, Meta>, compare: &Compare) -> bool {
    let span = Span::new(compare.key.clone(), compare.range_end.clone());
    let found = within(view, &span);
    match found.is_empty() {
        // What is not there has no value, and zeros for all else.
        true => compare.target() != CompareTarget::Value && fits(compare, None),
        false => found.iter().all(|rev| fits(compare, Some(rev))),
    }
}

fn fits(compare: &Compare, rev: Option<&Rev<Meta>>) -> bool {
    let number = |of: fn(&Rev<Meta>) -> i64| rev.map_or(0, of);
    let order = match (compare.target(), &compare.target_union) {
        (CompareTarget::Version, union) => {
            let wanted = match union {
                Some(TargetUnion::Version(wanted)) => *wanted,
                _ => 0,
            };
            number(|rev| rev.extracted.version).cmp(&wanted)
        }
        (CompareTarget::Create, union) => {
            let wanted = match union {
                Some(TargetUnion::CreateRevision(wanted)) => *wanted,
                _ => 0,
            };
            number(|rev| rev.created.get()).cmp(&wanted)
        }
        (CompareTarget::Mod, union) => {
            let wanted = match union {
                Some(TargetUnion::ModRevision(wanted)) => *wanted,
                _ => 0,
            };
            number(|rev| rev.revision.get()).cmp(&wanted)
        }
        (CompareTarget::Lease, union) => {
            let wanted = match union {
                Some(TargetUnion::Lease(wanted)) => *wanted,
                _ => 0,
            };
            number(|rev| rev.extracted.lease).cmp(&wanted)
        }
        (CompareTarget::Value, union) => {
            let wanted: &[u8] = match union {
                Some(TargetUnion::Value(wanted)) => wanted,
                _ => &[],
            };
            rev.map_or(&[][..], |rev| keys::value(rev)).cmp(wanted)
        }
    };
    match compare.result() {
        CompareResult::Equal => order.is_eq(),
        CompareResult::Greater => order.is_gt(),
        CompareResult::Less => order.is_lt(),
        CompareResult::NotEqual => order.is_ne(),
    }
}
