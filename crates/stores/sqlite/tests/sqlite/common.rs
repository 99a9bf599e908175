//! What all tests use: a file, claims, and the loop that every client runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::store::{Standing, Store, Waiter};
use lockkeeper_core::time::Clock;
use lockkeeper_core::{Claim, ClaimId, LockKind, Name, Owner, Patience, Token};
use lockkeeper_sqlite::{Options, Sqlite, Sync};
use tempfile::TempDir;

/// Longer than any step of a test takes, so that reaching it is a failure.
pub const LONG: Duration = Duration::from_secs(30);

pub struct Bench {
    pub directory: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }

    pub async fn open(&self) -> Arc<Sqlite> {
        open_at(&self.path()).await
    }

    pub async fn open_with(&self, clock: &Clock) -> Arc<Sqlite> {
        Sqlite::open(Options { clock: clock.clone(), ..fast(&self.path()) }).await.unwrap()
    }

    pub async fn open_in(&self, clock: &Clock, epoch: &str) -> Arc<Sqlite> {
        let options = Options { clock: clock.clone(), ..fast(&self.path()) };
        Sqlite::open_in_epoch(options, epoch).await.unwrap()
    }

    /// The file as any other program sees it.
    pub fn raw(&self) -> rusqlite::Connection {
        let raw = rusqlite::Connection::open(self.path()).unwrap();
        raw.busy_timeout(LONG).unwrap();
        raw
    }
}

pub async fn open_at(path: &Path) -> Arc<Sqlite> {
    Sqlite::open(fast(path)).await.unwrap()
}

/// Tests do not pull the plug.
fn fast(path: &Path) -> Options {
    Options { sync: Sync::Normal, ..Options::at(path) }
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn mutex(lease: Duration) -> Claim {
    Claim {
        id: ClaimId::random().unwrap(),
        owner: Owner::new("test").unwrap(),
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease,
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    }
}

pub fn at_once(lease: Duration) -> Claim {
    Claim { patience: Patience::Now, ..mutex(lease) }
}

pub fn token(standing: &Standing) -> Token {
    match standing {
        Standing::Held { token: Some(token), .. } => *token,
        other => panic!("not held: {other:?}"),
    }
}

pub fn is_held(standing: &Standing) -> bool {
    matches!(standing, Standing::Held { .. })
}

/// The loop that every client runs: enter, wait, enter again.
pub async fn acquire(store: &Sqlite, lock: &Name, claim: &Claim) -> Token {
    loop {
        let seen = store.enter(lock, claim).await.unwrap();
        if is_held(&seen) {
            return token(&seen);
        }
        store.wait(lock, Waiter::Claim { id: claim.id, seen: &seen }, claim.ask_every()).await.unwrap();
    }
}

pub async fn release(store: &Sqlite, lock: &Name, claim: &Claim) {
    store.leave(lock, claim.id, Duration::ZERO).await.unwrap();
}
