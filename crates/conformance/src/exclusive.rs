//! Locks that are one: a mutex, a semaphore of one permit, a write lock, and a mutex as threads take it. The laws of the
//! mutex run on each.

use std::time::Duration;

use lockkeeper::blocking;
use lockkeeper_core::kinds::{Mutex, RwLock, Semaphore};
use lockkeeper_core::{Hold, Keeper, LockKind, Result, limits};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusive {
    /// A mutex.
    Mutex,
    /// A semaphore of one permit.
    Semaphore,
    /// A read-write lock, taken to write.
    Write,
    /// A mutex that a thread takes, by the blocking API.
    Blocking,
}

impl Exclusive {
    /// What it is called in the table of laws.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore(1)",
            Self::Write => "write lock",
            Self::Blocking => "blocking",
        }
    }

    /// Kind, weight and capacity of its claims.
    pub(crate) fn numbers(self) -> (LockKind, u32, u32) {
        match self {
            Self::Mutex | Self::Blocking => (LockKind::Mutex, 1, 1),
            Self::Semaphore => (LockKind::Semaphore, 1, 1),
            Self::Write => (LockKind::ReadWrite, limits::PERMITS_MAX, limits::PERMITS_MAX),
        }
    }

    /// From its word, as [`word`](Self::word) gives it.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Mutex, Self::Semaphore, Self::Write, Self::Blocking];
        all.into_iter().find(|exclusive| exclusive.word() == word)
    }

    /// The lock itself.
    pub fn of(self, keeper: &Keeper, name: &str) -> Lock {
        match self {
            Self::Mutex => Lock::Mutex(keeper.mutex(name)),
            Self::Semaphore => Lock::Semaphore(keeper.semaphore(name, 1)),
            Self::Write => Lock::Write(keeper.rwlock(name)),
            Self::Blocking => {
                let keeper = blocking::Keeper::around(keeper.clone()).expect("a thread for the blocking keeper");
                Lock::Blocking(keeper.mutex(name))
            }
        }
    }
}

/// A lock that is one of these, with the methods that laws need.
#[derive(Clone)]
pub enum Lock {
    /// A mutex.
    Mutex(Mutex),
    /// A semaphore of one permit.
    Semaphore(Semaphore),
    /// A write lock.
    Write(RwLock),
    /// A mutex that a thread takes.
    Blocking(blocking::Mutex),
}

macro_rules! passed_on {
    ($($name:ident($($value:ident: $type:ty)?)),+) => {
        $(
            #[doc = concat!("As the method `", stringify!($name), "` of each.")]
            #[must_use]
            pub fn $name(self $(, $value: $type)?) -> Self {
                match self {
                    Self::Mutex(lock) => Self::Mutex(lock.$name($($value)?)),
                    Self::Semaphore(lock) => Self::Semaphore(lock.$name($($value)?)),
                    Self::Write(lock) => Self::Write(lock.$name($($value)?)),
                    Self::Blocking(lock) => Self::Blocking(lock.$name($($value)?)),
                }
            }
        )+
    };
}

impl Lock {
    passed_on!(
        wait(wait: Duration),
        lease(lease: Duration),
        at_most(lease: Duration),
        at_least(at_least: Duration),
        lock_delay(delay: Duration),
        note(note: Vec<u8>),
        fair(),
        spin()
    );

    /// Takes it.
    pub async fn lock(&self) -> Result<Hold> {
        match self {
            Self::Mutex(lock) => lock.lock().await,
            Self::Semaphore(lock) => lock.acquire().await,
            Self::Write(lock) => lock.write().await.map(Hold::from),
            Self::Blocking(lock) => on_a_thread(lock, blocking::Mutex::lock).await.map(Hold::from),
        }
    }

    /// Takes it if it is free.
    pub async fn try_lock(&self) -> Result<Option<Hold>> {
        match self {
            Self::Mutex(lock) => lock.try_lock().await,
            Self::Semaphore(lock) => lock.try_acquire().await,
            Self::Write(lock) => Ok(lock.try_write().await?.map(Hold::from)),
            Self::Blocking(lock) => Ok(on_a_thread(lock, blocking::Mutex::try_lock).await?.map(Hold::from)),
        }
    }
}

/// Takes a lock on a thread that may block.
async fn on_a_thread<T, F>(lock: &blocking::Mutex, take: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&blocking::Mutex) -> Result<T> + Send + 'static,
{
    let lock = lock.clone();
    tokio::task::spawn_blocking(move || take(&lock)).await.expect("the thread does not panic")
}
