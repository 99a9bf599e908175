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
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidCertificate(why)) => {
                let why = format!("the certificate of the redis server at {address} was not accepted: {why}");
                Error::new(ErrorKind::Denied, why).with_hint(
                    "name its authority with `?ca=`, and its name with `?server_name=` if that is not the host's",
                )
            }
            Some(rustls::Error::AlertReceived(alert)) => {
                let why = format!("the redis server at {address} ended the TLS handshake ({alert:?})");
                Error::new(ErrorKind::Denied, why)
                    .with_hint("it may ask for a client certificate: `?cert=` and `?key=`")
            }
            _ => trouble::unreachable(address, error),
        }
    }
}
