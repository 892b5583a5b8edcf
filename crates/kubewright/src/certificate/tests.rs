//! Certificates by value.
