//! How the replicas of an operator keep out of each other's way.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// Which of an operator's replicas work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coordination {
    /// One at a time: the one that is elected. See [`election`](crate::election).
    Leader,
    /// All, each on its share of the objects. See [`shard`](crate::shard).
    Shards,
    /// All, on everything, and none knows of the others.
    None,
}

/// What was asked for beside what the operator declares. Not both at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) leader: Option<bool>,
    pub(crate) shards: Option<bool>,
}

impl Coordination {
    /// How it is to be, here. Outside a cluster an operator has nobody to agree with, and goes
    /// without unless it is asked.
    pub(crate) fn under(self, asked: Asked, is_in_cluster: bool) -> Self {
        if asked.shards == Some(true) {
            return Coordination::Shards;
        }
        if asked.leader == Some(true) {
            return Coordination::Leader;
        }
        let declared = match self {
            // Whoever shares nothing out must not all work on everything.
            Coordination::Shards if asked.shards == Some(false) => Coordination::Leader,
            declared => declared,
        };
        match declared {
            Coordination::Leader if asked.leader == Some(false) => Coordination::None,
            declared if is_in_cluster => declared,
            _ => Coordination::None,
        }
    }
}
