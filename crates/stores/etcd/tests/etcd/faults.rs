//! What is done to the members of a cluster: killed, stopped and started again, one or most of them.
//!
//! Surprise: "lost" is not a failure here. The test is that the old holder is told before another is in, that tokens rise,
//! and that all goes on for as long as a majority is there.

mod follower;
mod leader;
mod majority;
mod stale;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper_core::{Hold, Keeper, Name, Token};
use tokio::task::JoinHandle;

use crate::common::*;

/// Several keepers that take one lock again and again, and who of them believes to hold it.
struct Crowd {
    scene: Arc<Believed>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Believed {
    over: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last one that was told so, for as long as it has not let go.
    by: Option<Arc<Hold>>,
    /// All that were told, in the order of being told.
    tokens: Vec<Token>,
    wrong: Vec<String>,
}

impl Believed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One was told that it holds. Does another believe so, too?
    fn takes(&self, hold: Arc<Hold>) {
        let mut state = self.state();
        let other = state.by.as_ref().filter(|other| other.is_held()).map(|other| other.token());
        // Asked after the other: whoever holds now did so then.
        if !hold.is_held() {
            return;
        }
        let token = hold.token().expect("a token");
        if let Some(other) = other {
            state.wrong.push(format!("{token} holds together with {other:?}"));
        }
        if let Some(last) = state.tokens.last().filter(|last| **last >= token) {
            let wrong = format!("{token} after {last}");
            state.wrong.push(wrong);
        }
        state.tokens.push(token);
        state.by = Some(hold);
    }

    fn lets_go(&self, hold: &Arc<Hold>) {
        let mut state = self.state();
        if state.by.as_ref().is_some_and(|by| Arc::ptr_eq(by, hold)) {
            state.by = None;
        }
    }
}

impl Crowd {
    /// Each of these keepers takes the lock, holds it for a moment, and lets go.
    fn start(keepers: Vec<Keeper>, lock: &Name, lease: Duration) -> Self {
        let scene = Arc::new(Believed::default());
        let workers = keepers.into_iter().map(|keeper| tokio::spawn(work(scene.clone(), keeper, lock.clone(), lease)));
        Self { workers: workers.collect(), scene }
    }

    /// Waits until they have been let in so many times more.
    async fn goes_on(&self, times: usize) {
        let before = self.scene.state().tokens.len();
        until("they take turns", || async { self.scene.state().tokens.len() >= before + times }).await;
    }

    /// Nobody ever held together with another, and tokens rose.
    async fn ends(self) {
        self.scene.over.store(true, Ordering::SeqCst);
        for worker in self.workers {
            soon("it ends", worker).await.expect("no panic");
        }
        let state = self.scene.state();
        assert!(state.wrong.is_empty(), "of {} holds: {:?}", state.tokens.len(), state.wrong);
    }
}

async fn work(scene: Arc<Believed>, keeper: Keeper, lock: Name, lease: Duration) {
    let lock = keeper.mutex(lock.as_str()).lease(lease).wait(Duration::from_secs(2));
    while !scene.over.load(Ordering::SeqCst) {
        // Out of time, or nobody could say: both are to be expected here.
        let Ok(hold) = lock.lock().await else { continue };
        let hold = Arc::new(hold);
        scene.takes(hold.clone());
        // Some hold on for longer than a leader is away.
        let time = if fastrand::u8(..10) == 0 { lease } else { lease / 100 };
        let _ = tokio::time::timeout(time, hold.lost()).await;
        scene.lets_go(&hold);
        if let Some(hold) = Arc::into_inner(hold) {
            // Not confirmed is not wrong: the member may just have gone.
            let _ = hold.release().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_who_believes_can_fail() {
    let memory = || Keeper::with_store(lockkeeper_core::stores::Memory::shared());
    let scene = Believed::default();
    // Two stores know nothing of each other.
    let (one, two) = (memory().mutex("x").lock().await.unwrap(), memory().mutex("x").lock().await.unwrap());
    let (one, two) = (Arc::new(one), Arc::new(two));
    scene.takes(one.clone());
    assert!(scene.state().wrong.is_empty());
    scene.takes(two);
    assert_eq!(scene.state().wrong.len(), 2, "together, and with the same token: {:?}", scene.state().wrong);
    scene.state().wrong.clear();
    scene.state().by = None;
    scene.takes(one);
    assert_eq!(scene.state().wrong.len(), 1, "with an old token: {:?}", scene.state().wrong);
}
