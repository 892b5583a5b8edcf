//! An operator project as files.
//!
//! [`scaffold`] makes projects and adds kinds, controllers and webhooks to them, or takes them
//! away; `source` is how it edits what an author has written since. What is to be done is a
//! [`Plan`], a value: it is shown as a diff, or [`apply`] makes all of it or nothing.
//!
//! Nothing here speaks to a cluster.

mod apply;
mod change;
pub mod compare;
pub mod definition;
mod elsewhere;
pub mod image;
pub mod import;
mod layout;
mod name;
pub mod package;
mod project;
pub mod scaffold;
mod source;
mod template;
mod upgrade;

pub use apply::{ApplyError, Turn, apply, begun, recover, replace, take_turn};
pub use change::{Change, Plan, ReadError};
pub use name::NameError;
pub use project::{Api, Project, ProjectError};
pub use source::EditError;
pub use upgrade::upgrade;
