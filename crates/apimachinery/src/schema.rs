//! Structural schemas of custom resources: their own validity, and what they do to values.
