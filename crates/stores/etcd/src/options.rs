//! Where the cluster is and how to come in. What is secret here is in no `Debug`.

use std::fmt;
use std::time::Duration;

use lockkeeper_core::access::{Secret, Tls};

/// How to reach an etcd cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its members, or some of them; they are tried in turn.
    pub endpoints: Vec<Endpoint>,
    /// How to check the servers, if connections are to be encrypted.
    pub tls: Option<Tls>,
    /// The user, if the cluster asks for one.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<Secret>,
    /// How long one answer may take, all members tried.
    pub timeout: Duration,
    /// The lease that all claims of this length share, kept alive for as long as one of them is held. A claim of any other
    /// length has a lease of its own.
    pub lease: Duration,
    /// Names that are listed all begin with this. Empty lists all.
    pub listed_under: String,
}

impl Options {
    /// A cluster with these members, with everything else as usual.
    pub fn at(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
            tls: None,
            user: None,
            password: None,
            timeout: Duration::from_secs(5),
            lease: Duration::from_secs(30),
            listed_under: String::new(),
        }
    }
}

/// Where one member listens for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A host name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
