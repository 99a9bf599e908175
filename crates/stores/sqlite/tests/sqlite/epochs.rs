//! Claims and cells of another boot, or of a container with another clock.

use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply};
use lockkeeper_core::store::{Held, Left, Page, Renewal, Store};
use lockkeeper_core::time::Clock;
use lockkeeper_sqlite::Sqlite;

use crate::common::*;

const TEN: Duration = Duration::from_secs(10);
const ALMOST: Duration = Duration::from_secs(9);
const MORE: Duration = Duration::from_secs(2);

async fn is_free(store: &Sqlite, lock: &str) -> bool {
    let claim = at_once(TEN);
    let standing = store.enter(&name(lock), &claim).await.unwrap();
    store.leave(&name(lock), claim.id, Duration::ZERO).await.unwrap();
    is_held(&standing)
}

fn sightings(bench: &Bench) -> i64 {
    bench.raw().query_row(include_str!("sightings.sql"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn it_ends_when_it_was_seen_unchanged_for_its_whole_lease() {
    let (bench, clock) = (Bench::new(), Clock::adjustable());
    // The other boot ran for much longer, or for much less.
    for (round, ahead) in [Duration::ZERO, TEN * 100_000].into_iter().enumerate() {
        let lock = format!("a/{round}");
        let before = Clock::adjustable();
        before.jump(ahead);
        let old = bench.open_in(&before, "before").await;
        acquire(&old, &name(&lock), &mutex(TEN)).await;
        drop(old);
        let store = bench.open_in(&clock, "now").await;
        store.inspect(Page::first(10)).await.unwrap();
        assert_eq!(sightings(&bench), 0, "looking on changes nothing");
        assert!(!is_free(&store, &lock).await);
        clock.jump(ALMOST);
        drop(store);
        // Programs come and go; what was seen is remembered.
        let store = bench.open_in(&clock, "now").await;
        assert!(!is_free(&store, &lock).await);
        clock.jump(MORE);
        drop(store);
        let store = bench.open_in(&clock, "now").await;
        assert!(is_free(&store, &lock).await);
        assert_eq!(sightings(&bench), 0, "with the claim goes what was seen of it");
    }
}

#[tokio::test]
async fn a_renewal_starts_the_watch_again() {
    let (bench, clock, theirs) = (Bench::new(), Clock::adjustable(), Clock::adjustable());
    let (other, store) = (bench.open_in(&theirs, "there").await, bench.open_in(&clock, "here").await);
    let claim = mutex(TEN);
    acquire(&other, &name("a"), &claim).await;
    for _ in 0..4 {
        assert!(!is_free(&store, "a").await);
        clock.jump(ALMOST);
        theirs.jump(ALMOST);
        let held = [Held { lock: name("a"), id: claim.id, lease: TEN }];
        assert!(matches!(other.renew(&held).await.unwrap()[0], Renewal::Renewed { .. }));
    }
    assert!(!is_free(&store, "a").await);
    clock.jump(ALMOST + MORE);
    assert!(is_free(&store, "a").await);
}

#[tokio::test]
async fn two_observing_epochs_do_not_disturb_each_other() {
    let (bench, clock) = (Bench::new(), Clock::adjustable());
    let old = bench.open_in(&clock, "old").await;
    acquire(&old, &name("a"), &mutex(TEN)).await;
    let (one, two) = (bench.open_in(&clock, "one").await, bench.open_in(&clock, "two").await);
    for _ in 0..3 {
        assert!(!is_free(&one, "a").await && !is_free(&two, "a").await);
        clock.jump(Duration::from_secs(3));
    }
    assert_eq!(sightings(&bench), 2);
    clock.jump(MORE);
    assert!(is_free(&two, "a").await && is_free(&one, "a").await);
    assert_eq!(sightings(&bench), 0);
}

#[tokio::test]
async fn its_own_client_takes_it_along() {
    let (bench, clock) = (Bench::new(), Clock::adjustable());
    let (old, store) = (bench.open_in(&clock, "old").await, bench.open_in(&clock, "new").await);
    let claim = mutex(TEN);
    let token = acquire(&old, &name("a"), &claim).await;
    assert_eq!(acquire(&store, &name("a"), &claim).await, token);
    clock.jump(ALMOST + MORE);
    assert!(is_free(&store, "a").await, "it is on the new clock now, and that has run out");
}

#[tokio::test]
async fn breaking_it_keeps_the_name_for_its_time() {
    let (bench, clock) = (Bench::new(), Clock::adjustable());
    let (other, store) = (bench.open_in(&clock, "there").await, bench.open_in(&clock, "here").await);
    let claim = mutex(TEN);
    acquire(&other, &name("a"), &claim).await;
    let views = store.inspect(Page::of(&name("a"))).await.unwrap();
    let left = views[0].claims[0].lease_left;
    assert_eq!(left, TEN, "all of it, since nobody here knows better");
    assert_eq!(store.leave(&name("a"), claim.id, left).await.unwrap(), Left::Released);
    let held = [Held { lock: name("a"), id: claim.id, lease: TEN }];
    assert_eq!(other.renew(&held).await.unwrap(), [Renewal::Gone]);
    clock.jump(ALMOST);
    assert!(!is_free(&store, "a").await);
    clock.jump(MORE);
    assert!(is_free(&store, "a").await);
}

#[tokio::test]
async fn cells_start_their_time_again() {
    let (bench, clock) = (Bench::new(), Clock::adjustable());
    let (old, store) = (bench.open_in(&clock, "old").await, bench.open_in(&clock, "new").await);
    let gcra = CellOp::new(CellAction::Gcra { take: 5, limit: 5, per: TEN });
    let put = CellOp { action: CellAction::Put { value: vec![1], if_version: None }, keep: Some(TEN) };
    let kept = CellOp { keep: None, ..put.clone() };
    assert!(matches!(old.update(&name("limit"), &gcra).await.unwrap(), CellReply::Admitted { .. }));
    old.update(&name("value"), &put).await.unwrap();
    old.update(&name("for/good"), &kept).await.unwrap();
    clock.jump(ALMOST * 100);
    // Only asking and only reading let the time pass.
    for _ in 0..2 {
        assert!(matches!(store.update(&name("limit"), &gcra).await.unwrap(), CellReply::Limited { .. }));
        assert!(store.read(&name("value")).await.unwrap().is_some());
        clock.jump(Duration::from_secs(4));
    }
    clock.jump(MORE);
    assert!(matches!(store.update(&name("limit"), &gcra).await.unwrap(), CellReply::Admitted { .. }));
    assert!(store.read(&name("value")).await.unwrap().is_none());
    assert!(store.read(&name("for/good")).await.unwrap().is_some());
}
