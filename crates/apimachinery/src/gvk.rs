//! Groups, versions, kinds and resources.
