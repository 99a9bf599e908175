//! Where claims stand in etcd and what others may do there: the layout of etcd's own recipes, with our records in it.

use std::time::Duration;

use lockkeeper_core::store::{ClaimState, Keep, Left, Renewal, Standing, Store};
use lockkeeper_core::{Claim, ClaimId, ErrorKind, LockKind, Patience};

use crate::common::*;

const LEASE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_a_key_whose_create_revision_is_in_its_token() {
    let Some(port) = shared() else { return };
    let (store, lock) = (open(&[port]).await, fresh("layout"));
    let claim = Claim { note: b"noted".to_vec(), ..mutex(LEASE) };
    let token = take(&store, &lock, &claim).await;
    let [kv] = &keys_of(port, &lock).await[..] else { panic!("one key") };
    let slot = kv.key.strip_prefix(&format!("{lock}/")).expect("a key of the lock").to_owned();
    assert!(slot.len() == 32 && slot.ends_with("00000000"), "the client's first: {slot}");
    assert_eq!(kv.created, token.as_u64() >> 10);
    assert!(kv.value.starts_with(&format!("lk1 mutex 1 1 10000 - {} ", claim.id)), "{kv:?}");
    assert!(kv.value.ends_with("\\nnoted"), "{kv:?}");
    assert_ne!(kv.lease, 0);

    // Another note is another value of the same key, with the same token and on the same lease.
    let renamed = Claim { note: b"again".to_vec(), ..claim.clone() };
    assert_eq!(take(&store, &lock, &renamed).await, token);
    let [changed] = &keys_of(port, &lock).await[..] else { panic!("one key") };
    assert_eq!((changed.created, changed.lease), (kv.created, kv.lease));
    assert!(changed.changed > kv.changed && changed.value.ends_with("\\nagain"), "{changed:?}");

    let next = mutex(LEASE);
    assert!(matches!(store.enter(&lock, &next).await.unwrap(), Standing::Waiting { ahead: 1, .. }));
    leaves(&store, &lock, &claim).await;
    assert!(take(&store, &lock, &next).await > token);
    leaves(&store, &lock, &next).await;
    assert_eq!(keys_of(port, &lock).await, []);
    // Keys are used again: those that were deleted make every look at the line dearer until the server is compacted.
    let later = mutex(LEASE);
    take(&store, &lock, &later).await;
    assert!(keys_of(port, &lock).await[0].key.ends_with(&slot));
    leaves(&store, &lock, &later).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_clients_key_keeps_us_out_until_it_is_deleted_which_wakes_us() {
    let Some(port) = shared() else { return };
    let (store, lock) = (open(&[port]).await, fresh("layout"));
    let lease = foreign_lease(port, 60).await;
    let foreign = format!("{lock}/{lease}");
    etcdctl(port, &["put", &foreign, "somebody", "--lease", &lease]).await;
    assert!(matches!(store.enter(&lock, &at_once(LEASE)).await.unwrap(), Standing::Refused { .. }));
    let shown = line(&store, &lock).await.expect("somebody is in");
    assert_eq!(shown.claims.len(), 1);
    assert_eq!((shown.claims[0].state, shown.claims[0].owner.label()), (ClaimState::Holding, "another client of etcd"));
    assert!(shown.claims[0].lease_left > Duration::from_secs(30));

    let waiting = waits(&keeper(store.clone()), &lock, SHARED);
    until_waiting(&store, &lock, 1).await;
    etcdctl(port, &["del", &foreign]).await;
    let hold = soon("it gets in", waiting).await.unwrap();
    assert!(hold.is_held());

    // It keeps them out as well: theirs comes later, and ours is ahead of it.
    etcdctl(port, &["put", &foreign, "somebody", "--lease", &lease]).await;
    assert_eq!(line(&store, &lock).await.unwrap().claims[1].state, ClaimState::Waiting);
    assert!(matches!(renew_of(&store, &hold).await, Renewal::Renewed { .. }));
    hold.release().await.expect("it is ours");
    etcdctl(port, &["lease", "revoke", &lease]).await;
    assert_eq!(keys_of(port, &lock).await, []);
}

async fn renew_of(store: &lockkeeper_etcd::Etcd, hold: &lockkeeper_core::Hold) -> Renewal {
    renew(store, hold.name(), &Claim { id: hold.claim_id(), ..mutex(LEASE) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deletion_of_anothers_key_is_told_and_not_found_by_asking() {
    let Some(port) = shared() else { return };
    let (store, lock) = (open(&[port]).await, fresh("layout"));
    let foreign = format!("{lock}/694d8a3b5f3c2a01");
    let mut took = Vec::new();
    // A check of time, so it is repeated.
    for _ in 0..5 {
        etcdctl(port, &["put", &foreign, "somebody"]).await;
        let claim = mutex(SHARED);
        let standing = store.enter(&lock, &claim).await.unwrap();
        assert!(matches!(standing, Standing::Waiting { .. }), "{standing:?}");
        let waiter = lockkeeper_core::store::Waiter::Claim { id: claim.id, seen: &standing };
        let began = std::time::Instant::now();
        let delete = ["del", &foreign];
        let (woken, _) = tokio::join!(store.wait(&lock, waiter, Duration::from_secs(10)), etcdctl(port, &delete));
        woken.unwrap();
        take(&store, &lock, &claim).await;
        leaves(&store, &lock, &claim).await;
        if began.elapsed() < Duration::from_secs(5) {
            return;
        }
        took.push(began.elapsed());
    }
    panic!("nobody was told: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_not_blocked_by_a_longer_one_nor_by_a_shorter() {
    let Some(port) = shared() else { return };
    let (store, short) = (open(&[port]).await, fresh("layout"));
    let long = name(&format!("{short}/b"));
    let (one, two) = (at_once(LEASE), at_once(LEASE));
    take(&store, &long, &one).await;
    take(&store, &short, &two).await;
    for (lock, claim) in [(&short, &two), (&long, &one)] {
        let seen = line(&store, lock).await.unwrap();
        assert_eq!(seen.claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [claim.id], "`{lock}`");
    }
    // A foreign key of the longer name is nothing to the shorter, and the other way round.
    etcdctl(port, &["put", &format!("{long}/5"), "somebody"]).await;
    leaves(&store, &short, &two).await;
    let again = at_once(LEASE);
    take(&store, &short, &again).await;
    leaves(&store, &short, &again).await;
    leaves(&store, &long, &one).await;
    assert!(matches!(store.enter(&long, &at_once(LEASE)).await.unwrap(), Standing::Refused { .. }));
    etcdctl(port, &["del", &format!("{long}/5")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_clients_claim_can_be_broken_at_once_but_not_left_to_run_out() {
    let Some(port) = shared() else { return };
    let (store, lock) = (open(&[port]).await, fresh("layout"));
    let lease = foreign_lease(port, 60).await;
    etcdctl(port, &["put", &format!("{lock}/{lease}"), "somebody", "--lease", &lease]).await;
    let id = line(&store, &lock).await.unwrap().claims[0].id;
    let error = store.leave(&lock, id, Keep::Lease).await.expect_err("there is no record to mark");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("break --now")), "{error:?}");
    assert_eq!(keys_of(port, &lock).await.len(), 1, "nothing was touched");

    assert_eq!(store.leave(&lock, id, Keep::Nothing).await.unwrap(), Left::Released);
    assert_eq!(keys_of(port, &lock).await, []);
    assert_eq!(store.leave(&lock, id, Keep::Nothing).await.unwrap(), Left::NotHeld);
    let claim = at_once(LEASE);
    take(&store, &lock, &claim).await;
    leaves(&store, &lock, &claim).await;
    // Their lease is theirs.
    etcdctl(port, &["lease", "revoke", &lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_others_wrote_over_is_not_ours_any_more() {
    let Some(port) = shared() else { return };
    let (store, lock) = (open(&[port]).await, fresh("layout"));
    let keeper = keeper(store.clone());
    let hold = keeper.mutex(lock.as_str()).lease(LEASE).lock().await.unwrap();
    let [kv] = &keys_of(port, &lock).await[..] else { panic!("one key") };
    etcdctl(port, &["put", &kv.key, "mine now"]).await;
    assert_eq!(renew_of(&store, &hold).await, Renewal::Gone);
    let error = store.enter(&lock, &Claim { id: hold.claim_id(), ..mutex(LEASE) }).await.expect_err("not ours");
    assert_eq!(error.kind(), ErrorKind::Foreign, "{error:?}");
    let lost = within(LEASE, "its holder is told", hold.lost()).await;
    assert!(lost.to_string().contains("no longer has it"), "by a renewal, not by its time: {lost}");
    let [theirs] = &keys_of(port, &lock).await[..] else { panic!("one key") };
    assert_eq!(theirs.value, "mine now", "it was not touched");
    drop(hold);
    etcdctl(port, &["del", &kv.key]).await;

    // The same record on another lease has been taken over by somebody, too.
    let claim = mutex(LEASE);
    take(&store, &lock, &claim).await;
    let [kv] = &keys_of(port, &lock).await[..] else { panic!("one key") };
    etcdctl(port, &["put", &kv.key, &kv.value.replace("\\n", "\n")]).await;
    assert_eq!(renew(&store, &lock, &claim).await, Renewal::Gone);
    etcdctl(port, &["del", &kv.key]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_whose_key_was_deleted_comes_again_at_the_end() {
    let Some(port) = shared() else { return };
    let (store, lock) = (open(&[port]).await, fresh("layout"));
    let [holds, first, second] = [mutex(LEASE), mutex(LEASE), mutex(LEASE)];
    take(&store, &lock, &holds).await;
    for (claim, ahead) in [(&first, 1), (&second, 2)] {
        let standing = store.enter(&lock, claim).await.unwrap();
        assert!(matches!(standing, Standing::Waiting { ahead: told, .. } if told == ahead), "{standing:?}");
    }
    let keys = keys_of(port, &lock).await;
    let own = keys.iter().find(|kv| kv.value.contains(&first.id.to_string())).expect("it stands");
    etcdctl(port, &["del", &own.key]).await;
    assert!(matches!(store.enter(&lock, &first).await.unwrap(), Standing::Waiting { ahead: 2, .. }));
    leaves(&store, &lock, &holds).await;
    let token = take(&store, &lock, &second).await;
    leaves(&store, &lock, &second).await;
    assert!(take(&store, &lock, &first).await > token);
    leaves(&store, &lock, &first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_when_all_have_left() {
    let Some(server) = own() else { return };
    let port = server.port();
    let (store, lock) = (open(&[port]).await, name("x"));
    let kinds = [(LockKind::Mutex, 1, 1), (LockKind::ReadWrite, 1, 9), (LockKind::Semaphore, 2, 3)];
    for (number, (kind, weight, capacity)) in kinds.into_iter().enumerate() {
        let lock = name(&format!("x/{number}"));
        // On leases of their own, and on the shared one.
        for lease in [LEASE, SHARED] {
            let claim = Claim { kind, weight, capacity, ..mutex(lease) };
            let waits = Claim { weight: capacity, ..Claim { id: ClaimId::random().unwrap(), ..claim.clone() } };
            take(&store, &lock, &claim).await;
            assert!(matches!(store.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }));
            let refused = Claim { patience: Patience::Now, id: ClaimId::random().unwrap(), ..waits.clone() };
            assert!(matches!(store.enter(&lock, &refused).await.unwrap(), Standing::Refused { .. }));
            leaves(&store, &lock, &waits).await;
            leaves(&store, &lock, &claim).await;
        }
    }
    let keeper = keeper(store.clone());
    drop(keeper.mutex(lock.as_str()).lease(LEASE).lock().await.unwrap());
    until("a dropped hold is out", || async { keys_under(port, "").await.is_empty() }).await;
    // The one they share.
    until("leases end with their claims", || async { leases(port).await.len() == 1 }).await;
    store.close().await.unwrap();
    assert_eq!(leases(port).await, [""; 0]);
    assert_eq!(keys_under(port, "").await, []);
}
