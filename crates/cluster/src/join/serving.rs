//! The certificate that a node shows to whoever asks it: of its own making, or by request of the
//! cluster's authority.

use std::net::IpAddr;
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kubewright::Cache;
use kubewright::Clock;
use kubewright::certificate::{Authority, Current, Pair};
use kubewright::informer::{Scope, State};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use x509_cert::Certificate;
use x509_cert::builder::{Builder as _, RequestBuilder};
use x509_cert::der::asn1::Ia5String;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{DecodePem as _, EncodePem as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use crate::key::{Key, Signature};

const SIGNER: &str = "kubernetes.io/kubelet-serving";
/// As kubelet's own.
const LIFETIME: Duration = Duration::from_hours(365 * 24);
/// A certificate is replaced when so much of its time is over.
const SHARE: f64 = 0.8;
/// How long until a request is tried again that failed.
const RETRY: Duration = Duration::from_secs(30);

/// Where a node's certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// From an authority that nobody knows.
    SelfMade,
    /// From the cluster's authority, when somebody has approved it; until then from our own.
    Requested,
}

/// Who shows a certificate, and where.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) node: String,
    pub(super) address: IpAddr,
}

/// Shows a certificate of our own making.
pub(super) fn make(subject: &Subject, current: &Current, clock: &Clock) -> Result<()> {
    let now = clock.now();
    let authority = Authority::new(&format!("{}-ca", subject.node), LIFETIME, now)?;
    let names = [subject.node.clone(), subject.address.to_string()];
    current.show(authority.issue(&names, LIFETIME, now)?).context("show a certificate")?;
    Ok(())
}

/// Keeps the certificate good until `shutdown`.
pub(super) async fn keep(
    serving: Serving,
    subject: Subject,
    current: Current,
    client: Client,
    clock: Clock,
    shutdown: CancellationToken,
) {
    let keeping = async {
        loop {
            let left = match serving {
                Serving::SelfMade => LIFETIME,
                Serving::Requested => match request(&subject, &current, &client, &clock).await {
                    Ok(left) => left,
                    Err(error) => {
                        let error = format!("{error:#}");
                        warn!(%error, "the node has no certificate of the cluster's");
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                },
            };
            tokio::time::sleep(left.mul_f64(SHARE)).await;
            if serving == Serving::SelfMade
                && let Err(error) = make(&subject, &current, &clock)
            {
                warn!(%error, "the node keeps its old certificate");
            }
        }
    };
    shutdown.run_until_cancelled(keeping).await;
}

/// Asks for a certificate, waits for it, shows it, and tells how long it lasts.
async fn request(
    subject: &Subject,
    current: &Current,
    client: &Client,
    clock: &Clock,
) -> Result<Duration> {
    let key = Key::generate()?;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let wish = CertificateSigningRequest {
        metadata: ObjectMeta { generate_name: Some("csr-".to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(wish(subject, &key)?.into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), "server auth".to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    };
    let made = requests.create(&PostParams::default(), &wish).await.context("ask for it")?;
    let name = made.metadata.name.unwrap_or_default();
    info!(%name, "a certificate is asked for: `kubectl certificate approve` grants it");
    let certificate = granted(client, &name).await?;
    let until = Certificate::from_pem(&certificate).context("read it")?;
    let until = until.tbs_certificate().validity().not_after.to_unix_duration();
    let now = Duration::try_from(clock.now().as_duration()).context("know the time")?;
    current.show(Pair { certificate, key: key.to_pem()? }).context("show it")?;
    Ok(until.saturating_sub(now))
}

/// Waits until a request is granted, or will never be.
async fn granted(client: &Client, name: &str) -> Result<String> {
    let (cache, informing) = Cache::new(client.clone());
    let scope = Scope { fields: Some(format!("metadata.name={name}")), ..Scope::default() };
    let informer = cache.informer::<CertificateSigningRequest>(&scope);
    let changed = std::sync::Arc::new(Notify::new());
    let tell = std::sync::Arc::clone(&changed);
    let _heard = informer.subscribe(move |_| tell.notify_one());
    let waiting = async {
        informer.until(|state| *state == State::Live).await;
        loop {
            let found = informer.list().unwrap_or_default().into_iter().next();
            let found = found.ok_or_else(|| anyhow!("the request {name:?} was deleted"))?;
            let status = found.status.clone().unwrap_or_default();
            if let Some(ByteString(pem)) = status.certificate {
                return String::from_utf8(pem).context("read it");
            }
            let mut conditions = status.conditions.into_iter().flatten();
            if let Some(no) = conditions.find(|it| ["Denied", "Failed"].contains(&&*it.type_)) {
                let why = no.message.unwrap_or_default();
                return Err(anyhow!("the request {name:?} is {}: {why}", no.type_.to_lowercase()));
            }
            changed.notified().await;
        }
    };
    tokio::select! {
        granted = waiting => granted,
        () = informing => Err(anyhow!("nobody follows the request")),
    }
}

/// What a node asks to be called, in PEM.
fn wish(subject: &Subject, key: &Key) -> Result<String> {
    let name = format!("CN=system:node:{},O=system:nodes", subject.node);
    let name = Name::from_str(&name).context("name the node")?;
    let host = Ia5String::new(&subject.node).context("name the node")?;
    let names = vec![GeneralName::DnsName(host), GeneralName::from(subject.address)];
    let mut builder = RequestBuilder::new(name).context("ask for it")?;
    builder.add_extension(&SubjectAltName(names)).context("ask for it")?;
    let request = builder.build::<_, Signature>(key).context("sign the request")?;
    request.to_pem(LineEnding::LF).context("write the request")
}
