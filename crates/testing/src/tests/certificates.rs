//! Certificates that an operator makes itself, and what happens when it cannot.
