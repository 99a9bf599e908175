//! Holds for threads: what `lock()`, `write()`, `multi` and `campaign()` return.
//!
//! Surprise: only `release`, `downgrade`, `proclaim` and the like ask the store. The rest looks at the hold's own clock,
//! never waits, and may be called anywhere, also in async code; so may dropping it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::driver::Driver;
use crate::time::Moment;
use crate::{ClaimId, Lost, Name, Result, Token, kinds};

/// Those who want to be told of a loss. Dropped with the hold, it ends their wait; one that is lost by then is still
/// told.
type Listeners = Mutex<Vec<oneshot::Sender<()>>>;

/// A hold around an async one that is, or stands for, a [`crate::Hold`].
macro_rules! hold {
    ($(#[$doc:meta])+ $hold:ident($inner:ty)) => {
        $(#[$doc])+
        #[must_use = "dropping a hold releases the lock"]
        pub struct $hold {
            // Dropped in this order: the runtime goes last.
            inner: $inner,
            listeners: Listeners,
            driver: Arc<Driver>,
        }

        impl $hold {
            pub(super) fn new(inner: $inner, driver: &Arc<Driver>) -> Self {
                Self { listeners: Listeners::default(), inner, driver: driver.clone() }
            }

            fn hold(&self) -> &crate::Hold {
                &self.inner
            }

            /// The name of the lock.
            pub fn name(&self) -> &Name {
                self.hold().name()
            }

            /// The fencing token, to be sent to the resource with every access; `None` where the store has none.
            pub fn token(&self) -> Option<Token> {
                self.hold().token()
            }

            /// The claim behind the hold, as `show` lists it.
            pub fn claim_id(&self) -> ClaimId {
                self.hold().claim_id()
            }

            /// Is the lock still ours, by our own clock? Once it has said no it never says yes again.
            ///
            /// It costs a look at the clock: long work asks it between its steps.
            pub fn is_held(&self) -> bool {
                self.hold().is_held()
            }

            /// Until when the lock is ours if nothing renews it, on the keeper's clock.
            pub fn deadline(&self) -> Moment {
                self.hold().deadline()
            }

            /// Blocks until the hold is lost, and says why; `None` if it is not lost within `at_most`.
            ///
            /// It is not refused in async code, but it blocks there as everywhere.
            pub fn wait_lost(&self, at_most: Duration) -> Option<Lost> {
                let lost = self.hold().lost();
                self.driver.block_on(async move { tokio::time::timeout(at_most, lost).await.ok() })
            }

            /// Calls a function when the hold is lost, on a thread of its own, which may block.
            ///
            /// It is called at most once, and not if the hold was released or dropped before it was lost.
            pub fn on_lost(&self, tell: impl FnOnce(Lost) + Send + 'static) {
                let lost = self.hold().lost();
                let (listener, over) = oneshot::channel::<()>();
                self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
                self.driver.spawn(async move {
                    tokio::select! {
                        biased;
                        why = lost => drop(tokio::task::spawn_blocking(move || tell(why))),
                        _ = over => {}
                    }
                });
            }
        }

        /// The async hold inside.
        impl AsRef<crate::Hold> for $hold {
            fn as_ref(&self) -> &crate::Hold {
                self.hold()
            }
        }

        impl fmt::Debug for $hold {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($hold)).field(self.hold()).finish()
            }
        }
    };
}

hold! {
    /// A lock that is held, until it is released, dropped or lost; for threads.
    ///
    /// Dropping it releases it in the background; [`release`](Self::release) does so now and says how that went.
    Hold(crate::Hold)
}

hold! {
    /// A hold to write, which can become one to read.
    WriteHold(kinds::WriteHold)
}

hold! {
    /// To lead, until resigning, losing it or dropping this.
    Leadership(kinds::Leadership)
}

impl Hold {
    /// Releases the lock, and says whether it was ours until now.
    ///
    /// # Errors
    /// As for [`crate::Hold::release`]. Inside of async code, where it is refused, it is released in the background.
    ///
    /// # Round trips
    /// One.
    pub fn release(self) -> Result<()> {
        self.driver.run(self.inner.release())
    }
}

/// The same hold for async code.
impl From<Hold> for crate::Hold {
    fn from(hold: Hold) -> Self {
        hold.inner
    }
}

impl WriteHold {
    /// Becomes a reader without letting any writer in between; the token stays the same.
    ///
    /// # Errors
    /// `Lost` if it is not ours any more. A store that does not answer is asked again until the hold would end.
    ///
    /// # Round trips
    /// One.
    pub fn downgrade(self) -> Result<Hold> {
        let inner = self.driver.run(self.inner.downgrade())?;
        Ok(Hold { listeners: self.listeners, inner, driver: self.driver })
    }

    /// Releases the lock; see [`Hold::release`].
    pub fn release(self) -> Result<()> {
        self.driver.run(self.inner.release())
    }
}

impl From<WriteHold> for Hold {
    fn from(write: WriteHold) -> Self {
        Self { listeners: write.listeners, inner: write.inner.into(), driver: write.driver }
    }
}

impl Leadership {
    /// Changes what observers see of the leader.
    ///
    /// # Errors
    /// `Lost` if this is not the leader any more.
    ///
    /// # Round trips
    /// One.
    pub fn proclaim(&mut self, note: impl Into<Vec<u8>>) -> Result<()> {
        self.driver.run(self.inner.proclaim(note))
    }

    /// Steps down; see [`Hold::release`].
    pub fn resign(self) -> Result<()> {
        self.driver.run(self.inner.resign())
    }
}

/// Several locks that are held together; if one is lost, all count as lost.
#[derive(Debug)]
#[must_use = "dropping the holds releases the locks"]
pub struct MultiHold {
    inner: kinds::MultiHold,
    driver: Arc<Driver>,
}

impl MultiHold {
    pub(super) fn new(inner: kinds::MultiHold, driver: &Arc<Driver>) -> Self {
        Self { inner, driver: driver.clone() }
    }

    /// The tokens by name.
    pub fn tokens(&self) -> BTreeMap<Name, Option<Token>> {
        self.inner.tokens()
    }

    /// Are all of them still ours?
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }

    /// Blocks until the first of them is lost, and says why; `None` if none is within `at_most`.
    pub fn wait_lost(&self, at_most: Duration) -> Option<Lost> {
        self.driver.block_on(async { tokio::time::timeout(at_most, self.inner.lost()).await.ok() })
    }

    /// Releases all of them; the first error is told, after all have been tried.
    pub fn release(self) -> Result<()> {
        self.driver.run(self.inner.release())
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
