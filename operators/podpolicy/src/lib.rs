//! Judges and completes pods, without a kind of its own: admission alone.
//!
//! [`inject`] gives pods a sidecar; [`faults`] says what is wrong with a pod, by an [`AllowList`] of
//! images and by fields that contradict each other. Both are functions of values.

mod image;
mod inject;
mod judge;

use clap::Args;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright::Operator;
use kubewright::manifest::Package;
use kubewright::webhook::{
    Change, Denied, Operation, Purpose, Registration, Reinvocation, Response, Review, Warnings,
    Webhook,
};

pub use image::{AllowList, qualified};
pub use inject::{SIDECAR, inject};
pub use judge::faults;

/// Pods of namespaces with this label, set to `enabled`, get a sidecar; on a pod, set to `disabled`,
/// it keeps it away.
pub const INJECT: &str = "podpolicy.example.com/inject";
/// Pods of namespaces with this label, set to `enabled`, are judged.
pub const ENFORCE: &str = "podpolicy.example.com/enforce";

/// What to try it with, as YAML.
pub const SAMPLE: &str = include_str!("../samples/guarded.yaml");

const ENABLED: &str = "enabled";
const DISABLED: &str = "disabled";

/// What is asked of pods.
#[derive(Debug, Clone, Args)]
pub struct Policy {
    /// The image of the sidecar
    #[arg(long, value_name = "IMAGE", global = true)]
    #[arg(default_value = "registry.acme.com/sidecar/log-agent:1.0")]
    pub sidecar_image: String,
    /// Images that are allowed: a registry, and as much of the path as is wanted. May be given
    /// several times
    #[arg(long = "allow-images", value_name = "PREFIX", global = true)]
    #[arg(default_value = "registry.acme.com", value_delimiter = ',')]
    pub allowed: Vec<String>,
}

/// The whole program.
pub fn operator(policy: &Policy) -> Operator {
    let sidecar = inject::sidecar(&policy.sidecar_image);
    let allowed = AllowList::new(&policy.allowed);
    Operator::new("podpolicy")
        .webhook(injecting(sidecar))
        .webhook(judging(allowed.clone()))
        .webhook(judging_additions(allowed))
        // Every replica answers.
        .without_leader()
        .samples(SAMPLE)
}

/// What brings it into a cluster.
pub fn package(policy: &Policy) -> Package {
    let arguments = vec![
        format!("--sidecar-image={}", policy.sidecar_image),
        format!("--allow-images={}", policy.allowed.join(",")),
    ];
    Package { arguments, ..operator(policy).package() }
}

fn injecting(sidecar: Container) -> Webhook {
    let default = move |pod: &mut Pod, _: &Review| {
        inject(pod, &sidecar);
        Ok(())
    };
    Webhook::defaulting(default)
        // Containers of a pod that is there cannot be added to.
        .operations([Operation::Create])
        .namespaces(labelled(INJECT))
        // Whoever comes later may bring containers along, or take this one away.
        .registered(|it| it.reinvocation = Reinvocation::IfNeeded)
}

fn judging(allowed: AllowList) -> Webhook {
    let judge = move |change: Change<'_, Pod>, _: &Review| match change {
        Change::Create(pod) => verdict(&faults(pod, &allowed)),
        // What was wrong before must not keep a pod from being changed otherwise, or deleted.
        Change::Update { old, new } => {
            let before = faults(old, &allowed);
            let after = faults(new, &allowed);
            verdict(&after.into_iter().filter(|it| !before.contains(it)).collect::<Vec<_>>())
        }
        Change::Delete(_) => Ok(Warnings::new()),
    };
    Webhook::validating(judge).namespaces(labelled(ENFORCE))
}

/// Ephemeral containers come to a pod by a way of their own.
fn judging_additions(allowed: AllowList) -> Webhook {
    let path = "/validate--v1-pod-ephemeralcontainers";
    let plural = "pods/ephemeralcontainers";
    let registration = Registration {
        name: "validate.ephemeralcontainers.pods.v1.core".to_owned(),
        operations: vec![Operation::Update],
        ..Registration::new(Purpose::Validate, path, "", "v1", plural, "Pod")
    };
    let judge = move |review: &Review| {
        let judged = review.object::<Pod>().and_then(|pod| verdict(&faults(&pod, &allowed)));
        judged.map_or_else(Response::denied, |_| Response::allowed())
    };
    Webhook::new(registration, judge).namespaces(labelled(ENFORCE))
}

fn verdict(faults: &[kubewright::webhook::Cause]) -> Result<Warnings, Denied> {
    match faults {
        [] => Ok(Warnings::new()),
        faults => Err(Denied::invalid(faults.iter().cloned())),
    }
}

fn labelled(label: &str) -> LabelSelector {
    let labels = [(label.to_owned(), ENABLED.to_owned())];
    LabelSelector { match_labels: Some(labels.into()), ..LabelSelector::default() }
}
