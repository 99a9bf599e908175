//! What the user of a server must be allowed: the rule of the rig's user `keeper` is enough for everything the store does,
//! and nothing in it is too much.
//!
//! Surprise: what scripts call counts too. The server checks every call of a script against the rights of whoever runs it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use lockkeeper::kinds::Run;
use lockkeeper::store::Keep;
use lockkeeper::{Keeper, LockKind};
use lockkeeper_conformance::rig::{REDIS_PASSWORD, REDIS_USER};
use redis::aio::MultiplexedConnection;

use crate::common::*;

/// Short, so that a renewal is soon.
const LEASE: Duration = Duration::from_millis(600);

/// A short tour of everything that can be done with locks.
async fn locks(keeper: &Keeper) {
    // Free, contended, fair; renewed in either lane; kept; broken.
    let mutex = |name: &str| keeper.mutex(name).lease(LEASE).wait(Duration::from_secs(9));
    let (free, fair) = (mutex("free").lock().await.unwrap(), mutex("fair").fair().lock().await.unwrap());
    let waits = mutex("fair").fair();
    let waits = tokio::spawn(async move { waits.lock().await.unwrap() });
    let (seen_free, seen_fair) = (free.deadline(), fair.deadline());
    soon("it is renewed", free.deadline_after(seen_free)).await;
    soon("it is renewed", fair.deadline_after(seen_fair)).await;
    assert!(keeper.mutex("free").try_lock().await.unwrap().is_none());
    free.release().await.unwrap();
    fair.release().await.unwrap();
    soon("it is handed over", waits).await.unwrap().release().await.unwrap();
    let kept = mutex("kept").at_least(Duration::from_millis(50)).lock().await.unwrap();
    kept.release().await.unwrap();
    let broken = mutex("broken").lock().await.unwrap();
    let line = keeper.inspect("broken").await.unwrap().unwrap();
    assert_eq!((line.kind, line.claims.len()), (LockKind::Mutex, 1));
    keeper.break_claim("broken", broken.claim_id(), Keep::Lease).await.unwrap();
    broken.release().await.expect_err("it was broken");
    let runs_out = mutex("over").fair().at_most(Duration::from_millis(100)).lock().await.unwrap();
    soon("it runs out", runs_out.lost()).await;
    mutex("over").fair().lock().await.unwrap().release().await.unwrap();
    // Shared, several at once, many at once.
    let (one, two) = (keeper.rwlock("rw").read().await.unwrap(), keeper.rwlock("rw").read().await.unwrap());
    assert!(keeper.rwlock("rw").try_write().await.unwrap().is_none());
    one.release().await.unwrap();
    two.release().await.unwrap();
    let writer = keeper.rwlock("rw").write().await.unwrap();
    writer.downgrade().await.unwrap().release().await.unwrap();
    keeper.semaphore("permits", 3).permits(2).acquire().await.unwrap().release().await.unwrap();
    keeper.multi(["a", "b"]).lock().await.unwrap().release().await.unwrap();
    let crowd: Vec<_> = (0..100)
        .map(|at| {
            let lock = mutex(&format!("crowd/{at}"));
            tokio::spawn(async move { lock.lock().await.unwrap().release().await.unwrap() })
        })
        .collect();
    for task in crowd {
        soon("it ends", task).await.unwrap();
    }
    // One that waits asks again, as its heartbeat.
    let held = keeper.mutex("again").fair().lock().await.unwrap();
    let waits = keeper.mutex("again").fair().lease(Duration::from_millis(300)).wait(Duration::from_millis(400));
    assert!(waits.lock().await.is_err());
    held.release().await.unwrap();
    // Led, observed, done once, listed.
    let mut leader = keeper.election("lead").campaign().await.unwrap();
    let mut observer = keeper.election("lead").observe().unwrap();
    soon("it is seen", observer.next()).await.unwrap().expect("somebody leads");
    leader.proclaim("changed").await.unwrap();
    soon("it is seen", observer.next()).await.unwrap().expect("somebody leads");
    leader.resign().await.unwrap();
    let once = keeper.once("job").run(|_| async { Ok::<_, lockkeeper::Error>(b"done".to_vec()) }).await.unwrap();
    assert!(matches!(once, Run::Ran(_)), "{once:?}");
    assert!(keeper.list(None, 100).await.unwrap().iter().all(|line| line.name.as_str() != "free"));
}

/// The same for values.
async fn values(keeper: &Keeper, under: &str) {
    let name = |name: &str| format!("{under}/{name}");
    let cell = keeper.cell(&name("cell")).keep(Duration::from_secs(60));
    cell.put(b"1").await.unwrap();
    keeper.cell(&name("cell")).update(|_| Some(b"2".to_vec())).await.unwrap();
    assert_eq!(cell.get().await.unwrap().unwrap().value, b"2");
    cell.remove().await.unwrap();
    assert_eq!(keeper.counter(&name("stock")).add(5).await.unwrap(), 5);
    assert_eq!(keeper.counter(&name("stock")).take(7).await.unwrap(), None);
    keeper.counter(&name("stock")).raise_to(9).await.unwrap();
    let limiter = keeper.limiter(&name("rate"), 10, Duration::from_secs(1));
    assert!(limiter.try_take(1).await.unwrap().is_admitted());
    assert!(limiter.fixed_window().try_take(1).await.is_err(), "one name is one kind");
    let hold = keeper.mutex(&name("fence")).lock().await.unwrap();
    let fenced = keeper.cell(&name("fenced")).fenced(&hold).unwrap();
    fenced.read().await.unwrap();
    fenced.write(Some(b"x")).await.unwrap();
    hold.release().await.unwrap();
}

/// The server, as one who may do everything.
async fn master(port: u16) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://:{REDIS_PASSWORD}@127.0.0.1:{port}")).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rule_of_the_rig_is_enough_and_not_too_much() {
    let Some(server) = own("redis-acl") else { return };
    for database in ["", "/3"] {
        let keeper = Keeper::connect(&format!("{}{database}", server.url())).await.unwrap();
        locks(&keeper).await;
        values(&keeper, "script").await;
        keeper.close().await.unwrap();
    }
    let watching = Keeper::connect(&format!("{}?cells=watch", server.url())).await.unwrap();
    values(&watching, "watch").await;
    watching.close().await.unwrap();

    let mut master = master(server.port()).await;
    let refused: Vec<HashMap<String, redis::Value>> = say(&mut master, "ACL", &["LOG"]).await;
    // Both are done without: `INFO` tells whether locks outlive a restart, `CLIENT SETINFO` who we are.
    let done_without = ["info", "client|setinfo"];
    let refused: Vec<_> = refused
        .iter()
        .map(|entry| redis::from_redis_value::<String>(entry["object"].clone()).unwrap())
        .filter(|object| !done_without.contains(&object.as_str()))
        .collect();
    assert!(refused.is_empty(), "too little: {refused:?}");

    let rules = std::fs::read_to_string(server.folder().join("users.acl")).unwrap();
    let rule = rules.lines().find(|rule| rule.starts_with(&format!("user {REDIS_USER} "))).expect("its rule");
    let allowed: BTreeSet<&str> = rule.split(' ').filter_map(|word| word.strip_prefix('+')).collect();
    assert!(allowed.len() > 20, "{rule}");
    let stats: String = say(&mut master, "INFO", &["commandstats"]).await;
    let used: BTreeSet<&str> =
        stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(':').next()).collect();
    let idle: Vec<_> = allowed.difference(&used).collect();
    assert!(idle.is_empty(), "too much: {idle:?}");
}
