//! How a store with a server is come into: secrets, and whom to believe. Data only; stores do the rest.
//!
//! Surprise: a secret has no way to be shown, not even by `Debug`.

use std::fmt;
use std::path::PathBuf;

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the server and nobody else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Whom to believe, and who to be, on an encrypted connection. The server is always checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// A PEM file with the authorities to believe; `None` believes those of the system.
    pub ca: Option<PathBuf>,
    /// A PEM file with the certificate to show.
    pub cert: Option<PathBuf>,
    /// A PEM file with the key of that certificate.
    pub key: Option<PathBuf>,
    /// The name the server's certificate must have, if it is not the host's.
    pub server_name: Option<String>,
}
