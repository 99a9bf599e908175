//! The mutex: weight one of capacity one.

use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Request, Wait, acquire};
use crate::claim::{Claim, ClaimId, LockKind, Patience};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::Hold;
use crate::keeper::Shared;
use crate::name::Name;

/// The lease if none is asked for.
const LEASE: Duration = Duration::from_secs(30);
/// The wait if none is asked for.
const WAIT: Duration = Duration::from_secs(60);

/// Use this when one at a time may be in; made by [`Keeper::mutex`](crate::Keeper::mutex).
///
/// By default it waits 60 s, and its hold has a lease of 30 s that is renewed for as long as the hold lives.
#[derive(Clone)]
pub struct Mutex {
    shared: Arc<Shared>,
    name: Result<Name>,
    wait: Wait,
    lease: Duration,
    renews: bool,
    at_least: Duration,
    delay: Duration,
    fair: bool,
    spin: bool,
    note: Vec<u8>,
}

impl Mutex {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self {
            shared,
            name: Name::new(name),
            wait: Wait::For(WAIT),
            lease: LEASE,
            renews: true,
            at_least: Duration::ZERO,
            delay: Duration::ZERO,
            fair: false,
            spin: false,
            note: Vec::new(),
        }
    }

    /// How long [`lock`](Self::lock) waits (60 s).
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::For(wait);
        self
    }

    /// [`lock`](Self::lock) waits without end.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// How long the lock stays taken after the process is gone (30 s). A living hold renews it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self.renews = true;
        self
    }

    /// A fixed lease: the hold is lost after this time, and nothing renews it.
    #[must_use]
    pub fn at_most(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self.renews = false;
        self
    }

    /// The name stays taken for at least this long since it was asked for, also after an earlier release.
    #[must_use]
    pub fn at_least(mut self, at_least: Duration) -> Self {
        self.at_least = at_least;
        self
    }

    /// After a crash the name stays taken for this much longer than the lease (0 to 60 s), for resources that
    /// cannot check tokens. A clean release frees it at once.
    #[must_use]
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// First come, first served, or `Unsupported` on a store that cannot.
    #[must_use]
    pub fn fair(mut self) -> Self {
        self.fair = true;
        self
    }

    /// Tries again and again with growing pauses instead of standing in line: for very short waits.
    #[must_use]
    pub fn spin(mut self) -> Self {
        self.spin = true;
        self
    }

    /// A few bytes for people, shown with the claim (4 KiB at the most).
    #[must_use]
    pub fn note(mut self, note: impl Into<Vec<u8>>) -> Self {
        self.note = note.into();
        self
    }

    /// Takes the lock, waiting as long as was asked for.
    ///
    /// # Guarantees
    /// No other hold of this name is valid while this one is, as far as the store's [profile](crate::store::Profile)
    /// goes; see [`Hold::lost`] for the end of it.
    ///
    /// # Cancel safety
    /// Dropping the future at any point leaves nothing behind beyond the claim's own lease.
    ///
    /// # Errors
    /// `Timeout` if it was not free in time; `Invalid` for a bad name or option; `Mismatch` if the name is in use as
    /// another kind; whatever keeps the store from answering.
    ///
    /// # Round trips
    /// One when free.
    pub async fn lock(&self) -> Result<Hold> {
        let patience = if self.spin { Patience::Now } else { Patience::Queue };
        let request = self.request(self.wait, patience)?;
        match acquire(&self.shared, request).await? {
            Some(hold) => Ok(hold),
            None => Err(Error::new(ErrorKind::Bug, "a lock that waits was refused")),
        }
    }

    /// Takes the lock if it is free right now; `None` if it is not.
    ///
    /// # Cancel safety
    /// As for [`lock`](Self::lock).
    ///
    /// # Round trips
    /// One.
    pub async fn try_lock(&self) -> Result<Option<Hold>> {
        acquire(&self.shared, self.request(Wait::No, Patience::Now)?).await
    }

    fn request(&self, wait: Wait, patience: Patience) -> Result<Request> {
        let claim = Claim {
            id: ClaimId::random()?,
            owner: self.shared.owner()?,
            kind: LockKind::Mutex,
            weight: 1,
            capacity: 1,
            lease: self.lease,
            delay: self.delay,
            fair: self.fair,
            patience,
            note: self.note.clone(),
        };
        let name = self.name.clone()?;
        Ok(Request { name, claim, wait, spin: self.spin, renews: self.renews, at_least: self.at_least })
    }
}
