//! What a member says of itself, over gRPC and over plain HTTP.

use axum::Router;
use axum::http::{StatusCode, header::CONTENT_TYPE};
use axum::routing::get;
use futures::stream::BoxStream;
use tonic::{Request, Response, Status};

use super::{Member, TERM, VERSION, refusal};
use crate::etcd::wire::{
    AlarmRequest, AlarmResponse, DefragmentRequest, DefragmentResponse, Member as MemberMessage,
    MemberListRequest, MemberListResponse, SnapshotRequest, SnapshotResponse, StatusRequest,
    StatusResponse, cluster_server::Cluster, maintenance_server::Maintenance,
};

const JSON: [(axum::http::HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

/// The paths that are no gRPC, besides those of `router`.
pub(super) fn routes(member: Member, router: Router) -> Router {
    let health = {
        let member = member.clone();
        move || async move { member.health() }
    };
    let alive = move || async move {
        match member.0.image.halted() {
            None => (StatusCode::OK, "ok"),
            Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "the storage has failed"),
        }
    };
    router
        .route("/health", get(health))
        .route("/livez", get(alive.clone()))
        .route("/readyz", get(alive))
        .route("/version", get(|| async { (JSON, version()) }))
}

fn version() -> String {
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor);
    format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"{minor}.0","storage":"{minor}.0"}}"#)
}

impl Member {
    fn health(&self) -> (StatusCode, [(axum::http::HeaderName, &'static str); 1], &'static str) {
        match self.0.image.halted() {
            None => (StatusCode::OK, JSON, r#"{"health":"true","reason":""}"#),
            Some(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                JSON,
                r#"{"health":"false","reason":"the storage has failed"}"#,
            ),
        }
    }
}

#[tonic::async_trait]
impl Maintenance for Member {
    type SnapshotStream = BoxStream<'static, Result<SnapshotResponse, Status>>;

    /// There are none to be raised by hand.
    async fn alarm(
        &self,
        _request: Request<AlarmRequest>,
    ) -> Result<Response<AlarmResponse>, Status> {
        let header = self.header(self.0.image.revision());
        Ok(Response::new(AlarmResponse { header, alarms: Vec::new() }))
    }

    async fn status(
        &self,
        _request: Request<StatusRequest>,
    ) -> Result<Response<StatusResponse>, Status> {
        let snapshot = self.0.image.snapshot();
        let bytes: usize = snapshot.range("", None, None).iter().map(|rev| rev.value.len()).sum();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        // One entry of a log for each revision there was.
        let index = snapshot.revision().get().cast_unsigned();
        Ok(Response::new(StatusResponse {
            header: self.header(snapshot.revision()),
            version: VERSION.to_owned(),
            db_size: bytes,
            leader: self.id(),
            raft_index: index,
            raft_term: TERM,
            raft_applied_index: index,
            errors: Vec::new(),
            db_size_in_use: bytes,
            is_learner: false,
            storage_version: String::new(),
            db_size_quota: 0,
        }))
    }

    /// The store does so by itself.
    async fn defragment(
        &self,
        _request: Request<DefragmentRequest>,
    ) -> Result<Response<DefragmentResponse>, Status> {
        let header = self.header(self.0.image.revision());
        Ok(Response::new(DefragmentResponse { header }))
    }

    async fn snapshot(
        &self,
        _request: Request<SnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        Err(refusal::not_here("a snapshot in the format of etcd"))
    }
}

#[tonic::async_trait]
impl Cluster for Member {
    async fn member_list(
        &self,
        _request: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        let options = &self.0.options;
        let own = MemberMessage {
            id: self.id(),
            name: options.name.clone(),
            peer_ur_ls: options.peer_urls.clone(),
            client_ur_ls: options.client_urls.clone(),
            is_learner: false,
        };
        let header = self.header(self.0.image.revision());
        Ok(Response::new(MemberListResponse { header, members: vec![own] }))
    }
}
