//! The usual release in a line: the one that the marker names is in at once, and the line says so from the next call on.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::store::{ClaimState, Keep, Left, Renewal, Standing, Store, Waiter};
use lockkeeper_core::{Claim, Name, Token};
use lockkeeper_redis::Redis;
use redis::aio::MultiplexedConnection;

use crate::common::*;

const LEASE: Duration = Duration::from_secs(60);
const LOCK: &str = "x";
const LINE: &str = "{x}:line";

struct Scene {
    server: Server,
    ann: Arc<Redis>,
    ben: Arc<Redis>,
    raw: MultiplexedConnection,
    lock: Name,
    /// Ann's claim holds, Ben's waits.
    holds: Claim,
    waits: Claim,
    token: Token,
}

impl Scene {
    async fn new(server: &str) -> Option<Scene> {
        let server = own(server)?;
        let (ann, ben) = (open(server.port()).await, open(server.port()).await);
        let (lock, holds, waits) = (name(LOCK), mutex(LEASE), mutex(LEASE));
        let token = take(&ann, &lock, &holds).await;
        assert!(matches!(ben.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }));
        let raw = raw(server.port()).await;
        Some(Scene { server, ann, ben, raw, lock, holds, waits, token })
    }

    async fn ann_leaves(&self) -> Left {
        self.ann.leave(&self.lock, self.holds.id, Keep::Nothing).await.unwrap()
    }

    async fn marker(&mut self) -> Option<String> {
        say(&mut self.raw, "GET", &[LOCK]).await
    }

    /// Ben has it, and only the marker says so.
    async fn is_passed_on(&mut self) -> Token {
        assert_eq!(self.ann_leaves().await, Left::Released);
        let marker = self.marker().await.expect("a marker");
        let number = marker.strip_prefix(&format!("lk1={}:", self.waits.id)).expect(&marker);
        let token = Token::of_number(number.parse().unwrap()).unwrap();
        assert!(token > self.token);
        token
    }

    /// What Ben was told by now: his answers come by the same connection, after the news.
    async fn ben_heard(&self) -> Option<Standing> {
        line(&self.ben, &self.lock).await;
        let seen = Standing::Waiting { ahead: 1, behind: None, moves_in: None };
        let waiter = Waiter::Claim { id: self.waits.id, seen: &seen };
        self.ben.wait(&self.lock, waiter, Duration::ZERO).await.unwrap()
    }
}

#[tokio::test]
async fn who_was_passed_the_lock_holds_it_before_the_line_says_so() {
    let Some(mut scene) = Scene::new("redis").await else { return };
    let (third, cat) = (open(scene.server.port()).await, mutex(LEASE));
    assert!(matches!(third.enter(&scene.lock, &cat).await.unwrap(), Standing::Waiting { ahead: 2, .. }));
    let passed = scene.is_passed_on().await;

    let shown = line(&third, &scene.lock).await.expect("it is shown").claims;
    let brief: Vec<_> = shown.iter().map(|claim| (claim.id, claim.state, claim.token)).collect();
    assert_eq!(
        brief,
        [(scene.waits.id, ClaimState::Holding, Some(passed)), (cat.id, ClaimState::Waiting, None)],
        "nobody else is shown"
    );
    match scene.ben_heard().await {
        Some(Standing::Held { token, lease }) => {
            assert_eq!(token, Some(passed));
            assert!(!lease.is_zero() && lease <= scene.waits.waiting_lease(), "{lease:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.ann_leaves().await, Left::NotHeld, "it is out");
    assert_eq!(renew(&scene.ann, &scene.lock, &scene.holds).await, Renewal::Gone);
    assert!(matches!(third.enter(&scene.lock, &at_once(LEASE)).await.unwrap(), Standing::Refused { .. }));
    assert_eq!(renew(&scene.ben, &scene.lock, &scene.waits).await, Renewal::Renewed { lease: LEASE });

    // Written down, the line names the next one.
    let marker = scene.marker().await.expect("a marker");
    assert!(
        marker.starts_with(&format!("lk1={}:", scene.waits.id)) && marker.contains(&cat.id.to_string()),
        "{marker}"
    );
    assert_eq!(scene.ben.leave(&scene.lock, scene.waits.id, Keep::Nothing).await.unwrap(), Left::Released);
    assert!(take(&third, &scene.lock, &cat).await > passed);
    assert_eq!(standing(&third, &scene.lock).await, (1, 0));
}

/// Only the marker knew that Ben has it: without it, he does not, whether somebody else came or not.
#[tokio::test]
async fn a_marker_deleted_before_the_line_says_so_ends_the_hold() {
    for somebody_comes in [false, true] {
        let Some(mut scene) = Scene::new("redis").await else { return };
        let passed = scene.is_passed_on().await;
        assert_eq!(say::<i64>(&mut scene.raw, "DEL", &[LOCK]).await, 1);
        if somebody_comes {
            // By the line, where Ben's claim would stand before it.
            let (third, cat) = (open(scene.server.port()).await, Claim { fair: true, ..mutex(LEASE) });
            assert!(take(&third, &scene.lock, &cat).await > passed);
        }
        scene.ben_heard().await.expect("he was told");
        assert_eq!(renew(&scene.ben, &scene.lock, &scene.waits).await, Renewal::Gone, "{somebody_comes}");
        let left = scene.ben.leave(&scene.lock, scene.waits.id, Keep::Nothing).await.unwrap();
        assert_eq!((left, standing(&scene.ben, &scene.lock).await), (Left::NotHeld, (usize::from(somebody_comes), 0)));
    }
}

#[tokio::test]
async fn one_whose_time_is_over_does_not_inherit() {
    let Some(mut scene) = Scene::new("redis-stepped").await else { return };
    let late = mutex(LEASE);
    scene.server.step_clock("+40s").unwrap();
    assert_eq!(scene.ann_leaves().await, Left::Released);
    assert_eq!((scene.marker().await, scene.ben_heard().await), (None, None), "nobody is in");
    assert!(take(&scene.ann, &scene.lock, &late).await > scene.token);
}

/// Whoever is named in the marker comes in without a word to those who observe, so an observer takes the name out.
#[tokio::test]
async fn an_observer_that_comes_later_is_told_of_the_next_one() {
    let Some(mut scene) = Scene::new("redis").await else { return };
    assert!(scene.marker().await.expect("a marker").contains(&scene.waits.id.to_string()));
    let third = open(scene.server.port()).await;
    let seen = line(&third, &scene.lock).await.expect("it is shown").fingerprint();
    let (store, lock) = (third.clone(), scene.lock.clone());
    let observes =
        tokio::spawn(async move { store.wait(&lock, Waiter::Observer { seen }, Duration::from_secs(60)).await });
    until("somebody observes", || {
        let mut raw = scene.raw.clone();
        async move { say(&mut raw, "HEXISTS", &[LINE, "eyes"]).await }
    })
    .await;
    assert_eq!(scene.marker().await.as_deref(), Some("lk1="));
    assert_eq!(scene.ann_leaves().await, Left::Released);
    assert!(matches!(scene.ben_heard().await, Some(Standing::Held { .. })));
    assert_eq!(soon("the observer is told", observes).await.unwrap().unwrap(), None);
    assert_eq!(standing(&third, &scene.lock).await, (1, 0));
}

/// Those who observed once and do not any more are forgotten, and the marker names who comes in next again.
#[tokio::test]
async fn a_line_that_nobody_observes_any_more_is_passed_on_again() {
    let Some(mut scene) = Scene::new("redis").await else { return };
    // A map as the scripts pack it: told by the channel `c` until a moment long ago.
    let mut observed = redis::cmd("HSET");
    observed.arg(LINE).arg("eyes").arg(b"\x81\xa1c\x01");
    assert_eq!(observed.query_async::<i64>(&mut scene.raw).await.unwrap(), 1);
    assert_eq!(say::<String>(&mut scene.raw, "SET", &[LOCK, "lk1=", "KEEPTTL"]).await, "OK");
    assert!(matches!(scene.ann.enter(&scene.lock, &mutex(LEASE)).await.unwrap(), Standing::Waiting { .. }));
    assert!(!say::<bool>(&mut scene.raw, "HEXISTS", &[LINE, "eyes"]).await);
    scene.is_passed_on().await;
}
