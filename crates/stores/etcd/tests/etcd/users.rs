//! A cluster that asks who we are: users, passwords, roles, and members that have forgotten us.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::access::Secret;
use lockkeeper_core::cell::{CellAction, CellOp};
use lockkeeper_core::store::{Page, Store};
use lockkeeper_core::{Error, ErrorKind};
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

/// All passwords have the word `swordfish` in common: see `secrets`.
pub const KEEPER: (&str, &str) = ("keeper", "swordfish-of-the-keeper");
pub const STRANGER: (&str, &str) = ("stranger", "swordfish-of-a-stranger");
const ROOT: (&str, &str) = ("root", "swordfish-of-the-root");

/// A server with users: `keeper` may read and write what is under `lockkeeper/`, `stranger` nothing.
pub async fn with_users() -> Option<Server> {
    let server = own()?;
    let port = server.port();
    for (user, password) in [ROOT, KEEPER, STRANGER] {
        etcdctl_as(port, "", &["user", "add", user, "--interactive=false"], &format!("{password}\n")).await;
    }
    etcdctl(port, &["user", "grant-role", "root", "root"]).await;
    etcdctl(port, &["role", "add", "locks"]).await;
    for prefix in ["lockkeeper/", "{cell}/lockkeeper/"] {
        etcdctl(port, &["role", "grant-permission", "locks", "--prefix=true", "readwrite", prefix]).await;
    }
    etcdctl(port, &["user", "grant-role", KEEPER.0, "locks"]).await;
    etcdctl(port, &["auth", "enable"]).await;
    Some(server)
}

pub fn as_user(port: u16, (user, password): (&str, &str)) -> Options {
    let (user, password) = (Some(user.to_owned()), Some(Secret::new(password)));
    Options { user, password, listed_under: "lockkeeper/".into(), ..options(&[port]) }
}

async fn open_as(port: u16, user: (&str, &str)) -> Result<Arc<Etcd>, Error> {
    soon("an answer", Etcd::open(as_user(port, user))).await
}

fn is_denied<T: std::fmt::Debug>(answer: Result<T, Error>, hint: &str) {
    let error = answer.expect_err("this must be refused");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.hint().is_some_and(|told| told.contains(hint)), "{error:?}");
}

fn add_one() -> CellOp {
    CellOp { action: CellAction::Add { by: 1 }, keep: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_a_role_comes_in_and_again_when_the_server_has_forgotten_it() {
    let Some(mut server) = with_users().await else { return };
    let (port, lock, cell) = (server.port(), name("lockkeeper/x"), name("lockkeeper/stock"));
    let (store, looks) = (open_as(port, KEEPER).await.unwrap(), open_as(port, KEEPER).await.unwrap());
    let (ann, ben) = (keeper(store.clone()), keeper(open_as(port, KEEPER).await.unwrap()));
    let hold = ann.mutex("lockkeeper/held").lease(Duration::from_secs(9)).lock().await.unwrap();
    is_pushed(&ann, &ben, &looks, &lock).await;
    store.update(&cell, &add_one()).await.unwrap();
    assert_eq!(store.inspect(Page::first(10)).await.unwrap().len(), 1);
    let waiting = waits(&ben, hold.name(), SHARED);
    until_waiting(&looks, hold.name(), 1).await;

    // Tokens of users are in the server's memory only.
    server.kill().unwrap();
    server.restart().unwrap();
    let seen = hold.deadline();
    soon("it is renewed", hold.deadline_after(seen)).await;
    store.update(&cell, &add_one()).await.unwrap();
    assert_eq!(store.read(&cell).await.unwrap().expect("it is there").value, b"2");
    is_pushed(&ann, &ben, &looks, &lock).await;
    let before = hold.token();
    hold.release().await.expect("it is ours");
    let next = soon("it gets in", waiting).await.unwrap();
    assert!(next.token() > before);
    next.release().await.expect("it is ours");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_is_told_so_and_what_to_do() {
    let Some(server) = with_users().await else { return };
    let port = server.port();
    let password = "LOCKKEEPER_PASSWORD";
    is_denied(open_as(port, (KEEPER.0, STRANGER.1)).await, password);
    is_denied(open_as(port, (KEEPER.0, "")).await, password);
    is_denied(open_as(port, ("nobody", KEEPER.1)).await, password);
    is_denied(Etcd::open(options(&[port])).await, password);
    let no_password = Options { password: None, ..as_user(port, KEEPER) };
    is_denied(Etcd::open(no_password).await, password);
    // Known, but without the right to look where locks stand.
    is_denied(open_as(port, STRANGER).await, "readwrite");

    // Outside of what the role is for nothing works, and inside all goes on.
    let store = open_as(port, KEEPER).await.unwrap();
    let (outside, inside) = (name("elsewhere/x"), name("lockkeeper/x"));
    is_denied(store.enter(&outside, &mutex(SHARED)).await, "readwrite");
    is_denied(store.enter(&outside, &at_once(Duration::from_secs(10))).await, "readwrite");
    is_denied(store.update(&outside, &add_one()).await, "readwrite");
    is_denied(store.read(&outside).await, "readwrite");
    is_denied(store.inspect(Page::of(&outside)).await, "readwrite");
    let claim = mutex(SHARED);
    take(&store, &inside, &claim).await;
    leaves(&store, &inside, &claim).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_no_trouble_where_nobody_asks_for_one() {
    let Some(port) = shared() else { return };
    let store = open_as(port, KEEPER).await.expect("it opens");
    let (lock, claim) = (fresh("lockkeeper/users"), mutex(SHARED));
    take(&store, &lock, &claim).await;
    leaves(&store, &lock, &claim).await;
}
