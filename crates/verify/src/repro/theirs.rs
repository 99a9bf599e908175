//! One side: the lock that etcd itself offers, used as its documentation has it: a lease that is kept alive, and the lock
//! hung on it.
//!
//! Surprise: a lease that is not kept alive any more is nobody's business here. The lock has no way to tell its holder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper::Result;
use lockkeeper_etcd::proto::cluster::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use lockkeeper_etcd::proto::lease::{LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse};
use lockkeeper_etcd::proto::path;
use lockkeeper_etcd::raw::Client;
use lockkeeper_etcd::{Endpoint, Options};

use super::{LEASE, NAME, PATIENCE};

/// A client of the lock, at one member; clones are the same.
#[derive(Clone)]
pub(super) struct Locker {
    client: Arc<Client>,
    /// How often a lease was kept alive, of all clients of the side: without that the comparison would be none.
    kept_alive: Arc<AtomicU64>,
}

/// A lock that was granted.
pub(super) struct Granted {
    client: Arc<Client>,
    lease: i64,
    key: Vec<u8>,
    keeping: tokio::task::JoinHandle<()>,
}

impl Locker {
    pub(super) fn at(port: u16, kept_alive: Arc<AtomicU64>) -> Result<Self> {
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port };
        let options = Options { timeout: PATIENCE, ..Options::at(vec![endpoint]) };
        Ok(Self { client: Arc::new(Client::open(options)?), kept_alive })
    }

    /// Makes a lease, keeps it alive from now on, and asks for the lock with it.
    pub(super) async fn lock(&self) -> Result<Granted> {
        let ttl = i64::try_from(LEASE.as_secs()).unwrap_or(i64::MAX);
        let grant = LeaseGrantRequest { ttl, id: 0 };
        let lease = self.client.ask::<_, LeaseGrantResponse>(path::LEASE_GRANT, &grant).await?.id;
        let keeping = tokio::spawn(self.clone().keep_alive(lease));
        let question = LockRequest { name: NAME.as_bytes().to_vec(), lease };
        match self.client.ask::<_, LockResponse>(path::LOCK, &question).await {
            Ok(answer) => Ok(Granted { client: self.client.clone(), lease, key: answer.key, keeping }),
            Err(error) => {
                keeping.abort();
                // What cannot be ended now runs out.
                let _ = revoke(&self.client, lease).await;
                Err(error)
            }
        }
    }

    /// Every third of the lease, whatever came of the last time.
    async fn keep_alive(self, lease: i64) {
        let every: Duration = LEASE / 3;
        loop {
            tokio::time::sleep(every).await;
            match tokio::time::timeout(LEASE, self.client.keep_alive(lease)).await {
                Ok(Ok(length)) if !length.is_zero() => drop(self.kept_alive.fetch_add(1, Ordering::Relaxed)),
                _ => {}
            }
        }
    }
}

impl Granted {
    pub(super) async fn unlock(self) {
        let question = UnlockRequest { key: self.key };
        let _ = self.client.ask::<_, UnlockResponse>(path::UNLOCK, &question).await;
        self.keeping.abort();
        let _ = revoke(&self.client, self.lease).await;
    }
}

async fn revoke(client: &Client, lease: i64) -> Result<LeaseRevokeResponse> {
    client.ask(path::LEASE_REVOKE, &LeaseRevokeRequest { id: lease }).await
}
