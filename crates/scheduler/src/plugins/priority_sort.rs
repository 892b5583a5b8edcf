//! Which pod is next: the one of the highest priority, and of those the first that came. The queue
//! knows no other order; this is its name in configuration.

use crate::plugin::{Plugin, Point};

pub(crate) struct PrioritySort;

impl PrioritySort {
    pub(crate) const NAME: &str = "PrioritySort";
}

impl Plugin for PrioritySort {
    fn name(&self) -> &str {
        PrioritySort::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::QueueSort]
    }
}
