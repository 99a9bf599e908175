//! The same locks for programs without async code: every call blocks its thread until there is an answer.
//!
//! ```
//! use std::time::Duration;
//! use lockkeeper::blocking::Keeper;
//!
//! let keeper = Keeper::connect("memory:")?; // or sqlite:/var/lib/app/locks.db
//! let hold = keeper.mutex("orders/42").wait(Duration::from_secs(5)).lock()?;
//! hold.on_lost(|why| eprintln!("stop: {why}"));
//! charge_card(hold.token()); // the token goes to the resource
//! hold.release()?;
//! # fn charge_card(_token: Option<lockkeeper::Token>) {}
//! # Ok::<(), lockkeeper::Error>(())
//! ```
//!
//! The kinds, their options and their promises are those of the async API; this is a thin coat around it. What differs:
//! a lock that is lost cannot cancel a thread, so it is told through [`Hold::is_held`], [`Hold::wait_lost`] and
//! [`Hold::on_lost`].
//!
//! Surprise: inside of async code these calls are refused with `Unsupported`, because they would stop the runtime.
//! Threads of `tokio::task::spawn_blocking` may make them. Dropping a keeper or a hold is fine anywhere.

mod driver;
mod election;
mod hold;
mod locks;
mod options;
mod values;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use election::{Election, Observer};
pub use hold::{Hold, Leadership, MultiHold, WriteHold};
pub use locks::{Multi, Mutex, RwLock, Semaphore};
pub use values::{Cell, Counter, FencedCell, Limiter, Once};

use crate::deadlock::Circle;
use crate::store::{Keep, Left, LockView, Profile, SharedStore};
use crate::{Builder, ClaimId, Error, Name, Owner, Result};
use driver::Driver;

/// Use this as the one client of a store in a program without async code; clones are cheap and share everything.
///
/// It has one background thread for all that its clones and holds do, besides the one that renews holds. Both end by
/// themselves soon after the last clone and the last hold are gone.
#[derive(Clone)]
pub struct Keeper {
    // Dropped in this order: the runtime goes last.
    inner: crate::Keeper,
    driver: Arc<Driver>,
}

impl Keeper {
    /// Connects to the store that a URL names, and sees that it answers; see [`crate::Keeper::connect`] for URLs.
    ///
    /// # Errors
    /// As there; `Unsupported` inside of async code.
    pub fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, Builder::default())
    }

    /// As [`connect`](Self::connect), with options.
    pub fn connect_with(url: &str, options: Builder) -> Result<Self> {
        let driver = Driver::start()?;
        let inner = driver.run(async {
            let keeper = options.with_store(crate::open(url).await?);
            keeper.ping().await?;
            Ok::<_, Error>(keeper.into())
        })?;
        Ok(Self { inner, driver })
    }

    /// A keeper on a store that was opened already. This waits for nothing.
    ///
    /// A store whose connections are driven by the runtime it was opened in works only for as long as that runs;
    /// [`connect`](Self::connect) opens it in the keeper's own.
    ///
    /// # Errors
    /// `Unavailable` if its thread cannot be started.
    pub fn with_store(store: SharedStore) -> Result<Self> {
        Self::around(crate::Keeper::with_store(store))
    }

    /// The blocking form of an async keeper, which it shares everything with. This waits for nothing.
    pub fn around(keeper: impl Into<crate::Keeper>) -> Result<Self> {
        Ok(Self { inner: keeper.into(), driver: Driver::start()? })
    }

    /// A mutex: one at a time. Nothing is sent before `lock` or `try_lock`.
    pub fn mutex(&self, name: &str) -> Mutex {
        Mutex { inner: self.inner.mutex(name), driver: self.driver.clone() }
    }

    /// A read-write lock: many readers, or one writer.
    pub fn rwlock(&self, name: &str) -> RwLock {
        RwLock { inner: self.inner.rwlock(name), driver: self.driver.clone() }
    }

    /// A semaphore: up to `capacity` permits at a time.
    pub fn semaphore(&self, name: &str, capacity: u32) -> Semaphore {
        Semaphore { inner: self.inner.semaphore(name, capacity), driver: self.driver.clone() }
    }

    /// Several mutexes at once, all or nothing.
    pub fn multi<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Multi {
        Multi { inner: self.inner.multi(names), driver: self.driver.clone() }
    }

    /// An election: one leads, the others can see who.
    pub fn election(&self, name: &str) -> Election {
        Election { inner: self.inner.election(name), driver: self.driver.clone() }
    }

    /// A job that is done once per key.
    pub fn once(&self, key: &str) -> Once {
        Once { inner: self.inner.once(key), driver: self.driver.clone() }
    }

    /// A small value with a version.
    pub fn cell(&self, name: &str) -> Cell {
        Cell { inner: self.inner.cell(name), driver: self.driver.clone() }
    }

    /// A number that many change at once.
    pub fn counter(&self, name: &str) -> Counter {
        Counter { inner: self.inner.counter(name), driver: self.driver.clone() }
    }

    /// A rate of `limit` per `per`, for all processes together.
    pub fn limiter(&self, name: &str, limit: u64, per: Duration) -> Limiter {
        Limiter { inner: self.inner.limiter(name, limit, per), driver: self.driver.clone() }
    }

    /// What the store promises.
    pub fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    /// How many holds of this keeper are being watched.
    pub fn holds(&self) -> usize {
        self.inner.holds()
    }

    /// Asks the store something harmless.
    pub fn ping(&self) -> Result<()> {
        self.driver.run(self.inner.ping())
    }

    /// The line of one lock; `None` if nobody stands in it.
    pub fn inspect(&self, name: &str) -> Result<Option<LockView>> {
        self.driver.run(self.inner.inspect(name))
    }

    /// Lines by name, at most `limit` (and [`PAGE_ROWS`](crate::limits::PAGE_ROWS)) of them, after the name `after`.
    pub fn list(&self, after: Option<&Name>, limit: usize) -> Result<Vec<LockView>> {
        self.driver.run(self.inner.list(after, limit))
    }

    /// Takes somebody's claim out of a line; see the async method of the same name for what is safe.
    pub fn break_claim(&self, name: &str, id: ClaimId, keep: Keep) -> Result<Left> {
        self.driver.run(self.inner.break_claim(name, id, keep))
    }

    /// Owners that wait for each other in a circle, seen twice with the same claims; see [`crate::deadlock`].
    pub fn deadlocks(&self) -> Result<Vec<Circle>> {
        self.driver.run(self.inner.deadlocks())
    }

    /// Releases all holds of this keeper, which are told, and closes the store. Later locks are `Closed`.
    ///
    /// Call it before a program ends, so that holds dropped just before are released at once and not only when
    /// their leases end.
    pub fn close(&self) -> Result<()> {
        self.driver.run(self.inner.close())
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("blocking::Keeper").field(&self.inner).finish()
    }
}

/// Runs a closure in the name of an owner: locks it takes in there without naming an owner are re-entrant.
///
/// It is [`Owner::scope`] for threads. An owner is one line of work: other threads that the closure starts are not
/// part of it.
///
/// ```
/// use lockkeeper::{Owner, blocking::{Keeper, as_owner}};
///
/// let keeper = Keeper::connect("memory:")?;
/// as_owner(&Owner::new("importer")?, || {
///     let outer = keeper.mutex("orders").lock()?;
///     let inner = keeper.mutex("orders").lock()?; // comes in again, without asking the store
///     inner.release()?;
///     outer.release()
/// })
/// # ?; Ok::<(), lockkeeper::Error>(())
/// ```
pub fn as_owner<T>(owner: &Owner, work: impl FnOnce() -> T) -> T {
    driver::block_on(owner.clone().scope(async { work() }))
}
