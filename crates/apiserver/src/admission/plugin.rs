//! Upstream's admission plugins by name: which there are, and which of them have a say.

use kubewright_apimachinery::json::go_quote;

/// A plugin that this server has. Each takes part unless somebody says otherwise, but for those that
/// upstream leaves out unless it is told to have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    NodeRestriction,
    TaintNodesByCondition,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    PodTopologyLabels,
    PodResizeValidator,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
}

/// The plugins that have a say. By default all that this server has and upstream has on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginSet(u32);

/// Why plugins cannot be had as asked. Displays as upstream says it, where upstream refuses too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginsError {
    #[error("{option} plugin {} is unknown", go_quote(.name))]
    Unknown { option: &'static str, name: String },
    #[error("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", .0.join(" "))]
    Overlap(Vec<String>),
    /// Upstream would judge by it, and nobody may think that it is done here.
    #[error("enable-admission-plugins plugin {} is not part of this server: leave it out", go_quote(.0))]
    Missing(String),
}

const ALL: [Plugin; 23] = [
    Plugin::NamespaceLifecycle,
    Plugin::LimitRanger,
    Plugin::ServiceAccount,
    Plugin::NodeRestriction,
    Plugin::TaintNodesByCondition,
    Plugin::PodSecurity,
    Plugin::Priority,
    Plugin::DefaultTolerationSeconds,
    Plugin::DefaultStorageClass,
    Plugin::StorageObjectInUseProtection,
    Plugin::PersistentVolumeClaimResize,
    Plugin::RuntimeClass,
    Plugin::CertificateApproval,
    Plugin::CertificateSigning,
    Plugin::CertificateSubjectRestriction,
    Plugin::DefaultIngressClass,
    Plugin::PodTopologyLabels,
    Plugin::PodResizeValidator,
    Plugin::MutatingAdmissionPolicy,
    Plugin::MutatingAdmissionWebhook,
    Plugin::ValidatingAdmissionPolicy,
    Plugin::ValidatingAdmissionWebhook,
    Plugin::ResourceQuota,
];

/// Plugins that take part only if somebody says so, as upstream's.
const OFF: [Plugin; 1] = [Plugin::NodeRestriction];

/// Plugins that judge nothing here, as upstream's do unless a feature is on, or that judge kinds
/// which are not served.
const IDLE: [&str; 6] = [
    "AlwaysAdmit",
    "ClusterTrustBundleAttest",
    "JobValidation",
    "NodeDeclaredFeatureValidator",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
];

/// Plugins that upstream has, and has off by default.
const MISSING: [&str; 12] = [
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "OwnerReferencesPermissionEnforcement",
    "PodNodeSelector",
    "PodTolerationRestriction",
];

impl PluginSet {
    /// The default with those in `enable` and without those in `disable`.
    pub fn named(enable: &[String], disable: &[String]) -> Result<Self, PluginsError> {
        let mut set = PluginSet::default();
        let both = Vec::from_iter(enable.iter().filter(|name| disable.contains(name)).cloned());
        for (option, names) in
            [("enable-admission-plugins", enable), ("disable-admission-plugins", disable)]
        {
            let unknown = |name: &&String| {
                let known = IDLE.iter().chain(&MISSING);
                plugin(name).is_none() && !known.into_iter().any(|known| known == name)
            };
            if let Some(name) = names.iter().find(unknown) {
                return Err(PluginsError::Unknown { option, name: name.clone() });
            }
        }
        if !both.is_empty() {
            return Err(PluginsError::Overlap(both));
        }
        if let Some(missing) = enable.iter().find(|name| MISSING.contains(&name.as_str())) {
            return Err(PluginsError::Missing(missing.clone()));
        }
        for plugin in enable.iter().filter_map(|name| plugin(name)) {
            set = set.with(plugin);
        }
        for plugin in disable.iter().filter_map(|name| plugin(name)) {
            set.0 &= !bit(plugin);
        }
        Ok(set)
    }

    #[must_use]
    pub fn with(self, plugin: Plugin) -> Self {
        PluginSet(self.0 | bit(plugin))
    }

    pub fn has(self, plugin: Plugin) -> bool {
        self.0 & bit(plugin) != 0
    }

    /// Those of `table` that have a say.
    pub(super) fn of<T>(
        self,
        table: &'static [(Plugin, T)],
    ) -> impl Iterator<Item = &'static (Plugin, T)> {
        table.iter().filter(move |(plugin, _)| self.has(*plugin))
    }
}

impl Default for PluginSet {
    fn default() -> Self {
        let on = ALL.into_iter().filter(|plugin| !OFF.contains(plugin));
        PluginSet(on.fold(0, |set, plugin| set | bit(plugin)))
    }
}

const fn bit(plugin: Plugin) -> u32 {
    1 << plugin as u32
}

/// The plugin with this name; their names here are upstream's.
fn plugin(name: &str) -> Option<Plugin> {
    ALL.into_iter().find(|plugin| format!("{plugin:?}") == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(enable: &[&str], disable: &[&str], expected: Result<&[Plugin], &str>) {
        let names = |names: &[&str]| Vec::from_iter(names.iter().map(|name| (*name).to_owned()));
        let set = PluginSet::named(&names(enable), &names(disable));
        match (set, expected) {
            (Ok(set), Ok(off)) => {
                let found = Vec::from_iter(ALL.into_iter().filter(|plugin| !set.has(*plugin)));
                assert_eq!(found, off);
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (found, expected) => panic!("{found:?} where {expected:?} was expected"),
        }
    }

    #[test]
    fn plugins_take_part_unless_they_are_disabled() {
        check(&[], &[], Ok(&OFF));
        check(&["Priority", "AlwaysAdmit"], &[], Ok(&OFF));
        check(&[], &["ServiceAccount"], Ok(&[Plugin::ServiceAccount, Plugin::NodeRestriction]));
        check(&[], &["NodeRestriction", "JobValidation"], Ok(&OFF));
    }

    #[test]
    fn some_plugins_take_part_only_when_they_are_enabled() {
        check(&["NodeRestriction"], &[], Ok(&[]));
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_name() {
        check(&["Bogus"], &[], Err("enable-admission-plugins plugin \"Bogus\" is unknown"));
        check(&[], &["Bogus"], Err("disable-admission-plugins plugin \"Bogus\" is unknown"));
        check(
            &["Priority"],
            &["Priority"],
            Err("[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"),
        );
        check(
            &["AlwaysPullImages"],
            &[],
            Err(
                "enable-admission-plugins plugin \"AlwaysPullImages\" is not part of this server: \
                 leave it out",
            ),
        );
    }
}
