//! Ways to a server: TLS with an authority of one's own, with and without a client certificate; a socket; databases.
//!
//! All by the URLs that people write.

use std::path::Path;
use std::time::Duration;

use lockkeeper::{Access, ErrorKind, Keeper, Secret};
use lockkeeper_conformance::certificates::{self, Host, WRONG_HOST};
use lockkeeper_conformance::rig::{REDIS_PASSWORD, REDIS_USER, REDIS_USER_PASSWORD, Server, wanted};

use crate::common::*;

fn with_certificates(name: &str, host: Host) -> Option<Server> {
    wanted().then(|| certificates::serve(name, host).expect("a server with certificates"))
}

/// The URL of a server with TLS, by name, with these options; `FOLDER` stands for where its certificates are.
fn url(server: &Server, host: &str, options: &str) -> String {
    let folder = server.folder().to_str().expect("a path of text");
    format!("rediss://{host}:{}?{}", server.ports()[1], options.replace("FOLDER", folder))
}

async fn takes_a_mutex(url: &str) {
    let keeper = Keeper::connect(url).await.expect("it connects");
    let hold = soon("it is free", keeper.mutex("x").lease(Duration::from_secs(3)).lock()).await.expect("a hold");
    assert!(keeper.mutex("x").try_lock().await.expect("an answer").is_none());
    // Renewed by a connection of its own, which has to come in the same way.
    let seen = hold.deadline();
    soon("it is renewed", hold.deadline_after(seen)).await;
    hold.release().await.expect("it is ours");
    keeper.close().await.expect("it closes");
}

/// It does not connect, and says why and what to do; trying again would not help.
async fn is_denied(url: &str, why: &str, hint: &str) {
    let error = soon("a refusal", Keeper::connect(url)).await.map(|_| ()).expect_err("this must be refused");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.to_string().contains(why), "{error:?}");
    assert!(error.hint().is_some_and(|told| told.contains(hint)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_authority_of_its_own_is_believed_if_we_are_told_so() {
    let Some(server) = with_certificates("redis-tls", Host::Right) else { return };
    takes_a_mutex(&url(&server, "localhost", "ca=FOLDER/ca.pem")).await;
    takes_a_mutex(&url(&server, "127.0.0.1", "ca=FOLDER/ca.pem")).await;
    takes_a_mutex(&url(&server, "localhost", "ca=FOLDER/ca.pem&cert=FOLDER/client.pem&key=FOLDER/client.key")).await;
    // Nobody else's word is enough.
    is_denied(&url(&server, "localhost", "ca=FOLDER/stranger-ca.pem"), "certificate", "?ca=").await;
    is_denied(&url(&server, "localhost", "ca=FOLDER/ca.pem&server_name=elsewhere.example"), "certificate", "name")
        .await;
    // Nor is that of the authorities of the system, where there are any.
    let strange = Keeper::connect(&url(&server, "localhost", "")).await.map(|_| ()).expect_err("nobody vouches for it");
    assert!(matches!(strange.kind(), ErrorKind::Denied | ErrorKind::Invalid), "{strange:?}");
    assert!(strange.hint().is_some_and(|hint| hint.contains("?ca=")), "{strange:?}");
    // A server that speaks no TLS is not a server with a bad certificate.
    let plain = format!("rediss://localhost:{}?ca={}/ca.pem", server.port(), server.folder().display());
    let plain = soon("a refusal", Keeper::connect(&plain)).await.map(|_| ()).expect_err("it speaks no TLS");
    assert_eq!(plain.kind(), ErrorKind::Unavailable, "{plain:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_a_certificate_gets_one_or_says_so() {
    let Some(server) = with_certificates("redis-mtls", Host::Right) else { return };
    takes_a_mutex(&url(&server, "localhost", "ca=FOLDER/ca.pem&cert=FOLDER/client.pem&key=FOLDER/client.key")).await;
    for options in ["ca=FOLDER/ca.pem", "ca=FOLDER/ca.pem&cert=FOLDER/stranger.pem&key=FOLDER/stranger.key"] {
        let url = url(&server, "localhost", options);
        let error = soon("a refusal", Keeper::connect(&url)).await.map(|_| ()).expect_err("this must be refused");
        // With TLS 1.3 the server says so after the handshake, and hangs up: what it said may not get through.
        let hung_up = error.kind() == ErrorKind::Unavailable && error.to_string().contains("cannot be reached");
        assert!(error.kind() == ErrorKind::Denied || hung_up, "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("?cert=")), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_refused_unless_that_name_is_expected() {
    let Some(server) = with_certificates("redis-tls", Host::Wrong) else { return };
    for host in ["localhost", "127.0.0.1"] {
        is_denied(&url(&server, host, "ca=FOLDER/ca.pem"), "certificate", "server_name").await;
        takes_a_mutex(&url(&server, host, &format!("ca=FOLDER/ca.pem&server_name={WRONG_HOST}"))).await;
    }
}

#[tokio::test]
async fn files_that_are_not_what_they_should_be_are_invalid() {
    let Some(server) = with_certificates("redis-tls", Host::Right) else { return };
    for options in [
        "ca=FOLDER/nothing.pem",
        "ca=FOLDER/server.key",
        "ca=FOLDER/ca.pem&cert=FOLDER/client.pem",
        "ca=FOLDER/ca.pem&key=FOLDER/client.key",
        "ca=FOLDER/ca.pem&cert=FOLDER/client.pem&key=FOLDER/stranger.key",
        "ca=FOLDER/ca.pem&cert=FOLDER/client.key&key=FOLDER/client.key",
        "ca=FOLDER/ca.pem&server_name=not%20a%20name",
    ] {
        let error = Keeper::connect(&url(&server, "localhost", options)).await.map(|_| ()).expect_err(options);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{options}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_on_this_host_will_do() {
    let Some(server) = own("redis-unix") else { return };
    assert!(server.url().starts_with("redis+unix:///"));
    takes_a_mutex(&server.url()).await;
    let (here, there) = (format!("{}?db=0", server.url()), format!("{}?db=3", server.url()));
    do_not_meet(&here, &there).await;
    let gone = format!("redis+unix://{}/none.sock", Path::new(server.folder()).display());
    let error = Keeper::connect(&gone).await.map(|_| ()).expect_err("there is no such socket");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

/// The same name in two databases is two locks.
async fn do_not_meet(here: &str, there: &str) {
    let (here, there) = (Keeper::connect(here).await.unwrap(), Keeper::connect(there).await.unwrap());
    let hold = here.mutex("same").lock().await.unwrap();
    assert!(here.mutex("same").try_lock().await.unwrap().is_none());
    let other = there.mutex("same").try_lock().await.unwrap().expect("another database");
    // A waiter is woken by the lock it waits for, and not by the other: news know no databases.
    let waits = here.mutex("same").fair();
    let waits = tokio::spawn(async move { waits.lock().await.unwrap() });
    until("it waits", || async { here.inspect("same").await.unwrap().is_some_and(|line| line.claims.len() == 2) })
        .await;
    other.release().await.unwrap();
    assert!(hold.is_held() && !waits.is_finished());
    hold.release().await.unwrap();
    soon("it is handed over", waits).await.unwrap().release().await.unwrap();
    here.close().await.unwrap();
    there.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_do_not_meet() {
    let Some(server) = own("redis") else { return };
    do_not_meet(&format!("{}/0", server.url()), &format!("{}/3", server.url())).await;
    do_not_meet(&server.url(), &format!("{}/15", server.url())).await;
    let error = Keeper::connect(&format!("{}/16", server.url())).await.map(|_| ()).expect_err("there are 16");
    assert!(error.to_string().contains("DB"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_comes_in_with_a_wrong_password_or_none() {
    let Some(server) = own("redis-acl") else { return };
    let (port, secret) = (server.port(), |text: &str| Access { password: Some(Secret::new(text)) });
    takes_a_mutex(&server.url()).await;
    takes_a_mutex(&format!("redis://:{REDIS_PASSWORD}@127.0.0.1:{port}")).await;
    let bare = format!("redis://{REDIS_USER}@127.0.0.1:{port}");
    let by_hand = Keeper::connect_as(&bare, &secret(REDIS_USER_PASSWORD)).await;
    by_hand.expect("the password need not stand in the URL").close().await.unwrap();
    for (url, hint) in [
        (format!("redis://{REDIS_USER}:wrong@127.0.0.1:{port}"), "right"),
        (format!("redis://:wrong@127.0.0.1:{port}"), "right"),
        (format!("redis://nobody:{REDIS_USER_PASSWORD}@127.0.0.1:{port}"), "right"),
        (format!("redis://127.0.0.1:{port}"), "give a password"),
    ] {
        is_denied(&url, "refused", hint).await;
    }
    let wrong = Keeper::connect_as(&bare, &secret("wrong")).await;
    assert_eq!(wrong.map(|_| ()).expect_err("a wrong password").kind(), ErrorKind::Denied);
}
