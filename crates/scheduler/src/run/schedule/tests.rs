use futures::future::BoxFuture;

use super::*;

async fn broken() -> Result<(), String> {
    panic!("there is a hole")
}

fn work() -> (String, Work) {
    ("Broken".to_owned(), Box::pin(broken()))
}

fn wait() -> BoxFuture<'static, Result<(), Rejection>> {
    Box::pin(async { broken().await.map_err(Rejection::unschedulable) })
}

/// The task ended with its plugin, and neither the pod nor its place was ever given back.
#[tokio::test]
async fn a_plugin_that_panics_fails_its_pod() {
    let second = Duration::from_secs(1);
    let waits = vec![(0, "Broken".to_owned(), wait(), second)];
    for binding in [
        Binding { waits, before: Vec::new(), bind: None },
        Binding { waits: Vec::new(), before: vec![work()], bind: None },
        Binding { waits: Vec::new(), before: Vec::new(), bind: Some(work()) },
    ] {
        let told = match binding.guarded().await {
            Ok(()) => "bound".to_owned(),
            Err(Trouble::Denied(_, rejection)) => rejection.message(),
            Err(Trouble::Failed(why)) => why,
        };
        assert_eq!(told, "a plugin panicked: there is a hole");
    }
}
