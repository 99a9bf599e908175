//! Bare clients that lock and release free locks.

use std::sync::Arc;

use redis::aio::{ConnectionLike, MultiplexedConnection};

use super::lane::Lane;
use super::wire::{self, Lock};
use crate::Outcome;
use crate::pairs::{Client, name};

/// A bare client.
#[derive(Clone)]
pub struct Bare<L>(pub L);

impl<L: Lane> Client for Bare<L> {
    type Lock = Arc<Lock>;

    fn lock(&self, task: usize) -> Arc<Lock> {
        Arc::new(Lock::new(&name(task)))
    }

    async fn pair(&self, lock: &Arc<Lock>, claim: u128) -> Outcome<()> {
        let record: Arc<str> = wire::record(claim).into();
        let number = self.0.enter(lock, &record).await?;
        self.0.leave(lock, &record, number).await
    }
}

/// Two round trips that do nothing.
#[derive(Clone)]
pub struct Pings(pub MultiplexedConnection);

impl Client for Pings {
    type Lock = ();

    fn lock(&self, _task: usize) {}

    async fn pair(&self, _lock: &(), _claim: u128) -> Outcome<()> {
        let (ping, mut connection) = (redis::cmd("PING"), self.0.clone());
        connection.req_packed_command(&ping).await?;
        connection.req_packed_command(&ping).await?;
        Ok(())
    }
}
