//! A password is in no error, no `Debug` and no log, whatever goes wrong; at every level, and from every thread.

use std::fmt::Debug;
use std::time::Duration;

use lockkeeper_conformance::certificates::{self, Host};
use lockkeeper_conformance::rig::Proxy;
use lockkeeper_conformance::secrets::{Collector, keeps_quiet, shown};
use lockkeeper_core::Error;
use lockkeeper_core::access::{Secret, Tls};
use lockkeeper_core::store::Store;
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;
use crate::users::{KEEPER, STRANGER, as_user, with_users};

const WRONG: &str = "swordfish-of-nobody";

fn is_quiet(error: &Error) {
    keeps_quiet("an error", &shown(error));
    keeps_quiet("its hint", error.hint().unwrap_or_default());
}

async fn fails_quietly(options: Options) {
    is_quiet(&soon("a refusal", Etcd::open(options)).await.map(|_| ()).expect_err("this must fail"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_in_no_debug_no_error_and_no_log() {
    let Some(mut server) = with_users().await else { return };
    let collector = Collector::start();
    tracing::trace!(canary = "a swordfish that must be seen");
    let seen = collector.told();
    assert!(seen.iter().any(|text| text.contains("must be seen")), "the collector works");
    let before = collector.seen();

    let port = server.port();
    let tls = Some(Tls { ca: Some("/nowhere".into()), ..Tls::default() });
    for options in [
        as_user(port, (KEEPER.0, WRONG)),
        as_user(port, (KEEPER.0, STRANGER.1)),
        as_user(port, ("nobody", WRONG)),
        as_user(port, STRANGER),
        as_user(1, KEEPER),
        Options { user: None, ..as_user(port, KEEPER) },
        Options { tls, ..as_user(port, KEEPER) },
    ] {
        keeps_quiet("Debug", &format!("{options:?} {options:#?}"));
        fails_quietly(options).await;
    }

    // A life of a client: by a connection that breaks and a server that forgets, until that ends.
    let proxy = Proxy::to(port).unwrap();
    let store = Etcd::open(as_user(proxy.port(), KEEPER)).await.unwrap();
    let keeper = keeper(store.clone());
    let hold = keeper.mutex("lockkeeper/x").lease(Duration::from_secs(3)).lock().await.unwrap();
    let secret = Secret::new(KEEPER.1);
    let all: [&dyn Debug; 4] = [&secret, &store, &keeper, &hold];
    for text in all.iter().map(|it| format!("{it:?} {it:#?}")) {
        keeps_quiet("Debug", &text);
    }
    keeper.counter("lockkeeper/stock").add(1).await.unwrap();
    is_quiet(&keeper.mutex("elsewhere").lock().await.map(|_| ()).expect_err("not allowed"));
    proxy.cut();
    let seen = hold.deadline();
    soon("it is renewed", hold.deadline_after(seen)).await;
    server.kill().unwrap();
    server.restart().unwrap();
    let again = soon("it is free", keeper.mutex("lockkeeper/y").lock()).await.unwrap();
    server.kill().unwrap();
    is_quiet(&keeper.mutex("lockkeeper/z").try_lock().await.map(|_| ()).expect_err("the server is gone"));
    is_quiet(&again.release().await.expect_err("the server is gone"));
    let lost = soon("it is lost", hold.lost()).await;
    keeps_quiet("lost", &shown(&lost));
    drop(hold);
    store.close().await.unwrap();

    let seen = collector.seen() - before;
    assert!(seen > 50, "only {seen} things were traced");
    let told = collector.told();
    assert!(told.is_empty(), "{told:?}");
}

/// The same by TLS, where the refusal comes before or after the handshake.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_told_when_tls_fails() {
    if shared().is_none() {
        return;
    }
    let server = certificates::serve("etcd-mtls", Host::Right).unwrap();
    let ca = |name: &str| Some(Tls { ca: Some(server.folder().join(name)), ..Tls::default() });
    for tls in [None, ca("ca.pem"), ca("stranger-ca.pem"), ca("server.key")] {
        fails_quietly(Options { tls, ..as_user(server.ports()[1], KEEPER) }).await;
    }
}
