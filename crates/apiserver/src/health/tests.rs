//! What the health endpoints say, in upstream's words.

use super::*;
use crate::sample;

async fn ask(health: &Health, store: &Store, shutdown: &CancellationToken, path: &str) -> String {
    let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
    let scene = Scene { store, shutdown };
    match health.answer(path, &Query::parse(query), &scene).await {
        None => "404".to_owned(),
        Some(response) => {
            let text = String::from_utf8_lossy(response.body()).into_owned();
            format!("{} {text}", response.status().as_u16())
        }
    }
}

fn begun() -> Health {
    let health = Health::default();
    health.begun();
    health
}

#[tokio::test]
async fn a_server_is_well_once_it_has_begun() {
    let (store, shutdown) = (sample::store(), CancellationToken::new());
    let health = Health::default();
    let check = |path: &'static str| ask(&health, &store, &shutdown, path);
    let expected = "500 [+]ping ok
[+]log ok
[+]etcd ok
[-]poststarthook/start-apiserver-admission-initializer failed: reason withheld
[-]poststarthook/generic-apiserver-start-informers failed: reason withheld
[-]poststarthook/priority-and-fairness-config-consumer failed: reason withheld
[-]poststarthook/priority-and-fairness-filter failed: reason withheld
[-]poststarthook/start-apiextensions-informers failed: reason withheld
[-]poststarthook/start-apiextensions-controllers failed: reason withheld
[-]poststarthook/crd-informer-synced failed: reason withheld
[-]poststarthook/start-system-namespaces-controller failed: reason withheld
[-]poststarthook/start-cluster-authentication-info-controller failed: reason withheld
[-]poststarthook/start-kube-apiserver-identity-lease-controller failed: reason withheld
[+]poststarthook/storage-readiness ok
[-]poststarthook/start-legacy-token-tracking-controller failed: reason withheld
[-]poststarthook/start-service-ip-repair-controllers failed: reason withheld
[-]poststarthook/rbac/bootstrap-roles failed: reason withheld
[-]poststarthook/scheduling/bootstrap-system-priority-classes failed: reason withheld
[-]poststarthook/priority-and-fairness-config-producer failed: reason withheld
[-]poststarthook/bootstrap-controller failed: reason withheld
[-]poststarthook/start-kubernetes-service-cidr-controller failed: reason withheld
[-]poststarthook/start-kube-aggregator-informers failed: reason withheld
[-]poststarthook/apiservice-status-local-available-controller failed: reason withheld
[-]poststarthook/apiservice-status-remote-available-controller failed: reason withheld
[-]poststarthook/apiservice-registration-controller failed: reason withheld
[-]poststarthook/apiservice-discovery-controller failed: reason withheld
[-]poststarthook/kube-apiserver-autoregistration failed: reason withheld
[-]autoregister-completion failed: reason withheld
[-]poststarthook/apiservice-openapi-controller failed: reason withheld
[-]poststarthook/apiservice-openapiv3-controller failed: reason withheld
livez check failed
";
    assert_eq!(check("/livez").await, expected);
    assert_eq!(check("/livez/ping").await, "200 ok");
    assert_eq!(
        check("/livez/poststarthook/rbac/bootstrap-roles").await,
        "500 internal server error: not finished\n"
    );
    health.begun();
    assert_eq!(check("/livez").await, "200 ok");
    assert_eq!(check("/readyz").await, "200 ok");
    assert_eq!(check("/livez/poststarthook/rbac/bootstrap-roles").await, "200 ok");
}

#[tokio::test]
async fn whoever_wants_to_know_is_told_each_check() {
    let (store, shutdown) = (sample::store(), CancellationToken::new());
    let health = begun();
    let expected = "200 [+]ping excluded: ok
[+]log ok
[+]etcd ok
[+]etcd-readiness ok
[+]informer-sync ok
[+]poststarthook/start-apiserver-admission-initializer ok
[+]poststarthook/generic-apiserver-start-informers ok
[+]poststarthook/priority-and-fairness-config-consumer ok
[+]poststarthook/priority-and-fairness-filter ok
[+]poststarthook/start-apiextensions-informers ok
[+]poststarthook/start-apiextensions-controllers ok
[+]poststarthook/crd-informer-synced ok
[+]poststarthook/start-system-namespaces-controller ok
[+]poststarthook/start-cluster-authentication-info-controller ok
[+]poststarthook/start-kube-apiserver-identity-lease-controller ok
[+]poststarthook/storage-readiness ok
[+]poststarthook/start-legacy-token-tracking-controller ok
[+]poststarthook/start-service-ip-repair-controllers ok
[+]poststarthook/rbac/bootstrap-roles ok
[+]poststarthook/scheduling/bootstrap-system-priority-classes ok
[+]poststarthook/priority-and-fairness-config-producer ok
[+]poststarthook/bootstrap-controller ok
[+]poststarthook/start-kubernetes-service-cidr-controller ok
[+]poststarthook/start-kube-aggregator-informers ok
[+]poststarthook/apiservice-status-local-available-controller ok
[+]poststarthook/apiservice-status-remote-available-controller ok
[+]poststarthook/apiservice-registration-controller ok
[+]poststarthook/apiservice-discovery-controller ok
[+]poststarthook/kube-apiserver-autoregistration ok
[+]autoregister-completion ok
[+]poststarthook/apiservice-openapi-controller ok
[+]poststarthook/apiservice-openapiv3-controller ok
[+]shutdown ok
warn: some health checks cannot be excluded: no matches for \"a\",\"nope\"
readyz check passed
";
    let path = "/readyz?verbose&exclude=ping&exclude=nope&exclude=a";
    assert_eq!(ask(&health, &store, &shutdown, path).await, expected);
}

#[tokio::test]
async fn a_server_that_stops_is_alive_but_not_ready() {
    let (store, shutdown) = (sample::store(), CancellationToken::new());
    let health = begun();
    shutdown.cancel();
    let check = |path: &'static str| ask(&health, &store, &shutdown, path);
    assert_eq!(check("/livez").await, "200 ok");
    assert_eq!(
        check("/readyz/shutdown").await,
        "500 internal server error: process is shutting down\n"
    );
    let ready = check("/readyz").await;
    assert!(
        ready.ends_with("[-]shutdown failed: reason withheld\nreadyz check failed\n"),
        "{ready}"
    );
    assert_eq!(check("/readyz?exclude=shutdown").await, "200 ok");
}

#[tokio::test]
async fn what_is_no_check_is_not_found() {
    let (store, shutdown) = (sample::store(), CancellationToken::new());
    let health = begun();
    for path in ["/healthz/", "/healthz/nope", "/livez/shutdown", "/healthy", "/livez/ping/x"] {
        assert_eq!(ask(&health, &store, &shutdown, path).await, "404", "{path}");
    }
}

#[tokio::test]
async fn what_came_of_checks_is_remembered() {
    let (store, shutdown) = (sample::store(), CancellationToken::new());
    let health = Health::default();
    let check = |path: &'static str| ask(&health, &store, &shutdown, path);
    check("/readyz").await;
    // One check by itself is not counted, and neither is what was left out.
    check("/livez/ping").await;
    health.begun();
    check("/readyz?exclude=ping").await;
    let records = health.records();
    let of = |name: &str| {
        let mut records = records.iter().filter(|record| record.check == name);
        records.next().map(|record| (record.root, record.passed, record.failed, record.is_well))
    };
    assert_eq!(of("ping"), Some(("readyz", 1, 0, true)));
    assert_eq!(of("informer-sync"), Some(("readyz", 1, 1, true)));
    assert!(records.iter().all(|record| record.root == "readyz"));
}
