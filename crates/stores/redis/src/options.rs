//! Where the server is and how to come in. What is secret here is in no `Debug`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use lockkeeper_core::access::{Secret, Tls};

/// How to reach a Redis server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub address: Address,
    /// The ACL user; `None` is the default user.
    pub user: Option<String>,
    /// The password, if it asks for one.
    pub password: Option<Secret>,
    /// The number of the database.
    pub database: u32,
    /// How long connecting, or one answer, may take before the connection is given up.
    pub timeout: Duration,
    /// Names that are listed all begin with this: it spares the look at other keys. Empty lists all.
    pub listed_under: String,
    /// How cells, counters, limiters and fences are changed.
    pub cells: Cells,
}

/// How cells, counters, limiters and fences are changed. Clients of both sorts can share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cells {
    /// By one script each: one round trip, and nobody comes between.
    #[default]
    Script,
    /// By `WATCH` and `MULTI`: at least two round trips, and again whenever somebody came between. Use this where the
    /// server's access rules allow no scripts.
    Watch,
}

impl Options {
    /// A server at this address, with everything else as usual.
    pub fn at(address: Address) -> Self {
        Self {
            address,
            user: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            listed_under: String::new(),
            cells: Cells::default(),
        }
    }
}

/// Where a server listens.
#[derive(Debug, Clone)]
pub enum Address {
    /// A host and a port, by TLS if so asked.
    Tcp {
        /// A host name or an IP address.
        host: String,
        /// The port.
        port: u16,
        /// How to check the server, if the connection is to be encrypted.
        tls: Option<Tls>,
    },
    /// A socket on this host.
    Unix(PathBuf),
}

impl Address {
    /// Is it by TLS?
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tcp { tls: Some(_), .. })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
