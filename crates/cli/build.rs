//! How a release of the command is linked.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let says = |name: &str| env::var(name).unwrap_or_default();
    let is_dynamic = says("CARGO_CFG_TARGET_OS") == "linux"
        && says("CARGO_CFG_TARGET_ENV") == "gnu"
        && !says("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    // At a fixed address nothing of the program has to be adjusted before it can start
    // (docs/decisions/2026-11-18-fixed-address.md).
    if is_dynamic && says("PROFILE") == "release" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
