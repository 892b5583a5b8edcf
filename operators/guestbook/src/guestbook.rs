//! The kind `Guestbook` of the group `webapp.my.domain`.

pub mod controller;
pub mod defaulting;
pub mod v1;
pub mod validation;
