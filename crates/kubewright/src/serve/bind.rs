//! Where to listen, as flags say it.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// Where a server listens: `:8443` or `127.0.0.1:8443`, or `0` for nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    Nowhere,
    /// At all addresses of the machine.
    Port(u16),
    At(SocketAddr),
}

/// A text that says no place.
#[derive(Debug, thiserror::Error)]
#[error("read the place {0:?}: it should be like `:8443` or `127.0.0.1:8443`, or `0` for nowhere")]
pub struct UnknownBind(String);

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// It is not to: leave it out.
    #[error("serve {0}: it is to listen nowhere")]
    Nowhere(&'static str),
    #[error("serve {name} at {bind}{}", flag(name).map(|flag| format!(" ({flag} says where)")).unwrap_or_default())]
    Taken {
        name: &'static str,
        bind: Bind,
        #[source]
        source: io::Error,
    },
}

/// What moves a server of an operator elsewhere.
fn flag(name: &str) -> Option<&'static str> {
    match name {
        "metrics" => Some("--metrics-bind-address"),
        "probes" => Some("--health-probe-bind-address"),
        "webhooks" => Some("--webhook-bind-address"),
        _ => None,
    }
}

impl Bind {
    pub(super) async fn listen(&self, name: &'static str) -> Result<TcpListener, BindError> {
        let listener = match self {
            Bind::Nowhere => return Err(BindError::Nowhere(name)),
            Bind::At(address) => TcpListener::bind(address).await,
            // An address of version 6 hears version 4 too, where the machine has it at all.
            Bind::Port(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await
                }
                bound => bound,
            },
        };
        listener.map_err(|source| BindError::Taken { name, bind: self.clone(), source })
    }
}

impl FromStr for Bind {
    type Err = UnknownBind;

    fn from_str(text: &str) -> Result<Self, UnknownBind> {
        let unknown = |_| UnknownBind(text.to_owned());
        match (text, text.strip_prefix(':')) {
            ("0", _) => Ok(Bind::Nowhere),
            (_, Some(port)) => {
                port.parse().map(Bind::Port).map_err(|_| UnknownBind(text.to_owned()))
            }
            (text, None) => text.parse().map(Bind::At).map_err(unknown),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Nowhere => f.write_str("0"),
            Bind::Port(port) => write!(f, ":{port}"),
            Bind::At(address) => address.fmt(f),
        }
    }
}
