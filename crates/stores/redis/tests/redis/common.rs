//! What all tests use: servers, claims, and the loop that every client runs.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::{self, Server, Shared};
use lockkeeper_core::store::{Standing, Store};
use lockkeeper_core::{Claim, ClaimId, LockKind, Name, Owner, Patience, Token};
use lockkeeper_redis::{Address, Options, Redis};

/// A server of the test's own, or nothing if nobody asked for servers (which has been said aloud then).
pub fn own(server: &str) -> Option<Server> {
    match rig::shared("redis").expect("the shared server") {
        Shared::Up(_) => Some(Server::named(server).expect("a server of its own")),
        Shared::LeftOut(_) => None,
    }
}

pub fn options(port: u16) -> Options {
    Options::at(Address::Tcp { host: "127.0.0.1".into(), port, tls: None })
}

pub async fn open(port: u16) -> Arc<Redis> {
    Redis::open(options(port)).await.expect("the store opens")
}

/// The server as any other program sees it.
pub async fn raw(port: u16) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("a client");
    client.get_multiplexed_async_connection().await.expect("a connection")
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn mutex(lease: Duration) -> Claim {
    Claim {
        id: ClaimId::random().unwrap(),
        owner: Owner::new("test").unwrap(),
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease,
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    }
}

pub fn at_once(lease: Duration) -> Claim {
    Claim { patience: Patience::Now, ..mutex(lease) }
}

pub fn token(standing: &Standing) -> Token {
    match standing {
        Standing::Held { token: Some(token), .. } => *token,
        other => panic!("not held: {other:?}"),
    }
}

/// Takes a lock that must be free.
pub async fn take(store: &Redis, lock: &Name, claim: &Claim) -> Token {
    token(&store.enter(lock, claim).await.expect("an answer"))
}
