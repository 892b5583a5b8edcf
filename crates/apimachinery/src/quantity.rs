//! Resource quantities: exact arithmetic and the canonical form.
