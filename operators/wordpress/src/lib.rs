//! WordPress on MySQL, with all that both need.
//!
//! [`Names`] says what the parts of a site are called and [`Children`] what they are, from values
//! alone; [`Publisher`] brings them about, the database first.

mod judge;
mod kind;
mod plan;
mod publisher;
mod references;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
use kubewright::webhook::Webhook;
use kubewright::{Controller, Operator};

use references::References;

pub use kind::{SecretKey, Wordpress, WordpressSpec, WordpressStatus};
pub use plan::{Children, Names, Password};
pub use publisher::Publisher;

/// What to try it with, as YAML.
pub const SAMPLE: &str = include_str!("../samples/example-wordpress.yaml");

/// The whole program.
pub fn operator() -> Operator {
    let references = References::default();
    let users = references.clone();
    let controller = Controller::new("wordpress", Publisher::new(references))
        .owns::<PersistentVolumeClaim>()
        .owns::<Deployment>()
        .owns::<Service>()
        // A new password is one for the pods, too.
        .watches::<Secret>(move |secret| users.of(&secret.metadata));
    Operator::new("wordpress")
        .kind::<Wordpress>()
        .controller(controller)
        .webhook(Webhook::validating(judge::judge))
        .samples(SAMPLE)
}
