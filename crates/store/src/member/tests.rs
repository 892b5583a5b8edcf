//! What clients of etcd rely on, over the wire. That our own store works on a member is in the
//! contract suite.

use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::transport::Channel;

use super::lease::Leases;
use super::{Member, Options};
use crate::etcd::wire::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest,
    PutRequest, RangeRequest, RequestOp, TxnRequest, WatchCreateRequest, WatchProgressRequest,
    WatchRequest, kv_client::KvClient, lease_client::LeaseClient, prefix_end,
    range_request::SortOrder, revision, watch_client::WatchClient,
};

/// A member that serves, with the directory it may be started in again.
pub(crate) struct Served {
    pub(crate) url: String,
    dir: TempDir,
    stop: oneshot::Sender<()>,
    server: JoinSet<()>,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::start_in(tempfile::tempdir().expect("a directory"))
    }

    fn start_in(dir: TempDir) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let options = Options {
            cluster_id: 7,
            name: "default".to_owned(),
            client_urls: vec![url.clone()],
            peer_urls: Vec::new(),
            sync: false,
            request_bytes_max: 3 << 19,
            txn_ops_max: 128,
            progress_interval: Duration::from_secs(600),
        };
        let member = Member::open(dir.path(), options, Duration::default).expect("opened");
        let (stop, stopped) = oneshot::channel::<()>();
        let mut server = JoinSet::new();
        server.spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            member.serve(vec![listener], None, stopped).await.expect("served");
        });
        Served { url, dir, stop, server }
    }

    async fn restart(mut self) -> Self {
        let _ = self.stop.send(());
        self.server.join_next().await.expect("it ran").expect("it ended well");
        Self::start_in(self.dir)
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(self.url.clone()).expect("a URL").connect().await.expect("connected")
    }

    async fn kv(&self) -> KvClient<Channel> {
        KvClient::new(self.channel().await)
    }
}

fn put(key: &'static str, value: &'static str) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), ..PutRequest::default() }
}

fn prefix(prefix: &'static str) -> RangeRequest {
    let range_end = prefix_end(prefix.as_bytes());
    RangeRequest { key: prefix.into(), range_end, ..RangeRequest::default() }
}

/// Keys and values, in the order told.
async fn list(kv: &mut KvClient<Channel>, request: RangeRequest) -> Result<String, Code> {
    let answer = kv.range(request).await.map_err(|status| status.code())?.into_inner();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let kvs = answer.kvs.iter().map(|kv| format!("{}={}", text(&kv.key), text(&kv.value)));
    Ok(Vec::from_iter(kvs).join(" "))
}

#[tokio::test]
async fn a_transaction_changes_several_keys_at_one_revision() {
    let served = Served::start();
    let mut kv = served.kv().await;
    kv.put(put("/c", "old")).await.expect("put");
    let delete = DeleteRangeRequest { key: "/c".into(), prev_kv: true, ..Default::default() };
    let request = TxnRequest {
        compare: vec![Compare::mod_revision("/a".into(), 0), Compare::version("/c".into(), 1)],
        success: vec![
            put("/a", "1").into(),
            put("/b", "2").into(),
            delete.into(),
            prefix("/").into(),
        ],
        failure: Vec::new(),
    };
    let answer = kv.txn(request.clone()).await.expect("a transaction").into_inner();
    assert!(answer.succeeded);
    assert_eq!(revision(answer.header.as_ref()), 3);
    let kvs = answer.responses.into_iter().next_back().expect("four answers").into_kvs();
    assert_eq!(kvs.iter().map(|kv| kv.mod_revision).collect::<Vec<_>>(), [3, 3]);

    let again = kv.txn(request).await.expect("a transaction").into_inner();
    assert!(!again.succeeded);
    assert_eq!(revision(again.header.as_ref()), 3);
}

#[tokio::test]
async fn a_transaction_that_is_refused_changes_nothing() {
    let served = Served::start();
    let mut kv = served.kv().await;
    let check =
        async |kv: &mut KvClient<Channel>, success: Vec<RequestOp>, code: Code, text: &str| {
            let refused = kv.txn(TxnRequest { success, ..TxnRequest::default() }).await;
            let status = refused.expect_err("refused");
            assert_eq!((status.code(), status.message()), (code, text));
            assert_eq!(list(kv, prefix("/")).await.as_deref(), Ok(""));
        };
    let leased = PutRequest { lease: 9, ..put("/b", "2") };
    check(
        &mut kv,
        vec![put("/a", "1").into(), leased.into()],
        Code::NotFound,
        "etcdserver: requested lease not found",
    )
    .await;
    check(
        &mut kv,
        vec![put("/a", "1").into(), put("/a", "2").into()],
        Code::InvalidArgument,
        "etcdserver: duplicate key given in txn request",
    )
    .await;
    let many = (0..129).map(|_| prefix("/").into()).collect();
    check(&mut kv, many, Code::InvalidArgument, "etcdserver: too many operations in txn request")
        .await;
}

#[tokio::test]
async fn ranges_are_told_as_asked() {
    let served = Served::start();
    let mut kv = served.kv().await;
    for (key, value) in [("/a", "1"), ("/b", "2"), ("/ba", "3"), ("/c", "4"), ("/b", "5")] {
        kv.put(put(key, value)).await.expect("put");
    }
    let check = async |kv: &mut KvClient<Channel>, request: RangeRequest, expected: &str| {
        assert_eq!(list(kv, request).await.as_deref(), Ok(expected));
    };
    let all = |key: &'static str, end: &'static [u8]| RangeRequest {
        key: key.into(),
        range_end: Bytes::from_static(end),
        ..RangeRequest::default()
    };
    check(&mut kv, all("/b", b""), "/b=5").await;
    check(&mut kv, prefix("/b"), "/b=5 /ba=3").await;
    check(&mut kv, all("\0", b"\0"), "/a=1 /b=5 /ba=3 /c=4").await;
    check(&mut kv, all("/b", b"\0"), "/b=5 /ba=3 /c=4").await;
    check(&mut kv, RangeRequest { limit: 2, ..prefix("/") }, "/a=1 /b=5").await;
    check(&mut kv, RangeRequest { revision: 3, ..prefix("/") }, "/a=1 /b=2").await;
    let order = SortOrder::Descend.into();
    check(&mut kv, RangeRequest { sort_order: order, ..prefix("/") }, "/c=4 /ba=3 /b=5 /a=1").await;
    check(&mut kv, RangeRequest { keys_only: true, ..prefix("/b") }, "/b= /ba=").await;
    let counted = kv.range(RangeRequest { limit: 1, ..prefix("/") }).await.expect("a range");
    let counted = counted.into_inner();
    assert_eq!((counted.count, counted.more, counted.kvs[0].version), (4, true, 1));
}

#[tokio::test]
async fn what_is_compacted_cannot_be_read_or_watched() {
    let served = Served::start();
    let mut kv = served.kv().await;
    for value in ["1", "2", "3"] {
        kv.put(put("/a", value)).await.expect("put");
    }
    let compact = |revision| CompactionRequest { revision, physical: false };
    kv.compact(compact(3)).await.expect("compacted");
    let at = |revision| RangeRequest { revision, ..prefix("/") };
    assert_eq!(list(&mut kv, at(2)).await, Err(Code::OutOfRange));
    assert_eq!(list(&mut kv, at(3)).await.as_deref(), Ok("/a=2"));
    assert_eq!(list(&mut kv, at(9)).await, Err(Code::OutOfRange));
    let again = kv.compact(compact(3)).await.expect_err("refused");
    assert_eq!(again.message(), "etcdserver: mvcc: required revision has been compacted");
    let ahead = kv.compact(compact(9)).await.expect_err("refused");
    assert_eq!(ahead.message(), "etcdserver: mvcc: required revision is a future revision");

    let create = |start_revision| WatchCreateRequest {
        key: "/a".into(),
        start_revision,
        ..WatchCreateRequest::default()
    };
    let requests = stream::iter([create(2).into(), create(3).into()]).chain(stream::pending());
    let mut watch = WatchClient::new(served.channel().await);
    let mut answers = watch.watch(requests).await.expect("a watch").into_inner();
    let mut next = async || answers.message().await.expect("goes on").expect("goes on");
    assert!(next().await.created);
    let refused = next().await;
    assert_eq!((refused.canceled, refused.compact_revision), (true, 3));
    assert!(next().await.created);
    let told = next().await;
    let revisions = told.events.iter().filter_map(|event| Some(event.kv.as_ref()?.mod_revision));
    assert_eq!(revisions.collect::<Vec<_>>(), [3, 4]);
}

#[tokio::test]
async fn watches_share_a_stream_and_say_how_far_they_are() {
    let served = Served::start();
    let mut kv = served.kv().await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<WatchRequest>(4);
    let requests =
        stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let create = |key: &'static str| WatchCreateRequest {
        key: key.into(),
        range_end: prefix_end(key.as_bytes()),
        prev_kv: true,
        ..WatchCreateRequest::default()
    };
    for key in ["/a/", "/b/"] {
        sender.send(create(key).into()).await.expect("sent");
    }
    let mut watch = WatchClient::new(served.channel().await);
    let mut answers = watch.watch(requests).await.expect("a watch").into_inner();
    let mut next = async || answers.message().await.expect("goes on").expect("goes on");
    assert_eq!((next().await.watch_id, next().await.watch_id), (0, 1));

    kv.put(put("/b/x", "1")).await.expect("put");
    let delete = DeleteRangeRequest { key: "/b/x".into(), ..DeleteRangeRequest::default() };
    kv.delete_range(delete).await.expect("deleted");
    kv.put(put("/c", "1")).await.expect("put");
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let told = next().await;
        assert_eq!(told.watch_id, 1);
        seen.extend(told.events.into_iter().map(|event| {
            let value = event.prev_kv.map(|kv| String::from_utf8(kv.value).expect("text"));
            (event.r#type, event.kv.expect("a key").mod_revision, value)
        }));
    }
    assert_eq!(seen, [(0, 2, None), (1, 3, Some("1".to_owned()))]);

    sender.send(WatchProgressRequest {}.into()).await.expect("sent");
    let progress = next().await;
    assert_eq!((progress.watch_id, revision(progress.header.as_ref())), (-1, 4));
}

#[tokio::test]
async fn what_hangs_on_a_lease_goes_with_it() {
    let served = Served::start();
    let mut kv = served.kv().await;
    let mut leases = LeaseClient::new(served.channel().await);
    let granted = leases.lease_grant(LeaseGrantRequest { ttl: 60, id: 0 }).await.expect("granted");
    let id = granted.into_inner().id;
    for key in ["/a", "/b", "/c"] {
        kv.put(PutRequest { lease: id, ..put(key, "1") }).await.expect("put");
    }
    kv.put(put("/b", "stays")).await.expect("put");
    let revoked = leases.lease_revoke(LeaseRevokeRequest { id }).await.expect("revoked");
    assert_eq!(revision(revoked.into_inner().header.as_ref()), 6, "they go at one revision");
    assert_eq!(list(&mut kv, prefix("/")).await.as_deref(), Ok("/b=stays"));
    let gone = leases.lease_revoke(LeaseRevokeRequest { id }).await.expect_err("it is gone");
    assert_eq!(gone.message(), "etcdserver: requested lease not found");
}

#[tokio::test]
async fn a_lease_ends_when_its_time_is_over() {
    let leases = Leases::default();
    let now = tokio::time::Instant::now();
    assert_eq!(leases.ended(now), Err(None));
    let short = leases.grant(1, 60).expect("granted");
    leases.grant(2, 600).expect("granted");
    let next = leases.ended(now).expect_err("none has ended").expect("one will");
    assert!(next > now + Duration::from_secs(59));
    assert_eq!(leases.ended(next), Ok(vec![short]));
}

#[tokio::test]
async fn keys_versions_and_leases_survive_a_restart() {
    let served = Served::start();
    let mut kv = served.kv().await;
    let mut leases = LeaseClient::new(served.channel().await);
    let granted = leases.lease_grant(LeaseGrantRequest { ttl: 60, id: 5 }).await.expect("granted");
    assert_eq!(granted.into_inner().id, 5);
    for value in ["1", "2"] {
        kv.put(PutRequest { lease: 5, ..put("/a", value) }).await.expect("put");
    }
    let served = served.restart().await;
    let mut kv = served.kv().await;
    let answer = kv.range(prefix("/")).await.expect("a range").into_inner();
    assert!(revision(answer.header.as_ref()) >= 3);
    let found = &answer.kvs[0];
    assert_eq!((found.version, found.create_revision, found.mod_revision), (2, 2, 3));
    assert_eq!((found.lease, found.value.as_slice()), (5, b"2".as_slice()));
    kv.put(PutRequest { lease: 5, ..put("/b", "3") }).await.expect("the lease is there");
    assert_eq!(
        list(&mut kv, RangeRequest { revision: 2, ..prefix("/") }).await,
        Err(Code::OutOfRange)
    );
}
