//! What all tests use: servers, claims, and the loop that every client runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::{self, Server, Shared};
use lockkeeper_core::store::{ClaimState, Held, LockView, Page, Renewal, Standing, Store};
use lockkeeper_core::{Claim, ClaimId, Keeper, LockKind, Name, Owner, Patience, Token};
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

/// A keeper whose every answer is held to what the store promises. Its tasks hand nothing on among themselves: these
/// tests are about the server.
pub fn keeper(store: Arc<Redis>) -> Keeper {
    Keeper::builder().hand_over(false).checked().with_store(store)
}

/// The keeper of a client that gives a silent server up sooner than usual.
pub async fn quick_keeper(port: u16) -> Keeper {
    let options = Options { timeout: Duration::from_millis(500), ..options(port) };
    keeper(Redis::open(options).await.expect("the store opens"))
}

/// Waits for something that must happen, and says what it was if it does not.
pub async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    within(Duration::from_secs(10), what, event).await
}

/// The same with a time of one's own.
pub async fn within<T>(time: Duration, what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(time, event).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {time:?}"),
    }
}

/// Asks until the answer is yes; for what nobody tells us of.
pub async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(10);
    while !ask().await {
        assert!(Instant::now() < end, "{what}: not within 10 s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// One line as people see it.
pub async fn line(store: &Redis, lock: &Name) -> Option<LockView> {
    store.inspect(Page::of(lock)).await.expect("an answer").pop()
}

/// How many claims are in, and how many wait.
pub async fn standing(store: &Redis, lock: &Name) -> (usize, usize) {
    let claims = line(store, lock).await.map_or(Vec::new(), |line| line.claims);
    let waiting = claims.iter().filter(|claim| claim.state == ClaimState::Waiting).count();
    (claims.len() - waiting, waiting)
}

/// Waits until so many wait in the line.
pub async fn until_waiting(store: &Redis, lock: &Name, count: usize) {
    until(&format!("{count} wait for `{lock}`"), || async { standing(store, lock).await.1 == count }).await;
}

/// Renews one hold.
pub async fn renew(store: &Redis, lock: &Name, claim: &Claim) -> Renewal {
    let held = Held { lock: lock.clone(), id: claim.id, lease: claim.store_lease() };
    store.renew(&[held]).await.expect("an answer").remove(0)
}

/// A claim of another kind.
pub fn of_kind(kind: LockKind, weight: u32, capacity: u32, lease: Duration) -> Claim {
    Claim { kind, weight, capacity, ..mutex(lease) }
}

/// One command that must work.
pub async fn say<T: redis::FromRedisValue>(
    raw: &mut redis::aio::MultiplexedConnection,
    command: &str,
    args: &[&str],
) -> T {
    redis::cmd(command).arg(args).query_async(raw).await.expect(command)
}
