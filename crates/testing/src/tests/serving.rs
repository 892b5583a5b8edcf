//! Pages that only some may see.
