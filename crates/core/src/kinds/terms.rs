//! The terms that all kinds of locks share: how long to wait, how long to hold, and under which flag.
//!
//! The methods that set them are written once, by the macro `terms!`, for every kind that has them.

use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Request, Wait, acquire};
use crate::claim::{Claim, ClaimId, LockKind, Owner, Patience};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::Hold;
use crate::keeper::Shared;
use crate::name::Name;
use crate::store::Sharing;

/// The lease if none is asked for.
const LEASE: Duration = Duration::from_secs(30);
/// The wait if none is asked for.
const WAIT: Duration = Duration::from_secs(60);

/// What was asked for.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: Result<Name>,
    pub(crate) wait: Wait,
    pub(crate) lease: Duration,
    pub(crate) renews: bool,
    pub(crate) at_least: Duration,
    pub(crate) delay: Duration,
    pub(crate) fair: bool,
    pub(crate) spin: bool,
    pub(crate) note: Vec<u8>,
    pub(crate) owner: Option<Owner>,
    /// May it wait among the tasks of this process? Not if it holds something else, so that circles can be seen.
    pub(crate) local: bool,
}

/// What a kind makes of the terms: the numbers of its claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) kind: LockKind,
    pub(crate) weight: u32,
    pub(crate) capacity: u32,
}

impl Terms {
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
            owner: None,
            local: true,
        }
    }

    /// Waits as long as was asked for.
    pub(crate) async fn lock(&self, shape: Shape) -> Result<Hold> {
        let patience = if self.spin { Patience::Now } else { Patience::Queue };
        match self.take(shape, self.wait, patience).await? {
            Some(hold) => Ok(hold),
            None => Err(Error::bug("a lock that waits was refused")),
        }
    }

    /// Does not wait.
    pub(crate) async fn try_lock(&self, shape: Shape) -> Result<Option<Hold>> {
        self.take(shape, Wait::No, Patience::Now).await
    }

    async fn take(&self, shape: Shape, wait: Wait, patience: Patience) -> Result<Option<Hold>> {
        let name = self.name.clone()?;
        shareable(&self.shared, shape)?;
        // Only an owner that was named, by hand or by scope, can come in twice: tasks have no identity.
        let named = self.owner.clone().or_else(Owner::in_scope);
        if let Some(owner) = &named
            && let Some(hold) = self.shared.reenter(&name, owner, shape)?
        {
            return Ok(Some(hold));
        }
        let claim = Claim {
            id: ClaimId::random()?,
            owner: named.clone().map_or_else(|| self.shared.owner(), Ok)?,
            kind: shape.kind,
            weight: shape.weight,
            capacity: shape.capacity,
            lease: self.lease,
            delay: self.delay,
            fair: self.fair,
            patience,
            note: self.note.clone(),
        };
        let reentrant = named.is_some() && shape.kind != LockKind::Semaphore;
        let Self { spin, renews, at_least, local, .. } = *self;
        let request = Request { name, claim, wait, spin, renews, at_least, reentrant, local };
        acquire(&self.shared, request).await
    }
}

/// Refuses what the store cannot share.
fn shareable(shared: &Shared, shape: Shape) -> Result<()> {
    let profile = shared.store.profile();
    let supported = match shape.kind {
        LockKind::Semaphore => profile.sharing == Sharing::Permits || shape.capacity == 1,
        LockKind::ReadWrite => profile.sharing != Sharing::ExclusiveOnly,
        _ => true,
    };
    if supported {
        return Ok(());
    }
    let message = format!("the store `{}` cannot keep a {} lock", profile.scheme, shape.kind);
    Err(Error::new(ErrorKind::Unsupported, message).with_hint("use a mutex there, or another store"))
}

/// The methods of every kind with terms; the type has a field `terms`.
macro_rules! terms {
    ($kind:ident) => {
        impl $kind {
            /// How long to wait for it (60 s).
            #[must_use]
            pub fn wait(mut self, wait: ::std::time::Duration) -> Self {
                self.terms.wait = $crate::acquire::Wait::For(wait);
                self
            }

            /// Waits without end.
            #[must_use]
            pub fn forever(mut self) -> Self {
                self.terms.wait = $crate::acquire::Wait::Forever;
                self
            }

            /// How long it stays taken after the process is gone (30 s). A living hold renews it.
            #[must_use]
            pub fn lease(mut self, lease: ::std::time::Duration) -> Self {
                self.terms.lease = lease;
                self.terms.renews = true;
                self
            }

            /// A fixed lease: the hold is lost after this time, and nothing renews it.
            #[must_use]
            pub fn at_most(mut self, lease: ::std::time::Duration) -> Self {
                self.terms.lease = lease;
                self.terms.renews = false;
                self
            }

            /// It stays taken for at least this long since it was taken, also after an earlier release.
            #[must_use]
            pub fn at_least(mut self, at_least: ::std::time::Duration) -> Self {
                self.terms.at_least = at_least;
                self
            }

            /// After a crash it stays taken for this much longer than the lease (0 to 60 s), for resources that
            /// cannot check tokens. A clean release frees it at once.
            #[must_use]
            pub fn lock_delay(mut self, delay: ::std::time::Duration) -> Self {
                self.terms.delay = delay;
                self
            }

            /// First come, first served, or `Unsupported` on a store that cannot.
            #[must_use]
            pub fn fair(mut self) -> Self {
                self.terms.fair = true;
                self
            }

            /// Tries again and again with growing pauses instead of standing in line: for very short waits.
            #[must_use]
            pub fn spin(mut self) -> Self {
                self.terms.spin = true;
                self
            }

            /// A few bytes for people, shown with the claim (4 KiB at the most).
            #[must_use]
            pub fn note(mut self, note: impl Into<Vec<u8>>) -> Self {
                self.terms.note = note.into();
                self
            }

            /// Who asks. An owner that already holds it comes in again without asking the store; it is released
            /// when the last of its holds is.
            #[must_use]
            pub fn owner(mut self, owner: &$crate::claim::Owner) -> Self {
                self.terms.owner = Some(owner.clone());
                self
            }
        }
    };
}

pub(crate) use terms;
