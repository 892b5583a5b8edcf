//! Expiry in virtual time.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Config, Put, Start, Store, Unavailable};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn an_hour_passes_in_no_time() {
    let begin = Instant::now();
    let store = Store::memory(Config::new(|_, _| (), |_| "", move || begin.elapsed()));
    let mut watch = store.watch("", Start::Now).unwrap();
    let scenario = async {
        store.put(Put::new("/events/late", "1").ttl(2 * HOUR)).await.unwrap();
        assert_eq!(watch.next().await.unwrap().len(), 1);
        // Sooner than the one that is waited for already.
        tokio::time::sleep(HOUR / 2).await;
        store.put(Put::new("/events/soon", "1").ttl(HOUR)).await.unwrap();
        let mut gone = Vec::new();
        while gone.len() < 2 {
            let events = watch.next().await.unwrap();
            for event in events.iter().filter(|event| event.current.is_none()) {
                gone.push((event.key.to_string(), begin.elapsed().as_secs()));
            }
        }
        gone
    };
    let gone = tokio::select! {
        why = store.run_expiry() => panic!("{why}"),
        gone = scenario => gone,
    };
    assert_eq!(gone, [("/events/soon".into(), 5400), ("/events/late".into(), 7200)]);
}

#[tokio::test(start_paused = true)]
async fn expiry_ends_with_the_store() {
    let begin = Instant::now();
    let store = Store::memory(Config::new(|_, _| (), |_| "", move || begin.elapsed()));
    store.put(Put::new("/events/e", "1").ttl(HOUR)).await.unwrap();
    store.close().await;
    assert!(matches!(store.run_expiry().await, Unavailable::Closed));
}
