//! Servers by value, and on loopback.
