//! A member that we talk to, and that does not lead, is stopped or killed: the next one is asked.

use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::Proxy;
use lockkeeper_core::store::{Store, Survives};

use crate::common::*;

/// After so long of silence the next member is asked as well.
const SILENCE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_when_the_member_we_talk_to_is_stopped_or_killed() {
    let Some(mut cluster) = cluster() else { return };
    let (leader, all) = (cluster.leader().unwrap(), ports(&cluster));
    let (follower, proxy) = ((leader + 1) % 3, Proxy::to(all[leader]).unwrap());
    let (store, looks) = (open_by(all[follower], &proxy, options).await, open(&all[leader..=leader]).await);
    assert_eq!(store.profile().survives, Survives::Quorum);
    let (ann, ben) = (keeper(looks.clone()), keeper(store.clone()));
    let (lock, other) = (name("x"), name("other"));
    is_pushed(&ann, &ben, &looks, &lock).await;
    let kept = ben.mutex("kept").lease(Duration::from_secs(6)).lock().await.unwrap();

    let holds = ann.mutex("x").lock().await.unwrap();
    let waiting = waits(&ben, &lock, SHARED);
    until_waiting(&looks, &lock, 1).await;
    cluster.member(follower).pause().unwrap();
    let (seen, asked, claim) = (kept.deadline(), Instant::now(), mutex(SHARED));
    take(&store, &other, &claim).await;
    assert!(asked.elapsed() < SILENCE + SLACK, "{:?}", asked.elapsed());
    leaves(&store, &other, &claim).await;
    holds.release().await.expect("it is ours");
    let next = within(INTERVAL + SILENCE + SLACK, "it gets in", waiting).await.unwrap();
    next.release().await.expect("it is ours");
    is_pushed(&ann, &ben, &looks, &lock).await;
    soon("it is renewed", kept.deadline_after(seen)).await;

    // What it was asked while it was stopped is heard now, and the claim has left.
    cluster.member(follower).resume().unwrap();
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(keys_of(all[leader], &other).await, [], "a claim that has left stands in the line");
    }

    // Killed, it says so at once.
    let store = open_by(all[follower], &proxy, options).await;
    let ben = keeper(store.clone());
    let hold = ben.mutex("held").lease(Duration::from_secs(6)).lock().await.unwrap();
    cluster.member(follower).kill().unwrap();
    let (asked, seen) = (Instant::now(), hold.deadline());
    take(&store, &other, &mutex(SHARED)).await;
    assert!(asked.elapsed() < SLACK, "{:?}", asked.elapsed());
    soon("it is renewed", hold.deadline_after(seen)).await;
    is_pushed(&ann, &ben, &looks, &lock).await;
    hold.release().await.expect("it is ours");
    kept.release().await.expect("it is ours");
}
