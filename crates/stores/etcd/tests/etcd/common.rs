//! What all tests use: servers, claims, etcd as any other program sees it, and waiting for things with a limit.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::{self, Cluster, Proxy, Server, Shared};
use lockkeeper_core::store::{ClaimState, Held, Keep, Left, LockView, Page, Renewal, Standing, Store};
use lockkeeper_core::{Claim, ClaimId, ErrorKind, Hold, Keeper, LockKind, Name, Owner, Patience, Token};
use lockkeeper_etcd::{Endpoint, Etcd, Options};

/// The lease of claims that share one, unless a test says otherwise.
pub const SHARED: Duration = Duration::from_secs(30);
/// How often a claim with a lease of 6 s or more asks again while it waits.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// What a busy machine may add.
pub const SLACK: Duration = Duration::from_secs(3);

/// The port of the server that tests share, or nothing if nobody asked for servers (which has been said aloud then).
pub fn shared() -> Option<u16> {
    match rig::shared("etcd").expect("the shared server") {
        Shared::Up(entry) => Some(entry.members[0].port),
        Shared::LeftOut(_) => None,
    }
}

/// A server of the test's own.
pub fn own() -> Option<Server> {
    shared().map(|_| Server::named("etcd").expect("a server of its own"))
}

/// Three members of the test's own.
pub fn cluster() -> Option<Cluster> {
    shared().map(|_| Cluster::named("etcd-3").expect("a cluster of its own"))
}

pub fn ports(cluster: &Cluster) -> Vec<u16> {
    cluster.members().iter().map(Server::port).collect()
}

pub fn options(ports: &[u16]) -> Options {
    Options::at(ports.iter().map(|port| Endpoint { host: "127.0.0.1".into(), port: *port }).collect())
}

pub async fn open(ports: &[u16]) -> Arc<Etcd> {
    Etcd::open(options(ports)).await.expect("the store opens")
}

/// A client of two ways, which goes by the first of them for as long as it is answered there.
pub async fn open_by(first: u16, second: &Proxy, options: impl FnOnce(&[u16]) -> Options) -> Arc<Etcd> {
    second.refuse(true);
    let store = Etcd::open(options(&[first, second.port()])).await.expect("the store opens");
    second.refuse(false);
    store
}

/// A keeper whose every answer is held to what the store promises. Its tasks hand nothing on among themselves: these
/// tests are about the server.
pub fn keeper(store: Arc<Etcd>) -> Keeper {
    Keeper::builder().hand_over(false).checked().with_store(store)
}

pub async fn keeper_at(ports: &[u16]) -> Keeper {
    keeper(open(ports).await)
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A name that nobody has used on the shared server.
pub fn fresh(text: &str) -> Name {
    name(&format!("{text}/{:016x}", fastrand::u64(..)))
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
pub async fn take(store: &Etcd, lock: &Name, claim: &Claim) -> Token {
    token(&store.enter(lock, claim).await.expect("an answer"))
}

/// It is there and leaves.
pub async fn leaves(store: &Etcd, lock: &Name, claim: &Claim) {
    assert_eq!(store.leave(lock, claim.id, Keep::Nothing).await.expect("an answer"), Left::Released);
}

/// Renews one hold.
pub async fn renew(store: &Etcd, lock: &Name, claim: &Claim) -> Renewal {
    let held = Held { lock: lock.clone(), id: claim.id, lease: claim.store_lease() };
    store.renew(&[held]).await.expect("an answer").remove(0)
}

/// Waits for something that must happen, and says what it was if it does not.
pub async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    within(Duration::from_secs(20), what, event).await
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
    let end = Instant::now() + Duration::from_secs(20);
    while !ask().await {
        assert!(Instant::now() < end, "{what}: not within 20 s");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// One line as people see it.
pub async fn line(store: &Etcd, lock: &Name) -> Option<LockView> {
    store.inspect(Page::of(lock)).await.expect("an answer").pop()
}

/// Waits until so many wait in the line.
pub async fn until_waiting(store: &Etcd, lock: &Name, count: usize) {
    let waiting = || async {
        let claims = line(store, lock).await.map_or(Vec::new(), |line| line.claims);
        claims.iter().filter(|claim| claim.state == ClaimState::Waiting).count()
    };
    until(&format!("{count} wait for `{lock}`"), || async { waiting().await == count }).await;
}

/// Takes a lock in a task of its own.
pub fn waits(keeper: &Keeper, lock: &Name, lease: Duration) -> tokio::task::JoinHandle<Hold> {
    let lock = keeper.mutex(lock.as_str()).lease(lease).wait(Duration::from_secs(60));
    tokio::spawn(async move { lock.lock().await.expect("it gets in") })
}

/// Nobody can say who holds it: that is an error, and neither "yours" nor "taken".
pub async fn cannot_know(keeper: &Keeper, lock: &Name) {
    let answer = keeper.mutex(lock.as_str()).try_lock().await;
    let error = answer.expect_err("there is nobody to ask");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

/// Between two keepers a lock is handed over by a push, well before anybody would have asked by itself. A check of
/// time, so it is repeated: a busy machine may be late a few times, but a push that never comes is late every time.
pub async fn is_pushed(giver: &Keeper, taker: &Keeper, watcher: &Etcd, lock: &Name) {
    let mut took = Vec::new();
    for _ in 0..5 {
        let gives = soon("it is free", giver.mutex(lock.as_str()).lock()).await.expect("a hold");
        let takes = waits(taker, lock, SHARED);
        until_waiting(watcher, lock, 1).await;
        // Well before the next question, which is at 0.8 of the interval or later; and the watch is there.
        tokio::time::sleep(INTERVAL / 10).await;
        let released = Instant::now();
        gives.release().await.expect("it is ours");
        soon("it is handed over", takes).await.expect("no panic").release().await.expect("it is ours");
        if released.elapsed() < INTERVAL / 4 {
            return;
        }
        took.push(released.elapsed());
    }
    panic!("never handed over by a push: {took:?}");
}

/// A key as etcd has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kv {
    pub key: String,
    /// As Go would write it, without the quotation marks.
    pub value: String,
    pub created: u64,
    pub changed: u64,
    pub lease: u64,
}

/// The command line of etcd, which must succeed; what it prints.
pub async fn etcdctl(port: u16, args: &[&str]) -> String {
    etcdctl_as(port, "", args, "").await
}

/// The same as a user, `name:password`, with something to read.
pub async fn etcdctl_as(port: u16, user: &str, args: &[&str], input: &str) -> String {
    let (args, user, input): (Vec<String>, _, _) =
        (args.iter().map(ToString::to_string).collect(), user.to_owned(), input.to_owned());
    let run = move || {
        let mut command = Command::new("etcdctl");
        command.args(["--endpoints", &format!("127.0.0.1:{port}"), "--command-timeout", "20s"]).args(&args);
        if !user.is_empty() {
            command.env("ETCDCTL_USER", user);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("etcdctl starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {}: {told}", args.join(" "));
        String::from_utf8(output.stdout).expect("text")
    };
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

/// All keys that begin so.
pub async fn keys_under(port: u16, prefix: &str) -> Vec<Kv> {
    let told = etcdctl(port, &["get", "--prefix", prefix, "-w", "fields"]).await;
    let mut all: Vec<Kv> = Vec::new();
    for (field, value) in told.lines().filter_map(|line| line.split_once(" : ")) {
        let text = || value.trim_matches('"').to_owned();
        let number = || value.parse().expect("a number");
        if field == "\"Key\"" {
            all.push(Kv { key: text(), ..Kv::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        match field {
            "\"Value\"" => last.value = text(),
            "\"CreateRevision\"" => last.created = number(),
            "\"ModRevision\"" => last.changed = number(),
            "\"Lease\"" => last.lease = number(),
            _ => {}
        }
    }
    all
}

/// All keys of a lock, and what keeps its claims out.
pub async fn keys_of(port: u16, lock: &Name) -> Vec<Kv> {
    keys_under(port, &format!("{lock}/")).await
}

/// The ids of all leases, in hexadecimal digits.
pub async fn leases(port: u16) -> Vec<String> {
    let told = etcdctl(port, &["lease", "list"]).await;
    told.lines().skip(1).map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// A lease of another client.
pub async fn foreign_lease(port: u16, seconds: u64) -> String {
    let told = etcdctl(port, &["lease", "grant", &seconds.to_string()]).await;
    told.split_whitespace().nth(1).expect("an id").to_owned()
}
