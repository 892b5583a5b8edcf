//! Compiles the stubs for container runtimes in pure Rust, so that building needs no `protoc`.

use std::error::Error;

const PROTOS: [&str; 4] =
    ["proto/cri.proto", "proto/content.proto", "proto/images.proto", "proto/leases.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    for proto in PROTOS {
        println!("cargo::rerun-if-changed={proto}");
    }
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(descriptors)?;
    Ok(())
}
