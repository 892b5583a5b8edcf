//! The keys that all servers on one etcd have in common.
//!
//! Objects in etcd belong to one cluster, however many servers serve them: a token that one server
//! gave is good at the others, and there is one authority to know them by. So the first server
//! leaves its roots beside the objects, and the others take them from there. Whoever can read them
//! can read every Secret, too.

use anyhow::{Context as _, Result};
use kubewright_store::{Config, Durability, Expect, Key, Put, PutError, Store, etcd};

use crate::Clock;
use crate::pki::Roots;

/// Where upstream's servers do not look.
const PREFIX: &str = "/kubewright/";
const KEY: &str = "/kubewright/roots";

/// The roots of the cluster in etcd: `own` if it has none yet.
pub(crate) async fn agree(cluster: &etcd::Config, own: Roots) -> Result<Roots> {
    let config = Config::new(|_, _| (), |_| PREFIX, || Clock::System.now());
    let store = Store::etcd(config, cluster, PREFIX).await.context("open the store in etcd")?;
    let agreed = settle(&store, own).await;
    store.close().await;
    agreed
}

async fn settle(store: &Store<()>, own: Roots) -> Result<Roots> {
    let found = |store: &Store<()>| {
        let found = store.get(KEY)?;
        Some(serde_json::from_slice(&found.value).context("read the keys of the cluster in etcd"))
    };
    if let Some(roots) = found(store) {
        return roots;
    }
    let put = Put {
        key: Key::from(KEY),
        value: serde_json::to_vec(&own).context("encode the keys of the cluster")?.into(),
        expect: Expect::Absent,
        ttl: None,
        durability: Durability::Synced,
    };
    match store.put(put).await {
        Ok(_) => Ok(own),
        // Another server was faster.
        Err(PutError::Conflict { .. }) => {
            found(store).context("find the keys that another server left in etcd")?
        }
        Err(error) => Err(error).context("leave the keys of the cluster in etcd"),
    }
}
