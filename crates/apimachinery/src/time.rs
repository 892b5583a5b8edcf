//! Timestamps as the API writes them: RFC 3339, in seconds or microseconds.
