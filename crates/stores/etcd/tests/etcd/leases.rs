//! Leases that end before they should, and keep-alives that do not arrive.

use std::time::Duration;

use lockkeeper_conformance::rig::{Proxy, Which};
use lockkeeper_core::store::ClaimView;
use lockkeeper_core::{ErrorKind, Name};
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

/// Renewed every two seconds, by which time whoever lost it knows; waiting claims ask as often.
const LEASE: Duration = Duration::from_secs(6);

async fn claims(store: &Etcd, lock: &Name) -> Vec<ClaimView> {
    line(store, lock).await.map_or(Vec::new(), |line| line.claims)
}

/// Ends the lease that this one of the line hangs on, as an operator would.
async fn revoke_lease_of(port: u16, lock: &Name, place: usize) {
    let mut keys = keys_of(port, lock).await;
    keys.sort_by_key(|kv| kv.created);
    etcdctl(port, &["lease", "revoke", &format!("{:x}", keys[place].lease)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_whose_lease_was_revoked_comes_again_at_the_end_of_the_line() {
    let Some(port) = shared() else { return };
    let (lock, looks) = (fresh("leases"), open(&[port]).await);
    let [ann, ben, cid] = [keeper_at(&[port]).await, keeper_at(&[port]).await, keeper_at(&[port]).await];
    let holds = ann.mutex(lock.as_str()).lease(LEASE).lock().await.unwrap();
    let second = waits(&ben, &lock, LEASE);
    until_waiting(&looks, &lock, 1).await;
    let third = waits(&cid, &lock, LEASE);
    until_waiting(&looks, &lock, 2).await;
    let before: Vec<_> = claims(&looks, &lock).await.iter().map(|claim| claim.id).collect();

    revoke_lease_of(port, &lock, 1).await;
    until("it stands at the end", || async {
        let now: Vec<_> = claims(&looks, &lock).await.iter().map(|claim| claim.id).collect();
        now == [before[0], before[2], before[1]]
    })
    .await;
    assert!(holds.is_held() && !second.is_finished() && !third.is_finished());
    let first_token = holds.token();
    holds.release().await.expect("it is ours");
    let third = soon("the next is in", third).await.unwrap();
    assert!(third.token() > first_token && !second.is_finished());
    let third_token = third.token();
    third.release().await.expect("it is ours");
    let second = soon("the one that came again is in", second).await.unwrap();
    assert!(second.token() > third_token);
    second.release().await.expect("it is ours");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_shared_lease_is_revoked_holders_are_told_and_waiters_come_again() {
    let Some(port) = shared() else { return };
    let (held, awaited, looks) = (fresh("leases"), fresh("leases"), open(&[port]).await);
    let ann = keeper(Etcd::open(Options { lease: LEASE, ..options(&[port]) }).await.unwrap());
    let ben = keeper_at(&[port]).await;
    let rival = ben.mutex(awaited.as_str()).lease(LEASE).lock().await.unwrap();
    let hold = ann.mutex(held.as_str()).lease(LEASE).lock().await.unwrap();
    let waiting = waits(&ann, &awaited, LEASE);
    until_waiting(&looks, &awaited, 1).await;
    let (one, two) = (keys_of(port, &held).await[0].clone(), keys_of(port, &awaited).await);
    assert!(two.iter().any(|kv| kv.lease == one.lease), "they share it: {one:?} {two:?}");

    revoke_lease_of(port, &held, 0).await;
    let next = soon("it is free", ben.mutex(held.as_str()).lease(LEASE).lock()).await.unwrap();
    assert!(next.token() > hold.token());
    let lost = within(LEASE, "its holder is told", hold.lost()).await;
    assert!(lost.to_string().contains("no longer has it"), "by a renewal, not by its time: {lost}");
    assert_eq!(hold.release().await.expect_err("it is gone").kind(), ErrorKind::Lost);
    assert!(next.is_held());
    next.release().await.expect("it is ours");

    until_waiting(&looks, &awaited, 1).await;
    rival.release().await.expect("it is ours");
    let hold = soon("it gets in", waiting).await.unwrap();
    let seen = hold.deadline();
    soon("it is renewed on another lease", hold.deadline_after(seen)).await;
    hold.release().await.expect("it is ours");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_nobody_hears_is_told_before_another_is_in() {
    let Some(port) = shared() else { return };
    let (lock, looks, proxy) = (fresh("leases"), open(&[port]).await, Proxy::to(port).unwrap());
    let (ann, ben) = (keeper_at(&[proxy.port()]).await, keeper_at(&[port]).await);
    let lease = Duration::from_secs(3);
    let hold = ann.mutex(lock.as_str()).lease(lease).lock().await.unwrap();
    let seen = hold.deadline();
    soon("it is renewed", hold.deadline_after(seen)).await;
    let waiting = waits(&ben, &lock, lease);
    until_waiting(&looks, &lock, 1).await;
    assert!(hold.is_held() && !waiting.is_finished());

    proxy.freeze();
    let lost = tokio::spawn(hold.lost());
    let next = soon("the next is in", waiting).await.unwrap();
    assert!(!hold.is_held(), "two hold at once");
    assert!(next.is_held() && next.token() > hold.token());
    let lost = soon("it was told", lost).await.unwrap();
    assert!(lost.to_string().contains("its time ran out"), "{lost}");
    proxy.thaw();
    assert_eq!(hold.release().await.expect_err("it is gone").kind(), ErrorKind::Lost);
    // What had waited on the way hurts nobody.
    let seen = next.deadline();
    soon("it is renewed", next.deadline_after(seen)).await;
    next.release().await.expect("it is ours");
}

/// The other end of every connection has vanished without a word, and new ones would work.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_went_silent_is_given_up_before_a_hold_is_lost() {
    let Some(port) = shared() else { return };
    let (lock, proxy) = (fresh("leases"), Proxy::to(port).unwrap());
    let store = Etcd::open(Options { timeout: Duration::from_secs(1), ..options(&[proxy.port()]) }).await.unwrap();
    let (ann, other) = (keeper(store), fresh("leases"));
    let hold = ann.mutex(lock.as_str()).lease(LEASE).lock().await.unwrap();
    let seen = hold.deadline();
    let seen = soon("it is renewed", hold.deadline_after(seen)).await;
    proxy.only(Which::Open).freeze();
    let free = within(LEASE, "calls go on", ann.mutex(other.as_str()).lock()).await.expect("it is free");
    free.release().await.expect("it is ours");
    within(LEASE, "it is renewed", hold.deadline_after(seen)).await;
    hold.release().await.expect("it is ours");
}
