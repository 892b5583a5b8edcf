//! What pods are given by the cluster, for runtimes that run something: what environments are made
//! of, contents of volumes, and tokens, kept up to date.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::BoxStream;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
    ServiceAccount, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Resource;
use kube::api::{Api, ListParams, PostParams};
use kubewright::informer::{Scope, Subscription};
use kubewright::{Cache, Clock};
use kubewright_apimachinery::quantity;
use kubewright_apimachinery::resources::MEMORY;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::PrepareError;
use crate::environment::{self, Sources};
use crate::node::Machine;
use crate::volume::{self, Backing, Contents};

/// Tokens are replaced when so much of their time is over, or after a day.
const TOKEN_SHARE: f64 = 0.8;
const TOKEN_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long until volumes are tried again that could not be filled.
const RETRY: Duration = Duration::from_secs(10);

/// Gives pods what the cluster has for them.
pub(super) struct Supply {
    cache: Cache,
    clock: Clock,
    /// Where the API server is, where addresses of Services lead nowhere.
    server: Option<(String, u16)>,
    /// What this machine has, which is what its node may give to pods.
    capacity: BTreeMap<String, Quantity>,
    /// Whether volumes that belong in memory are mounted there.
    mounts: bool,
    /// What was issued to pods, by their uids.
    tokens: Mutex<HashMap<String, Tokens>>,
}

/// Where a pod is.
#[derive(Debug, Clone, Default)]
pub(super) struct Whereabouts {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) host: Option<IpAddr>,
}

/// The tokens of a pod, and when they are to be replaced.
#[derive(Debug, Clone, Default)]
struct Tokens {
    by_key: BTreeMap<String, String>,
    due: Option<Instant>,
}

/// What is in the files of volumes that a container's environment is made of.
pub(super) fn files_of(
    container: &Container,
    volume: impl Fn(&str) -> PathBuf,
) -> BTreeMap<(String, String), Result<String, String>> {
    let read = |(name, path): (String, String)| {
        let text = crate::volume::read(&volume(&name), &path).map_err(|error| error.to_string());
        ((name, path), text)
    };
    crate::environment::files(container).map(read).collect()
}

impl Supply {
    pub(super) fn new(cache: Cache, clock: Clock, server: Option<(String, u16)>) -> Self {
        let capacity = Machine::this().capacity;
        Supply { cache, clock, server, capacity, mounts: false, tokens: Mutex::default() }
    }

    /// The same, for a runtime that has its containers see what the agent mounts.
    pub(super) fn mounting(self) -> Self {
        Supply { mounts: true, ..self }
    }

    pub(super) fn client(&self) -> kube::Client {
        self.cache.client().clone()
    }

    /// All that a pod refers to and that is there.
    pub(super) async fn sources(
        &self,
        pod: &Pod,
        (config_maps, secrets): (Vec<String>, Vec<String>),
        whereabouts: &Whereabouts,
    ) -> Result<Sources, kube::Error> {
        let namespace = namespace(pod);
        let services: Api<Service> = Api::namespaced(self.client(), namespace);
        let mut services = services.list(&ListParams::default()).await?.items;
        if namespace != "default" {
            let server: Api<Service> = Api::namespaced(self.client(), "default");
            services.extend(server.get_opt("kubernetes").await?);
        }
        Ok(Sources {
            config_maps: self.named::<ConfigMap>(namespace, &config_maps).await?,
            secrets: self.named::<Secret>(namespace, &secrets).await?,
            services,
            server: self.server.clone(),
            addresses: whereabouts.addresses.clone(),
            host: whereabouts.host,
            files: BTreeMap::new(),
            capacity: self.capacity.clone(),
        })
    }

    async fn named<K>(
        &self,
        namespace: &str,
        names: &[String],
    ) -> Result<BTreeMap<String, K>, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        let mut found = BTreeMap::new();
        for name in names {
            if let Some(object) = api.get_opt(name).await? {
                found.insert(name.clone(), object);
            }
        }
        Ok(found)
    }

    /// Fills the volumes of a pod. `directory` says where each is.
    pub(super) async fn fill(
        &self,
        pod: &Pod,
        whereabouts: &Whereabouts,
        directory: impl Fn(&str) -> PathBuf,
    ) -> Result<(), PrepareError> {
        let volumes = volumes(pod);
        let failed = |error: kube::Error| PrepareError::Sandbox(error.to_string());
        let references = volume::references(volumes);
        let sources = self.sources(pod, references, whereabouts).await.map_err(failed)?;
        let tokens = self.tokens(pod, volumes).await.map_err(failed)?;
        for volume in volumes {
            let refused = |why: String| PrepareError::Volume { volume: volume.name.clone(), why };
            let content = volume::content(pod, volume, &sources, &tokens.by_key)
                .map_err(|error| refused(error.to_string()))?;
            self.put(pod, volume, content, &directory(&volume.name)).await?;
        }
        Ok(())
    }

    async fn put(
        &self,
        pod: &Pod,
        volume: &Volume,
        content: Contents,
        directory: &Path,
    ) -> Result<(), PrepareError> {
        let group = group(pod);
        let memory = || {
            let own = self.capacity.get(MEMORY).map(|own| &own.0);
            let own = own.and_then(|own| quantity::Quantity::parse(own).ok());
            volume::memory_bytes(pod, volume, own.map_or(i64::MAX, |own| own.value()))
        };
        let put = match content {
            Contents::Empty { .. } if !self.mounts => volume::make(directory, group),
            Contents::Empty { medium } => match medium.as_str() {
                "" => volume::make(directory, group),
                "Memory" => volume::make_in_memory(directory, group, memory()),
                other => Err(std::io::Error::other(format!("unknown storage medium {other:?}"))),
            },
            Contents::Files(files) => {
                // Secrets need not be on a disk. Where they must, they are nobody else's there either.
                if self.mounts
                    && volume.config_map.is_none()
                    && let Err(error) = volume::keep_in_memory(directory, memory(), "mode=755")
                {
                    debug!(%error, "a volume is not in memory");
                }
                let stamp = self.clock.now().as_nanosecond().to_string();
                volume::write(directory, &files, &stamp)
                    .and_then(|()| {
                        volume::make_places(directory, &volume::nested(pod, &volume.name))
                    })
                    .and_then(|()| volume::give(directory, group, volume::READ))
            }
            Contents::Host { path, type_ } => {
                volume::meet(&path, &type_).and_then(|()| volume::link(&path, directory))
            }
            // What it leads to stays the same, whatever becomes of the claim.
            Contents::Claim { .. } if directory.is_symlink() => Ok(()),
            Contents::Claim { name, is_own } => {
                let backing = self.claimed(pod, volume, &name, is_own).await.map_err(|why| {
                    PrepareError::Unprocessed { volume: volume.name.clone(), why }
                })?;
                back(pod, volume, &backing, directory)?
            }
        };
        let volume = &volume.name;
        put.map_err(|error| PrepareError::Volume { volume: volume.clone(), why: error.to_string() })
    }

    /// Where on this machine the volume is that a claim is bound to.
    async fn claimed(
        &self,
        pod: &Pod,
        volume: &Volume,
        name: &str,
        is_own: bool,
    ) -> Result<Backing, String> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client(), namespace(pod));
        let volumes: Api<PersistentVolume> = Api::all(self.client());
        let failed = |what: &str, error: kube::Error| {
            let why = match error {
                kube::Error::Api(status) => status.message.clone(),
                error => error.to_string(),
            };
            volume::unprocessed(
                pod,
                name,
                &format!("failed to fetch {what} from API server: {why}"),
            )
        };
        let claim = claims.get(name).await.map_err(|error| failed("PVC", error))?;
        let bound = volume::bound(pod, &claim, is_own)?;
        let found = volumes.get(bound).await;
        let found = found.map_err(|error| failed(&format!("PV {bound}"), error))?;
        volume::backing(pod, &volume.name, &claim, &found)
    }

    /// The tokens of a pod, new ones if they are due.
    async fn tokens(&self, pod: &Pod, volumes: &[Volume]) -> Result<Tokens, kube::Error> {
        let known = self.known_tokens(uid(pod));
        if known.due.is_some_and(|due| Instant::now() < due) {
            return Ok(known);
        }
        let spec = pod.spec.as_ref();
        let account = spec.and_then(|spec| spec.service_account_name.as_deref());
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace(pod));
        let mut tokens = Tokens::default();
        for (key, wanted) in volume::tokens(volumes) {
            let request = TokenRequest {
                spec: Some(TokenRequestSpec {
                    audiences: wanted.audience.map(|audience| vec![audience]),
                    expiration_seconds: wanted.expiration_seconds,
                    bound_object_ref: Some(BoundObjectReference {
                        api_version: Some("v1".to_owned()),
                        kind: Some("Pod".to_owned()),
                        name: pod.metadata.name.clone(),
                        uid: pod.metadata.uid.clone(),
                    }),
                }),
                ..TokenRequest::default()
            };
            let account = account.unwrap_or("default");
            let issued =
                accounts.create_token_request(account, &PostParams::default(), &request).await?;
            let Some(status) = issued.status else { continue };
            let (Some(token), Some(expires)) = (status.token, status.expiration_timestamp) else {
                continue;
            };
            let left = expires.0.duration_since(self.clock.now());
            let left = Duration::try_from(left).unwrap_or_default();
            let due = Instant::now() + left.mul_f64(TOKEN_SHARE).min(TOKEN_AGE_MAX);
            tokens.due = Some(tokens.due.map_or(due, |known| known.min(due)));
            tokens.by_key.insert(key, token);
        }
        let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(uid(pod).to_owned(), tokens.clone());
        Ok(tokens)
    }

    fn known_tokens(&self, uid: &str) -> Tokens {
        let all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(uid).cloned().unwrap_or_default()
    }

    /// Fills the volumes of a pod again whenever what they are made of changes, its own labels and
    /// annotations among that, or its tokens are due. Does not end by itself.
    pub(super) async fn tend(
        &self,
        mut now: watch::Receiver<Arc<Pod>>,
        whereabouts: &Whereabouts,
        directory: impl Fn(&str) -> PathBuf,
    ) {
        let mut pod = Arc::clone(&now.borrow_and_update());
        let changed = Arc::new(Notify::new());
        let _heard = self.listen(&pod, volume::references(volumes(&pod)), &changed);
        loop {
            let due = async {
                match self.known_tokens(uid(&pod)).due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed.notified() => {}
                () = due => {}
                () = until_marked_otherwise(&mut now, &pod) => {
                    pod = Arc::clone(&now.borrow_and_update());
                }
            }
            if let Err(error) = self.fill(&pod, whereabouts, &directory).await {
                warn!(pod = uid(&pod), %error, "volumes are not up to date");
                tokio::time::sleep(RETRY).await;
                changed.notify_one();
            }
        }
    }

    /// Something for each time that a ConfigMap or Secret appears or changes that a pod's volumes or
    /// environments are made of.
    pub(super) fn news(&self, pod: &Pod) -> BoxStream<'static, ()> {
        let (mut config_maps, mut secrets) = volume::references(volumes(pod));
        let spec = pod.spec.as_ref();
        let init = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
        for container in spec.into_iter().flat_map(|spec| &spec.containers).chain(init) {
            let (more_maps, more_secrets) = environment::references(container);
            config_maps.extend(more_maps);
            secrets.extend(more_secrets);
        }
        for names in [&mut config_maps, &mut secrets] {
            names.sort();
            names.dedup();
        }
        let changed = Arc::new(Notify::new());
        let heard = self.listen(pod, (config_maps, secrets), &changed);
        let news = futures::stream::unfold((changed, heard), |(changed, heard)| async move {
            changed.notified().await;
            Some(((), (changed, heard)))
        });
        Box::pin(news)
    }

    /// Notes when one of these objects changes.
    fn listen(
        &self,
        pod: &Pod,
        (config_maps, secrets): (Vec<String>, Vec<String>),
        changed: &Arc<Notify>,
    ) -> Vec<Subscription> {
        let scope = |name: &String| Scope {
            fields: Some(format!("metadata.name={name}")),
            ..Scope::within(pod.metadata.namespace.clone())
        };
        let config_maps = config_maps.iter().map(|name| {
            let changed = Arc::clone(changed);
            self.cache.informer::<ConfigMap>(&scope(name)).subscribe(move |_| changed.notify_one())
        });
        let secrets = secrets.iter().map(|name| {
            let changed = Arc::clone(changed);
            self.cache.informer::<Secret>(&scope(name)).subscribe(move |_| changed.notify_one())
        });
        config_maps.chain(secrets).collect()
    }

    /// The pod is not there any more.
    pub(super) fn forget(&self, uid: &str) {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// Waits until a pod has other labels or annotations: what else of it volumes show stays as it is.
async fn until_marked_otherwise(now: &mut watch::Receiver<Arc<Pod>>, was: &Pod) {
    let marks = |pod: &Pod| (pod.metadata.labels.clone(), pod.metadata.annotations.clone());
    if now.wait_for(|now| marks(now) != marks(was)).await.is_err() {
        // Nobody tells of it any more.
        std::future::pending::<()>().await;
    }
}

fn volumes(pod: &Pod) -> &[Volume] {
    pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default()
}

/// # Errors
/// If a pod wants users of its own, which no runtime here gives it.
pub(super) fn refuse_users(pod: &Pod) -> Result<(), PrepareError> {
    match pod.spec.as_ref().and_then(|spec| spec.host_users) {
        Some(false) => Err(PrepareError::Sandbox(
            "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Lets the volume that a claim is bound to be found as one of a pod.
fn back(
    pod: &Pod,
    volume: &Volume,
    backing: &Backing,
    directory: &Path,
) -> Result<std::io::Result<()>, PrepareError> {
    Ok(match backing {
        Backing::Host { path, type_ } => {
            volume::meet(path, type_).and_then(|()| volume::link(path, directory))
        }
        Backing::Provided { path } => volume::make_for_all(path)
            .and_then(|()| volume::meet(path, "Directory"))
            .and_then(|()| volume::link(path, directory)),
        Backing::Local { path } => {
            let Ok(real) = Path::new(path).canonicalize() else {
                let why = format!("path {path:?} does not exist");
                return Err(PrepareError::Mounter { volume: volume.name.clone(), why });
            };
            let given = match volume::is_read_only(pod, &volume.name) {
                true => Ok(()),
                false => give(pod, &real),
            };
            given.and_then(|()| volume::link(path, directory))
        }
    })
}

/// Gives a disk to the group of a pod, as the pod wants that to be done.
fn give(pod: &Pod, path: &Path) -> std::io::Result<()> {
    let group = group(pod);
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let policy = context.and_then(|context| context.fs_group_change_policy.as_deref());
    match policy == Some("OnRootMismatch") && volume::is_given(path, group) {
        true => Ok(()),
        false => volume::give(path, group, volume::WRITE),
    }
}

/// The group whose volumes they are, where files can be given away.
fn group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.as_ref()?.security_context.as_ref()?;
    let group = u32::try_from(context.fs_group?).ok()?;
    rustix::process::geteuid().is_root().then_some(group)
}

pub(super) fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or("default")
}

pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
