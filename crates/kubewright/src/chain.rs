//! Errors for people.

use std::error::Error;

/// An error and all that caused it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Some print their source already.
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}
