//! Somebody empties the server (`FLUSHALL`): holders are told at their next renewal, and nobody waits for ever.

use std::time::{Duration, Instant};

use lockkeeper_core::{ErrorKind, Owner};

use super::Fence;
use crate::common::*;

const LEASE: Duration = Duration::from_secs(3);
/// How often a waiting claim asks again, and a hold is renewed.
const INTERVAL: Duration = Duration::from_secs(1);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_under_a_hold_is_told_and_a_fence_keeps_the_two_apart() {
    let Some(server) = own("redis") else { return };
    let (ann, ben) = (keeper(open(server.port()).await), keeper(open(server.port()).await));
    let fence = Fence::default();
    let first = ann.mutex("x").lease(LEASE).lock().await.unwrap();
    assert!(fence.enter(first.token()));
    () = say(&mut raw(server.port()).await, "FLUSHALL", &[]).await;

    let second = ben.mutex("x").lease(LEASE).try_lock().await.unwrap().expect("there is nothing on the server");
    assert!(fence.enter(second.token()) && !fence.enter(first.token()));
    let lost = within(INTERVAL + SLACK, "its holder is told", first.lost()).await;
    assert!(lost.to_string().contains("no longer has it"), "{lost}");
    assert_eq!(first.release().await.expect_err("it is gone").kind(), ErrorKind::Lost);
    second.release().await.expect("the other's release left it alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_under_a_line_costs_those_who_wait_one_interval() {
    let Some(server) = own("redis") else { return };
    let (ann, ben) = (keeper(open(server.port()).await), keeper(open(server.port()).await));
    let first = ann.mutex("x").lease(LEASE).lock().await.unwrap();
    let fence = std::sync::Arc::new(Fence::default());
    assert!(fence.enter(first.token()));
    let mut waiting = Vec::new();
    for at in 0..6 {
        // An owner of its own stands in the server's line by itself.
        let owner = Owner::new(&format!("waits {at}")).unwrap();
        let lock = [&ann, &ben][at % 2].mutex("x").lease(LEASE).wait(Duration::from_secs(20)).owner(&owner);
        let fence = fence.clone();
        waiting.push(tokio::spawn(async move {
            let hold = lock.lock().await.unwrap();
            let got = Instant::now();
            assert!(fence.enter(hold.token()), "tokens rise");
            hold.release().await.expect("it is ours");
            got
        }));
    }
    until_waiting(&*open(server.port()).await, &name("x"), 6).await;
    () = say(&mut raw(server.port()).await, "FLUSHALL", &[]).await;
    let flushed = Instant::now();

    let lost = within(INTERVAL + SLACK, "its holder is told", first.lost()).await;
    assert!(lost.to_string().contains("no longer has it"), "{lost}");
    let mut came = Vec::new();
    for task in waiting {
        came.push(soon("it gets in", task).await.unwrap());
    }
    let soonest = came.iter().min().unwrap().duration_since(flushed);
    let last = came.iter().max().unwrap().duration_since(flushed);
    assert!(soonest < INTERVAL + SLACK, "the first came in after {soonest:?}");
    assert!(last < INTERVAL * 2 + SLACK, "the last came in after {last:?}");
}
