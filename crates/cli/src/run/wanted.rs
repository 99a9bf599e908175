//! What is asked for: from names, flags and terms to the kind of lock that stands for them.

use lockkeeper::kinds::{Election, Multi, Mutex, RwLock, Semaphore};
use lockkeeper::store::Order;
use lockkeeper::{Error, ErrorKind, Keeper, Name, Result};

use super::held::Held;
use crate::args::{Patience, Permits, RunArgs, Terms};
use crate::exit::{self, Failure};

/// A lock, ready to be taken. Nothing has been sent.
pub enum Wanted {
    Mutex(Mutex),
    Several(Multi),
    Read(RwLock),
    Write(RwLock),
    Permits(Semaphore),
    Lead(Election),
}

/// Sets the terms that all kinds share; they have no trait in common, and need none elsewhere.
macro_rules! on_terms {
    ($lock:expr, $terms:expr) => {{
        let (mut lock, terms): (_, &Terms) = ($lock.lease($terms.lease).note($terms.note.clone()), $terms);
        if let Some(time) = terms.at_most {
            lock = lock.at_most(time);
        }
        if let Some(time) = terms.at_least {
            lock = lock.at_least(time);
        }
        if let Some(time) = terms.lock_delay {
            lock = lock.lock_delay(time);
        }
        match terms.wait {
            Patience::For(time) => lock.wait(time),
            Patience::Forever => lock.forever(),
        }
    }};
}

/// The names of a `run`, in the order in which they are taken, each once.
pub fn names(args: &RunArgs) -> Result<Vec<String>, Failure> {
    let mut names = args.names.clone();
    names.sort();
    names.dedup();
    for name in &names {
        Name::new(name)?;
    }
    if names.len() == 1 {
        return Ok(names);
    }
    let terms = &args.terms;
    let flags = [
        ("--shared", args.shared),
        ("--exclusive", args.exclusive),
        ("--permits", args.permits.is_some()),
        ("--at-most", terms.at_most.is_some()),
        ("--at-least", terms.at_least.is_some()),
        ("--lock-delay", terms.lock_delay.is_some()),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::new(exit::USAGE, format!("`{flag}` works with one name, not with several"))
            .with_hint("take several plainly, or nest one `lockkeeper run` in another")),
        None => Ok(names),
    }
}

impl Wanted {
    /// What `run` asks for.
    pub fn to_run(keeper: &Keeper, names: &[String], args: &RunArgs) -> Self {
        let terms = &args.terms;
        let [name] = names else {
            let several = keeper.multi(names.iter().map(String::as_str));
            let several = several.lease(terms.lease).note(terms.note.clone());
            return Self::Several(match terms.wait {
                Patience::For(time) => several.wait(time),
                Patience::Forever => several.forever(),
            });
        };
        if let Some(Permits { take, of }) = args.permits {
            return Self::Permits(on_terms!(keeper.semaphore(name, of).permits(take), terms));
        }
        match (args.shared, args.exclusive) {
            (true, _) => Self::Read(on_terms!(keeper.rwlock(name), terms)),
            (_, true) => Self::Write(on_terms!(keeper.rwlock(name), terms)),
            _ => {
                let mutex = on_terms!(keeper.mutex(name), terms);
                // In order wherever there is one: a command waits for its turn, and a line shows its tokens at once.
                Self::Mutex(if keeper.profile().order == Order::Fifo { mutex.fair() } else { mutex })
            }
        }
    }

    /// What `elect` asks for.
    pub fn to_lead(keeper: &Keeper, name: &str, terms: &Terms) -> Self {
        Self::Lead(on_terms!(keeper.election(name), terms))
    }

    /// Takes it, waiting as long as was asked for, or not at all; `None` if it was not free.
    pub async fn take(&self, waits: bool) -> Result<Option<Held>> {
        let taken = if waits { self.wait().await.map(Some) } else { self.try_now().await };
        match taken {
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(None),
            Err(error) if error.kind() == ErrorKind::Mismatch => Err(self.explain(error)),
            other => other,
        }
    }

    async fn wait(&self) -> Result<Held> {
        match self {
            Self::Mutex(mutex) => mutex.lock().await.map(Held::One),
            Self::Several(multi) => multi.lock().await.map(Held::Several),
            Self::Read(lock) => lock.read().await.map(Held::One),
            Self::Write(lock) => lock.write().await.map(|hold| Held::One(hold.into())),
            Self::Permits(semaphore) => semaphore.acquire().await.map(Held::One),
            Self::Lead(election) => election.campaign().await.map(Held::Leading),
        }
    }

    async fn try_now(&self) -> Result<Option<Held>> {
        Ok(match self {
            Self::Mutex(mutex) => mutex.try_lock().await?.map(Held::One),
            Self::Several(multi) => multi.try_lock().await?.map(Held::Several),
            Self::Read(lock) => lock.try_read().await?.map(Held::One),
            Self::Write(lock) => lock.try_write().await?.map(|hold| Held::One(hold.into())),
            Self::Permits(semaphore) => semaphore.try_acquire().await?.map(Held::One),
            Self::Lead(election) => election.try_campaign().await?.map(Held::Leading),
        })
    }

    /// The same failure with a hint that names the flags.
    fn explain(&self, error: Error) -> Error {
        error.with_hint(match self {
            Self::Permits(_) => "all who use the name at a time say `--permits` with the same N",
            Self::Read(_) | Self::Write(_) => {
                "all who use the name at a time say `--shared` or `--exclusive`; a plain `run` is another kind"
            }
            Self::Mutex(_) | Self::Several(_) => {
                "`lockkeeper ls` shows its kind; read-write needs `--shared` or `--exclusive`, a semaphore `--permits`"
            }
            Self::Lead(_) => "use another name for the election",
        })
    }
}
