//! Versions of the kind `Ferry`: all are converted by way of `v1`.

mod v2;

use kubewright::webhook::{Conversion, Hub};

/// The hub, and the versions around it.
pub fn new() -> Hub<super::v1::Ferry> {
    Conversion::hub().spoke::<super::v2::Ferry>()
}
