//! Most members are gone: nothing is granted, holds end by their own time, and all goes on when the members return.

use std::time::Duration;

use lockkeeper_core::ErrorKind;
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

const LEASE: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_holds_end_by_their_own_time_and_nothing_is_granted() {
    let Some(mut cluster) = cluster() else { return };
    let all = ports(&cluster);
    let leader = cluster.leader().unwrap();
    let quick = || Options { timeout: Duration::from_millis(1_500), ..options(&all) };
    let ann = keeper(Etcd::open(quick()).await.unwrap());
    let ben = keeper(Etcd::open(quick()).await.unwrap());
    let looks = open(&all).await;
    let (lock, free) = (name("x"), name("never-taken"));
    let hold = ann.mutex("x").lease(LEASE).lock().await.unwrap();
    let waiting = waits(&ben, &lock, LEASE);
    until_waiting(&looks, &lock, 1).await;
    let before = hold.token();

    // The one that is left may have led: it goes on believing so for a moment.
    cluster.member((leader + 1) % 3).kill().unwrap();
    cluster.member((leader + 2) % 3).kill().unwrap();
    let lost = within(LEASE + SLACK, "its own clock ends it", hold.lost()).await;
    assert!(lost.to_string().contains("its time ran out"), "{lost}");
    cannot_know(&ben, &free).await;
    assert!(!waiting.is_finished());
    assert_eq!(hold.release().await.expect_err("it is over").kind(), ErrorKind::Lost);

    cluster.restart().unwrap();
    let next = soon("the one that waits is in", waiting).await.unwrap();
    assert!(next.token() > before);
    let seen = next.deadline();
    soon("it is renewed", next.deadline_after(seen)).await;
    let other = soon("the other lock is free", ben.mutex(free.as_str()).lock()).await.unwrap();
    other.release().await.expect("it is ours");
    next.release().await.expect("it is ours");
}
