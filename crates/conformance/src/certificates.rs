//! Certificates for servers with TLS, made anew for each, and the server started with them.
//!
//! The surprise: this is not part of the rig, which `cargo xtask` compiles by itself and which therefore has no
//! cryptography; the rig is handed the files.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::rig::{Server, Trouble};

/// The only name in the certificate of [`Host::Wrong`].
pub const WRONG_HOST: &str = "elsewhere.example";

/// Whom a server's certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// `localhost` and 127.0.0.1.
    Right,
    /// Somebody else: a client that looks must refuse it.
    Wrong,
}

/// Starts a server of the rig's table that has TLS, with certificates of its own.
///
/// Its folder holds, for clients: `ca.pem`, the CA of its certificate; `client.pem` and `client.key`, signed by the same
/// CA; `stranger-ca.pem`, a CA that signed nothing of it; `stranger.pem` and `stranger.key`, signed by that one.
pub fn serve(name: &str, host: Host) -> Result<Server, Trouble> {
    let files = files(host).map_err(|e| Trouble::new(format!("cannot make certificates for `{name}`: {e}")))?;
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    Server::named_with(name, &files)
}

/// Path and content.
type Files = Vec<(&'static str, String)>;

fn files(host: Host) -> Result<Files, rcgen::Error> {
    let (ca, stranger) = (authority("lockkeeper test CA")?, authority("another CA")?);
    let hosts: &[&str] = match host {
        Host::Right => &["localhost", "127.0.0.1"],
        Host::Wrong => &[WRONG_HOST],
    };
    let server = signed(&ca, "server", hosts, ExtendedKeyUsagePurpose::ServerAuth)?;
    let client = signed(&ca, "client", &[], ExtendedKeyUsagePurpose::ClientAuth)?;
    let unknown = signed(&stranger, "stranger", &[], ExtendedKeyUsagePurpose::ClientAuth)?;
    Ok(vec![
        ("ca.pem", ca.pem()),
        ("server.pem", server.0),
        ("server.key", server.1),
        ("client.pem", client.0),
        ("client.key", client.1),
        ("stranger-ca.pem", stranger.pem()),
        ("stranger.pem", unknown.0),
        ("stranger.key", unknown.1),
    ])
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Result<Authority, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// A certificate and its key, as text.
fn signed(
    by: &Authority,
    name: &str,
    hosts: &[&str],
    purpose: ExtendedKeyUsagePurpose,
) -> Result<(String, String), rcgen::Error> {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, by)?.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufRead, BufReader, Write};
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

    use super::*;
    use crate::rig::wanted;

    /// The first line said over TLS to a client that trusts this CA, expects this host and shows this certificate.
    fn ping(server: &Server, ca: &str, host: &str, shown: Option<&str>) -> io::Result<String> {
        let file = |name: &str| server.folder().join(name);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file(ca)).unwrap()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match shown {
            None => config.with_no_client_auth(),
            Some(name) => {
                let chain = vec![CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap()];
                let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let host = ServerName::try_from(host.to_string()).unwrap();
        let mut session = ClientConnection::new(Arc::new(config), host).unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", server.ports()[1])).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut stream = Stream::new(&mut session, &mut socket);
        let etcd = server.url().starts_with("etcds:");
        stream.write_all(if etcd { b"GET /version HTTP/1.0\r\n\r\n" } else { b"PING\r\n" })?;
        let mut answer = String::new();
        if BufReader::new(stream).read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer.trim_end().to_string())
    }

    fn refusal(outcome: io::Result<String>) -> String {
        let error = outcome.expect_err("this must be refused");
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "silence is no refusal");
        error.to_string()
    }

    /// Each server that has TLS, and what it says when it is reached.
    const SERVERS: [(&str, &str); 2] = [("redis", "+PONG"), ("etcd", "HTTP/1.0 200 OK")];

    #[test]
    fn a_server_with_tls_is_known_by_its_ca_and_its_name() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        for (name, well) in SERVERS {
            let server = serve(&format!("{name}-tls"), Host::Right).unwrap();
            assert_eq!(server.url(), format!("{name}s://127.0.0.1:{}", server.ports()[1]));
            for host in ["localhost", "127.0.0.1"] {
                assert_eq!(ping(&server, "ca.pem", host, None).unwrap(), well);
            }
            assert!(refusal(ping(&server, "stranger-ca.pem", "localhost", None)).contains("UnknownIssuer"));
            assert!(refusal(ping(&server, "ca.pem", WRONG_HOST, None)).contains("not valid for name"));
            assert_eq!(ping(&server, "ca.pem", "localhost", Some("client")).unwrap(), well);
        }
    }

    #[test]
    fn a_certificate_that_need_not_be_shown_is_looked_at_by_redis_only() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        let redis = serve("redis-tls", Host::Right).unwrap();
        refusal(ping(&redis, "ca.pem", "localhost", Some("stranger")));
        let etcd = serve("etcd-tls", Host::Right).unwrap();
        assert_eq!(ping(&etcd, "ca.pem", "localhost", Some("stranger")).unwrap(), "HTTP/1.0 200 OK");
    }

    #[test]
    fn a_server_can_insist_on_a_certificate() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        for (name, well) in SERVERS {
            let server = serve(&format!("{name}-mtls"), Host::Right).unwrap();
            assert_eq!(ping(&server, "ca.pem", "localhost", Some("client")).unwrap(), well);
            refusal(ping(&server, "ca.pem", "localhost", None));
            refusal(ping(&server, "ca.pem", "localhost", Some("stranger")));
        }
    }

    #[test]
    fn a_server_can_have_the_certificate_of_another() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        for (name, well) in SERVERS {
            let server = serve(&format!("{name}-tls"), Host::Wrong).unwrap();
            for host in ["localhost", "127.0.0.1"] {
                assert!(refusal(ping(&server, "ca.pem", host, None)).contains("not valid for name"));
            }
            assert_eq!(ping(&server, "ca.pem", WRONG_HOST, None).unwrap(), well);
        }
    }

    #[test]
    fn a_server_without_its_certificates_says_what_it_misses() {
        if !wanted() {
            return; // the rig's own tests have said so aloud
        }
        for (name, _) in SERVERS {
            let said = Server::named(&format!("{name}-tls")).unwrap_err().to_string();
            assert!(said.contains("server.pem"), "{said}");
        }
    }
}
