//! Protobuf encodings of built-in kinds, transcoded from and to JSON values.
