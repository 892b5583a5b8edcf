//! `metav1.Status`: how the API says no.
