//! From a request to a stored revision and back.

pub mod admission;
pub mod aggregate;
pub mod allocate;
pub mod audit;
pub mod authn;
pub mod authz;
mod begin;
pub mod body;
pub mod bootstrap;
pub mod catalog;
mod component_status;
mod conditions;
pub mod connect;
mod crd;
mod delete;
mod deprecation;
pub mod discovery;
pub mod document;
mod draft;
pub mod edge;
pub mod encode;
mod flow;
mod foreign;
pub mod foresight;
pub mod genesis;
mod health;
pub mod index;
pub mod kinds;
pub mod list_options;
mod meta;
mod metrics;
pub mod negotiate;
mod observe;
pub mod openapi;
mod options;
#[expect(dead_code, reason = "webhooks and aggregated servers are to call")]
mod outbound;
mod pod_actions;
mod query;
pub mod read;
mod references;
mod refusal;
mod relay;
#[cfg(test)]
mod replay;
pub mod resource;
pub mod review;
mod scale;
pub mod selection;
pub mod server;
mod services;
mod strategy;
pub mod target;
pub mod user;
pub mod version;
mod warnings;
pub mod watch;
mod write;

#[cfg(test)]
#[path = "../../apimachinery/src/fixtures.rs"]
mod fixtures;

#[cfg(test)]
mod sample;
