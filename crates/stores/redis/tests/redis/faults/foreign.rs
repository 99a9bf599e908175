//! Somebody writes over our keys: what is not ours is never touched, never taken for free, and holders are told.

use std::time::Duration;

use lockkeeper_core::store::{Held, Keep, Left, Page, Renewal, Standing, Store};
use lockkeeper_core::{Claim, Effect, Error, ErrorKind, LockKind, Name};
use lockkeeper_redis::Redis;
use redis::aio::MultiplexedConnection;

use crate::common::*;

const LEASE: Duration = Duration::from_secs(30);

/// The keys of a lock.
const KEYS: [&str; 6] = ["NAME", "{NAME}:line", "{NAME}:wait", "{NAME}:in", "{NAME}:ends", "{NAME}:last"];

/// Makes a list of a key of the lock; the key.
async fn spoil(raw: &mut MultiplexedConnection, lock: &Name, key: &str) -> String {
    let key = key.replace("NAME", lock.as_str());
    let _: i64 = say(raw, "DEL", &[&key]).await;
    let _: i64 = say(raw, "RPUSH", &[&key, "not", "ours"]).await;
    key
}

fn foreign<T: std::fmt::Debug>(answer: Result<T, Error>, what: &str) {
    let error = answer.expect_err(what);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Foreign, Effect::None), "{what}: {error:?}");
    assert!(error.hint().is_some(), "{what}");
}

/// Claims of all sorts that do not go by the fast lane, or not only.
fn claims() -> Vec<Claim> {
    let fair = |claim: Claim| Claim { fair: true, ..claim };
    vec![
        fair(mutex(LEASE)),
        fair(at_once(LEASE)),
        of_kind(LockKind::ReadWrite, 1, 1_000, LEASE),
        of_kind(LockKind::ReadWrite, 1_000, 1_000, LEASE),
        of_kind(LockKind::Semaphore, 2, 3, LEASE),
        of_kind(LockKind::Election, 1, 1, LEASE),
    ]
}

async fn dump(raw: &mut MultiplexedConnection, key: &str) -> Vec<u8> {
    redis::cmd("DUMP").arg(key).query_async(raw).await.expect("DUMP")
}

#[tokio::test]
async fn what_is_not_ours_is_foreign_to_who_needs_it_and_stays_as_it_is() {
    let Some(server) = own("redis") else { return };
    let (store, mut raw) = (open(server.port()).await, raw(server.port()).await);
    for (at, key) in KEYS.into_iter().enumerate() {
        let lock = name(&format!("spoilt/{at}"));
        let key = spoil(&mut raw, &lock, key).await;
        let before = dump(&mut raw, &key).await;
        for claim in claims() {
            foreign(store.enter(&lock, &claim).await, &key);
            // One that is not there leaves without a look at sets that are empty as long as there is no line.
            match store.leave(&lock, claim.id, Keep::Nothing).await {
                Ok(left) => assert_eq!(left, Left::NotHeld, "{key}"),
                refused => foreign(refused, &key),
            }
            assert_eq!(renew(&store, &lock, &claim).await, Renewal::Gone, "{key}");
        }
        assert_eq!(dump(&mut raw, &key).await, before, "{key}");
        let keys: Vec<String> = say(&mut raw, "KEYS", &[&format!("*spoilt/{at}*")]).await;
        assert_eq!(keys, [key], "nothing else was left");
    }
    // At the name itself, a mutex that takes the fast lane sees it too.
    let (lock, keeper) = (name("spoilt/0"), keeper(store.clone()));
    foreign(store.enter(&lock, &at_once(LEASE)).await, "enter");
    foreign(store.enter(&lock, &mutex(LEASE)).await, "enter");
    foreign(store.leave(&lock, mutex(LEASE).id, Keep::Nothing).await, "leave");
    foreign(store.leave(&lock, mutex(LEASE).id, Keep::Lease).await, "leave");
    foreign(keeper.mutex("spoilt/0").try_lock().await, "try_lock");
    foreign(keeper.mutex("spoilt/0").lock().await, "lock");
    foreign(store.inspect(Page::of(&lock)).await, "inspect");
}

/// The fast lane does not look at the line's keys: the lock can be had, but never by two.
#[tokio::test]
async fn a_free_mutex_beside_spoilt_keys_is_one_mutex() {
    let Some(server) = own("redis") else { return };
    let (store, other, mut raw) = (open(server.port()).await, open(server.port()).await, raw(server.port()).await);
    for (at, key) in KEYS.into_iter().enumerate().skip(1) {
        let lock = name(&format!("beside/{at}"));
        let key = spoil(&mut raw, &lock, key).await;
        let before = dump(&mut raw, &key).await;
        let (first, second) = (at_once(LEASE), at_once(LEASE));
        take(&store, &lock, &first).await;
        foreign(other.enter(&lock, &second).await, &key);
        foreign(other.leave(&lock, second.id, Keep::Nothing).await, &key);
        assert!(matches!(renew(&store, &lock, &first).await, Renewal::Renewed { .. }));
        assert_eq!(store.leave(&lock, first.id, Keep::Nothing).await.unwrap(), Left::Released, "{key}");
        assert_eq!(dump(&mut raw, &key).await, before, "{key}");
        let keys: Vec<String> = say(&mut raw, "KEYS", &[&format!("*beside/{at}*")]).await;
        assert_eq!(keys, [key], "nothing else was left");
    }
}

/// A hold that is in a line from the start.
async fn hold_in_a_line(store: &Redis, lock: &Name) -> Claim {
    let claim = Claim { fair: true, ..mutex(LEASE) };
    take(store, lock, &claim).await;
    claim
}

#[tokio::test]
async fn a_hold_whose_keys_are_spoilt_is_gone_and_others_are_renewed() {
    let Some(server) = own("redis") else { return };
    let (store, other, mut raw) = (open(server.port()).await, open(server.port()).await, raw(server.port()).await);
    for (at, key) in KEYS.into_iter().enumerate() {
        let (lock, fast, lined) = (name(&format!("held/{at}")), name("fast"), name("lined"));
        let (claim, fine) = (hold_in_a_line(&store, &lock).await, at_once(LEASE));
        let fine_too = hold_in_a_line(&store, &lined).await;
        take(&store, &fast, &fine).await;
        // Where only those stand who wait or share, and what only the first number of a line needs: a hold has nothing
        // to lose there.
        let is_its_own = ![":wait", ":ends", ":in", ":last"].iter().any(|part| key.ends_with(part));
        let key = spoil(&mut raw, &lock, key).await;
        let before = dump(&mut raw, &key).await;
        let all = [(&fast, &fine), (&lock, &claim), (&lined, &fine_too)].map(|(lock, claim)| Held {
            lock: lock.clone(),
            id: claim.id,
            lease: LEASE,
        });
        let renewals = store.renew(&all).await.expect("an answer");
        let [Renewal::Renewed { .. }, spoilt, Renewal::Renewed { .. }] = renewals[..] else {
            panic!("{key}: {renewals:?}")
        };
        assert_eq!(spoilt == Renewal::Gone, is_its_own, "{key}");
        match other.enter(&lock, &at_once(LEASE)).await {
            Ok(Standing::Refused { .. }) if !is_its_own => {}
            refused => foreign(refused, &key),
        }
        let waits = mutex(LEASE);
        match other.enter(&lock, &waits).await {
            Ok(Standing::Waiting { .. }) if key.ends_with(":in") || key.ends_with(":last") => {
                assert_eq!(other.leave(&lock, waits.id, Keep::Nothing).await.unwrap(), Left::Released);
            }
            refused => foreign(refused, &key),
        }
        match store.leave(&lock, claim.id, Keep::Nothing).await {
            Ok(Left::Released) if !is_its_own => {}
            refused => foreign(refused, &key),
        }
        assert_eq!(dump(&mut raw, &key).await, before, "{key}");
        for (lock, claim) in [(fast, fine), (lined, fine_too)] {
            assert_eq!(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
        }
    }
}

/// The mark of the clock is one key for all locks: spoilt, it is as if it were not there.
#[tokio::test]
async fn a_spoilt_mark_of_the_clock_hurts_no_lock() {
    let Some(server) = own("redis") else { return };
    let (store, other, mut raw) = (open(server.port()).await, open(server.port()).await, raw(server.port()).await);
    let _: i64 = say(&mut raw, "RPUSH", &["lockkeeper:clock", "not", "ours"]).await;
    let before = dump(&mut raw, "lockkeeper:clock").await;
    let mut claims = claims();
    claims.push(at_once(LEASE));
    for (at, claim) in claims.into_iter().enumerate() {
        let (lock, mut last) = (name(&format!("clock/{at}")), None);
        for store in [&store, &other] {
            let token = take(store, &lock, &claim).await;
            assert!(Some(token) > last);
            last = Some(token);
            assert!(matches!(renew(store, &lock, &claim).await, Renewal::Renewed { .. }));
            assert_eq!(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
        }
    }
    assert_eq!(dump(&mut raw, "lockkeeper:clock").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_whose_key_became_a_list_is_told() {
    let Some(server) = own("redis") else { return };
    let (keeper, mut raw) = (keeper(open(server.port()).await), raw(server.port()).await);
    let lease = Duration::from_secs(3);
    let hold = keeper.mutex("x").lease(lease).lock().await.unwrap();
    let key = spoil(&mut raw, &name("x"), KEYS[0]).await;
    let lost = within(lease, "its holder is told", hold.lost()).await;
    assert!(lost.to_string().contains("no longer has it"), "{lost}");
    assert_eq!(hold.release().await.expect_err("it is gone").kind(), ErrorKind::Lost);
    keeper.close().await.expect("nothing is left to do");
    assert_eq!(say::<Vec<String>>(&mut raw, "LRANGE", &[&key, "0", "-1"]).await, ["not", "ours"]);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_foreign_and_does_not_hide_other_locks() {
    let Some(server) = own("redis") else { return };
    let (store, mut raw) = (open(server.port()).await, raw(server.port()).await);
    // Nothing, text, a number, a list, an empty table, and a record that is cut off.
    let garbage: [&[u8]; 6] = [b"", b"garbage", b"7", b"\x91\x01", b"\x80", b"\x8b\xa5state\xa2in"];
    for (at, garbage) in garbage.into_iter().enumerate() {
        let (lock, fine) = (name(&format!("read/{at}")), name(&format!("fine/{at}")));
        let (holder, waits) = (hold_in_a_line(&store, &lock).await, mutex(LEASE));
        take(&store, &fine, &at_once(LEASE)).await;
        assert!(matches!(store.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }));
        let line = format!("{{{lock}}}:line");
        let mut spoil = redis::cmd("HSET");
        spoil.arg(&line).arg(holder.id.to_string()).arg(garbage).exec_async(&mut raw).await.expect("HSET");
        let before = dump(&mut raw, &line).await;
        let what = format!("{garbage:?}");
        // To leave for good, it need not be read: the marker says who is next.
        foreign(store.leave(&lock, holder.id, Keep::Lease).await, &what);
        foreign(store.enter(&lock, &holder).await, &what);
        foreign(store.inspect(Page::of(&lock)).await, &what);
        assert_eq!(renew(&store, &lock, &holder).await, Renewal::Gone, "{what}");
        assert_eq!(dump(&mut raw, &line).await, before, "{what}");
        // Nobody gets in past it.
        assert!(matches!(store.enter(&lock, &mutex(LEASE)).await.unwrap(), Standing::Waiting { .. }));
        let listed = store.inspect(Page::first(100)).await.expect("the others can be read");
        assert!(listed.iter().any(|line| line.name == fine), "{listed:?}");
    }
}

/// Without the marker nobody of the line is in: the next one may come, and those who were in are told.
#[tokio::test]
async fn a_marker_deleted_by_hand_ends_the_holds_of_the_line() {
    let Some(server) = own("redis") else { return };
    let (store, other, mut raw) = (open(server.port()).await, open(server.port()).await, raw(server.port()).await);
    // The next one comes by the fast lane, past one that waits.
    let (lock, waits, fast) = (name("marked"), mutex(LEASE), at_once(LEASE));
    let first = hold_in_a_line(&store, &lock).await;
    assert!(matches!(store.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }));
    assert_eq!(say::<i64>(&mut raw, "DEL", &["marked"]).await, 1);
    take(&other, &lock, &fast).await;
    assert_eq!(renew(&store, &lock, &first).await, Renewal::Gone);
    assert!(matches!(store.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }), "one at a time");
    assert_eq!(standing(&store, &lock).await, (1, 1));
    assert_eq!(store.leave(&lock, first.id, Keep::Nothing).await.unwrap(), Left::NotHeld);
    assert_eq!(other.leave(&lock, fast.id, Keep::Nothing).await.unwrap(), Left::Released);
    token(&store.enter(&lock, &waits).await.unwrap());
    assert_eq!(standing(&store, &lock).await, (1, 0));

    // Readers go together: none of them is in any more, and a writer is.
    let lock = name("read-and-marked");
    let readers = [(); 3].map(|()| of_kind(LockKind::ReadWrite, 1, 1_000, LEASE));
    for reader in &readers {
        take(&store, &lock, reader).await;
    }
    assert_eq!(say::<i64>(&mut raw, "DEL", &["read-and-marked"]).await, 1);
    let writer = of_kind(LockKind::ReadWrite, 1_000, 1_000, LEASE);
    take(&other, &lock, &writer).await;
    for reader in &readers {
        assert_eq!(renew(&store, &lock, reader).await, Renewal::Gone);
        assert_eq!(store.leave(&lock, reader.id, Keep::Nothing).await.unwrap(), Left::NotHeld);
    }
    assert_eq!(standing(&store, &lock).await, (1, 0));
    assert_eq!(renew(&other, &lock, &writer).await, Renewal::Renewed { lease: LEASE });
}
