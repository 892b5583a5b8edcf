//! Conversions between the served versions of built-in kinds.
