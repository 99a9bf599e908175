//! TLS by rustls: the server is always checked, against the authorities of the system or a file of one's own.

use lockkeeper_core::Result;
use lockkeeper_core::access::Tls;
use tokio::net::TcpStream;

use crate::options::Address;
use crate::stream::Stream;

#[cfg(not(feature = "tls"))]
pub(crate) async fn over(_: &Address, _: &str, _: TcpStream, _: &Tls) -> Result<Box<dyn Stream>> {
    use lockkeeper_core::{Error, ErrorKind};
    Err(Error::new(ErrorKind::Unsupported, "TLS is not built in")
        .with_hint("build `lockkeeper` with the feature `tls`"))
}

#[cfg(feature = "tls")]
pub(crate) async fn over(address: &Address, host: &str, stream: TcpStream, tls: &Tls) -> Result<Box<dyn Stream>> {
    let (config, name) = rustls_side::configure(host, tls)?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    match connector.connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(rustls_side::failed(address, error)),
    }
}

#[cfg(not(feature = "tls"))]
pub(crate) fn refused(_: &Address, _: &redis::RedisError) -> Option<lockkeeper_core::Error> {
    None
}

/// What the server said about us, if it did: with TLS 1.3 it says so only after the handshake, in place of its first
/// answer.
#[cfg(feature = "tls")]
pub(crate) fn refused(address: &Address, error: &redis::RedisError) -> Option<lockkeeper_core::Error> {
    use std::error::Error;
    use std::sync::Arc;

    // The driver hands its cause on in the box that it keeps it in.
    let cause = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    rustls_side::alerted(address, cause.downcast_ref::<std::io::Error>()?)
}

#[cfg(feature = "tls")]
mod rustls_side {
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use lockkeeper_core::{Error, ErrorKind, Result};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};

    use super::{Address, Tls};
    use crate::trouble;

    pub(super) fn configure(host: &str, tls: &Tls) -> Result<(ClientConfig, ServerName<'static>)> {
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::bug("TLS has no versions").with_source(error))?
            .with_root_certificates(authorities(tls)?);
        let config = match (&tls.cert, &tls.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let chain = certificates("cert", cert)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|why| unreadable("key", key, why))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    Error::invalid("option `cert`", "it does not go with the key of the option `key`")
                        .with_source(error)
                })?
            }
            _ => return Err(Error::invalid("options", "`cert` and `key` are only of use together")),
        };
        let name = tls.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| Error::invalid("option `server_name`", "it is neither a host name nor an IP address"))?;
        Ok((config, name))
    }

    fn authorities(tls: &Tls) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &tls.ca {
            Some(path) => {
                for certificate in certificates("ca", path)? {
                    roots.add(certificate).map_err(|why| unreadable("ca", path, why))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(Error::invalid("option `ca`", "there is no authority to believe")
                .with_hint("name a PEM file with the authority of the server: `?ca=/path/ca.pem`"));
        }
        Ok(roots)
    }

    fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let all = read.map_err(|why| unreadable(option, path, why))?;
        match all.is_empty() {
            true => {
                Err(Error::invalid(&format!("option `{option}`"), format!("{} holds no certificate", path.display())))
            }
            false => Ok(all),
        }
    }

    fn unreadable(option: &str, path: &Path, why: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::invalid(&format!("option `{option}`"), format!("{} cannot be read: {why}", path.display()))
            .with_source(why)
    }

    /// A server that could not be checked is not a server that is down: trying again does not help.
    pub(super) fn failed(address: &Address, error: io::Error) -> Error {
        if let Some(rustls::Error::InvalidCertificate(why)) = cause(&error) {
            let why = format!("the certificate of the redis server at {address} was not accepted: {why}");
            return Error::new(ErrorKind::Denied, why).with_hint(
                "name its authority with `?ca=`, and its name with `?server_name=` if that is not the host's",
            );
        }
        alerted(address, &error).unwrap_or_else(|| trouble::unreachable(address, error))
    }

    /// The server did not accept us, and said so.
    pub(super) fn alerted(address: &Address, error: &io::Error) -> Option<Error> {
        let rustls::Error::AlertReceived(alert) = cause(error)? else { return None };
        let why = format!("the redis server at {address} ended the TLS handshake ({alert:?})");
        Some(
            Error::new(ErrorKind::Denied, why)
                .with_hint("it may ask for a client certificate that it knows: `?cert=` and `?key=`"),
        )
    }

    fn cause(error: &io::Error) -> Option<&rustls::Error> {
        error.get_ref()?.downcast_ref()
    }
}
