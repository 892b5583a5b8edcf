//! Whom a container runs as: what the security contexts of a pod and its container say of it. Pure.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde::{Deserialize, Serialize};

use crate::runtime::supply::{namespace, uid};

/// A user of this machine with groups. Nobody else than the agent, if nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Whom {
    user: Option<i64>,
    group: Option<i64>,
    groups: Vec<i64>,
}

impl Whom {
    /// `is_root` says whether the agent is, as whom a container runs that names nobody.
    ///
    /// # Errors
    /// If it would run as root and must not.
    pub(super) fn of(pod: &Pod, container: &Container, is_root: bool) -> Result<Self, String> {
        let own = container.security_context.as_ref();
        let pods = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let user = own.and_then(|it| it.run_as_user).or(pods.and_then(|it| it.run_as_user));
        let group = own.and_then(|it| it.run_as_group).or(pods.and_then(|it| it.run_as_group));
        let must_not =
            own.and_then(|it| it.run_as_non_root).or(pods.and_then(|it| it.run_as_non_root));
        if must_not == Some(true) {
            let what = match user {
                Some(0) => Some("container's runAsUser breaks non-root policy"),
                None if is_root => Some("container has runAsNonRoot and image will run as root"),
                _ => None,
            };
            if let Some(what) = what {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let (namespace, uid, own) = (namespace(pod), uid(pod), &container.name);
                return Err(format!(
                    "{what} (pod: \"{name}_{namespace}({uid})\", container: {own})"
                ));
            }
        }
        let more = pods.and_then(|it| it.supplemental_groups.clone()).unwrap_or_default();
        let groups = pods.and_then(|it| it.fs_group).into_iter().chain(more).collect();
        // Files of this machine are no image's: whoever is not root is not of its group either.
        Ok(Whom { user, group: group.or(user), groups })
    }

    /// The user that is named, if one is.
    pub(super) fn user(&self) -> Option<i64> {
        self.user
    }

    /// The words before a command that is to run so; none if it is the agent who runs it.
    pub(super) fn words(&self) -> Vec<String> {
        if *self == Whom::default() {
            return Vec::new();
        }
        let mut words = vec!["setpriv".to_owned()];
        words.extend(self.user.map(|user| format!("--reuid={user}")));
        words.extend(self.group.map(|group| format!("--regid={group}")));
        let groups: Vec<String> = self.groups.iter().map(i64::to_string).collect();
        words.push(match groups.is_empty() {
            true => "--clear-groups".to_owned(),
            false => format!("--groups={}", groups.join(",")),
        });
        words.push("--".to_owned());
        words
    }
}

/// The home of a user, as `/etc/passwd` has it; the root of all files for one that is not there.
pub(super) fn home(users: &str, user: i64) -> String {
    let mut homes = users.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            [_, _, number, _, _, home, ..] if number.parse() == Ok(user) => Some(home),
            _ => None,
        }
    });
    let home = homes.find(|home| home.starts_with('/'));
    home.unwrap_or("/").to_owned()
}
