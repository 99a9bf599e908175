//! Certificates and keys, in PEM files that an option of the URL names, and the authorities of the system.

use std::path::Path;

use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, Result};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

type Chain = Vec<CertificateDer<'static>>;

/// Whom to believe.
pub(crate) fn authorities(tls: &Tls) -> Result<RootCertStore> {
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

/// Who to be, if anybody.
pub(crate) fn identity(tls: &Tls) -> Result<Option<(Chain, PrivateKeyDer<'static>)>> {
    match (&tls.cert, &tls.key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => {
            let chain = certificates("cert", cert)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|why| unreadable("key", key, why))?;
            Ok(Some((chain, key)))
        }
        _ => Err(Error::invalid("options", "`cert` and `key` are only of use together")),
    }
}

fn certificates(option: &str, path: &Path) -> Result<Chain> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = read.map_err(|why| unreadable(option, path, why))?;
    match all.is_empty() {
        true => Err(Error::invalid(&format!("option `{option}`"), format!("{} holds no certificate", path.display()))),
        false => Ok(all),
    }
}

fn unreadable(option: &str, path: &Path, why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::invalid(&format!("option `{option}`"), format!("{} cannot be read: {why}", path.display())).with_source(why)
}
