//! Real handshakes with a server of this process: who is believed, what is offered, and what refusals look like.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// What the server asks of those who connect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Nothing,
    Certificate,
}

struct Served {
    folder: TempDir,
    port: u16,
}

impl Served {
    /// A server that says `hello` to everybody whom it accepts.
    async fn new(asks: Asks, version: &'static SupportedProtocolVersion, protocols: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        for name in ["server", "client"] {
            let key = KeyPair::generate().unwrap();
            let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
            let certificate = certificate.signed_by(&key, &authority).unwrap();
            fs::write(folder.path().join(format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(folder.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        let acceptor = acceptor(&folder, asks, version, protocols);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    // Whoever has gone has its own assertion about that.
                    let _gone = stream.write_all(b"hello").await;
                    let _gone = stream.shutdown().await;
                }
            }
        });
        Self { folder, port }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.path().join(name))
    }

    /// Believes the server's authority, and is nobody.
    fn believer(&self) -> Tls {
        Tls { ca: self.file("ca.pem"), ..Tls::default() }
    }

    fn client(&self) -> Tls {
        Tls { cert: self.file("client.pem"), key: self.file("client.key"), ..self.believer() }
    }

    /// What the server says, and which protocol was agreed on.
    async fn hear(&self, tls: &Tls, protocols: &[&str]) -> io::Result<(String, Option<Vec<u8>>)> {
        let connector = Connector::new("localhost", tls, protocols).unwrap();
        let heard = async {
            let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
            let mut stream = connector.connect(stream).await?;
            let mut said = String::new();
            stream.read_to_string(&mut said).await?;
            Ok((said, stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec)))
        };
        tokio::time::timeout(Duration::from_secs(30), heard).await.expect("an answer in time")
    }

    async fn is_refused(&self, tls: &Tls, protocols: &[&str], why: &str, hint: &str) {
        let error = self.hear(tls, protocols).await.expect_err("this must be refused");
        let told = refused("the test server at home", &error).expect("TLS is to blame");
        assert_eq!(told.kind(), ErrorKind::Denied);
        assert!(told.to_string().contains("the test server at home") && told.to_string().contains(why), "{told:?}");
        assert!(told.hint().is_some_and(|told| told.contains(hint)), "{told:?}");
    }
}

fn acceptor(
    folder: &TempDir,
    asks: Asks,
    version: &'static SupportedProtocolVersion,
    protocols: &[&str],
) -> TlsAcceptor {
    let at = |name: &str| folder.path().join(name);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[version]).unwrap();
    let builder = match asks {
        Asks::Nothing => builder.with_no_client_auth(),
        Asks::Certificate => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(at("ca.pem")).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_file(at("server.pem")).unwrap()];
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(at("server.key")).unwrap()).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn a_server_is_believed_by_its_authority_and_name_alone() {
    let (served, other) = (
        Served::new(Asks::Nothing, &TLS13, &[]).await,
        // Made only for its authority, which vouches for nobody here.
        Served::new(Asks::Nothing, &TLS13, &[]).await,
    );
    assert_eq!(served.hear(&served.believer(), &[]).await.unwrap(), ("hello".to_owned(), None));
    served.is_refused(&other.believer(), &[], "was not accepted", "?ca=").await;
    let elsewhere = Tls { server_name: Some("elsewhere.example".to_owned()), ..served.believer() };
    served.is_refused(&elsewhere, &[], "was not accepted", "?server_name=").await;
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_one_or_is_understood() {
    // The older version says so within the handshake, the newer one after it.
    for version in [&TLS12, &TLS13] {
        let served = Served::new(Asks::Certificate, version, &[]).await;
        assert_eq!(served.hear(&served.client(), &[]).await.unwrap().0, "hello");
        served.is_refused(&served.believer(), &[], "ended the TLS handshake", "?cert=").await;
    }
}

#[tokio::test]
async fn a_protocol_that_is_offered_is_agreed_on_or_refused() {
    let served = Served::new(Asks::Nothing, &TLS13, &["h2"]).await;
    assert_eq!(served.hear(&served.believer(), &["h2"]).await.unwrap().1.as_deref(), Some(b"h2".as_slice()));
    assert_eq!(served.hear(&served.believer(), &[]).await.unwrap().1, None);
    served.is_refused(&served.believer(), &["http/1.1"], "NoApplicationProtocol", "port").await;
}

#[test]
fn files_that_are_not_what_they_should_be_are_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| Some(folder.path().join(name));
    fs::write(folder.path().join("ca.pem"), "no certificate").unwrap();
    for tls in [
        Tls { ca: file("nothing.pem"), ..Tls::default() },
        Tls { ca: file("ca.pem"), ..Tls::default() },
        Tls { cert: file("ca.pem"), ..Tls::default() },
    ] {
        let error = Connector::new("localhost", &tls, &[]).expect_err("these files are no good");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
}

#[test]
fn other_trouble_is_left_to_the_caller() {
    let alert = || rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
    let wrapped = io::Error::other(io::Error::other(alert()));
    assert!(refused("it", &wrapped).is_some() && refused("it", &alert()).is_some());
    for error in [io::Error::from(io::ErrorKind::ConnectionReset), io::Error::other(rustls::Error::DecryptError)] {
        assert!(refused("it", &error).is_none(), "{error:?}");
    }
}
