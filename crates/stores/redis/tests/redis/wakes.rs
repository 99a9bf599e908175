//! What a call costs: whom a release wakes, how often the server is asked, and what long lines and many keys cost it.
//!
//! Surprise: times are the server's own (`INFO commandstats`, `SLOWLOG`), so that a busy machine does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::{Proxy, Which};
use lockkeeper_core::store::{Keep, Left, Page, Renewal, Standing, Store};
use lockkeeper_core::{Claim, ClaimId, LockKind, Name};
use lockkeeper_redis::{Options, Redis};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::common::*;

const LEASE: Duration = Duration::from_secs(60);

/// Hears all news that are sent to anybody.
struct Ear {
    news: UnboundedReceiver<PushInfo>,
    connection: MultiplexedConnection,
}

impl Ear {
    async fn new(port: u16) -> Ear {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}?protocol=resp3")).unwrap();
        let (sender, news) = unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        connection.psubscribe("lockkeeper:wake:*").await.unwrap();
        Ear { news, connection }
    }

    /// The claims that were told something since it was last asked.
    async fn heard(&mut self) -> BTreeSet<ClaimId> {
        // Sent by the same connection after everything that was answered, so it is heard after all that.
        let _: i64 = say(&mut self.connection, "PUBLISH", &["lockkeeper:wake:end", "end"]).await;
        let mut heard = BTreeSet::new();
        loop {
            let news = soon("the end is heard", self.news.recv()).await.expect("a connection");
            let (PushKind::PMessage, Some(Value::BulkString(text))) = (news.kind, news.data.get(2)) else { continue };
            let text = String::from_utf8(text.clone()).unwrap();
            if text == "end" {
                return heard;
            }
            let (id, _) = text.strip_prefix("lk1=").and_then(|news| news.split_once(':')).expect(&text);
            assert!(heard.insert(id.parse().expect(&text)), "told twice: {text}");
        }
    }
}

fn ids<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> BTreeSet<ClaimId> {
    claims.into_iter().map(|claim| claim.id).collect()
}

async fn waits(store: &Redis, lock: &Name, claim: &Claim) {
    assert!(matches!(store.enter(lock, claim).await.unwrap(), Standing::Waiting { .. }));
}

async fn leaves(store: &Redis, lock: &Name, claim: &Claim) {
    assert_eq!(store.leave(lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
}

#[tokio::test]
async fn a_release_wakes_exactly_those_who_come_in_by_it() {
    let Some(server) = own("redis") else { return };
    let (ann, ben, mut ear) = (open(server.port()).await, open(server.port()).await, Ear::new(server.port()).await);
    let reader = || of_kind(LockKind::ReadWrite, 1, 1_000, LEASE);
    let writer = || of_kind(LockKind::ReadWrite, 1_000, 1_000, LEASE);
    let (lock, first, next, last) = (name("rw"), writer(), writer(), reader());
    let readers = [(); 5].map(|()| reader());
    take(&ann, &lock, &first).await;
    for (at, claim) in readers.iter().enumerate() {
        waits([&ann, &ben][at % 2], &lock, claim).await;
    }
    waits(&ben, &lock, &next).await;
    waits(&ann, &lock, &last).await;
    assert_eq!(ear.heard().await, BTreeSet::new(), "nobody came in");
    leaves(&ann, &lock, &first).await;
    assert_eq!(ear.heard().await, ids(&readers), "a writer leaves, and five readers are in");
    for claim in &readers[1..] {
        leaves(&ann, &lock, claim).await;
        assert_eq!(ear.heard().await, BTreeSet::new(), "the writer still waits");
    }
    leaves(&ann, &lock, &readers[0]).await;
    assert_eq!(ear.heard().await, ids([&next]));
    leaves(&ben, &lock, &next).await;
    assert_eq!(ear.heard().await, ids([&last]));
    leaves(&ann, &lock, &last).await;
    assert_eq!(ear.heard().await, BTreeSet::new());

    // As many permits as fit, in order; a mutex one at a time; a free lock nobody.
    let permits = |weight| of_kind(LockKind::Semaphore, weight, 3, LEASE);
    let (lock, all, some) = (name("permits"), permits(3), [permits(1), permits(1), permits(2), permits(1)]);
    take(&ann, &lock, &all).await;
    for claim in &some {
        waits(&ben, &lock, claim).await;
    }
    leaves(&ann, &lock, &all).await;
    assert_eq!(ear.heard().await, ids(&some[..2]));
    let (lock, claims) = (name("mutex"), [(); 4].map(|()| mutex(LEASE)));
    take(&ann, &lock, &claims[0]).await;
    for claim in &claims[1..] {
        waits(&ben, &lock, claim).await;
    }
    // One that waits leaves: nobody comes in by that.
    leaves(&ben, &lock, &claims[3]).await;
    assert_eq!(ear.heard().await, BTreeSet::new());
    leaves(&ann, &lock, &claims[0]).await;
    assert_eq!(ear.heard().await, ids([&claims[1]]));
    leaves(&ann, &lock, &claims[1]).await;
    assert_eq!(ear.heard().await, ids([&claims[2]]));
    leaves(&ann, &lock, &claims[2]).await;
    let (lock, claim) = (name("free"), mutex(LEASE));
    take(&ann, &lock, &claim).await;
    leaves(&ann, &lock, &claim).await;
    assert_eq!(ear.heard().await, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_lock_and_its_release_are_two_round_trips() {
    let Some(server) = own("redis") else { return };
    let proxy = Proxy::to(server.port()).unwrap();
    let keeper = keeper(open(proxy.port()).await);
    let (mutex, fair) = (keeper.mutex("mutex").lease(LEASE), keeper.mutex("fair").fair().lease(LEASE));
    let (rwlock, permits) = (keeper.rwlock("rw").lease(LEASE), keeper.semaphore("permits", 3).lease(LEASE));
    let once = async || {
        mutex.lock().await.unwrap().release().await.unwrap();
        mutex.try_lock().await.unwrap().unwrap().release().await.unwrap();
        fair.lock().await.unwrap().release().await.unwrap();
        rwlock.read().await.unwrap().release().await.unwrap();
        rwlock.write().await.unwrap().release().await.unwrap();
        permits.acquire().await.unwrap().release().await.unwrap();
    };
    // The first time the server is given the scripts.
    once().await;
    let before = proxy.count_round_trips();
    for _ in 0..20 {
        once().await;
    }
    assert_eq!(proxy.count_round_trips() - before, 2 * 6 * 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_is_one_question_and_one_release() {
    let Some(server) = own("redis") else { return };
    let proxy = Proxy::to(server.port()).unwrap();
    let (ann, ben) = (keeper(open(server.port()).await), keeper(open(proxy.port()).await));
    let watcher = open(server.port()).await;
    let news = proxy.only(Which::Sent("SUBSCRIBE"));
    let mut holds = ann.mutex("x").lease(LEASE).lock().await.unwrap();
    let before = news.count_round_trips();
    for round in 0..20 {
        let lock = [&ben, &ann][round % 2].mutex("x").lease(LEASE);
        let waits = tokio::spawn(async move { lock.lock().await.unwrap() });
        until_waiting(&watcher, &name("x"), 1).await;
        holds.release().await.unwrap();
        holds = soon("it is handed over", waits).await.unwrap();
    }
    holds.release().await.unwrap();
    // Ben stood in line ten times and released ten times; when it had not been there for a while, it tried the fast lane.
    let asked = news.count_round_trips() - before;
    assert!((20..=30).contains(&asked), "{asked} round trips in 10 hand-overs");
}

#[tokio::test]
async fn a_server_that_forgets_its_scripts_is_given_them_again() {
    let Some(server) = own("redis") else { return };
    let (ann, ben, mut raw) = (open(server.port()).await, open(server.port()).await, raw(server.port()).await);
    let mut forget = async || () = say(&mut raw, "SCRIPT", &["FLUSH"]).await;
    for round in 0..3 {
        let (lock, first, second) = (name(&format!("x/{round}")), mutex(LEASE), mutex(LEASE));
        take(&ann, &lock, &first).await;
        forget().await;
        assert!(matches!(renew(&ann, &lock, &first).await, Renewal::Renewed { .. }));
        forget().await;
        waits(&ben, &lock, &second).await;
        forget().await;
        assert!(matches!(renew(&ann, &lock, &first).await, Renewal::Renewed { .. }));
        forget().await;
        assert_eq!(standing(&ann, &lock).await, (1, 1));
        forget().await;
        assert_eq!(ann.inspect(Page::first(10)).await.unwrap().len(), 1);
        forget().await;
        leaves(&ann, &lock, &first).await;
        forget().await;
        let told = ben.wait(&lock, lockkeeper_core::store::Waiter::Claim { id: second.id, seen: &WAITING }, LEASE);
        token(&soon("it is handed over", told).await.unwrap().expect("the standing comes with the news"));
        leaves(&ben, &lock, &second).await;
        forget().await;
        // Many at once are released by a script of their own.
        let crowd: Vec<_> = (0..100).map(|at| (name(&format!("crowd/{at}")), at_once(LEASE))).collect();
        for (lock, claim) in &crowd {
            take(&ann, lock, claim).await;
        }
        let given: Vec<_> = crowd
            .into_iter()
            .map(|(lock, claim)| {
                let ann = ann.clone();
                tokio::spawn(async move { leaves(&ann, &lock, &claim).await })
            })
            .collect();
        for task in given {
            soon("it is released", task).await.unwrap();
        }
    }
}

const WAITING: Standing = Standing::Waiting { ahead: 1, behind: None, moves_in: None };

/// What the server did since it was last asked: how often each command was run, and the microseconds in all scripts.
struct Work {
    calls: BTreeMap<String, u64>,
    script_us: u64,
}

impl Work {
    async fn since(raw: &mut MultiplexedConnection) -> Work {
        let stats: String = say(raw, "INFO", &["commandstats"]).await;
        let (mut calls, mut script_us) = (BTreeMap::new(), 0);
        for line in stats.lines() {
            let Some((command, rest)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':')) else {
                continue;
            };
            let number = |key: &str| -> u64 {
                let value = rest.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('=')).expect(key);
                value.parse().expect(value)
            };
            calls.insert(command.to_owned(), number("calls"));
            if command == "evalsha" || command == "eval" {
                script_us += number("usec");
            }
        }
        () = say(raw, "CONFIG", &["RESETSTAT"]).await;
        Work { calls, script_us }
    }

    fn scripts(&self) -> u64 {
        ["evalsha", "eval"].iter().filter_map(|name| self.calls.get(*name)).sum()
    }

    /// How many commands a script called.
    fn steps(&self) -> f64 {
        let others = ["evalsha", "eval", "info", "config", "config|resetstat"];
        let steps: u64 = self.calls.iter().filter(|(name, _)| !others.contains(&name.as_str())).map(|(_, n)| n).sum();
        steps as f64 / self.scripts() as f64
    }

    fn script_us(&self) -> f64 {
        self.script_us as f64 / self.scripts() as f64
    }
}

/// Many claims at once, who all have to wait.
async fn fill(store: &Arc<Redis>, lock: &Name, count: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let (store, lock) = (store.clone(), lock.clone());
        tasks.spawn(async move { waits(&store, &lock, &Claim { fair: true, ..mutex(LEASE) }).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// What a sort of call costs: steps of its script, and microseconds.
type Cost = (&'static str, f64, f64);

/// The costs in a line where so many wait; nothing if some of them ran out before all had come.
async fn costs(port: u16, waiting: usize) -> Option<Vec<Cost>> {
    let (store, mut other, mut raw) = (open(port).await, raw(port).await, raw(port).await);
    let lock = name(&format!("line/{}", fastrand::u64(..)));
    let mut holder = Claim { fair: true, ..mutex(LEASE) };
    take(&store, &lock, &holder).await;
    fill(&store, &lock, waiting).await;
    let mut all = Vec::new();
    let newcomers: Vec<Claim> = (0..20).map(|_| Claim { fair: true, ..mutex(LEASE) }).collect();
    Work::since(&mut raw).await;
    let mut note = async |what| {
        let work = Work::since(&mut raw).await;
        all.push((what, work.steps(), work.script_us()));
    };
    for claim in &newcomers {
        waits(&store, &lock, claim).await;
    }
    note("to join").await;
    for claim in &newcomers {
        waits(&store, &lock, claim).await;
    }
    note("to ask again").await;
    for _ in 0..20 {
        assert!(matches!(renew(&store, &lock, &holder).await, Renewal::Renewed { .. }));
    }
    note("to renew").await;
    for claim in &newcomers[10..] {
        leaves(&store, &lock, claim).await;
    }
    note("to give up").await;
    let mut granted = BTreeSet::new();
    for _ in 0..10 {
        // Whoever is first has the lock then; in this test nobody else takes notice. One that was let in stands there
        // until the next call writes that down.
        let first: Vec<String> = say(&mut other, "ZRANGE", &[&format!("{{{lock}}}:wait"), "0", "1"]).await;
        let mut first = first.iter().map(|id| id.parse().unwrap());
        leaves(&store, &lock, &holder).await;
        holder.id = first.find(|id| *id != holder.id).unwrap();
        granted.insert(holder.id);
    }
    note("to hand over").await;
    assert_eq!(granted.len(), 10);
    assert!(matches!(renew(&store, &lock, &holder).await, Renewal::Renewed { .. }));
    let left: usize = say(&mut other, "ZCARD", &[&format!("{{{lock}}}:wait")]).await;
    (left == waiting).then_some(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_costs_the_same_however_many_wait() {
    let Some(server) = own("redis") else { return };
    let few = costs(server.port(), 20).await.expect("twenty are there at once");
    let mut many = None;
    for _ in 0..3 {
        if many.is_none() {
            many = costs(server.port(), 10_000).await;
        }
    }
    let many = many.expect("none ran out in one of three tries");
    for ((what, steps, us), (_, many_steps, many_us)) in few.iter().zip(&many) {
        println!("{what}: {steps:.1} steps and {us:.0} µs with 20, {many_steps:.1} and {many_us:.0} with 10,000");
        assert!(many_steps <= &(steps + 2.0), "{what}: {many_steps} steps instead of {steps}");
        assert!(*many_us <= us * 20.0 + 100.0, "{what}: {many_us} µs instead of {us}");
    }
}

/// Keys of somebody else, of the sort that a cache has.
async fn crowd_of_others(raw: &mut MultiplexedConnection, count: usize) {
    for chunk in 0..count / 1_000 {
        let mut set = redis::cmd("MSET");
        for at in 0..1_000 {
            set.arg(format!("cache/{chunk}/{at}")).arg("something of another program");
        }
        set.exec_async(raw).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_locks_does_not_keep_the_server_from_its_work() {
    let Some(server) = own("redis") else { return };
    let mut raw = raw(server.port()).await;
    let options = Options { listed_under: "ours/".to_owned(), ..options(server.port()) };
    let store = Redis::open(options).await.unwrap();
    crowd_of_others(&mut raw, 200_000).await;
    let locks: Vec<Name> = (0..250).map(|at| name(&format!("ours/{at:03}"))).collect();
    for (at, lock) in locks.iter().enumerate() {
        take(&store, lock, &Claim { fair: at % 2 == 0, ..at_once(LEASE) }).await;
    }
    let crowded = name("ours/crowded");
    take(&store, &crowded, &Claim { fair: true, ..mutex(LEASE) }).await;
    fill(&store, &crowded, 10_000).await;
    () = say(&mut raw, "CONFIG", &["SET", "slowlog-log-slower-than", "10000"]).await;
    Work::since(&mut raw).await;
    // On a slow machine those who came first may be over: they would have to ask every two seconds.
    let look = async || assert!(line(&store, &crowded).await.expect("it is there").claims.len() > 5_000);
    assert_eq!(always_slow(&mut raw, look).await, BTreeSet::new(), "slower than 10 ms each time");
    let list = async || assert_eq!(store.inspect(Page::first(1_000)).await.unwrap().len(), 251);
    assert_eq!(always_slow(&mut raw, list).await, BTreeSet::new(), "slower than 10 ms each time");
    let work = Work::since(&mut raw).await;
    assert!(!work.calls.contains_key("keys") && work.calls["scan"] >= 3 * 200, "{:?}", work.calls);
}

/// The commands that were slow each time: anything may be slow once on a busy machine.
async fn always_slow(raw: &mut MultiplexedConnection, work: impl AsyncFn()) -> BTreeSet<Vec<String>> {
    let mut slow: Option<BTreeSet<Vec<String>>> = None;
    for _ in 0..4 {
        () = say(raw, "SLOWLOG", &["RESET"]).await;
        work().await;
        let entries: Vec<Vec<Value>> = say(raw, "SLOWLOG", &["GET", "100"]).await;
        let now = entries.into_iter().map(|entry| redis::from_redis_value(entry[3].clone()).unwrap()).collect();
        slow = Some(match slow {
            Some(before) => before.intersection(&now).cloned().collect(),
            None => now,
        });
    }
    slow.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_line_is_shown_whole_and_in_order() {
    let Some(server) = own("redis") else { return };
    let store = open(server.port()).await;
    let reader = |weight| of_kind(LockKind::ReadWrite, weight, 10_000, LEASE);
    let (lock, mut claims) = (name("x"), Vec::new());
    // More in than one piece holds, then as many as one exactly, then one.
    for weight in [1; 700].into_iter().chain([10_000; 300]) {
        let claim = reader(weight);
        store.enter(&lock, &claim).await.unwrap();
        claims.push(claim.id);
    }
    let seen: Vec<ClaimId> = line(&store, &lock).await.unwrap().claims.iter().map(|claim| claim.id).collect();
    assert_eq!(seen[700..], claims[700..], "those who wait are in order");
    let (mut seen_in, mut inside) = (seen[..700].to_vec(), claims[..700].to_vec());
    seen_in.sort();
    inside.sort();
    assert_eq!(seen_in, inside);
    let listed = store.inspect(Page::first(10)).await.unwrap();
    assert_eq!((listed.len(), listed[0].claims.len()), (1, 1_000));
}
