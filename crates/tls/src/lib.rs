//! Encrypted connections to stores that are servers, by rustls.
//!
//! Use this in a store, behind its feature `tls`; programs write a URL with TLS instead.
//!
//! Surprise: with TLS 1.3 a server says that it does not accept us only after the handshake, in place of its first
//! answer. [`refused`] is therefore also asked about what goes wrong later.
#![forbid(unsafe_code)]

mod files;
#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::sync::Arc;

use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, ErrorKind, Result};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use tokio::net::TcpStream;
pub use tokio_rustls::client::TlsStream;

/// Use this to encrypt connections to one host. The server is always checked, against the authorities of the system or a
/// file of one's own.
#[derive(Debug, Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Connector {
    /// Reads the files that are named. `protocols` are what is offered to be spoken inside (ALPN), such as `h2`; with none
    /// nothing is offered.
    ///
    /// # Errors
    /// `Invalid` for files that are not what they should be, and names that are none.
    pub fn new(host: &str, tls: &Tls, protocols: &[&str]) -> Result<Self> {
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::bug("TLS has no versions").with_source(error))?
            .with_root_certificates(files::authorities(tls)?);
        let mut config = match files::identity(tls)? {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| {
                Error::invalid("option `cert`", "it does not go with the key of the option `key`").with_source(error)
            })?,
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let name = tls.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| Error::invalid("option `server_name`", "it is neither a host name nor an IP address"))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// Encrypts a connection, and checks the server.
    ///
    /// # Errors
    /// What [`refused`] understands, or whatever else broke the connection.
    pub async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.config));
        connector.connect(self.name.clone(), stream).await
    }
}

/// Whether it was TLS that an error or one of its causes came from, told in our words: the certificate of the server was
/// not accepted, or the server did not accept us and said so. `None` is any other trouble, which is the caller's to tell.
///
/// `server` is how it is called in the middle of a sentence: "the redis server at 10.0.0.7:6379".
///
/// A server that could not be checked is not a server that is down: trying again does not help, so this is `Denied`.
pub fn refused(server: impl Display, error: &(dyn StdError + 'static)) -> Option<Error> {
    match cause(error)? {
        rustls::Error::InvalidCertificate(why) => {
            let why = format!("the certificate of {server} was not accepted: {why}");
            Some(Error::new(ErrorKind::Denied, why).with_hint(
                "name its authority with `?ca=`, and its name with `?server_name=` if that is not the host's",
            ))
        }
        rustls::Error::AlertReceived(alert) => {
            let why = format!("{server} ended the TLS handshake ({alert:?})");
            let hint = match alert {
                AlertDescription::NoApplicationProtocol => "see whether that is the port for clients",
                _ => "it may ask for a client certificate that it knows: `?cert=` and `?key=`",
            };
            Some(Error::new(ErrorKind::Denied, why).with_hint(hint))
        }
        _ => None,
    }
}

/// What is inside an `io::Error` is not its source, but the source of that is: both ways are gone.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
}
