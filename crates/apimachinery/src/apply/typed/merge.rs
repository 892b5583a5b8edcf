//! A configuration laid over an object.

use serde_json::Value;

use super::super::path::PathElement;
use super::super::schema::{List, Map, Schema, TypeId};
use super::{Form, Forms};

/// `live` with everything that `config` mentions. Nothing is removed; where both have a leaf, the
/// configuration's stays. Items keep the live order, except that those of the configuration
/// follow its order among themselves. Both must have passed validation, `config` without
/// duplicates.
pub(in super::super) fn merge(schema: &Schema, live: &Value, config: &Value) -> Value {
    value(schema, schema.root(), live, config)
}

fn value(schema: &Schema, ty: TypeId, live: &Value, config: &Value) -> Value {
    let ty = schema.get(ty);
    match Forms::of(ty, config).first(ty) {
        Form::Scalar(_) => config.clone(),
        Form::List(list) => list_value(schema, list, live, config),
        Form::Map(map) => map_value(schema, map, live, config),
    }
}

fn map_value(schema: &Schema, map: &Map, live: &Value, config: &Value) -> Value {
    let (live_entries, config_entries) = (live.as_object(), config.as_object());
    let no_entries = live_entries.is_none_or(serde_json::Map::is_empty)
        && config_entries.is_none_or(serde_json::Map::is_empty);
    if map.atomic || no_entries {
        return config.clone();
    }
    let mut merged = serde_json::Map::new();
    for (key, live) in live_entries.into_iter().flatten() {
        let both = config_entries.and_then(|entries| entries.get(key)).zip(map.value_type(key));
        let entry =
            both.map_or_else(|| live.clone(), |(config, ty)| value(schema, ty, live, config));
        merged.insert(key.clone(), entry);
    }
    for (key, config) in config_entries.into_iter().flatten() {
        if !live_entries.is_some_and(|entries| entries.contains_key(key)) {
            merged.insert(key.clone(), config.clone());
        }
    }
    Value::Object(merged)
}

fn list_value(schema: &Schema, list: &List, live: &Value, config: &Value) -> Value {
    let (live_items, config_items) = (items(live), items(config));
    if list.is_atomic() || (live_items.is_empty() && config_items.is_empty()) {
        return config.clone();
    }
    let pairing = Pairing::new(list, live_items, config_items);
    let merged = pairing.order().into_iter().map(|source| match source {
        Source::Live(at) => live_items[at].clone(),
        Source::Config(at) => match pairing.partner(at) {
            None => config_items[at].clone(),
            // Duplicates in the live list are no ground to merge on.
            Some(Partner::Several) => value(schema, list.element, &Value::Null, &config_items[at]),
            Some(Partner::One(live)) => {
                value(schema, list.element, &live_items[live], &config_items[at])
            }
        },
    });
    Value::Array(merged.collect())
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Which items of two lists are the same.
struct Pairing {
    /// For each live item, the configuration's item of the same name.
    config_of_live: Vec<Option<usize>>,
    /// For each item of the configuration, the live one of the same name.
    live_of_config: Vec<Option<Partner>>,
}

#[derive(Clone, Copy)]
enum Partner {
    One(usize),
    Several,
}

enum Source {
    /// A live item that the configuration does not mention.
    Live(usize),
    /// An item of the configuration, with its partner if it has one.
    Config(usize),
}

impl Pairing {
    fn new(list: &List, live: &[Value], config: &[Value]) -> Self {
        let mut names: Vec<(PathElement, usize)> = Vec::with_capacity(config.len());
        names.extend(
            config
                .iter()
                .enumerate()
                .filter_map(|(at, item)| Some((list.element_of(item).ok()?, at))),
        );
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut live_of_config = vec![None; config.len()];
        let config_of_live = live
            .iter()
            .enumerate()
            .map(|(at, item)| {
                let element = list.element_of(item).ok()?;
                let found = names.binary_search_by(|(name, _)| name.cmp(&element)).ok()?;
                let partner = names[found].1;
                live_of_config[partner] = match live_of_config[partner] {
                    None => Some(Partner::One(at)),
                    Some(_) => Some(Partner::Several),
                };
                Some(partner)
            })
            .collect();
        Pairing { config_of_live, live_of_config }
    }

    fn partner(&self, config: usize) -> Option<Partner> {
        self.live_of_config[config]
    }

    /// The merged list, by where its items come from: live items stay where they are between the
    /// shared ones, and the shared ones come in the configuration's order.
    fn order(&self) -> Vec<Source> {
        let n_config = self.live_of_config.len();
        let mut order = Vec::with_capacity(self.config_of_live.len().max(n_config));
        let mut taken = vec![false; n_config];
        let mut shared = (0..n_config).filter(|at| self.live_of_config[*at].is_some());
        let mut next_shared = shared.next();
        let (mut live, mut config) = (0, 0);
        loop {
            let partner = self.config_of_live.get(live).copied();
            if let Some(partner) = partner {
                if config < n_config && partner == Some(config) {
                    order.push(Source::Config(config));
                    taken[config] = true;
                    (live, config) = (live + 1, config + 1);
                    next_shared = shared.next();
                    continue;
                }
                // A shared item whose turn it is not; it comes where the configuration has it.
                if config < n_config
                    && partner.is_some()
                    && next_shared.is_some()
                    && partner != next_shared
                {
                    live += 1;
                    continue;
                }
                match partner {
                    None => {
                        order.push(Source::Live(live));
                        live += 1;
                        continue;
                    }
                    Some(at) if taken[at] => live += 1,
                    Some(_) => {}
                }
            }
            if config < n_config {
                order.push(Source::Config(config));
                taken[config] = true;
                if next_shared == Some(config) {
                    next_shared = shared.next();
                }
                config += 1;
            } else if live >= self.config_of_live.len() {
                return order;
            }
        }
    }
}
