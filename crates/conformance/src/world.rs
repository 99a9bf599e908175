//! Where a law is tried: a store that can be opened any number of times, and names nobody else uses.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkeeper_core::layers::{Check, wrap};
use lockkeeper_core::store::{Profile, SharedStore};
use lockkeeper_core::{Builder, Claim, ClaimId, Keeper, Name, Owner, Patience};

use crate::exclusive::{Exclusive, Lock};
use crate::record;
use crate::rig::{self, Shared};

/// No law takes longer than this, on the slowest machine.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// How a law ended, if it did not panic.
pub type Outcome = Result<(), Skip>;

/// A law that does not apply, and the promise that is missing.
#[derive(Debug)]
pub struct Skip(pub String);

type Opening = Pin<Box<dyn Future<Output = SharedStore> + Send>>;

/// The store under test.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    store: String,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
    law: &'static str,
    serial: AtomicU64,
    flaky: bool,
    exclusive: Exclusive,
    processes: Option<(String, PathBuf)>,
    /// Why no law is tried: its server is not up, and nobody asked for it.
    left_out: Option<String>,
}

impl World {
    /// A world on a store; `open` makes a new client of the same store each time.
    pub fn new<F, S>(store: &str, open: F) -> Self
    where
        F: Fn() -> S + Send + Sync + 'static,
        S: Future<Output = SharedStore> + Send + 'static,
    {
        let open = Box::new(move || Box::pin(open()) as Opening);
        Self(Arc::new(Inner {
            store: store.to_owned(),
            open,
            law: "",
            serial: AtomicU64::new(0),
            flaky: false,
            exclusive: Exclusive::Mutex,
            processes: None,
            left_out: None,
        }))
    }

    /// A world on the shared server of this name, for this process and for others.
    ///
    /// # Panics
    /// When servers were asked for and this one is not up.
    pub fn on_server(server: &str, taker: PathBuf) -> Self {
        let url = match rig::shared(server) {
            Ok(Shared::Up(entry)) => entry.url,
            Ok(Shared::LeftOut(why)) => {
                let nobody = Self::new(server, std::future::pending);
                return nobody.with(|inner| inner.left_out = Some(why));
            }
            Err(trouble) => panic!("{trouble}"),
        };
        let opened = url.clone();
        let world = Self::new(server, move || {
            let url = opened.clone();
            async move { lockkeeper::open(&url).await.expect("the store opens") }
        });
        world.with_processes(url, taker)
    }

    /// The store loses requests and replies: laws that count calls do not apply.
    #[must_use]
    pub fn flaky(self) -> Self {
        self.with(|inner| inner.flaky = true)
    }

    /// Other processes can reach the store by this URL, with this `taker` program.
    #[must_use]
    pub fn with_processes(self, url: String, taker: PathBuf) -> Self {
        self.with(|inner| inner.processes = Some((url, taker)))
    }

    /// The laws of the mutex are tried on this instead.
    #[must_use]
    pub fn exclusive(self, exclusive: Exclusive) -> Self {
        self.with(|inner| inner.exclusive = exclusive)
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let Ok(mut inner) = Arc::try_unwrap(self.0).map_err(|_| ()) else {
            panic!("a world is set up before it is shared");
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// A new client of the store, held against its promises.
    pub async fn store(&self) -> SharedStore {
        wrap((self.0.open)().await, Check::default())
    }

    /// A new keeper with a client of its own.
    pub async fn keeper(&self) -> Keeper {
        self.builder().with_store(self.store().await)
    }

    /// Options that suit the store: where replies get lost, more patience.
    pub fn builder(&self) -> Builder {
        if self.0.flaky { Keeper::builder().attempts(8) } else { Keeper::builder() }
    }

    /// A name that no other law uses.
    pub fn name(&self) -> Name {
        let serial = self.0.serial.fetch_add(1, Ordering::Relaxed);
        let unique = fastrand::u32(..);
        Name::new(&format!("{}/{unique:08x}/{serial}", self.0.law)).expect("names of laws are names")
    }

    /// The lock under test: a mutex, or what has to behave like one.
    pub fn lock(&self, keeper: &Keeper, name: &Name) -> Lock {
        self.0.exclusive.of(keeper, name.as_str())
    }

    /// A claim for the lock under test, with a lease that does not end during a law.
    pub fn claim(&self) -> Claim {
        let (kind, weight, capacity) = self.0.exclusive.numbers();
        Claim {
            id: ClaimId::random().expect("random numbers"),
            owner: Owner::new(self.0.law).expect("a law's name is a label"),
            kind,
            weight,
            capacity,
            lease: Duration::from_secs(30),
            delay: Duration::ZERO,
            fair: false,
            patience: Patience::Queue,
            note: Vec::new(),
        }
    }

    /// The shortest lease that a busy machine can be expected to renew in time.
    pub async fn short_lease(&self) -> Duration {
        self.profile().await.lease_min.max(Duration::from_millis(2_000))
    }

    /// What the store promises.
    pub async fn profile(&self) -> Profile {
        self.store().await.profile().clone()
    }

    /// Which lock is under test.
    pub fn kind(&self) -> Exclusive {
        self.0.exclusive
    }

    /// Does the store lose calls?
    pub fn is_flaky(&self) -> bool {
        self.0.flaky
    }

    /// The URL and the `taker`, or a skip.
    pub fn processes(&self) -> Result<(String, PathBuf), Skip> {
        self.0.processes.clone().ok_or_else(|| Skip("only this process can reach the store".into()))
    }

    /// Skips the law unless a promise is there.
    pub fn needs<T: Debug + PartialEq>(&self, has: &T, any_of: &[T]) -> Outcome {
        if any_of.contains(has) { Ok(()) } else { Err(Skip(format!("it promises {has:?}, the law needs {any_of:?}"))) }
    }

    /// Skips the law where a lock is taken by a thread.
    pub fn needs_cancelling(&self) -> Outcome {
        match self.0.exclusive {
            Exclusive::Blocking => Err(Skip("a thread that waits cannot be cancelled".into())),
            _ => Ok(()),
        }
    }

    /// Skips the law where calls get lost.
    pub fn needs_every_call(&self) -> Outcome {
        if self.0.flaky { Err(Skip("calls are lost on purpose here".into())) } else { Ok(()) }
    }
}

/// Tries one law in a runtime of its own, bounded in time, and writes down how it ended.
pub fn judge<F>(topic: &'static str, law: &'static str, world: World, trial: F)
where
    F: FnOnce(World) -> Pin<Box<dyn Future<Output = Outcome> + Send>>,
{
    let world = world.with(|inner| inner.law = law);
    let store = world.0.store.clone();
    if world.0.left_out.is_some() {
        // The rig has said so aloud.
        return;
    }
    let kind = match world.0.exclusive {
        Exclusive::Mutex => topic.to_owned(),
        other => format!("{topic}, {}", other.word()),
    };
    let attempt = AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let outcome = runtime.block_on(async { tokio::time::timeout(TIME_LIMIT, trial(world)).await });
        runtime.shutdown_background();
        outcome.unwrap_or_else(|_| panic!("the law took longer than {TIME_LIMIT:?}"))
    });
    match catch_unwind(attempt) {
        Ok(Ok(())) => record::law(&store, &kind, law, "passed", ""),
        Ok(Err(Skip(why))) => {
            eprintln!("SKIPPED {store} {kind} {law}: {why}");
            record::law(&store, &kind, law, "skipped", &why);
        }
        Err(panic) => {
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            record::law(&store, &kind, law, "failed", why);
            resume_unwind(panic);
        }
    }
}
