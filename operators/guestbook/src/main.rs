//! Runs the operator, or renders what installs it.

use std::process::ExitCode;

/// Reconciles allocate much and briefly, which it is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    guestbook::operator().main()
}
