//! Runs the operator, or renders what installs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    guestbook::operator().main()
}
