//! A node that has a pod's images already is better, the more bytes they are; but not if it is one
//! of few, or all pods would go to the first.

use crate::node::Node;
use crate::plugin::{Plugin, Point, SCORE_MAX, Score};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const MEGABYTE: i64 = 1024 * 1024;
/// Below this it does not matter; from the other on, for each container, it matters no more.
const BYTES_MIN: i64 = 23 * MEGABYTE;
const BYTES_MAX: i64 = 1000 * MEGABYTE;

pub(crate) struct ImageLocality;

struct Locality<'a> {
    /// With the share of nodes that have it.
    images: Vec<(&'a str, f64)>,
    bytes_max: i64,
}

impl ImageLocality {
    pub(crate) const NAME: &str = "ImageLocality";
}

impl Plugin for ImageLocality {
    fn name(&self) -> &str {
        ImageLocality::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Score]
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let images: Vec<(&str, f64)> = pod
            .images
            .iter()
            .map(|image| (image.as_str(), snapshot.nodes_with(image)))
            .filter(|(_, count)| *count > 0)
            .map(|(image, count)| (image, count as f64 / snapshot.len() as f64))
            .collect();
        let spec = pod.spec()?;
        let containers = spec.init_containers.iter().flatten().count() + spec.containers.len();
        let bytes_max = BYTES_MAX * containers.max(1) as i64;
        (!images.is_empty()).then(|| Box::new(Locality { images, bytes_max }) as Box<dyn Score>)
    }
}

impl Score for Locality<'_> {
    fn score(&self, node: &Node) -> i64 {
        let bytes = self.images.iter().filter_map(|(image, share)| {
            let size = *node.images.get(*image)?;
            Some((size as f64 * share) as i64)
        });
        let bytes = bytes.sum::<i64>().clamp(BYTES_MIN, self.bytes_max);
        SCORE_MAX * (bytes - BYTES_MIN) / (self.bytes_max - BYTES_MIN)
    }
}
