//! One acquisition: what is asked for, and what is held then, whatever the kind.

use std::time::Duration;

use lockkeeper::kinds::MultiHold;
use lockkeeper::{Effect, ErrorKind, Hold, Keeper, Owner};

use crate::history::LockKind;
use crate::plan::Plan;

/// How many permits a semaphore has.
pub(super) const PERMITS: u32 = 3;

/// What a task wants.
pub(super) struct Want {
    /// The names; more than one are taken together.
    pub(super) locks: Vec<String>,
    /// The kind.
    pub(super) kind: LockKind,
    /// The owner, where it may come in again.
    pub(super) owner: Option<Owner>,
    /// Does it wait?
    pub(super) waits: bool,
}

/// What it holds.
pub(super) enum Grip {
    /// One lock.
    One(Hold),
    /// Several.
    Several(MultiHold),
}

impl Grip {
    pub(super) fn holds(&self) -> &[Hold] {
        match self {
            Self::One(hold) => std::slice::from_ref(hold),
            Self::Several(holds) => holds.holds(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        match self {
            Self::One(hold) => hold.is_held(),
            Self::Several(holds) => holds.is_held(),
        }
    }

    /// Releases, and says in a word how that went.
    pub(super) async fn release(self) -> &'static str {
        let released = match self {
            Self::One(hold) => hold.release().await,
            Self::Several(holds) => holds.release().await,
        };
        match released {
            Ok(()) => "released",
            Err(error) if error.kind() == ErrorKind::Lost && error.effect() == Effect::None => "not-held",
            Err(_) => "unknown",
        }
    }
}

impl Want {
    /// Asks the store; nothing if it is taken and the task does not wait.
    pub(super) async fn take(&self, keeper: &Keeper, plan: &Plan) -> lockkeeper::Result<Option<Grip>> {
        let lease = Duration::from_millis(plan.lease_ms);
        if self.locks.len() > 1 {
            let several = keeper.multi(self.locks.iter().map(String::as_str)).lease(lease).wait(plan.patience());
            return Ok(
                if self.waits { Some(several.lock().await?) } else { several.try_lock().await? }.map(Grip::Several)
            );
        }
        let name = self.locks.first().map_or("", String::as_str);
        let hold = match self.kind {
            LockKind::Mutex => self.take_mutex(keeper, name, plan).await?,
            LockKind::Read | LockKind::Write => self.take_shared(keeper, name, plan).await?,
            LockKind::Permit { of } => {
                let permits = keeper.semaphore(name, of).lease(lease).lock_delay(delay(plan)).wait(plan.patience());
                if self.waits { Some(permits.acquire().await?) } else { permits.try_acquire().await? }
            }
        };
        Ok(hold.map(Grip::One))
    }

    async fn take_mutex(&self, keeper: &Keeper, name: &str, plan: &Plan) -> lockkeeper::Result<Option<Hold>> {
        let lease = Duration::from_millis(plan.lease_ms);
        let mut mutex = keeper.mutex(name).lease(lease).lock_delay(delay(plan)).wait(plan.patience());
        if let Some(owner) = &self.owner {
            mutex = mutex.owner(owner);
        }
        if self.waits { Ok(Some(mutex.lock().await?)) } else { mutex.try_lock().await }
    }

    async fn take_shared(&self, keeper: &Keeper, name: &str, plan: &Plan) -> lockkeeper::Result<Option<Hold>> {
        let lease = Duration::from_millis(plan.lease_ms);
        let lock = keeper.rwlock(name).lease(lease).lock_delay(delay(plan)).wait(plan.patience());
        Ok(match (self.kind == LockKind::Read, self.waits) {
            (true, true) => Some(lock.read().await?),
            (true, false) => lock.try_read().await?,
            (false, true) => Some(lock.write().await?.into()),
            (false, false) => lock.try_write().await?.map(Hold::from),
        })
    }
}

fn delay(plan: &Plan) -> Duration {
    Duration::from_millis(plan.delay_ms)
}
