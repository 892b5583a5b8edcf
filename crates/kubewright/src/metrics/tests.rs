//! The names and labels that dashboards ask for.

use prometheus_client::encoding::text;

use super::*;

#[tokio::test]
async fn controllers_are_counted_by_the_names_that_dashboards_know() {
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let queue = Arc::new(Queue::new());
    let meter = metrics.of("pet", &queue, 3);
    let cause = |source: &str, object: &str| queue::Cause {
        source: source.into(),
        object: object.into(),
        revision: Box::default(),
    };
    for cause in [cause("watch Pod", "a"), cause("watch Pod", "b"), cause("timer night", "")] {
        let add = queue::Add::default().because(cause);
        queue.add_with(ObjectKey::new(None, "thor"), add);
    }
    let work = queue.take().await.expect("it is open");
    let active = meter.begin(Duration::from_millis(20), work.causes());
    work.finish(queue::Outcome::After(Duration::ZERO));
    meter.end(Result::Terminal, Duration::from_millis(30));
    let mut told = String::new();
    text::encode(&mut told, &registry).expect("a text");
    for line in [
        r#"controller_runtime_reconcile_total{controller="pet",result="success"} 0"#,
        r#"controller_runtime_reconcile_total{controller="pet",result="error"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="pet"} 1"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="pet"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="pet"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{le="0.025",controller="pet"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{le="0.05",controller="pet"} 1"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="pet"} 3"#,
        r#"controller_runtime_active_workers{controller="pet"} 1"#,
        r#"workqueue_depth{name="pet",controller="pet",priority="0"} 1"#,
        r#"workqueue_adds_total{name="pet",controller="pet"} 3"#,
        r#"kubewright_reconcile_causes_total{controller="pet",source="watch Pod"} 1"#,
        r#"kubewright_reconcile_causes_total{controller="pet",source="timer night"} 1"#,
        r#"workqueue_retries_total{name="pet",controller="pet"} 0"#,
        r#"workqueue_queue_duration_seconds_count{name="pet",controller="pet"} 1"#,
        r#"workqueue_unfinished_work_seconds{name="pet",controller="pet"} 0.0"#,
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\nis not in\n{told}");
    }
    drop(active);
}
