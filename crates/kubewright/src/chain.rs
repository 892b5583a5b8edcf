//! Errors for people.

use std::error::Error;

/// An error and all that caused it.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let cause = told(error);
        // Some print their source already.
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        // A status is all there is to know of it.
        next = if is_status(error) { None } else { error.source() };
    }
    text
}

fn told(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref() {
        // It prints all its fields, too.
        Some(kube::Error::Api(status)) => status.message.clone(),
        _ => error.to_string(),
    }
}

fn is_status(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(_)))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("write it")]
    struct Write(#[source] kube::Error);

    #[test]
    fn a_refusal_is_told_once_and_as_the_server_put_it() {
        let status = Status::failure("pods \"web\" is forbidden: no", "Forbidden").with_code(403);
        let error = Write(kube::Error::Api(status.boxed()));
        assert_eq!(chain(&error), "write it: pods \"web\" is forbidden: no");
    }

    #[test]
    fn a_refusal_alone_is_its_message() {
        let status = Status::failure("gone", "Expired").with_code(410);
        assert_eq!(chain(&kube::Error::Api(status.boxed())), "gone");
    }
}
