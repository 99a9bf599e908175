//! The server's wall clock is stepped. Ahead, leases end at once and holders are told; back, nobody comes in early and
//! the next token is still the greater one.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::store::{Keep, Left, Renewal, Standing, Store};
use lockkeeper_core::{Claim, ErrorKind, LockKind, Name, Patience, Token};
use lockkeeper_redis::Redis;

use super::Fence;
use crate::common::*;

const LEASE: Duration = Duration::from_secs(30);
const DAY_S: i64 = 86_400;

struct Scene {
    server: Server,
    ann: Arc<Redis>,
    ben: Arc<Redis>,
}

impl Scene {
    async fn new() -> Option<Scene> {
        let server = own("redis-stepped")?;
        let (ann, ben) = (open(server.port()).await, open(server.port()).await);
        Some(Scene { server, ann, ben })
    }

    /// Each step counts from the real time.
    fn step(&self, offset: &str) {
        self.server.step_clock(offset).unwrap();
    }

    async fn is_kept_out(&self, lock: &Name, claim: &Claim) {
        let rival = Claim { id: mutex(LEASE).id, weight: claim.capacity, patience: Patience::Now, ..claim.clone() };
        assert!(matches!(self.ben.enter(lock, &rival).await.unwrap(), Standing::Refused { .. }), "`{lock}` is held");
    }

    async fn leaves(&self, lock: &Name, claim: &Claim) {
        assert_eq!(self.ann.leave(lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
    }

    /// Ben, then Ann, then Ben again take the free lock: each has a greater token than all before.
    async fn tokens_rise_from(&self, lock: &Name, like: &Claim, told: Token) -> Token {
        let mut last = told;
        for store in [&self.ben, &self.ann, &self.ben] {
            let claim = Claim { id: mutex(LEASE).id, weight: like.capacity, ..like.clone() };
            let token = take(store, lock, &claim).await;
            assert!(token > last, "`{lock}`: {token} after {last}");
            last = token;
            assert_eq!(store.leave(lock, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
        }
        last
    }

    /// The floor is there, and for about a day: an hour more if it was written before the clock went back.
    async fn floor_is_kept(&self, lock: &Name) {
        let left: i64 = say(&mut raw(self.server.port()).await, "TTL", &[&format!("{{{lock}}}:last")]).await;
        assert!((DAY_S - 60..=DAY_S + 3_600).contains(&left), "`{lock}`: {left} s");
    }
}

fn fair() -> Claim {
    Claim { fair: true, ..mutex(LEASE) }
}

fn reader() -> Claim {
    of_kind(LockKind::ReadWrite, 1, 1_000, LEASE)
}

fn permits() -> Claim {
    of_kind(LockKind::Semaphore, 2, 4, LEASE)
}

#[tokio::test]
async fn ahead_by_more_than_the_lease_the_lock_passes_on_and_its_holder_finds_out() {
    let Some(scene) = Scene::new().await else { return };
    let cases = [("fast", at_once(LEASE)), ("line", fair()), ("reader", reader()), ("permits", permits())];
    let mut told = Vec::new();
    for (what, claim) in &cases {
        told.push(take(&scene.ann, &name(what), claim).await);
        scene.is_kept_out(&name(what), claim).await;
    }
    let waits = fair();
    assert!(matches!(scene.ann.enter(&name("line"), &waits).await.unwrap(), Standing::Waiting { .. }));
    scene.step("+40s");
    for ((what, claim), told) in cases.iter().zip(told) {
        let (lock, next) = (name(what), Claim { id: mutex(LEASE).id, weight: claim.capacity, ..claim.clone() });
        assert!(take(&scene.ben, &lock, &next).await > told, "{what}");
        assert_eq!(renew(&scene.ann, &lock, claim).await, Renewal::Gone, "{what}");
        assert_eq!(scene.ann.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::NotHeld, "{what}");
        scene.is_kept_out(&lock, &next).await;
    }
    assert!(matches!(scene.ann.enter(&name("line"), &waits).await.unwrap(), Standing::Waiting { ahead: 1, .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn ahead_the_holder_is_told_and_a_fence_keeps_the_two_apart() {
    let Some(scene) = Scene::new().await else { return };
    let (ann, ben, fence) = (keeper(scene.ann.clone()), keeper(scene.ben.clone()), Fence::default());
    let lease = Duration::from_secs(3);
    let old = ann.mutex("x").lease(lease).lock().await.unwrap();
    assert!(fence.enter(old.token()));
    scene.step("+40s");
    let new = ben.mutex("x").lease(LEASE).try_lock().await.unwrap().expect("its lease is over for the server");
    assert!(fence.enter(new.token()) && !fence.enter(old.token()));
    let lost = within(lease, "its holder is told", old.lost()).await;
    assert!(lost.to_string().contains("no longer has it"), "{lost}");
    assert_eq!(old.release().await.expect_err("it is gone").kind(), ErrorKind::Lost);
    new.release().await.expect("it is ours");
}

#[tokio::test]
async fn back_by_an_hour_nobody_is_early_and_the_next_token_is_greater() {
    let Some(scene) = Scene::new().await else { return };
    let cases = [("fast", at_once(LEASE)), ("line", fair()), ("reader", reader()), ("permits", permits())];
    let mut told = Vec::new();
    for (what, claim) in &cases {
        told.push(take(&scene.ann, &name(what), claim).await);
    }
    scene.step("-1h");
    let mut last = Vec::new();
    for ((what, claim), told) in cases.iter().zip(&told) {
        let lock = name(what);
        scene.is_kept_out(&lock, claim).await;
        // It has what it asked for, and not an hour more.
        let renewed = renew(&scene.ann, &lock, claim).await;
        assert!(matches!(renewed, Renewal::Renewed { lease } if lease <= LEASE), "{what}: {renewed:?}");
        scene.is_kept_out(&lock, claim).await;
        scene.leaves(&lock, claim).await;
        last.push(scene.tokens_rise_from(&lock, claim, *told).await);
        scene.floor_is_kept(&lock).await;
    }
    // And once more, when it is set right again.
    scene.step("+0s");
    for ((what, claim), told) in cases.iter().zip(last) {
        scene.tokens_rise_from(&name(what), claim, told).await;
    }
}

/// Nobody was in when it went back, and nothing of the lock was left: the clock's mark outnumbers what was told before.
#[tokio::test]
async fn back_by_an_hour_while_the_lock_is_free_the_next_token_is_greater() {
    let Some(scene) = Scene::new().await else { return };
    let cases = [("fast", at_once(LEASE)), ("line", fair()), ("reader", reader()), ("permits", permits())];
    let mut told = Vec::new();
    for (what, claim) in &cases {
        told.push(take(&scene.ann, &name(what), claim).await);
        scene.leaves(&name(what), claim).await;
    }
    scene.step("-1h");
    let newcomer = open(scene.server.port()).await;
    for ((what, claim), told) in cases.iter().zip(told) {
        let (lock, next) = (name(what), Claim { id: mutex(LEASE).id, ..claim.clone() });
        let token = take(&newcomer, &lock, &next).await;
        assert!(token > told, "{what}: {token} after {told}");
        assert_eq!(newcomer.leave(&lock, next.id, Keep::Nothing).await.unwrap(), Left::Released);
        scene.tokens_rise_from(&lock, claim, token).await;
        scene.floor_is_kept(&lock).await;
    }
}

#[tokio::test]
async fn back_by_an_hour_a_broken_hold_whose_number_only_its_holder_knows_is_outnumbered() {
    let Some(scene) = Scene::new().await else { return };
    let breaks = async |lock: &Name, claim: &Claim| {
        // As `break --now` does: by the id that is shown.
        let shown = line(&scene.ben, lock).await.expect("it is shown").claims[0].id;
        assert_eq!(shown, claim.id);
        assert_eq!(scene.ben.leave(lock, shown, Keep::Nothing).await.unwrap(), Left::Released);
    };
    let (before, after) = (name("broken/before"), name("broken/after"));
    let (first, second) = (at_once(LEASE), at_once(LEASE));
    let told = (take(&scene.ann, &before, &first).await, take(&scene.ann, &after, &second).await);
    breaks(&before, &first).await;
    scene.step("-1h");
    breaks(&after, &second).await;
    for (lock, claim, told) in [(&before, &first, told.0), (&after, &second, told.1)] {
        scene.floor_is_kept(lock).await;
        scene.tokens_rise_from(lock, claim, told).await;
        assert_eq!(renew(&scene.ann, lock, claim).await, Renewal::Gone);
    }
}

#[tokio::test]
async fn back_by_an_hour_several_readers_leave_one_floor() {
    let Some(scene) = Scene::new().await else { return };
    let (lock, readers) = (name("readers"), [(); 5].map(|()| reader()));
    let mut told = Vec::new();
    for reader in &readers[..3] {
        told.push(take(&scene.ann, &lock, reader).await);
    }
    scene.step("-1h");
    // Two more come in beside them, with greater tokens.
    for reader in &readers[3..] {
        let token = take(&scene.ann, &lock, reader).await;
        assert!(told.iter().all(|told| *told < token), "{token} after {told:?}");
        told.push(token);
    }
    scene.is_kept_out(&lock, &readers[0]).await;
    for reader in &readers {
        scene.leaves(&lock, reader).await;
    }
    scene.floor_is_kept(&lock).await;
    let greatest = told.into_iter().max().unwrap();
    scene.tokens_rise_from(&lock, &readers[0], greatest).await;
}

/// A line that lives on while the clock goes back again and again.
#[tokio::test]
async fn hand_overs_rise_however_often_the_clock_goes_back() {
    let Some(scene) = Scene::new().await else { return };
    let (lock, mut holder) = (name("x"), at_once(LEASE));
    let mut last = take(&scene.ann, &lock, &holder).await;
    for step in ["-10m", "-20m", "-40m", "-1h", "-2h"] {
        let waits = mutex(LEASE);
        assert!(matches!(scene.ben.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }));
        scene.step(step);
        assert!(matches!(scene.ben.enter(&lock, &waits).await.unwrap(), Standing::Waiting { .. }));
        let was = scene.ann.leave(&lock, holder.id, Keep::Nothing).await.unwrap();
        assert_eq!(was, Left::Released, "{step}");
        let token = take(&scene.ben, &lock, &waits).await;
        assert!(token > last, "{step}: {token} after {last}");
        (last, holder) = (token, waits);
    }
    scene.ben.leave(&lock, holder.id, Keep::Nothing).await.unwrap();
    scene.floor_is_kept(&lock).await;
    scene.tokens_rise_from(&lock, &holder, last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn back_by_an_hour_a_hold_is_renewed_on() {
    let Some(scene) = Scene::new().await else { return };
    let (ann, ben, lease) = (keeper(scene.ann.clone()), keeper(scene.ben.clone()), Duration::from_secs(3));
    let fast = ann.mutex("fast").lease(lease).lock().await.unwrap();
    let fair = ann.mutex("fair").fair().lease(lease).lock().await.unwrap();
    let waits = ben.mutex("fair").fair().lease(lease);
    let waits = tokio::spawn(async move { waits.lock().await.unwrap() });
    until_waiting(&scene.ann, &name("fair"), 1).await;
    scene.step("-1h");
    for _ in 0..3 {
        let (seen_fast, seen_fair) = (fast.deadline(), fair.deadline());
        soon("it is renewed", fast.deadline_after(seen_fast)).await;
        soon("it is renewed", fair.deadline_after(seen_fair)).await;
        assert!(ben.mutex("fast").try_lock().await.unwrap().is_none() && !waits.is_finished());
    }
    let told = (fast.token(), fair.token());
    fast.release().await.expect("it is ours");
    fair.release().await.expect("it is ours");
    let next = (soon("it is free", ben.mutex("fast").lock()).await.unwrap(), soon("it is free", waits).await.unwrap());
    assert!(next.0.token() > told.0 && next.1.token() > told.1);
    next.0.release().await.expect("it is ours");
    next.1.release().await.expect("it is ours");
}

/// A line that is over, and has not been tidied up yet, does not hide the floor from the next one.
#[tokio::test]
async fn the_first_number_of_a_line_is_above_the_floor_whatever_was_there_before() {
    let Some(server) = own("redis") else { return };
    let (store, mut raw) = (open(server.port()).await, raw(server.port()).await);
    let (lock, fair) = (name("x"), || Claim { fair: true, ..mutex(LEASE) });
    let before = take(&store, &lock, &fair()).await;
    // In an hour, as after a clock that was set back by as much.
    let floor = (before.as_u64() >> Token::LOCAL_BITS) + 3_600_000_000;
    let _: i64 = say(&mut raw, "DEL", &["x"]).await;
    let _: String = say(&mut raw, "SET", &["{x}:last", &floor.to_string()]).await;
    let after = take(&store, &lock, &fair()).await;
    assert!(after > Token::of_number(floor).unwrap(), "{after} is not above {floor}");
}
