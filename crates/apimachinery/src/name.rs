//! Names, labels and annotations: what is well formed, in upstream's words.
