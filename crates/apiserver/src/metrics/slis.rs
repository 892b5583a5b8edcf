//! `/metrics/slis`: what came of the health checks, for those who watch over many servers.

use super::text::{Kind, Page};
use crate::health::Record;

/// Where the page is.
pub(crate) const PATH: &str = "/metrics/slis";

/// The page. `records` are in the order of the checks' names, `start_seconds` is when the process
/// began: before the first check it is all there is to tell.
pub(super) fn page(records: &[Record], start_seconds: Option<f64>) -> String {
    let mut page = Page::default();
    page.family(
        "kubernetes_healthcheck",
        Kind::Gauge,
        "[STABLE] This metric records the result of a single healthcheck.",
    );
    for record in records {
        let labels = [("name", record.check), ("type", record.root)];
        page.sample(&labels, f64::from(u8::from(record.is_well)));
    }
    page.family(
        "kubernetes_healthchecks_total",
        Kind::Counter,
        "[STABLE] This metric records the results of all healthcheck.",
    );
    let by_check = records.chunk_by(|a, b| a.check == b.check);
    for records in by_check {
        for status in ["error", "success"] {
            for record in records {
                let count = if status == "success" { record.passed } else { record.failed };
                if count > 0 {
                    let labels =
                        [("name", record.check), ("status", status), ("type", record.root)];
                    page.sample(&labels, count as f64);
                }
            }
        }
    }
    if let Some(seconds) = start_seconds {
        page.family(
            "process_start_time_seconds",
            Kind::Gauge,
            "[ALPHA] Start time of the process since unix epoch in seconds.",
        );
        page.sample(&[], seconds);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_by_what_came_of_them() {
        let record =
            |check, root, passed, failed, is_well| Record { check, root, passed, failed, is_well };
        let records = [
            record("etcd", "livez", 3, 1, false),
            record("etcd", "readyz", 2, 0, true),
            record("ping", "livez", 4, 0, true),
        ];
        let expected = r#"# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.
# TYPE kubernetes_healthcheck gauge
kubernetes_healthcheck{name="etcd",type="livez"} 0
kubernetes_healthcheck{name="etcd",type="readyz"} 1
kubernetes_healthcheck{name="ping",type="livez"} 1
# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.
# TYPE kubernetes_healthchecks_total counter
kubernetes_healthchecks_total{name="etcd",status="error",type="livez"} 1
kubernetes_healthchecks_total{name="etcd",status="success",type="livez"} 3
kubernetes_healthchecks_total{name="etcd",status="success",type="readyz"} 2
kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 4
"#;
        assert_eq!(page(&records, None), expected);
    }

    #[test]
    fn a_server_that_nobody_has_asked_says_when_it_began() {
        let expected = "# HELP process_start_time_seconds [ALPHA] Start time of the process since \
                        unix epoch in seconds.\n\
                        # TYPE process_start_time_seconds gauge\n\
                        process_start_time_seconds 1.7e+09\n";
        assert_eq!(page(&[], Some(1_700_000_000.0)), expected);
    }
}
