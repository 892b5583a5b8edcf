use std::time::Duration;

use tonic::{Code, Status};

use super::super::wire::{RangeRequest, TxnRequest};
use super::super::{Config, ConfigError};
use super::{Backoff, CallError, Client, failure, ticket_spent};

/// The variant that a status becomes, by name.
fn verdict(code: Code, message: &str) -> &'static str {
    match failure("http://etcd", Status::new(code, message)) {
        CallError::Unavailable { .. } => "unavailable",
        CallError::Compacted => "compacted",
        CallError::Future => "future",
        CallError::TooLarge => "too large",
        CallError::NoSpace => "no space",
        CallError::LeaseGone => "lease gone",
        CallError::Denied(_) => "denied",
        CallError::Unexpected(_) => "unexpected",
    }
}

#[test]
fn a_failed_call_tells_what_is_behind_it() {
    let inner = std::io::Error::other("connection refused");
    let mut status = Status::new(Code::Unavailable, "tcp connect error");
    status.set_source(std::sync::Arc::new(std::io::Error::other(inner)));
    for (status, expected) in [
        (status, "connection refused"),
        (
            Status::new(Code::Unavailable, "etcdserver: leader changed"),
            "etcdserver: leader changed",
        ),
    ] {
        let error = failure("http://etcd", status);
        let cause = std::error::Error::source(&error).expect("a cause");
        assert_eq!(cause.to_string(), expected);
        assert!(cause.source().is_none(), "it is told once");
    }
}

#[test]
fn etcds_errors_become_choices() {
    let check = |code, message, expected| assert_eq!(verdict(code, message), expected, "{message}");
    check(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted", "compacted");
    check(Code::OutOfRange, "etcdserver: mvcc: required revision is a future revision", "future");
    check(Code::InvalidArgument, "etcdserver: request is too large", "too large");
    check(
        Code::ResourceExhausted,
        "grpc: received message larger than max (2200000 vs. 2097152)",
        "too large",
    );
    check(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", "no space");
    check(Code::ResourceExhausted, "etcdserver: too many requests", "unavailable");
    check(Code::NotFound, "etcdserver: requested lease not found", "lease gone");
    check(Code::Unavailable, "etcdserver: leader changed", "unavailable");
    check(Code::Unavailable, "etcdserver: request timed out", "unavailable");
    check(Code::Cancelled, "Timeout expired", "unavailable");
    check(Code::Unknown, "transport error", "unavailable");
    check(Code::PermissionDenied, "etcdserver: permission denied", "denied");
    check(
        Code::InvalidArgument,
        "etcdserver: authentication failed, invalid user ID or password",
        "denied",
    );
    check(Code::InvalidArgument, "etcdserver: duplicate key given in txn request", "unexpected");
}

#[test]
fn only_a_spent_token_is_worth_another_login() {
    let check = |code, message, expected| {
        assert_eq!(ticket_spent(&Status::new(code, message)), expected, "{message}");
    };
    check(Code::Unauthenticated, "etcdserver: invalid auth token", true);
    check(Code::InvalidArgument, "etcdserver: revision of auth store is old", true);
    check(Code::InvalidArgument, "etcdserver: user name is empty", true);
    check(Code::PermissionDenied, "etcdserver: permission denied", false);
    check(
        Code::InvalidArgument,
        "etcdserver: authentication failed, invalid user ID or password",
        false,
    );
}

#[test]
fn pauses_double_up_to_their_bound() {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(300));
    let pauses: Vec<_> = (0..5).map(|_| backoff.pause().as_millis()).collect();
    assert_eq!(pauses, [50, 100, 200, 300, 300]);
    backoff.reset();
    assert_eq!(backoff.pause(), Duration::from_millis(50));
}

#[test]
fn a_configuration_without_endpoints_is_refused() {
    let config = Config { endpoints: Vec::new(), ..Config::new("") };
    assert!(matches!(Client::new(&config), Err(ConfigError::NoEndpoint)));
}

/// Port 9 of the loopback answers nothing, so both calls end as unreachable; what differs is that
/// even the write was tried at the second member, since it was never sent to the first.
#[tokio::test]
async fn a_call_that_was_never_sent_is_tried_at_every_member() {
    let config = Config {
        endpoints: vec!["http://127.0.0.1:9".to_owned(), "http://127.0.0.2:9".to_owned()],
        patience: Duration::from_millis(30),
        ..Config::new("")
    };
    let endpoint = |error| match error {
        CallError::Unavailable { endpoint, .. } => endpoint,
        error => panic!("{error:?}"),
    };
    let client = Client::new(&config).expect("both endpoints are URLs");
    let read = client.range(RangeRequest::default()).await.expect_err("nobody listens");
    assert_eq!(endpoint(read), "http://127.0.0.2:9");

    let client = Client::new(&config).expect("both endpoints are URLs");
    let write = client.txn(TxnRequest::default()).await.expect_err("nobody listens");
    assert_eq!(endpoint(write), "http://127.0.0.2:9");
}
