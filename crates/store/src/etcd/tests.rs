//! What only holds in etcd: other writers, restarts, compaction, TLS and logins. What every store
//! does is in the contract suite.
//!
//! These tests need a real etcd and skip without one:
//!
//! ```text
//! KUBEWRIGHT_ETCD=http://127.0.0.1:2379 KUBEWRIGHT_ETCD_BIN=/usr/bin/etcd \
//!     cargo test -p kubewright-store etcd
//! ```

pub(crate) mod server;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{join_all, try_join_all};

use self::server::{Server, prefix, running};
use super::client::channel;
use super::wire::auth_client::AuthClient;
use super::wire::{
    AuthEnableRequest, AuthRoleAddRequest, AuthUserAddRequest, AuthUserGrantRoleRequest,
    PutRequest, StatusResponse, TxnRequest, revision,
};
use super::{CallError, Client, Config, Login, OpenError};
use crate::{
    Change, DeleteError, Expect, Key, Put, PutError, Query, Revision, Start, Store, Watch,
    WatchError,
};

/// A store whose resources are the first element of a key behind a prefix of one element.
async fn open(cluster: &Config, prefix: &str) -> Store<usize> {
    Store::etcd(config(), cluster, prefix).await.expect("open the store")
}

fn config() -> crate::Config<usize> {
    fn resource(key: &str) -> &str {
        let end = key.match_indices('/').nth(2).map_or(key.len(), |(slash, _)| slash + 1);
        &key[..end]
    }
    crate::Config::new(|_, value| value.len(), resource, Duration::default)
}

fn all(store: &Store<usize>, prefix: &str) -> BTreeMap<Key, (Revision, Bytes)> {
    let range = store.range(&Query::prefix(prefix)).expect("the latest is always there");
    range.iter().map(|rev| (rev.key.clone(), (rev.revision, rev.value.clone()))).collect()
}

/// The next `count` events, as key, revision and value.
async fn events(watch: &mut Watch<usize>, count: usize) -> Vec<(Key, Revision, Option<Bytes>)> {
    let mut events = Vec::new();
    while events.len() < count {
        let next = watch.next().await.expect("the watch goes on");
        events.extend(next.iter().map(|event| {
            let value = event.current.as_ref().map(|rev| rev.value.clone());
            (event.key.clone(), event.revision, value)
        }));
    }
    events
}

/// Writes behind the back of every store; returns etcd's revision.
async fn put_raw(client: &Client, key: &str, value: &str) -> i64 {
    let put = PutRequest {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
        ..PutRequest::default()
    };
    let request = TxnRequest { success: vec![put.into()], ..TxnRequest::default() };
    revision(client.txn(request).await.expect("write to etcd").header.as_ref())
}

#[tokio::test]
async fn two_stores_on_one_etcd_see_one_history() {
    const WRITERS: usize = 8;
    const WRITES: usize = 25;
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let stores = [open(&cluster, &prefix).await, open(&cluster, &prefix).await];
    let resource = format!("{prefix}counters/");
    let mut watches =
        stores.each_ref().map(|store| store.watch(&resource, Start::Now).expect("watch from now"));

    // Every writer adds one to the same two counters, by compare and swap.
    let count = async |store: &Store<usize>, writer: usize| {
        for write in 0..WRITES {
            let key = Key::from(format!("{resource}{}", (writer + write) % 2));
            let add_one = async |rev: Option<std::sync::Arc<crate::Rev<usize>>>| {
                let text = rev.map_or("0".to_owned(), |rev| {
                    String::from_utf8(rev.value.to_vec()).expect("a number")
                });
                let next = text.parse::<usize>().expect("a number") + 1;
                Ok::<_, Infallible>(Change::put(next.to_string()))
            };
            store.update(&key, add_one).await.expect("update a counter");
        }
    };
    join_all((0..WRITERS).map(|writer| count(&stores[writer % 2], writer))).await;

    let total = WRITERS * WRITES;
    let [first, second] = &mut watches;
    let (seen, seen_by_the_other) = (events(first, total).await, events(second, total).await);
    assert_eq!(seen, seen_by_the_other);
    assert_eq!(seen.len(), total);
    for store in &stores {
        store.latest().await.expect("etcd answers");
        let values: Vec<_> = all(store, &resource).into_values().map(|(_, value)| value).collect();
        assert_eq!(values, vec![Bytes::from((total / 2).to_string()); 2]);
    }
}

#[tokio::test]
async fn the_latest_state_holds_what_others_wrote_before() {
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let (ours, theirs) = (open(&cluster, &prefix).await, open(&cluster, &prefix).await);
    for number in 0..20 {
        let key = format!("{prefix}pods/{number}");
        theirs.put(Put::new(key.as_str(), "v")).await.expect("put");
        let latest = ours.latest().await.expect("etcd answers");
        assert!(latest.get(&key).is_some(), "{key} was acknowledged to the other before");
    }
}

/// Nothing happens under the store's prefix, so no event ever tells it how far etcd has come.
#[tokio::test]
async fn a_store_keeps_up_with_writes_outside_its_prefix() {
    let Some(cluster) = running() else { return };
    let store = open(&cluster, &prefix()).await;
    let client = Client::new(&cluster).expect("configure a client");
    let revision = put_raw(&client, &format!("{}pods/a", prefix()), "v").await;
    let latest = store.latest().await.expect("etcd answers");
    assert!(latest.revision() >= Revision::new(revision));
}

#[tokio::test]
async fn deleting_what_others_deleted_is_answered_when_that_is_visible() {
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let (ours, theirs) = (open(&cluster, &prefix).await, open(&cluster, &prefix).await);
    let key = Key::from(format!("{prefix}pods/a"));
    ours.put(Put::new(key.clone(), "v")).await.expect("put");
    theirs.delete(&key, Expect::Anything).await.expect("delete");
    let error = ours.delete(&key, Expect::Anything).await.expect_err("it is gone");
    assert!(matches!(error, DeleteError::NotFound));
    assert!(ours.get(key.as_str()).is_none());
}

#[tokio::test]
async fn a_conflict_is_answered_when_the_winner_is_visible() {
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let (ours, theirs) = (open(&cluster, &prefix).await, open(&cluster, &prefix).await);
    let key = Key::from(format!("{prefix}pods/a"));
    let winner = theirs.put(Put::new(key.clone(), "theirs")).await.expect("put");
    let error = ours
        .put(Put::new(key.clone(), "ours").expect(Expect::Absent))
        .await
        .expect_err("it exists");
    let PutError::Conflict { found, .. } = error else { panic!("{error:?}") };
    assert_eq!(found, Some(winner.revision));
    assert_eq!(ours.get(key.as_str()).expect("visible").value, "theirs");
}

/// An expiring lease deletes all its keys in one revision.
#[tokio::test]
async fn etcd_removes_what_has_expired() {
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let store = open(&cluster, &prefix).await;
    let resource = format!("{prefix}events/");
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");
    let kept = Key::from(format!("{resource}kept"));
    store.put(Put::new(kept.clone(), "v")).await.expect("put");
    for name in ["a", "b"] {
        let put = Put::new(format!("{resource}{name}"), "v").ttl(Duration::from_secs(1));
        store.put(put).await.expect("put");
    }
    // Written again without a time to live, it stays.
    let renewed = Key::from(format!("{resource}renewed"));
    let put = Put::new(renewed.clone(), "v").ttl(Duration::from_secs(1));
    let first = store.put(put).await.expect("put");
    let put = Put::new(renewed.clone(), "w").expect(Expect::At(first.revision));
    store.put(put).await.expect("put");

    let seen = events(&mut watch, 7).await;
    let mut gone: Vec<_> = seen[5..].iter().map(|(key, _, value)| (key.as_str(), value)).collect();
    gone.sort_unstable();
    assert_eq!(gone, [(&*format!("{resource}a"), &None), (&*format!("{resource}b"), &None)]);
    let left: Vec<_> = all(&store, &resource).into_keys().collect();
    assert_eq!(left, [kept, renewed]);
}

#[tokio::test]
async fn values_may_be_as_large_as_etcd_takes() {
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let store = open(&cluster, &prefix).await;
    let limit = store.config().value_bytes_max;
    let key = format!("{prefix}configmaps/{}", "n".repeat(253));
    let rev = store.put(Put::new(key.as_str(), vec![b'x'; limit])).await.expect("it fits");
    assert_eq!(rev.value.len(), limit);
    let error = store.put(Put::new(key, vec![b'x'; limit + 1])).await.expect_err("too large");
    assert!(matches!(error, PutError::TooLarge { .. }));
}

#[tokio::test]
async fn a_large_state_is_loaded_in_pages() {
    let Some(cluster) = running() else { return };
    let prefix = prefix();
    let writer = open(&cluster, &prefix).await;
    let small = (0..1500).map(|number| (format!("{prefix}pods/{number:05}"), 10));
    let large = (0..12).map(|number| (format!("{prefix}secrets/{number}"), 1 << 20));
    let puts: Vec<_> = small
        .chain(large)
        .map(|(key, bytes)| writer.put(Put::new(key, vec![b'x'; bytes])))
        .collect();
    try_join_all(puts).await.expect("put");
    let reader = open(&cluster, &prefix).await;
    assert_eq!(all(&reader, &prefix), all(&writer, &prefix));
    assert_eq!(reader.count(&prefix), 1512);
}

#[tokio::test]
async fn a_watch_goes_on_without_a_gap_when_etcd_was_killed() {
    let Some(mut server) = Server::start() else { return };
    let prefix = prefix();
    let store = open(&server.config(), &prefix).await;
    let resource = format!("{prefix}pods/");
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");
    let mut written = Vec::new();
    for round in 0..3 {
        // Waits for the connection. A write into a broken one would be unavailable, since nobody
        // knows whether it happened; a read is sent again.
        store.latest().await.expect("etcd is back");
        let put = Put::new(format!("{resource}{round}"), round.to_string());
        let rev = store.put(put).await.expect("put");
        written.push((rev.key.clone(), rev.revision, Some(rev.value.clone())));
        server.kill();
        assert_eq!(all(&store, &resource).len(), round + 1, "reads go on meanwhile");
        server.restart();
    }
    assert_eq!(events(&mut watch, 3).await, written);
}

#[tokio::test]
async fn the_loss_of_the_leader_is_survived() {
    let Some(mut servers) = Server::start_cluster() else { return };
    let endpoints = servers.iter().flat_map(|server| server.config().endpoints).collect();
    let cluster = Config { endpoints, patience: Duration::from_secs(30), ..servers[0].config() };
    let prefix = prefix();
    let resource = format!("{prefix}pods/");
    let store = open(&cluster, &prefix).await;
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");
    let mut written = Vec::new();
    for round in 0..3 {
        let leader = leader(&servers).await;
        let put = Put::new(format!("{resource}{round}"), "v");
        let rev = store.put(put).await.expect("put");
        written.push((rev.key.clone(), rev.revision, Some(rev.value.clone())));
        servers[leader].kill();
        store.latest().await.expect("there is another leader");
        servers[leader].restart();
    }
    assert_eq!(events(&mut watch, 3).await, written);
}

/// Which of `servers` leads, once all of them agree.
async fn leader(servers: &[Server]) -> usize {
    let clients = servers.iter().map(|server| Client::new(&server.config()).expect("a client"));
    let clients: Vec<_> = clients.collect();
    loop {
        let statuses = try_join_all(clients.iter().map(Client::status)).await.expect("all are up");
        let leaders: Vec<_> = statuses.iter().map(|status| status.leader).collect();
        let id = |status: &StatusResponse| status.header.map(|header| header.member_id);
        let leader = statuses.iter().position(|status| id(status) == Some(leaders[0]));
        match leader {
            Some(leader) if leaders.iter().all(|id| *id == leaders[0]) => return leader,
            _ => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn a_write_without_etcd_is_unavailable() {
    let Some(mut server) = Server::start() else { return };
    let prefix = prefix();
    let cluster = Config { patience: Duration::from_millis(50), ..server.config() };
    // The first call waits until etcd is up.
    open(&server.config(), &prefix).await;
    let store = open(&cluster, &prefix).await;
    server.kill();
    let put = Put::new(format!("{prefix}pods/a"), "v");
    assert!(matches!(store.put(put).await, Err(PutError::Unavailable(_))));
    assert!(store.latest().await.is_err());
}

#[tokio::test]
async fn compaction_during_an_absence_compacts_watches_but_loses_no_state() {
    let Some(mut server) = Server::start() else { return };
    let prefix = prefix();
    let store = open(&server.config(), &prefix).await;
    let resource = format!("{prefix}pods/");
    let gone = Key::from(format!("{resource}gone"));
    store.put(Put::new(gone.clone(), "v")).await.expect("put");
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");

    // The store knows only the usual port; others find etcd at another one.
    server.kill();
    let port = server.move_to_another_port();
    server.restart();
    let client = Client::new(&server.config()).expect("configure a client");
    let theirs = open(&server.config(), &prefix).await;
    theirs.delete(&gone, Expect::Anything).await.expect("delete");
    put_raw(&client, &format!("{resource}new"), "1").await;
    let last = put_raw(&client, &format!("{resource}new"), "2").await;
    client.compact(last).await.expect("compact");
    server.kill();
    server.move_to(port);
    server.restart();

    let error = watch.next().await.expect_err("it missed events");
    assert_eq!(
        error,
        WatchError::Compacted { requested: Revision::new(last - 3), oldest: Revision::new(last) }
    );
    let state: Vec<_> =
        all(&store, &resource).into_iter().map(|(key, (_, value))| (key, value)).collect();
    assert_eq!(state, [(Key::from(format!("{resource}new")), Bytes::from("2"))]);
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");
    let rev = store.put(Put::new(gone.clone(), "again")).await.expect("put");
    assert_eq!(events(&mut watch, 1).await, [(gone, rev.revision, Some(Bytes::from("again")))]);
}

#[tokio::test]
async fn a_load_at_a_compacted_revision_is_told_apart() {
    let Some(server) = Server::start() else { return };
    let client = Client::new(&server.config()).expect("configure a client");
    let first = put_raw(&client, "/a", "1").await;
    let last = put_raw(&client, "/a", "2").await;
    client.compact(last).await.expect("compact");
    let read = |revision| {
        let key = Bytes::from_static(b"/a");
        client.range(super::wire::RangeRequest { key, revision, ..Default::default() })
    };
    assert!(matches!(read(first).await, Err(CallError::Compacted)));
    assert!(matches!(read(last + 1).await, Err(CallError::Future)));
    assert_eq!(read(last).await.expect("it is kept").kvs[0].value, b"2");
}

/// As after a restore from an older backup: the revision falls, and a watch would wait for ever.
#[tokio::test]
async fn an_etcd_that_lost_its_data_is_read_again() {
    let Some(mut server) = Server::start() else { return };
    let prefix = prefix();
    let store = open(&server.config(), &prefix).await;
    let resource = format!("{prefix}pods/");
    for number in 0..10 {
        store.put(Put::new(format!("{resource}{number}"), "v")).await.expect("put");
    }
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");
    server.kill();
    server.lose_data();
    server.restart();
    assert!(matches!(watch.next().await, Err(WatchError::Compacted { .. })));
    assert!(all(&store, &resource).is_empty());
    store.put(Put::new(format!("{resource}a"), "v")).await.expect("put");
    assert_eq!(all(&store, &resource).len(), 1);
}

#[tokio::test]
async fn tls_and_a_login_are_kept_up_across_restarts() {
    let Some(mut server) = Server::start_secured() else { return };
    let root = Login { user: "root".to_owned(), password: "secret".to_owned() };
    enable_auth(&server.config(), &root).await;
    let cluster = Config { login: Some(root), ..server.config() };
    let prefix = prefix();
    let resource = format!("{prefix}pods/");
    let store = open(&cluster, &prefix).await;
    let mut watch = store.watch(&resource, Start::Now).expect("watch from now");
    store.put(Put::new(format!("{resource}a"), "v")).await.expect("put");
    // etcd keeps its tokens in memory: after a restart, the one we have is worth nothing.
    server.kill();
    server.restart();
    store.latest().await.expect("read with another token");
    store.put(Put::new(format!("{resource}b"), "v")).await.expect("put");
    assert_eq!(events(&mut watch, 2).await.len(), 2);

    let wrong = Login { user: "root".to_owned(), password: "guess".to_owned() };
    for login in [Some(wrong), None] {
        let cluster = Config { login, ..server.config() };
        let error = Store::etcd(config(), &cluster, &prefix).await.expect_err("not let in");
        assert!(matches!(error, OpenError::Call(CallError::Denied(_))), "{error:?}");
    }
    let mut stranger = server.config();
    stranger.patience = Duration::from_millis(50);
    stranger.tls.as_mut().expect("it is secured").identity = None;
    let error = Store::etcd(config(), &stranger, &prefix).await.expect_err("no certificate");
    assert!(matches!(error, OpenError::Call(CallError::Unavailable { .. })), "{error:?}");
}

async fn enable_auth(cluster: &Config, root: &Login) {
    // The first call of a client waits until etcd is up; a bare stub would not.
    Client::new(cluster).expect("configure a client").status().await.expect("etcd is up");
    let mut auth = AuthClient::new(channel(&cluster.endpoints[0], cluster).expect("a channel"));
    let (name, password) = (root.user.clone(), root.password.clone());
    auth.user_add(AuthUserAddRequest { name, password }).await.expect("add root");
    let name = "root".to_owned();
    auth.role_add(AuthRoleAddRequest { name }).await.expect("add the role");
    let grant = AuthUserGrantRoleRequest { user: root.user.clone(), role: "root".to_owned() };
    auth.user_grant_role(grant).await.expect("make root root");
    auth.auth_enable(AuthEnableRequest {}).await.expect("enable authentication");
}
