//! Tables: the columns and rows that `kubectl get` prints.
