//! Encrypted connections: an authority of one's own, a certificate to show, names that do not fit, and ports for something
//! else.

use std::time::{Duration, Instant};

use lockkeeper_conformance::certificates::{self, Host, WRONG_HOST};
use lockkeeper_conformance::rig::Server;
use lockkeeper_core::access::Tls;
use lockkeeper_core::{Error, ErrorKind};
use lockkeeper_etcd::{Endpoint, Etcd, Options};

use crate::common::*;

fn serve(server: &str, host: Host) -> Option<Server> {
    shared().map(|_| certificates::serve(server, host).expect("a server with certificates"))
}

/// Believes this authority and shows this certificate, by their names in the server's folder.
fn tls(server: &Server, ca: &str, shown: Option<&str>) -> Tls {
    let file = |name: String| Some(server.folder().join(name));
    Tls {
        ca: file(format!("{ca}.pem")),
        cert: shown.and_then(|name| file(format!("{name}.pem"))),
        key: shown.and_then(|name| file(format!("{name}.key"))),
        server_name: None,
    }
}

fn at(host: &str, port: u16, tls: Option<Tls>) -> Options {
    Options { tls, ..Options::at(vec![Endpoint { host: host.into(), port }]) }
}

async fn takes_a_mutex(options: Options) {
    let store = Etcd::open(options).await.expect("it opens");
    let (keeper, other) = (keeper(store.clone()), keeper(store.clone()));
    let hold = soon("it is free", keeper.mutex("x").lease(Duration::from_secs(3)).lock()).await.expect("a hold");
    assert!(keeper.mutex("x").try_lock().await.expect("an answer").is_none());
    // Renewed by a connection of its own, which has to come in the same way.
    let seen = hold.deadline();
    soon("it is renewed", hold.deadline_after(seen)).await;
    is_pushed(&keeper, &other, &store, &name("y")).await;
    hold.release().await.expect("it is ours");
    keeper.close().await.expect("it closes");
}

/// It does not open, and says why and what to do; trying again would not help.
async fn is_denied(options: Options, why: &str, hint: &str) {
    let error = refused(options).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.to_string().contains(why), "{error:?}");
    assert!(error.hint().is_some_and(|told| told.contains(hint)), "{error:?}");
}

async fn refused(options: Options) -> Error {
    soon("a refusal", Etcd::open(options)).await.map(|_| ()).expect_err("this must be refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_authority_of_its_own_is_believed_if_we_are_told_so() {
    let Some(server) = serve("etcd-tls", Host::Right) else { return };
    let port = server.ports()[1];
    let right = tls(&server, "ca", None);
    takes_a_mutex(at("localhost", port, Some(right.clone()))).await;
    takes_a_mutex(at("127.0.0.1", port, Some(right.clone()))).await;
    is_denied(at("localhost", port, Some(tls(&server, "stranger-ca", None))), "certificate", "?ca=").await;
    let elsewhere = Tls { server_name: Some(WRONG_HOST.into()), ..right };
    is_denied(at("localhost", port, Some(elsewhere)), "certificate", "?server_name=").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_a_certificate_gets_one_or_says_so() {
    let Some(server) = serve("etcd-mtls", Host::Right) else { return };
    let port = server.ports()[1];
    takes_a_mutex(at("localhost", port, Some(tls(&server, "ca", Some("client"))))).await;
    for shown in [None, Some("stranger")] {
        let mut told = 0;
        for _ in 0..5 {
            let error = refused(at("localhost", port, Some(tls(&server, "ca", shown)))).await;
            // With TLS 1.3 the server says so after the handshake, and hangs up: now and then that is all that gets through.
            let hung_up = error.kind() == ErrorKind::Unavailable && error.to_string().contains("hung up");
            assert!(error.kind() == ErrorKind::Denied || hung_up, "{error:?}");
            assert!(error.hint().is_some_and(|hint| hint.contains("?cert=")), "{error:?}");
            told += usize::from(!hung_up);
        }
        assert!(told > 0, "never told why: {shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_refused_unless_that_name_is_given() {
    let Some(server) = serve("etcd-tls", Host::Wrong) else { return };
    let port = server.ports()[1];
    let strict = tls(&server, "ca", None);
    is_denied(at("localhost", port, Some(strict.clone())), "certificate", "?server_name=").await;
    takes_a_mutex(at("localhost", port, Some(Tls { server_name: Some(WRONG_HOST.into()), ..strict }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_for_something_else_is_an_error_soon() {
    let Some(server) = serve("etcd-tls", Host::Right) else { return };
    let (health, clients) = (server.port(), server.ports()[1]);
    let encrypted = Some(tls(&server, "ca", None));
    for (options, hint) in
        [(at("localhost", clients, None), "etcds://"), (at("localhost", health, encrypted), "address")]
    {
        let (what, asked) = (format!("{options:?}"), Instant::now());
        let error = refused(options).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error:?}");
        assert!(asked.elapsed() < Duration::from_secs(5) + SLACK, "{:?}", asked.elapsed());
        assert!(error.hint().is_some_and(|told| told.contains(hint)), "{what}: {error:?}");
    }
}

#[tokio::test]
async fn files_that_are_not_what_they_should_be_are_invalid() {
    let Some(server) = serve("etcd-tls", Host::Right) else { return };
    let port = server.ports()[1];
    let right = tls(&server, "ca", Some("client"));
    for wrong in [
        tls(&server, "nothing", None),
        Tls { ca: right.key.clone(), ..Tls::default() },
        Tls { key: None, ..right.clone() },
        Tls { cert: None, ..right.clone() },
        Tls { key: tls(&server, "ca", Some("stranger")).key, ..right.clone() },
        Tls { server_name: Some("not a name".into()), ..right.clone() },
    ] {
        let error = refused(at("localhost", port, Some(wrong.clone()))).await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong:?}: {error:?}");
    }
}
