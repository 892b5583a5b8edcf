//! TLS for clients that believe anyone: probes ask whether a server works, not who it is.

use std::io;

use kubewright::certificate;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS with a server, whoever it is.
pub(crate) async fn anyone(host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(certificate::anyone()).connect(name, stream).await
}
