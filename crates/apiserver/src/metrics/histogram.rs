//! Distributions, counted without locks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where one bucket ends and the next begins.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// The largest value of each bucket, ascending. Beyond the last there is one more.
    pub(super) bounds: &'static [u64],
    /// How many of what is counted make one of what is shown: nanoseconds, and seconds.
    pub(super) per_unit: u64,
}

/// How values are distributed.
#[derive(Debug)]
pub(crate) struct Histogram {
    pub(super) buckets: &'static Buckets,
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A histogram as it was at some moment.
pub(super) struct Reading {
    /// How many values were not larger than each bound; the last counts all.
    pub(super) cumulative: Vec<u64>,
    pub(super) sum: f64,
}

/// From a few milliseconds to a minute: requests, and writes to the storage.
pub(crate) static REQUEST_SECONDS: Buckets = Buckets {
    bounds: &millis([
        5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 8000,
        10_000, 15_000, 20_000, 30_000, 45_000, 60_000,
    ]),
    per_unit: NANOS,
};

/// Deciding who somebody is, and what they may do.
pub(crate) static DECISION_SECONDS: Buckets = Buckets {
    bounds: &millis([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384]),
    per_unit: NANOS,
};

/// A step of admission.
pub(crate) static ADMISSION_SECONDS: Buckets =
    Buckets { bounds: &millis([5, 25, 100, 500, 1000, 2500]), per_unit: NANOS };

/// Asking a webhook.
pub(crate) static WEBHOOK_SECONDS: Buckets =
    Buckets { bounds: &millis([5, 25, 100, 500, 1000, 2500, 10_000, 25_000]), per_unit: NANOS };

/// Asking a webhook for another version of objects.
pub(crate) static CONVERSION_SECONDS: Buckets = Buckets {
    bounds: &millis([
        5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 45_000, 60_000,
    ]),
    per_unit: NANOS,
};

/// Running an expression of a policy.
pub(crate) static CHECK_SECONDS: Buckets =
    Buckets { bounds: &[500, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000], per_unit: NANOS };

/// Trying match conditions.
pub(crate) static CONDITION_SECONDS: Buckets =
    Buckets { bounds: &millis([1, 5, 10, 25, 100, 200, 250]), per_unit: NANOS };

/// Answering a request of some flow.
pub(crate) static EXECUTION_SECONDS: Buckets = Buckets {
    bounds: &millis([0, 5, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000]),
    per_unit: NANOS,
};

/// How long a certificate is still good for.
pub(crate) static LIFETIME_SECONDS: Buckets = Buckets {
    bounds: &[
        0, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800, 2_592_000,
        7_776_000, 15_552_000, 31_104_000,
    ],
    per_unit: 1,
};

pub(crate) static RESPONSE_BYTES: Buckets = Buckets {
    bounds: &[1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000],
    per_unit: 1,
};

pub(crate) static EVENT_BYTES: Buckets = Buckets {
    bounds: &[1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17],
    per_unit: 1,
};

const NANOS: u64 = 1_000_000_000;

const fn millis<const N: usize>(mut bounds: [u64; N]) -> [u64; N] {
    let mut at = 0;
    while at < N {
        bounds[at] *= 1_000_000;
        at += 1;
    }
    bounds
}

impl Histogram {
    pub(crate) fn new(buckets: &'static Buckets) -> Self {
        let counts = (0..=buckets.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { buckets, counts, sum: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, value: u64) {
        let at = self.buckets.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// The same for many values, of which most fall into a few buckets.
    pub(crate) fn observe_all(&self, values: &[usize]) {
        let mut bucket = (0, 0);
        let mut sum = 0;
        for value in values {
            let value = *value as u64;
            let at = self.buckets.bounds.partition_point(|bound| *bound < value);
            if at != bucket.0 {
                self.counts[bucket.0].fetch_add(bucket.1, Relaxed);
                bucket = (at, 0);
            }
            bucket.1 += 1;
            sum += value;
        }
        self.counts[bucket.0].fetch_add(bucket.1, Relaxed);
        self.sum.fetch_add(sum, Relaxed);
    }

    pub(crate) fn observe_time(&self, elapsed: std::time::Duration) {
        self.observe(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub(super) fn read(&self) -> Reading {
        let mut total = 0;
        let add = |count: &AtomicU64| {
            total += count.load(Relaxed);
            total
        };
        let cumulative = self.counts.iter().map(add).collect();
        let sum = self.sum.load(Relaxed);
        Reading { cumulative, sum: sum as f64 / self.buckets.per_unit as f64 }
    }
}

impl Buckets {
    /// The bounds in the unit that is shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = f64> {
        self.bounds.iter().map(|bound| *bound as f64 / self.per_unit as f64)
    }
}
