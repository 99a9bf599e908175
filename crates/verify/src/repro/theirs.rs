//! One side: the lock that etcd itself offers, used as its documentation has it: a lease that is kept alive, and the lock
//! hung on it.
//!
//! Surprise: a lease that is not kept alive any more is nobody's business here. The lock has no way to tell its holder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper::{Error, Result};
use lockkeeper_etcd::proto::cluster::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use lockkeeper_etcd::proto::lease::{LeaseRevokeRequest, LeaseRevokeResponse};
use lockkeeper_etcd::proto::{RangeRequest, RangeResponse, path};
use lockkeeper_etcd::raw::Client;
use lockkeeper_etcd::{Endpoint, Options};

use super::{LEASE, NAME, PATIENCE};

/// How long letting go may take: as long as a member may be stopped, and a little.
const LETTING_GO: Duration = Duration::from_secs(6);

/// A client of the lock, at one member.
pub(super) struct Locker {
    options: Options,
    seen: Arc<Seen>,
}

/// What all clients of the side have seen.
#[derive(Default)]
pub(super) struct Seen {
    /// How often a lease was kept alive: without that the comparison would be none.
    pub(super) kept_alive: AtomicU64,
    /// How often the lock was granted to somebody whose key, and so whose lease, was gone.
    pub(super) granted_dead: AtomicU64,
}

/// A lock that was granted.
pub(super) struct Granted {
    client: Client,
    lease: i64,
    key: Vec<u8>,
    keeping: Keeping,
}

/// Keeps a lease alive until it is dropped.
struct Keeping(tokio::task::JoinHandle<()>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Locker {
    pub(super) fn at(port: u16, seen: Arc<Seen>) -> Self {
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port };
        Self { options: Options::at(vec![endpoint]), seen }
    }

    /// Makes a lease, keeps it alive from now on, and asks for the lock with it.
    pub(super) async fn lock(&self) -> Result<Granted> {
        match tokio::time::timeout(PATIENCE, self.granted()).await {
            Ok(granted) => granted,
            Err(_) => Err(Error::unanswered("the lock was not granted in time")),
        }
    }

    async fn granted(&self) -> Result<Granted> {
        // Anew each time: a connection to a member that was stopped for long may have been given up.
        let client = Client::open(self.options.clone()).await?;
        let lease = client.grant(i64::try_from(LEASE.as_secs()).unwrap_or(i64::MAX)).await?;
        let keeping = Keeping(tokio::spawn(keep_alive(client.clone(), lease, self.seen.clone())));
        let question = LockRequest { name: NAME.as_bytes().to_vec(), lease };
        let key = client.ask::<_, LockResponse>(path::LOCK, &question).await?.key;
        // Beside the holder's own work, which it must not delay.
        tokio::spawn(look_for(client.clone(), key.clone(), self.seen.clone()));
        Ok(Granted { client, lease, key, keeping })
    }
}

impl Granted {
    /// What cannot be ended now runs out.
    pub(super) async fn unlock(self) {
        let Self { client, lease, key, keeping } = self;
        let letting_go = async {
            let _ = client.ask::<_, UnlockResponse>(path::UNLOCK, &UnlockRequest { key }).await;
            drop(keeping);
            let _ = client.ask::<_, LeaseRevokeResponse>(path::LEASE_REVOKE, &LeaseRevokeRequest { id: lease }).await;
        };
        let _ = tokio::time::timeout(LETTING_GO, letting_go).await;
    }
}

/// Every third of the lease, whatever came of the last time.
async fn keep_alive(client: Client, lease: i64, seen: Arc<Seen>) {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        if let Ok(Ok(())) = tokio::time::timeout(LEASE, client.keep_alive(&[lease])).await {
            seen.kept_alive.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Is the key there that stands for a lock which was granted just now?
async fn look_for(client: Client, key: Vec<u8>, seen: Arc<Seen>) {
    let question = RangeRequest { key, count_only: true, ..RangeRequest::default() };
    if let Ok(Ok(answer)) = tokio::time::timeout(LEASE, client.ask::<_, RangeResponse>(path::RANGE, &question)).await
        && answer.count == 0
    {
        seen.granted_dead.fetch_add(1, Ordering::Relaxed);
    }
}
