//! Regular expressions with Go's syntax and meaning.
