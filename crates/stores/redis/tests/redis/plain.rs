//! Other clients' plain locks (`SET key value NX PX`) on the same key: theirs and ours exclude each other, and what is
//! theirs is never touched (C13).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::store::{Held, Keep, Left, Page, Renewal, Standing, Store, Waiter};
use lockkeeper_core::{Claim, LockKind, Name, Patience};
use lockkeeper_redis::Redis;
use redis::aio::MultiplexedConnection;

use crate::common::*;

const LEASE: Duration = Duration::from_secs(30);
/// What a busy machine may add to the 100 ms in which a waiting claim looks again.
const SOON: Duration = Duration::from_millis(1_100);

/// Another client, as they all are: a value of its own, `SET NX PX`, and a release that compares.
struct Other {
    raw: MultiplexedConnection,
    value: Vec<u8>,
}

impl Other {
    async fn new(server: &Server) -> Other {
        Other { raw: raw(server.port()).await, value: (0..20).map(|_| fastrand::u8(..)).collect() }
    }

    /// Whether it got the lock; without a time it is for ever, as in redis-py.
    async fn takes(&mut self, key: &str, ms: Option<u64>) -> bool {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(&self.value).arg("NX");
        if let Some(ms) = ms {
            set.arg("PX").arg(ms);
        }
        set.query_async::<Option<String>>(&mut self.raw).await.expect("SET").is_some()
    }

    async fn holds(&mut self, key: &str) -> bool {
        redis::cmd("GET").arg(key).query_async::<Option<Vec<u8>>>(&mut self.raw).await.expect("GET").as_ref()
            == Some(&self.value)
    }

    async fn releases(&mut self, key: &str) {
        assert!(self.holds(key).await, "`{key}` is still its own");
        assert_eq!(say::<i64>(&mut self.raw, "DEL", &[key]).await, 1);
    }

    /// It can have the lock and gives it back, or cannot have it.
    async fn could_take(&mut self, key: &str) -> bool {
        let took = self.takes(key, Some(60_000)).await;
        if took {
            self.releases(key).await;
        }
        took
    }
}

/// Claims of all kinds, to be in at once or to wait.
fn claims() -> Vec<Claim> {
    let kinds = [
        mutex(LEASE),
        Claim { fair: true, ..mutex(LEASE) },
        of_kind(LockKind::ReadWrite, 1, 1_000, LEASE),
        of_kind(LockKind::ReadWrite, 1_000, 1_000, LEASE),
        of_kind(LockKind::Semaphore, 1, 3, LEASE),
        of_kind(LockKind::Election, 1, 1, LEASE),
        of_kind(LockKind::Once, 1, 1, LEASE),
    ];
    let now = |claim: &Claim| Claim { id: mutex(LEASE).id, patience: Patience::Now, ..claim.clone() };
    kinds.iter().flat_map(|claim| [claim.clone(), now(claim)]).collect()
}

async fn leaves(store: &Redis, lock: &Name, claim: &Claim) {
    assert_eq!(store.leave(lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released, "`{lock}`");
}

#[tokio::test]
async fn a_lock_of_another_client_keeps_ours_out_and_ours_is_in_when_it_goes() {
    let Some(server) = own("redis") else { return };
    let (store, mut other) = (open(server.port()).await, Other::new(&server).await);
    for (at, claim) in claims().into_iter().enumerate() {
        let (lock, key) = (name(&format!("kept/{at}")), format!("kept/{at}"));
        // For a time, and for ever.
        assert!(other.takes(&key, (at % 2 == 0).then_some(60_000)).await);
        for _ in 0..3 {
            match (store.enter(&lock, &claim).await.unwrap(), claim.patience) {
                // It will not be told when the lock is free, and looks again soon.
                (Standing::Waiting { ahead: 1, moves_in: Some(soon), .. }, Patience::Queue) => {
                    assert!(soon <= Duration::from_millis(100), "{soon:?}");
                }
                (Standing::Refused { .. }, Patience::Now) => {}
                (standing, _) => panic!("{claim:?}: {standing:?}"),
            }
        }
        assert!(other.holds(&key).await);
        other.releases(&key).await;
        take(&store, &lock, &claim).await;
        assert!(!other.takes(&key, Some(60_000)).await, "{claim:?}");
        leaves(&store, &lock, &claim).await;
        assert!(other.could_take(&key).await, "{claim:?}");
    }
}

/// How long after the end of another client's lock ours was in.
async fn in_after(server: &Server, ms: Option<u64>) -> Duration {
    let (keeper, mut other) = (keeper(open(server.port()).await), Other::new(server).await);
    let key = format!("soon/{ms:?}");
    let taken = Instant::now();
    assert!(other.takes(&key, ms).await);
    let lock = keeper.mutex(&key).lease(LEASE);
    assert!(lock.try_lock().await.unwrap().is_none());
    let waits = tokio::spawn(async move { (lock.lock().await.unwrap(), Instant::now()) });
    until_waiting(&*open(server.port()).await, &name(&key), 1).await;
    let end = match ms {
        Some(ms) => taken + Duration::from_millis(ms),
        None => {
            // Long enough for it to look as seldom as it ever does.
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert!(!waits.is_finished());
            other.releases(&key).await;
            Instant::now()
        }
    };
    let (hold, got) = soon("it is in", waits).await.unwrap();
    hold.release().await.expect("it is ours");
    got.checked_duration_since(end).expect("nobody is in before the other is out")
}

#[tokio::test(flavor = "multi_thread")]
async fn ours_is_in_soon_after_another_client_released_or_ran_out() {
    let Some(server) = own("redis") else { return };
    let (released, over) = (in_after(&server, None).await, in_after(&server, Some(700)).await);
    assert!(released < SOON && over < SOON, "{released:?} {over:?}");
}

#[tokio::test]
async fn no_other_client_is_in_while_anyone_of_ours_is() {
    let Some(server) = own("redis") else { return };
    let (ann, ben, mut other) = (open(server.port()).await, open(server.port()).await, Other::new(&server).await);
    let reader = || of_kind(LockKind::ReadWrite, 1, 1_000, LEASE);
    let permit = || of_kind(LockKind::Semaphore, 1, 3, LEASE);

    // One that was granted when another left, having waited.
    let (lock, first, second) = (name("granted"), mutex(LEASE), mutex(LEASE));
    take(&ann, &lock, &first).await;
    assert!(!other.takes("granted", None).await);
    assert!(matches!(ben.enter(&lock, &second).await.unwrap(), Standing::Waiting { .. }));
    assert!(!other.takes("granted", None).await);
    leaves(&ann, &lock, &first).await;
    assert!(!other.takes("granted", None).await, "it is granted already, told or not");
    leaves(&ben, &lock, &second).await;
    assert!(other.could_take("granted").await);

    // Several: as long as the last one is in.
    for (key, claims) in [("readers", [reader(), reader(), reader()]), ("permits", [permit(), permit(), permit()])] {
        let lock = name(key);
        for claim in &claims {
            take(&ann, &lock, claim).await;
            assert!(!other.takes(key, None).await);
        }
        for claim in &claims {
            assert!(!other.takes(key, None).await);
            leaves(&ann, &lock, claim).await;
        }
        assert!(other.could_take(key).await, "{key}");
    }

    // One that left and keeps the name taken, in either lane; and one that was broken.
    let keep = Duration::from_millis(300);
    for (key, claim, keep) in [
        ("kept/fast", mutex(LEASE), Keep::For(keep)),
        ("kept/line", Claim { fair: true, ..mutex(LEASE) }, Keep::For(keep)),
        ("broken", at_once(keep), Keep::Lease),
    ] {
        let (lock, began) = (name(key), Instant::now());
        take(&ann, &lock, &claim).await;
        assert_eq!(ben.leave(&lock, claim.id, keep).await.unwrap(), Left::Released);
        assert!(!other.takes(key, None).await, "{key}");
        let free = async |other: &mut Other| while !other.could_take(key).await {};
        soon(key, free(&mut other)).await;
        assert!(began.elapsed() >= Duration::from_millis(300), "{key}: after {:?}", began.elapsed());
    }
}

/// Our mark at the name lives as long as the longest of those that are in, and not as one that was in before.
#[tokio::test]
async fn one_of_ours_that_died_keeps_others_out_for_its_own_time_only() {
    let Some(server) = own("redis") else { return };
    let (ann, mut other) = (open(server.port()).await, Other::new(&server).await);
    let short = Duration::from_secs(1);
    // Granted when one with a long lease left.
    let (long, dies) = (mutex(LEASE), mutex(short));
    take(&ann, &name("after"), &long).await;
    assert!(matches!(ann.enter(&name("after"), &dies).await.unwrap(), Standing::Waiting { .. }));
    leaves(&ann, &name("after"), &long).await;
    // Beside one with a long lease that left.
    let [one, two, dies] =
        [LEASE, LEASE, short].map(|lease| Claim { lease, ..of_kind(LockKind::ReadWrite, 1, 1_000, LEASE) });
    for claim in [&one, &two, &dies] {
        take(&ann, &name("beside"), claim).await;
    }
    leaves(&ann, &name("beside"), &one).await;
    leaves(&ann, &name("beside"), &two).await;
    for key in ["after", "beside"] {
        assert!(!other.takes(key, None).await, "{key}");
    }
    for key in ["after", "beside"] {
        let free = async |other: &mut Other| while !other.could_take(key).await {};
        within(short + SOON, key, free(&mut other)).await;
    }
}

/// Values that other clients may have; some look like ours.
fn values() -> Vec<Vec<u8>> {
    let id = "0123456789abcdef".repeat(2);
    [
        "".to_owned(),
        "lk1".to_owned(),
        "lk1:".to_owned(),
        "lk1= ".to_owned(),
        format!("lk1:{id}"),
        format!("lk1:{id}:x"),
        id.clone(),
        "ADDED:2026-11-15T12:00:00Z@host:7".to_owned(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .chain([(0..=255).collect()])
    .collect()
}

/// Every call there is, of claims that stand there and of some that do not.
async fn all_calls(store: &Redis, lock: &Name) {
    let shown = line(store, lock).await.expect("it is shown").claims[0].id;
    let waits = mutex(LEASE);
    assert!(matches!(store.enter(lock, &waits).await.unwrap(), Standing::Waiting { .. }));
    for patience in [Patience::Now, Patience::Present] {
        let claim = Claim { patience, ..mutex(LEASE) };
        assert!(matches!(store.enter(lock, &claim).await.unwrap(), Standing::Refused { .. }));
        assert!(matches!(store.enter(lock, &Claim { id: shown, ..claim }).await.unwrap(), Standing::Refused { .. }));
    }
    for id in [shown, mutex(LEASE).id] {
        let held = Held { lock: lock.clone(), id, lease: LEASE };
        assert_eq!(store.renew(&[held]).await.unwrap(), [Renewal::Gone]);
        for keep in [Keep::Nothing, Keep::Lease, Keep::For(LEASE)] {
            assert_eq!(store.leave(lock, id, keep).await.unwrap(), Left::NotHeld, "it is not ours to break");
        }
    }
    let seen = line(store, lock).await.expect("it is shown").fingerprint();
    store.wait(lock, Waiter::Observer { seen }, Duration::from_millis(1)).await.unwrap();
    store.inspect(Page::first(10)).await.unwrap();
    leaves(store, lock, &waits).await;
}

#[tokio::test]
async fn what_another_client_wrote_is_never_touched() {
    let Some(server) = own("redis") else { return };
    let (store, mut other) = (open(server.port()).await, Other::new(&server).await);
    for (at, value) in values().into_iter().enumerate() {
        other.value = value;
        let key = format!("theirs/{at}");
        assert!(other.takes(&key, Some(60_000)).await);
        let expires: i64 = say(&mut other.raw, "PEXPIRETIME", &[&key]).await;
        all_calls(&store, &name(&key)).await;
        assert_eq!(say::<i64>(&mut other.raw, "PEXPIRETIME", &[&key]).await, expires, "{:?}", other.value);
        other.releases(&key).await;
        assert!(other.takes(&key, None).await);
        all_calls(&store, &name(&key)).await;
        assert_eq!(say::<i64>(&mut other.raw, "PTTL", &[&key]).await, -1, "{:?}", other.value);
        other.releases(&key).await;
    }
}

/// Not all are polite: one that writes over our lock has it, and we say so.
#[tokio::test]
async fn a_lock_that_another_client_wrote_over_is_gone_for_us() {
    let Some(server) = own("redis") else { return };
    let (store, mut other) = (open(server.port()).await, Other::new(&server).await);
    for (key, claim) in [
        ("over/fast", at_once(LEASE)),
        ("over/line", Claim { fair: true, ..mutex(LEASE) }),
        ("over/reader", of_kind(LockKind::ReadWrite, 1, 1_000, LEASE)),
    ] {
        let lock = name(key);
        take(&store, &lock, &claim).await;
        redis::cmd("SET").arg(key).arg(&other.value).exec_async(&mut other.raw).await.unwrap();
        assert_eq!(renew(&store, &lock, &claim).await, Renewal::Gone, "{key}");
        assert_eq!(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::NotHeld, "{key}");
        let again = Claim { id: mutex(LEASE).id, patience: Patience::Now, ..claim };
        assert!(matches!(store.enter(&lock, &again).await.unwrap(), Standing::Refused { .. }), "{key}");
        other.releases(key).await;
        take(&store, &lock, &again).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ours_queue_behind_another_client_and_come_in_in_order() {
    let Some(server) = own("redis") else { return };
    let (ann, ben) = (open(server.port()).await, open(server.port()).await);
    let (keepers, mut other) = ([keeper(ann.clone()), keeper(ben)], Other::new(&server).await);
    assert!(other.takes("x", None).await);
    let came = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for at in 0..6 {
        let (lock, came) = (keepers[at % 2].mutex("x").fair().lease(LEASE), came.clone());
        tasks.push(tokio::spawn(async move {
            let hold = lock.lock().await.unwrap();
            came.lock().unwrap().push((at, hold.token()));
            hold.release().await.expect("it is ours");
        }));
        until_waiting(&ann, &name("x"), at + 1).await;
    }
    assert!(came.lock().unwrap().is_empty() && other.holds("x").await);
    other.releases("x").await;
    for task in tasks {
        soon("it is in", task).await.unwrap();
    }
    let came = came.lock().unwrap().clone();
    assert_eq!(came.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(came.is_sorted_by(|a, b| a.1 < b.1), "{came:?}");
    assert!(other.could_take("x").await);
}

/// By the URL that people write to share names with other clients.
#[tokio::test(flavor = "multi_thread")]
async fn with_an_empty_prefix_the_names_are_those_of_other_clients() {
    let Some(server) = own("redis") else { return };
    let mut other = Other::new(&server).await;
    let shared = lockkeeper::Keeper::connect(&format!("{}?prefix=", server.url())).await.unwrap();
    let apart = lockkeeper::Keeper::connect(&server.url()).await.unwrap();
    let hold = shared.mutex("orders/42").lock().await.unwrap();
    assert!(!other.takes("orders/42", None).await);
    hold.release().await.unwrap();
    assert!(other.takes("orders/42", None).await);
    assert!(shared.mutex("orders/42").try_lock().await.unwrap().is_none());
    apart.mutex("orders/42").try_lock().await.unwrap().expect("another name").release().await.unwrap();
    other.releases("orders/42").await;
}
