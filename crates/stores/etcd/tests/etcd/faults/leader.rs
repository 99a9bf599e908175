//! The leader is killed, or stopped for a while and let go on as if nothing had happened.

use std::time::Duration;

use super::Crowd;
use crate::common::*;

/// Longer than an election takes, on a busy machine too.
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_is_killed_holders_keep_it_or_are_told_and_waiters_get_in() {
    let Some(mut cluster) = cluster() else { return };
    let all = ports(&cluster);
    let (ann, ben, looks) = (keeper_at(&all).await, keeper_at(&all).await, open(&all).await);
    let lock = name("kept");
    let hold = ann.mutex("kept").lease(LEASE).lock().await.unwrap();
    let waiting = waits(&ben, &lock, LEASE);
    until_waiting(&looks, &lock, 1).await;
    let keepers = vec![keeper_at(&all).await, keeper_at(&all).await, keeper_at(&all).await];
    let crowd = Crowd::start(keepers, &name("crowd"), Duration::from_secs(2));
    crowd.goes_on(5).await;

    let leader = cluster.leader().unwrap();
    let seen = hold.deadline();
    cluster.member(leader).kill().unwrap();
    let kept = tokio::select! {
        _ = hold.deadline_after(seen) => true,
        _ = hold.lost() => false,
    };
    let before = hold.token();
    if kept && hold.is_held() {
        assert!(!waiting.is_finished(), "two hold at once");
        hold.release().await.expect("it was ours all the time");
    }
    let next = soon("the one that waited is in", waiting).await.unwrap();
    assert!(next.token() > before);
    crowd.goes_on(5).await;
    let seen = next.deadline();
    soon("it is renewed", next.deadline_after(seen)).await;

    cluster.restart().unwrap();
    crowd.goes_on(5).await;
    let leader = cluster.leader().unwrap();
    cluster.member(leader).kill().unwrap();
    crowd.goes_on(5).await;
    crowd.ends().await;
    soon("all goes on", ann.mutex("another").lock()).await.unwrap().release().await.expect("it is ours");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_stopped_leader_still_believes_to_lead_nobody_holds_together() {
    let Some(mut cluster) = cluster() else { return };
    let all = ports(&cluster);
    let leader = cluster.leader().unwrap();
    // One knows all members, one only the leader, one only another member.
    let lease = Duration::from_secs(2);
    let keepers =
        vec![keeper_at(&all).await, keeper_at(&all[leader..=leader]).await, keeper_at(&[all[(leader + 1) % 3]]).await];
    let crowd = Crowd::start(keepers, &name("crowd"), lease);
    crowd.goes_on(5).await;
    let hold = keeper_at(&all[leader..=leader]).await.mutex("held").lease(lease).lock().await.unwrap();
    assert!(hold.is_held());

    cluster.member(leader).pause().unwrap();
    let lost = tokio::spawn(hold.lost());
    crowd.goes_on(3).await;
    let lost = within(lease + SLACK, "its own clock ends it", lost).await.unwrap();
    assert!(lost.to_string().contains("its time ran out"), "{lost}");
    // Five seconds in all, or longer.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let next = soon("it is free", keeper_at(&all).await.mutex("held").lease(lease).lock()).await.unwrap();
    assert!(!hold.is_held() && next.token() > hold.token());
    cluster.member(leader).resume().unwrap();
    crowd.goes_on(10).await;
    assert!(!hold.is_held());
    let seen = next.deadline();
    soon("it is renewed", next.deadline_after(seen)).await;
    next.release().await.expect("it is ours");
    crowd.ends().await;
}
