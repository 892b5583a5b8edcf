//! Operators at work on a cluster, as they are when an author starts them beside it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use kubewright::operator::{Host, Surrounding};
use kubewright::serve::Bind;
use kubewright::settings::{Layer, Settings};
use kubewright::{Clock, Operator, connect};
use petstore::proto::pet_store_client::PetStoreClient;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::tale::Tale;

/// What acts are played on. Dropped, the operators are gone.
pub(super) struct Stage {
    pub(super) kubeconfig: PathBuf,
    pub(super) client: Client,
    /// The store outside of the cluster that pets are kept in.
    pub(super) pets: PetStoreClient<Channel>,
    /// Where Ingresses are served.
    ingress: SocketAddr,
    operators: JoinSet<Result<()>>,
    _data: tempfile::TempDir,
}

/// Who applies definitions and samples.
pub(super) const MANAGER: &str = "kubewright-demo";
/// How long something that nobody tells of is left alone before it is looked at again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(25);

impl Stage {
    /// Starts all operators, as the user that a kubeconfig is for.
    pub(super) async fn set(kubeconfig: &Path, ingress: &str, tale: &Tale) -> Result<Self> {
        let ingress = ingress.strip_prefix("http://").unwrap_or(ingress).parse();
        let ingress = ingress.context("find where Ingresses are served")?;
        let client = connect(kubeconfig).await?;
        let data = tempfile::tempdir().context("make a directory for pets")?;
        let store = petstore::service::Store::open(data.path()).context("open the pet store")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("serve pets")?;
        let address = listener.local_addr().context("serve pets")?;
        let url = format!("http://{address}");
        tale.tell("petstore", format_args!("a store of pets is open at {url}, by gRPC"));
        let mut operators = JoinSet::new();
        operators.spawn(async {
            let never = CancellationToken::new();
            petstore::service::serve(listener, store, never).await.context("serve pets")
        });
        let pets = Channel::from_shared(url.clone()).context("find the pet store")?.connect_lazy();
        let all = all_operators(url.parse().context("find the pet store")?);
        let definitions = all.iter().flat_map(Operator::definitions);
        try_join_all(definitions.map(|it| define(&client, it))).await?;
        let names: Vec<String> = all.iter().map(|it| it.name().to_owned()).collect();
        for operator in all {
            operators.spawn(serve(operator, client.clone()));
        }
        tale.tell("operators", names.join(", "));
        Ok(Stage {
            kubeconfig: kubeconfig.to_owned(),
            client,
            pets: PetStoreClient::new(pets),
            ingress,
            operators,
            _data: data,
        })
    }

    /// Ends only when one of the operators cannot go on.
    pub(super) async fn broken(&mut self) -> anyhow::Error {
        match self.operators.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => anyhow::Error::new(error).context("an operator"),
            Some(Ok(Ok(()))) | None => anyhow!("an operator ended by itself"),
        }
    }

    /// Where a host is served on this machine.
    pub(super) fn web(&self, host: &str) -> String {
        format!("http://{host}:{}/", self.ingress.port())
    }

    /// Which server answers there, as soon as one does.
    pub(super) async fn web_server(&self, host: &str) -> Result<String> {
        server(self.ingress, host).await.with_context(|| self.web(host))
    }
}

/// Which server answers for a host, at a place, as soon as one does.
pub(super) async fn server(place: SocketAddr, host: &str) -> Result<String> {
    let answer = loop {
        match ask(place, host).await {
            Ok(answer) if answer.starts_with("HTTP/1.1 200 ") => break answer,
            // Who passes connections on hears of pods a moment after everybody else.
            Ok(_) | Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    };
    let named = answer.lines().find_map(|line| line.strip_prefix("Server name: "));
    named.map(str::to_owned).with_context(|| format!("it answers {answer:?}"))
}

/// All operators, beside the store of pets at a place.
fn all_operators(store: tonic::transport::Uri) -> Vec<Operator> {
    let policy = podpolicy::Policy {
        sidecar_image: "registry.acme.com/sidecar/log-agent:1.0".to_owned(),
        allowed: vec!["registry.acme.com".to_owned()],
    };
    vec![
        at::operator(),
        petstore::keeper::operator(store),
        tenancy::operator(&tenancy::Services::default()),
        webapp::operator(),
        wordpress::operator(),
        foo::operator(),
        podpolicy::operator(&policy),
    ]
}

async fn connect(kubeconfig: &Path) -> Result<Client> {
    let found = connect::find(Some(kubeconfig), |_| None).await?;
    let options = connect::Options { metrics: None, protobuf: false };
    Ok(found.client(&options)?)
}

/// Brings a definition into the cluster and waits until it is served.
async fn define(client: &Client, definition: &CustomResourceDefinition) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition.name_any();
    let (params, definition) = (PatchParams::apply(MANAGER), Patch::Apply(definition));
    let applied = definitions.patch(&name, &params, &definition).await;
    applied.with_context(|| format!("define {name}"))?;
    let served = await_condition(definitions, &name, conditions::is_crd_established());
    served.await.with_context(|| format!("wait for {name}"))?;
    Ok(())
}

async fn serve(operator: Operator, client: Client) -> Result<()> {
    let mut settings = Settings::load(&Layer::default(), |_| None)?;
    // Several share this process, and nobody scrapes them.
    settings.metrics.bind = Bind::Nowhere;
    settings.probes = Bind::Nowhere;
    let host = Host {
        client,
        clock: Clock::system(),
        settings,
        namespace: "default".to_owned(),
        surrounding: Surrounding::Beside,
        registry: Default::default(),
    };
    let name = operator.name().to_owned();
    operator.serve(host, CancellationToken::new()).await.with_context(|| format!("run {name}"))
}

/// Asks for the first page of a host.
async fn ask(place: SocketAddr, host: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(place).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    // It may keep the connection, so the end of the answer is not that of the stream.
    let mut lines = BufReader::new(stream).lines();
    let mut answer = String::new();
    while let Some(line) = lines.next_line().await? {
        answer += &line;
        answer += "\n";
        if line.starts_with("URI: ") {
            break;
        }
    }
    Ok(answer)
}
