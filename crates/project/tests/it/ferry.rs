//! The kind `Ferry` of the group `sea.my.domain`.

pub mod conversion;
pub mod v1;
pub mod v2;
