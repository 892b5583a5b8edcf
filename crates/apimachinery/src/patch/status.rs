//! How the API answers when a patch fails.

use super::{json, merge, strategic};
use crate::status::{Reason, Status};

impl From<&json::DecodeError> for Status {
    fn from(error: &json::DecodeError) -> Status {
        match error {
            json::DecodeError::Type { .. } => Status::bad_request(error.to_string()),
            json::DecodeError::TooMany { .. } => Status::request_entity_too_large(error),
        }
    }
}

impl From<&json::ApplyError> for Status {
    /// Upstream keeps to itself which operation failed, and why.
    fn from(error: &json::ApplyError) -> Status {
        Status::generic(422, "", &error.to_string())
    }
}

impl From<&merge::Error> for Status {
    fn from(error: &merge::Error) -> Status {
        Status::bad_request(error.to_string())
    }
}

impl From<&strategic::Error> for Status {
    fn from(error: &strategic::Error) -> Status {
        match error {
            strategic::Error::NotAnObject { .. } | strategic::Error::Format(_) => {
                Status::bad_request(error.to_string())
            }
            strategic::Error::ListOfLists => Status::generic(422, "", &error.to_string()),
            strategic::Error::Unmergeable(message) => {
                Status::failure(500, Reason::Unknown, message.as_str())
            }
        }
    }
}
