//! Which plugins have a say for a pod, where, and how much.

pub(crate) mod registry;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use self::registry::{Around, Registry};
use crate::config::{self, ConfigError, invalid};
use crate::plugin::{Plugin, Point};
use crate::plugins::{
    BalancedAllocation, DefaultBinder, DefaultPreemption, DynamicResources, ImageLocality,
    InterPodAffinity, NodeAffinity, NodeDeclaredFeatures, NodeName, NodePorts, NodeResourcesFit,
    NodeUnschedulable, PodTopologySpread, PrioritySort, SchedulingGates, TaintToleration,
    VolumeBinding, VolumeLimits, VolumeRestrictions, VolumeZone,
};

/// Stands for all plugins that are there by default.
const ALL: &str = "*";

/// The plugins that every profile has unless it says otherwise, and how much they count.
const DEFAULTS: [(&str, Option<i64>); 20] = [
    (SchedulingGates::NAME, None),
    (PrioritySort::NAME, None),
    (NodeUnschedulable::NAME, None),
    (NodeName::NAME, None),
    (TaintToleration::NAME, Some(3)),
    (NodeAffinity::NAME, Some(2)),
    (NodePorts::NAME, None),
    (NodeResourcesFit::NAME, Some(1)),
    (VolumeRestrictions::NAME, None),
    (VolumeLimits::NAME, None),
    (VolumeBinding::NAME, None),
    (VolumeZone::NAME, None),
    (PodTopologySpread::NAME, Some(2)),
    (InterPodAffinity::NAME, Some(2)),
    (DynamicResources::NAME, None),
    (DefaultPreemption::NAME, None),
    (BalancedAllocation::NAME, Some(1)),
    (ImageLocality::NAME, Some(1)),
    (DefaultBinder::NAME, None),
    (NodeDeclaredFeatures::NAME, None),
];

/// Plugins, by where they have a say.
pub(crate) struct Profile {
    pub(crate) name: Arc<str>,
    pub(crate) percentage: Option<u32>,
    plugins: Vec<Arc<dyn Plugin>>,
    /// Places in `plugins`, by point, with weights.
    points: Vec<(Point, Vec<(usize, i64)>)>,
}

/// Some plugins of a profile, by their places in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PluginSet(u64);

impl PluginSet {
    /// The place that no plugin has: it stands for all extenders.
    pub(crate) const EXTENDERS: usize = 63;

    pub(crate) fn insert(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    pub(crate) fn contains(self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Profile {
    /// # Errors
    /// It names plugins or points that there are not, or gives them arguments that make no sense.
    pub(crate) fn new(
        config: &config::Profile,
        registry: &Registry,
        around: &Around,
    ) -> Result<Self, ConfigError> {
        let mut profile = Profile {
            name: config.scheduler_name.as_deref().unwrap_or_default().into(),
            percentage: config.percentage_of_nodes_to_score,
            plugins: Vec::new(),
            points: Vec::new(),
        };
        let everywhere = merged(&config.plugins.multi_point);
        for point in Point::ALL {
            let mut places = Vec::new();
            for (name, weight) in profile.at(point, config, &everywhere, registry, around)? {
                let place = profile.place_of(&name, config, registry, around)?;
                places.push((place, weight));
            }
            profile.points.push((point, places));
        }
        if profile.places(Point::Bind).is_empty() {
            let why = format!(
                "at least one bind plugin is needed for profile with scheduler name {:?}",
                profile.name
            );
            return Err(invalid("plugins.bind", why));
        }
        Ok(profile)
    }

    /// With their places.
    pub(crate) fn filters(&self) -> impl Iterator<Item = (usize, &dyn Plugin)> {
        self.places(Point::Filter).iter().map(|(place, _)| (*place, &*self.plugins[*place]))
    }

    /// With how much each counts.
    pub(crate) fn scores(&self) -> impl Iterator<Item = (&dyn Plugin, i64)> {
        let places = self.places(Point::Score).iter();
        places.map(|(place, weight)| (&*self.plugins[*place], *weight))
    }

    pub(crate) fn at_point(&self, point: Point) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        self.places(point).iter().map(|(place, _)| &self.plugins[*place])
    }

    /// As [`at_point`](Profile::at_point), with places.
    pub(crate) fn placed_at(
        &self,
        point: Point,
    ) -> impl Iterator<Item = (usize, &Arc<dyn Plugin>)> {
        self.places(point).iter().map(|(place, _)| (*place, &self.plugins[*place]))
    }

    pub(crate) fn has_scores(&self) -> bool {
        !self.places(Point::Score).is_empty()
    }

    pub(crate) fn name_of(&self, place: usize) -> &str {
        self.plugins.get(place).map_or("", |plugin| plugin.name())
    }

    /// The plugins of a set.
    pub(crate) fn those(&self, set: PluginSet) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        let all = self.plugins.iter().enumerate();
        all.filter(move |(place, _)| set.contains(*place)).map(|(_, plugin)| plugin)
    }

    fn places(&self, point: Point) -> &[(usize, i64)] {
        let found = self.points.iter().find(|(known, _)| *known == point);
        found.map_or(&[], |(_, places)| places)
    }

    /// Who has a say at a point, and how much it counts. Those that are named for the point come
    /// as they are named, the others as they are everywhere.
    fn at(
        &mut self,
        point: Point,
        config: &config::Profile,
        everywhere: &[config::Plugin],
        registry: &Registry,
        around: &Around,
    ) -> Result<Vec<(String, i64)>, ConfigError> {
        let here = config.plugins.at(point);
        let is_off = |name: &str| here.disabled.iter().any(|it| it.name == name);
        let mut inherited = Vec::new();
        for plugin in everywhere.iter().filter(|it| !is_off(ALL) && !is_off(&it.name)) {
            let place = self.place_of(&plugin.name, config, registry, around)?;
            if self.plugins[place].points().contains(&point) {
                inherited.push(plugin);
            }
        }
        for plugin in &here.enabled {
            let place = self.place_of(&plugin.name, config, registry, around)?;
            if !self.plugins[place].points().contains(&point) {
                let why = format!("plugin {:?} does not extend {point:?} plugin", plugin.name);
                return Err(invalid("plugins", why));
            }
        }
        let is_inherited =
            |it: &&config::Plugin| inherited.iter().any(|known| known.name == it.name);
        let is_named =
            |it: &&&config::Plugin| here.enabled.iter().any(|named| named.name == it.name);
        let overriding = here.enabled.iter().filter(is_inherited);
        let rest = inherited.iter().filter(|it| !is_named(it)).copied();
        let added = here.enabled.iter().filter(|it| !is_inherited(it));
        let weight = |it: &config::Plugin| it.weight.filter(|&weight| weight != 0).unwrap_or(1);
        let all = overriding.chain(rest).chain(added);
        Ok(all.map(|plugin| (plugin.name.clone(), weight(plugin))).collect())
    }

    /// The place of a plugin, which is made when it is first named.
    fn place_of(
        &mut self,
        name: &str,
        config: &config::Profile,
        registry: &Registry,
        around: &Around,
    ) -> Result<usize, ConfigError> {
        if let Some(place) = self.plugins.iter().position(|plugin| plugin.name() == name) {
            return Ok(place);
        }
        let given = config.plugin_config.iter().find(|config| config.name == name);
        let args = given.map_or(&Value::Null, |config| &config.args);
        let plugin = registry.make(name, args, around)?;
        if self.plugins.len() == PluginSet::EXTENDERS {
            return Err(invalid("plugins", "there are too many"));
        }
        self.plugins.push(plugin);
        Ok(self.plugins.len() - 1)
    }
}

/// The default plugins as a profile changes them.
fn merged(changes: &config::PluginSelection) -> Vec<config::Plugin> {
    let is_off = |name: &str| changes.disabled.iter().any(|it| it.name == name || it.name == ALL);
    let defaults = DEFAULTS.iter().filter(|(name, _)| !is_off(name));
    let mut all: Vec<config::Plugin> = defaults
        .map(|(name, weight)| {
            let changed = changes.enabled.iter().find(|it| it.name == *name);
            let default = config::Plugin { name: (*name).to_owned(), weight: *weight };
            changed.cloned().unwrap_or(default)
        })
        .collect();
    for added in &changes.enabled {
        if !all.iter().any(|known| known.name == added.name) {
            all.push(added.clone());
        }
    }
    all
}
