//! Compiles the etcd stubs in pure Rust, so that building needs no `protoc`.

use std::error::Error;

const PROTO: &str = "proto/etcd.proto";

/// What is sent is shared, since a request may be sent twice. What is received is copied out of its
/// frame, since one small value would otherwise keep a page of megabytes alive.
const SENT: [&str; 5] = [
    ".etcdserverpb.Compare",
    ".etcdserverpb.DeleteRangeRequest",
    ".etcdserverpb.PutRequest",
    ".etcdserverpb.RangeRequest",
    ".etcdserverpb.WatchCreateRequest",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let descriptors = protox::compile([PROTO], ["proto"])?;
    let stubs = tonic_prost_build::configure();
    SENT.iter().fold(stubs, |stubs, message| stubs.bytes(message)).compile_fds(descriptors)?;
    Ok(())
}
