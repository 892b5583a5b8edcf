//! A value that is a whole number or a string, as ports and percentages are.
