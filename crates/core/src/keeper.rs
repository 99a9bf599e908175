//! The client that a program makes: a store with its layers, a watchdog, and the kinds of locks as methods.
//!
//! What may be changed here: which layers stand by default. Their order is fixed on purpose (see `layers`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::{ClaimId, Owner};
use crate::deadlock::{self, Circle};
use crate::error::Result;
use crate::kinds::{Cell, Counter, Election, Limiter, Multi, Mutex, Once, RwLock, Semaphore};
use crate::layers::{Check, Fault, Faults, Layer, Metrics, Retry, Standard, Timeout, Trace, wrap_all};
use crate::limits::{DEADLOCK_LINES, PAGE_ROWS};
use crate::local::LocalLines;
use crate::name::Name;
use crate::reentry::Reentry;
use crate::store::{Keep, Left, LockView, Page, Profile, SharedStore};
use crate::time::Clock;
use crate::watchdog::Watchdog;

/// What all clones of a keeper and all its holds share.
pub(crate) struct Shared {
    pub(crate) store: SharedStore,
    pub(crate) watchdog: Watchdog,
    pub(crate) clock: Clock,
    pub(crate) owner: Result<Owner>,
    pub(crate) reentry: Reentry,
    pub(crate) local: Arc<LocalLines>,
}

/// Use this as the one client of a store in a program; clones are cheap and share everything.
///
/// ```
/// use std::time::Duration;
/// use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let keeper = Keeper::with_store(Memory::shared());
/// let hold = keeper.mutex("orders/42").wait(Duration::from_secs(5)).lock().await?;
/// assert!(keeper.mutex("orders/42").try_lock().await?.is_none());
/// hold.release().await
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Keeper {
    shared: Arc<Shared>,
}

impl Keeper {
    /// A keeper on a store, with the default layers.
    pub fn with_store(store: SharedStore) -> Self {
        Self::builder().with_store(store)
    }

    /// A keeper made to measure.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A mutex: one at a time. Nothing is sent before `lock` or `try_lock`.
    pub fn mutex(&self, name: &str) -> Mutex {
        Mutex::new(self.shared.clone(), name)
    }

    /// A read-write lock: many readers, or one writer.
    pub fn rwlock(&self, name: &str) -> RwLock {
        RwLock::new(self.shared.clone(), name)
    }

    /// A semaphore: up to `capacity` permits at a time.
    pub fn semaphore(&self, name: &str, capacity: u32) -> Semaphore {
        Semaphore::new(self.shared.clone(), name, capacity)
    }

    /// Several mutexes at once, all or nothing.
    pub fn multi<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Multi {
        Multi::new(self.shared.clone(), names)
    }

    /// An election: one leads, the others can see who.
    pub fn election(&self, name: &str) -> Election {
        Election::new(self.shared.clone(), name)
    }

    /// A job that is done once per key.
    pub fn once(&self, key: &str) -> Once {
        Once::new(self.shared.clone(), key)
    }

    /// A small value with a version.
    pub fn cell(&self, name: &str) -> Cell {
        Cell::new(self.shared.clone(), name)
    }

    /// A number that many change at once.
    pub fn counter(&self, name: &str) -> Counter {
        Counter::new(self.shared.clone(), name)
    }

    /// A rate of `limit` per `per`, for all processes together.
    pub fn limiter(&self, name: &str, limit: u64, per: Duration) -> Limiter {
        Limiter::new(self.shared.clone(), name, limit, per)
    }

    /// What the store promises.
    pub fn profile(&self) -> &Profile {
        self.shared.store.profile()
    }

    /// Asks the store something harmless.
    ///
    /// # Errors
    /// Whatever keeps the store from answering.
    ///
    /// # Round trips
    /// One.
    pub async fn ping(&self) -> Result<()> {
        self.shared.store.read(&Name::new("ping")?).await.map(|_| ())
    }

    /// The line of one lock; `None` if nobody stands in it.
    pub async fn inspect(&self, name: &str) -> Result<Option<LockView>> {
        let name = Name::new(name)?;
        Ok(self.shared.store.inspect(Page::of(&name)).await?.pop())
    }

    /// Lines by name, at most `limit` (and [`PAGE_ROWS`]) of them, after the name `after`.
    pub async fn list(&self, after: Option<&Name>, limit: usize) -> Result<Vec<LockView>> {
        let page = Page { only: None, after, limit: limit.min(PAGE_ROWS) };
        self.shared.store.inspect(page).await
    }

    /// Takes somebody's claim out of a line.
    ///
    /// With [`Keep::Lease`] this is safe: its holder's next renewal finds it gone, and nobody is in before the
    /// holder's own deadline. With [`Keep::Nothing`] the next one is in at once, while the old holder may not know
    /// yet: two holders, unless the resource is fenced.
    pub async fn break_claim(&self, name: &str, id: ClaimId, keep: Keep) -> Result<Left> {
        self.shared.store.leave(&Name::new(name)?, id, keep).await
    }

    /// Owners that wait for each other in a circle, seen twice with the same claims; see [`deadlock`] for the rule.
    ///
    /// It looks at the first [`DEADLOCK_LINES`] locks of the store, twice, a tenth of a second apart. What is found does
    /// not end by itself, unless a wait in it is bounded: [`break_claim`](Self::break_claim) of one claim that waits
    /// frees the others.
    ///
    /// # Round trips
    /// Two for every thousand locks.
    ///
    /// ```
    /// # use lockkeeper_core::{Keeper, Owner, stores::Memory};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let keeper = Keeper::with_store(Memory::shared());
    /// let (ann, ben) = (Owner::new("ann")?, Owner::new("ben")?);
    /// let x = keeper.mutex("x").owner(&ann).lock().await?;
    /// let y = keeper.mutex("y").owner(&ben).lock().await?;
    /// assert!(keeper.deadlocks().await?.is_empty());
    /// # let _ = (x, y);
    /// # Ok::<(), lockkeeper_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn deadlocks(&self) -> Result<Vec<Circle>> {
        let first = self.lines(DEADLOCK_LINES).await?;
        if deadlock::circles(&first).is_empty() {
            return Ok(Vec::new());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let second = self.lines(DEADLOCK_LINES).await?;
        Ok(deadlock::circles_in_both(&first, &second))
    }

    /// The first lines by name, page by page.
    async fn lines(&self, limit: usize) -> Result<Vec<LockView>> {
        let mut lines: Vec<LockView> = Vec::new();
        while lines.len() < limit {
            let after = lines.last().map(|line| line.name.clone());
            let page = self.list(after.as_ref(), PAGE_ROWS).await?;
            let last = page.len() < PAGE_ROWS;
            lines.extend(page);
            if last {
                return Ok(lines);
            }
        }
        tracing::warn!(target: "lockkeeper", lines = lines.len(), "not all locks were looked at for circles");
        Ok(lines)
    }

    /// How many holds of this keeper are being watched.
    pub fn holds(&self) -> usize {
        self.shared.watchdog.len()
    }

    /// Releases all holds of this keeper, whose `lost` fires, and closes the store. Later locks are `Closed`.
    ///
    /// Call it before a program ends, so that holds dropped just before are released at once and not only when
    /// their leases end.
    pub async fn close(&self) -> Result<()> {
        self.shared.watchdog.close().await;
        self.shared.store.close().await
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("store", &self.profile().scheme)
            .field("holds", &self.holds())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn owner(&self) -> Result<Owner> {
        self.owner.clone()
    }
}

/// Options of a [`Keeper`], then [`with_store`](Self::with_store).
#[derive(Debug)]
pub struct Builder {
    owner: Option<Owner>,
    clock: Clock,
    timeout: Duration,
    attempts: u32,
    faults: Option<Faults>,
    checked: bool,
    own_layers: Vec<Arc<dyn Layer>>,
    hand_over: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            owner: None,
            clock: Clock::of_a_keeper(),
            timeout: Duration::from_secs(10),
            attempts: 3,
            faults: None,
            checked: false,
            own_layers: Vec::new(),
            hand_over: true,
        }
    }
}

impl Builder {
    /// Who the claims are made by; by default this process on this host, without a label.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// The clock that deadlines are kept by; for tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How long one call to the store may take (10 s).
    #[must_use]
    pub fn timeout(mut self, after: Duration) -> Self {
        self.timeout = after;
        self
    }

    /// How often a call that went unanswered is made at the most, where repeating is legal (3).
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Faults on purpose, for tests.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Holds every answer of the store against its promises.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// A layer of your own, outside of all others; of several, the last one is outermost.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.own_layers.push(Arc::new(layer));
        self
    }

    /// May tasks of this keeper hand a mutex on without asking the store (they may)?
    ///
    /// While no other process waits, a hold then passes from task to task in microseconds, each with a token of its
    /// own. Switch it off where other programs take the same locks in ways of their own; tasks of this keeper still wait
    /// among themselves, but every hold comes from the store.
    #[must_use]
    pub fn hand_over(mut self, hand_over: bool) -> Self {
        self.hand_over = hand_over;
        self
    }

    /// The keeper on this store.
    pub fn with_store(self, store: SharedStore) -> Keeper {
        let layers = self.layers(store.profile().scheme);
        let local = Arc::new(LocalLines::new(self.hand_over));
        let watchdog = Watchdog::new(wrap_all(store.clone(), layers.clone()), self.clock.clone(), local.clone());
        // The last one given is outermost.
        let store = wrap_all(store, self.own_layers.into_iter().rev().chain(layers).collect());
        let owner = self.owner.map_or_else(|| Owner::new(""), Ok);
        Keeper {
            shared: Arc::new(Shared { store, watchdog, clock: self.clock, owner, reentry: Reentry::default(), local }),
        }
    }

    /// From the outside in; the watchdog shares them with the keeper.
    fn layers(&self, scheme: &'static str) -> Vec<Arc<dyn Layer>> {
        let standard = Standard {
            metrics: Metrics::of(scheme),
            retry: Retry { attempts: self.attempts, pause: Duration::from_millis(10) },
            timeout: (!self.timeout.is_zero()).then_some(Timeout { after: self.timeout }),
        };
        let mut layers: Vec<Arc<dyn Layer>> = vec![Arc::new(Trace), Arc::new(standard)];
        if let Some(faults) = self.faults {
            layers.push(Arc::new(Fault::new(faults)));
        }
        if self.checked {
            layers.push(Arc::new(Check::default()));
        }
        layers
    }
}
