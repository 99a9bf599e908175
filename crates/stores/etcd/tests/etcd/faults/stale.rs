//! A leader that was stopped goes on and, for a moment, keeps leases alive that are no longer its to keep.

use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::Proxy;
use lockkeeper_core::store::{Held, Renewal, Store};

use crate::common::*;

const LEASE: Duration = Duration::from_secs(4);

/// The new leader counts the lease from when it came to lead. Shortly before it ends the old one is let go on, with a
/// question in its ear that it answers by itself, or passes on if it hears of the new one first: whatever the client makes
/// of that must be true.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_leader_of_yesterday_keeps_alive_is_not_believed() {
    let Some(mut cluster) = cluster() else { return };
    let all = ports(&cluster);
    let leader = cluster.leader().unwrap();
    let proxy = Proxy::to(all[leader]).unwrap();
    let (store, lock, claim) = (open(&[proxy.port()]).await, name("x"), mutex(LEASE));
    let first = take(&store, &lock, &claim).await;
    // The connection for renewals is there, and so are its answers.
    assert!(matches!(renew(&store, &lock, &claim).await, Renewal::Renewed { .. }));
    cluster.member(leader).pause().unwrap();
    let next = cluster.leader().unwrap();
    let elected = Instant::now();
    assert_ne!(next, leader);
    let waiting = waits(&keeper_at(&[all[next]]).await, &lock, LEASE);
    // The new one gives the lease an election's time on top, and looks only so often whether it has ended.
    tokio::time::sleep(LEASE.saturating_sub(elected.elapsed())).await;

    let (before, asked) = (proxy.counts().to_server_bytes, Instant::now());
    let held = [Held { lock: lock.clone(), id: claim.id, lease: LEASE }];
    let renewing = tokio::spawn(async move { store.renew(&held).await });
    let sent = move || {
        assert!(proxy.wait_for(SLACK, |counts| counts.to_server_bytes > before), "it is asked");
        proxy
    };
    let _proxy = tokio::task::spawn_blocking(sent).await.unwrap();
    cluster.member(leader).resume().unwrap();
    let told = soon("an answer", renewing).await.unwrap();
    let hold = soon("the next is in", waiting).await.unwrap();
    let entered = asked.elapsed();
    assert!(hold.token() > Some(first));
    if let Ok(Renewal::Renewed { lease }) = told.as_ref().map(|told| told[0]) {
        assert!(entered >= lease, "told that it stands for {lease:?}, and another was in after {entered:?}");
    }
    hold.release().await.expect("it is ours");
}
