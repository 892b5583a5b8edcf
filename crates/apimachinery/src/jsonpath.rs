//! JSONPath in Kubernetes' dialect, as printer columns and selectable fields use it.
