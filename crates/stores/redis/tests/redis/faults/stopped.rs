//! The server is stopped (SIGSTOP): its connections stay, and nobody answers. Nothing is free then.

use std::time::Duration;

use lockkeeper_core::store::{Held, Keep, Page, Store};
use lockkeeper_core::{Error, ErrorKind};
use lockkeeper_redis::{Options, Redis};

use super::cannot_know;
use crate::common::*;

const LEASE: Duration = Duration::from_millis(1_500);

/// No answer is an error of its own, whatever was asked.
fn unavailable<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.expect_err("nobody is there to answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_lets_holds_end_and_nobody_in() {
    let Some(mut server) = own("redis") else { return };
    let (ann, ben) = (quick_keeper(server.port()).await, quick_keeper(server.port()).await);
    let other = Redis::open(Options { timeout: Duration::from_millis(200), ..options(server.port()) }).await.unwrap();
    let hold = ann.mutex("x").lease(LEASE).lock().await.unwrap();
    let waits = ben.mutex("x").lease(LEASE).wait(Duration::from_secs(20));
    let waits = tokio::spawn(async move { waits.lock().await });
    until_waiting(&other, &name("x"), 1).await;

    server.pause().unwrap();
    let lost = tokio::spawn(hold.lost());
    let (lock, claim) = (name("x"), mutex(LEASE));
    let held = [Held { lock: lock.clone(), id: claim.id, lease: LEASE }];
    unavailable(other.enter(&lock, &claim).await);
    unavailable(other.enter(&name("never-taken"), &at_once(LEASE)).await);
    unavailable(other.renew(&held).await);
    unavailable(other.leave(&lock, claim.id, Keep::Nothing).await);
    unavailable(other.inspect(Page::of(&lock)).await);
    let why = within(LEASE, "its own clock ends it", lost).await.unwrap();
    assert!(why.to_string().contains("its time ran out"), "{why}");
    // Longer than the lease, and nobody was let in.
    tokio::time::sleep(LEASE).await;
    cannot_know(&ben, "never-taken").await;
    assert!(!waits.is_finished());
    let before = hold.token();
    assert_eq!(hold.release().await.expect_err("it is over").kind(), ErrorKind::Lost);

    server.resume().unwrap();
    let next = soon("the one that waits is in", waits).await.unwrap().unwrap();
    assert!(next.token() > before);
    let free = soon("the other lock is free", ben.mutex("never-taken").lease(LEASE).lock()).await.unwrap();
    next.release().await.expect("it is ours");
    free.release().await.expect("it is ours");
    let last = soon("it goes on", ann.mutex("x").lease(LEASE).lock()).await.unwrap();
    assert!(last.token() > before);
    last.release().await.expect("it is ours");
}
