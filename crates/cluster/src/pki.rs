//! All keys and certificates of one cluster.

#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::authority::{self, Authority, Pair, Purpose, Subject};

/// Whom the kubeconfig stands for: somebody who may do anything, with no binding that says so.
const ADMIN: &str = "CN=kubernetes-admin,O=system:masters";
/// What our servers call themselves to servers behind them.
const FRONT_PROXY: &str = "CN=front-proxy-client";
/// The server, to nodes. They ask it back whether it may, which holds for members of this group
/// also before there are any roles.
const KUBELET_CLIENT: &str = "CN=kube-apiserver-kubelet-client,O=system:masters";
/// The names by which clients in the cluster call the API.
const NAMES: [&str; 6] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster",
    "kubernetes.default.svc.cluster.local",
];
/// The address of the `kubernetes` Service: the first of the default range.
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// All keys and certificates of one cluster.
#[derive(Clone)]
pub struct Pki {
    /// Vouches for the server and its clients.
    pub ca: Pair,
    pub server: Pair,
    pub admin: Pair,
    /// The server, to nodes.
    pub kubelet_client: Pair,
    /// Vouches for proxies that say on whose behalf they ask.
    pub front_proxy_ca: Pair,
    pub front_proxy_client: Pair,
    /// Signs the tokens of service accounts; private, in PEM.
    pub service_account_key: String,
    /// Verifies them; public, in PEM.
    pub service_account_public_key: String,
}

/// What all servers of a cluster have in common.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Roots {
    ca: Pair,
    front_proxy_ca: Pair,
    service_account_key: String,
}

/// Where keys are between two starts.
enum Shelf<'a> {
    Nowhere,
    Dir(&'a Path),
}

impl Pki {
    /// For a cluster that leaves nothing behind. `address` is where it will be served, besides
    /// loopback; `now` is the time since the Unix epoch.
    pub fn in_memory(address: IpAddr, now: Duration) -> Result<Self> {
        Pki::make(&Shelf::Nowhere, address, now)
    }

    /// From `dir`, where whatever is missing, soon to expire, or not for `address` is made anew.
    pub fn in_dir(dir: &Path, address: IpAddr, now: Duration) -> Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(dir).with_context(|| format!("make {}", dir.display()))?;
        Pki::make(&Shelf::Dir(dir), address, now)
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots {
            ca: self.ca.clone(),
            front_proxy_ca: self.front_proxy_ca.clone(),
            service_account_key: self.service_account_key.clone(),
        }
    }

    /// The same in `dir` for another cluster, that of these roots.
    pub(crate) fn adopt(dir: &Path, roots: &Roots, address: IpAddr, now: Duration) -> Result<Self> {
        let shelf = Shelf::Dir(dir);
        // Nobody stands by these any more. First of all, so that a crash leaves none of them.
        for issued in ["apiserver", "apiserver-kubelet-client", "admin", "front-proxy-client"] {
            shelf.forget_pair(issued)?;
        }
        shelf.keep_pair("ca", &roots.ca)?;
        shelf.keep_pair("front-proxy-ca", &roots.front_proxy_ca)?;
        shelf.keep("sa.pub", &authority::public_of(&roots.service_account_key)?)?;
        shelf.keep("sa.key", &roots.service_account_key)?;
        Pki::make(&shelf, address, now)
    }

    fn make(shelf: &Shelf<'_>, address: IpAddr, now: Duration) -> Result<Self> {
        let authority = |file: &str, name: &str| match shelf.pair(file)? {
            Some(pair) => Authority::from_pair(pair),
            None => {
                let authority = Authority::new(name, now)?;
                shelf.keep_pair(file, &authority.pair)?;
                Ok(authority)
            }
        };
        let issue = |authority: &Authority, file: &str, subject: &str, purpose: Purpose| {
            if let Some(pair) = shelf.pair(file)?
                && authority.stands_by(&pair, &purpose, now)
            {
                return Ok(pair);
            }
            let pair = authority.issue(subject, purpose, now)?;
            shelf.keep_pair(file, &pair)?;
            anyhow::Ok(pair)
        };
        let ca = authority("ca", "kubewright")?;
        let front_proxy_ca = authority("front-proxy-ca", "kubewright-front-proxy")?;
        let server = Purpose::Server(subjects(address));
        let service_account_key = match shelf.read("sa.key")? {
            Some(key) => key,
            None => {
                let key = authority::key()?;
                shelf.keep("sa.pub", &authority::public_of(&key)?)?;
                shelf.keep("sa.key", &key)?;
                key
            }
        };
        Ok(Pki {
            server: issue(&ca, "apiserver", "CN=kube-apiserver", server)?,
            admin: issue(&ca, "admin", ADMIN, Purpose::Client)?,
            kubelet_client: issue(
                &ca,
                "apiserver-kubelet-client",
                KUBELET_CLIENT,
                Purpose::Client,
            )?,
            front_proxy_client: issue(
                &front_proxy_ca,
                "front-proxy-client",
                FRONT_PROXY,
                Purpose::Client,
            )?,
            ca: ca.pair,
            front_proxy_ca: front_proxy_ca.pair,
            service_account_public_key: authority::public_of(&service_account_key)?,
            service_account_key,
        })
    }
}

fn subjects(address: IpAddr) -> Vec<Subject> {
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V4(SERVICE_ADDRESS),
    ];
    if !addresses.contains(&address) && !address.is_unspecified() {
        addresses.push(address);
    }
    let names = NAMES.iter().map(|name| Subject::Name((*name).to_owned()));
    names.chain(addresses.into_iter().map(Subject::Address)).collect()
}

impl Shelf<'_> {
    fn pair(&self, name: &str) -> Result<Option<Pair>> {
        let certificate = self.read(&format!("{name}.crt"))?;
        let key = self.read(&format!("{name}.key"))?;
        Ok(certificate.zip(key).map(|(certificate, key)| Pair { certificate, key }))
    }

    /// The key last: a pair is there when its key is.
    fn keep_pair(&self, name: &str, pair: &Pair) -> Result<()> {
        self.keep(&format!("{name}.crt"), &pair.certificate)?;
        self.keep(&format!("{name}.key"), &pair.key)
    }

    fn forget_pair(&self, name: &str) -> Result<()> {
        let Shelf::Dir(dir) = self else { return Ok(()) };
        let path = dir.join(format!("{name}.key"));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    fn read(&self, file: &str) -> Result<Option<String>> {
        let Shelf::Dir(dir) = self else { return Ok(None) };
        let path = dir.join(file);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    }

    fn keep(&self, file: &str, text: &str) -> Result<()> {
        let Shelf::Dir(dir) = self else { return Ok(()) };
        let path = dir.join(file);
        // Replaced in one step, so that a crash never leaves half a key.
        let draft = dir.join(format!(".{file}"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options
            .open(&draft)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&draft, &path))
            .with_context(|| format!("write {}", path.display()))
    }
}
