//! Asking whether somebody may do something.
//!
//! Every environment knows these types. Only where somebody puts an authorizer among the variables
//! is there a value to call them on; it answers for itself, see [`Foreign`].
//!
//! [`Foreign`]: crate::cel::value::Foreign

use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Val};

pub(super) fn declare(table: &mut Table) {
    const PREFIX: &str = "kubernetes.authorization.";
    let mut member = |name: &'static str, id: &'static str, signature: &str, body| {
        table.member(name, id, &signature.replace('@', PREFIX), Body::Typed(body));
    };
    let group = "@GroupCheck";
    let resource = "@ResourceCheck";
    member("path", "authorizer_path", "@Authorizer, string -> @PathCheck", |args| {
        ask("path", args)
    });
    member("group", "authorizer_group", &format!("@Authorizer, string -> {group}"), |args| {
        ask("group", args)
    });
    member(
        "serviceAccount",
        "authorizer_serviceaccount",
        "@Authorizer, string, string -> @Authorizer",
        |args| ask("serviceAccount", args),
    );
    let narrow = format!("{resource}, string -> {resource}");
    member("resource", "groupcheck_resource", &format!("{group}, string -> {resource}"), |args| {
        ask("resource", args)
    });
    member("subresource", "resourcecheck_subresource", &narrow, |args| ask("subresource", args));
    member("namespace", "resourcecheck_namespace", &narrow, |args| ask("namespace", args));
    member("name", "resourcecheck_name", &narrow, |args| ask("name", args));
    member("fieldSelector", "authorizer_fieldselector", &narrow, |args| ask("fieldSelector", args));
    member("labelSelector", "authorizer_labelselector", &narrow, |args| ask("labelSelector", args));
    member("check", "pathcheck_check", "@PathCheck, string -> @Decision", |args| {
        ask("check", args)
    });
    member("check", "resourcecheck_check", &format!("{resource}, string -> @Decision"), |args| {
        ask("check", args)
    });
    member("errored", "decision_errored", "@Decision -> bool", |args| ask("errored", args));
    member("error", "decision_error", "@Decision -> string", |args| ask("error", args));
    member("allowed", "decision_allowed", "@Decision -> bool", |args| ask("allowed", args));
    member("reason", "decision_reason", "@Decision -> string", |args| ask("reason", args));
}

fn ask<'v>(function: &str, args: &[Val<'v>]) -> Outcome<'v> {
    match args {
        [Val::Foreign(value), args @ ..] => value.call(function, args),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}
