//! What a refusal by the API means to a controller.

use kube::Error;

/// Who asks again, who is content, and who gives up.
pub(crate) trait Refusal {
    fn code(&self) -> Option<u16>;
    fn reason(&self) -> &str;

    /// There is no such object, or no such resource.
    fn is_absent(&self) -> bool {
        self.code() == Some(404)
    }

    /// Somebody else was faster.
    fn is_conflict(&self) -> bool {
        self.reason() == "Conflict"
    }

    fn already_exists(&self) -> bool {
        self.reason() == "AlreadyExists"
    }

    /// The resource does not know the verb.
    fn is_unsupported(&self) -> bool {
        self.code() == Some(405)
    }

    /// Nothing can be created in the namespace any more.
    fn is_terminating(&self) -> bool;

    /// What upstream's clients print for it.
    fn text(&self) -> String;
}

impl Refusal for Error {
    fn code(&self) -> Option<u16> {
        match self {
            Error::Api(status) => Some(status.code),
            _ => None,
        }
    }

    fn reason(&self) -> &str {
        match self {
            Error::Api(status) => &status.reason,
            _ => "",
        }
    }

    fn is_terminating(&self) -> bool {
        let Error::Api(status) = self else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
    }

    fn text(&self) -> String {
        match self {
            Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        }
    }
}

/// What was read, or nothing where there is nothing.
pub(crate) fn present<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}
