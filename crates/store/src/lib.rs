//! Revisioned bytes with watch.
