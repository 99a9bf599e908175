//! A password is in no error, no `Debug` and no log, whatever goes wrong; at every level, and from every thread.

use std::fmt::Debug;
use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use lockkeeper::{Access, Keeper, Secret};
use lockkeeper_conformance::certificates::{self, Host};
use lockkeeper_conformance::rig::{Proxy, REDIS_PASSWORD, REDIS_USER, REDIS_USER_PASSWORD, Server, wanted};
use lockkeeper_conformance::secrets::{Collector, WORD, keeps_quiet, shown};
use lockkeeper_redis::{Options, Redis};

use crate::common::*;

const WRONG: &str = "swordfish-of-nobody";

async fn fails_quietly(url: &str, access: &Access) {
    let error = Keeper::connect_as(url, access).await.map(|_| ()).expect_err("this must fail");
    keeps_quiet("connecting", &shown(&error));
    keeps_quiet("its hint", error.hint().unwrap_or_default());
}

fn with(password: &str) -> Access {
    Access { password: Some(Secret::new(password)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_in_no_debug() {
    let Some(server) = own("redis-acl") else { return };
    let (access, secret) = (with(REDIS_USER_PASSWORD), Secret::new(REDIS_USER_PASSWORD));
    let options = Options { user: Some(REDIS_USER.into()), password: Some(secret.clone()), ..options(server.port()) };
    let keeper = Keeper::connect(&server.url()).await.unwrap();
    let store = Redis::open(options.clone()).await.unwrap();
    let core = lockkeeper_core::Keeper::with_store(store.clone());
    let hold = core.mutex("lockkeeper/x").lock().await.unwrap();
    let all: [&dyn Debug; 7] = [&access, &secret, &options, &store, &keeper, &*keeper, &hold];
    for shown in all.iter().map(|it| format!("{it:?} {it:#?}")) {
        keeps_quiet("Debug", &shown);
    }
    hold.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_in_no_error_and_no_log() {
    let Some(mut server) = own("redis-acl") else { return };
    let collector = Collector::start();
    tracing::trace!(canary = "a swordfish that must be seen");
    let seen = collector.told();
    assert!(seen.iter().any(|text| text.contains("must be seen")), "the collector works");
    let before = collector.seen();

    let port = server.port();
    for (url, access) in [
        (format!("redis://{REDIS_USER}:{WRONG}@127.0.0.1:{port}"), Access::default()),
        (format!("redis://:{WRONG}@127.0.0.1:{port}"), Access::default()),
        (format!("redis://{WRONG}@127.0.0.1:{port}"), with(WRONG)),
        (format!("redis://127.0.0.1:{port}"), with(WRONG)),
        (format!("redis://{REDIS_USER}:{REDIS_USER_PASSWORD}@127.0.0.1:{port}/99"), Access::default()),
        (format!("redis://{REDIS_USER}:{REDIS_USER_PASSWORD}@127.0.0.1:1"), Access::default()),
        (format!("rediss://{REDIS_USER}:{REDIS_USER_PASSWORD}@127.0.0.1:{port}"), Access::default()),
        ("redis+unix:///nowhere.sock".to_owned(), with(WRONG)),
        (format!("redis://{REDIS_USER}:{WRONG}@127.0.0.1:{port}?sword=1"), Access::default()),
        (format!("redis://{REDIS_USER}:{WRONG}%zz@127.0.0.1:{port}"), Access::default()),
        (format!("redis://{REDIS_USER}:{WRONG}@h1,h2"), Access::default()),
        (format!("redis://{REDIS_USER}:{WRONG}@127.0.0.1:port"), Access::default()),
        (format!("redis://{REDIS_USER}:{WRONG}@127.0.0.1/db"), Access::default()),
        (format!("redis//{REDIS_USER}:{WRONG}@127.0.0.1"), Access::default()),
        (format!("reddis://{REDIS_USER}:{WRONG}@127.0.0.1"), Access::default()),
        ("memory:".to_owned(), with(WRONG)),
    ] {
        fails_quietly(&url, &access).await;
    }

    // A life of a client: in both lanes and with values of both sorts, by a connection that breaks, until the server ends.
    let proxy = Proxy::to(port).unwrap();
    let url = format!("redis://{REDIS_USER}:{REDIS_USER_PASSWORD}@127.0.0.1:{}", proxy.port());
    let (keeper, watching) =
        (Keeper::connect(&url).await.unwrap(), Keeper::connect(&format!("{url}?cells=watch")).await.unwrap());
    let hold = keeper.mutex("x").lease(Duration::from_secs(1)).lock().await.unwrap();
    let fair = keeper.mutex("fair").fair().lease(Duration::from_secs(1)).lock().await.unwrap();
    assert!(watching.mutex("x").try_lock().await.unwrap().is_none());
    watching.counter("stock").add(1).await.unwrap();
    keeper.cell("cell").put(b"v").await.unwrap();
    keeper.list(None, 10).await.unwrap();
    for _ in 0..3 {
        proxy.cut();
        watching.counter("stock").get().await.unwrap();
        let seen = hold.deadline();
        soon("it is renewed", hold.deadline_after(seen)).await;
    }
    server.kill().unwrap();
    let gone = [
        keeper.mutex("y").try_lock().await.map(|_| ()).expect_err("the server is gone"),
        watching.counter("stock").add(1).await.map(|_| ()).expect_err("the server is gone"),
        keeper.list(None, 10).await.map(|_| ()).expect_err("the server is gone"),
        fair.release().await.expect_err("the server is gone"),
    ];
    for error in gone {
        keeps_quiet("the server is gone", &shown(&error));
    }
    let lost = soon("it is lost", hold.lost()).await;
    keeps_quiet("lost", &shown(&lost));
    drop(hold);

    let seen = collector.seen() - before;
    assert!(seen > 50, "only {seen} things were traced");
    let told = collector.told();
    assert!(told.is_empty(), "{told:?}");
}

/// Servers that send back what they were sent: one that does not know `HELLO`, and one that repeats everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_repeats_the_password_does_not_make_us_tell_it() {
    if !wanted() {
        return; // said aloud by the tests with a server
    }
    let conf = "bind 127.0.0.1\nport {port}\ndir .\nsave \"\"\nrename-command HELLO \"\"\n";
    let server = Server::named_with("redis-acl", &[("redis.conf", conf)]).unwrap();
    let known = format!("redis://:{REDIS_PASSWORD}@127.0.0.1:{}", server.port());
    fails_quietly(&known, &Access::default()).await;

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let parrot = std::thread::spawn(move || {
        for answer in ["-ERR I was sent: ", "-WRONGPASS I was sent: ", "-NOPERM ", "+", "-", "$9999\r\n", "?"] {
            let (mut client, _) = listener.accept().unwrap();
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut sent = [0; 4_096];
            let length = client.read(&mut sent).unwrap();
            let sent = String::from_utf8_lossy(&sent[..length]).replace("\r\n", " ");
            assert!(sent.contains(WORD), "it is a good parrot: {sent}");
            let repeated = sent.split_inclusive(WORD).next().unwrap_or(&sent);
            let _ = client.write_all(format!("{answer}{repeated}\r\n").repeat(8).as_bytes());
        }
    });
    for _ in 0..7 {
        fails_quietly(&format!("redis://{REDIS_USER}:{REDIS_USER_PASSWORD}@127.0.0.1:{port}"), &Access::default())
            .await;
    }
    parrot.join().unwrap();
}

/// The same by TLS, where the refusal comes before or after the handshake.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_told_when_tls_fails() {
    if !wanted() {
        return; // said aloud by the tests with a server
    }
    let server = certificates::serve("redis-mtls", Host::Right).unwrap();
    let folder = server.folder().display();
    for options in [format!("ca={folder}/ca.pem"), format!("ca={folder}/stranger-ca.pem"), "ca=/nowhere".to_owned()] {
        let url = format!("rediss://{REDIS_USER}:{REDIS_USER_PASSWORD}@localhost:{}?{options}", server.ports()[1]);
        fails_quietly(&url, &Access::default()).await;
    }
}
