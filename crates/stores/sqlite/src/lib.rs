//! The embedded store: one SQLite file, safe for many processes on one host.
//!
//! Use this when all who take locks run on one machine; use a store with a server when they do not. There is nothing
//! to install. The file is kept in WAL mode and every answer is on disk before it is given (see [`Sync`]).
//!
//! How it works: `work` is what can be asked, as data; `scribe` is the one thread that does it, many calls to a
//! transaction; `lines` and `cells` turn rows into the pure model of the core and write the difference back; `hub`
//! knows who waits; `wake` tells other processes. Surprise: admission is not decided in SQL but by
//! [`Line`](lockkeeper_core::line::Line), here as in every store.
//!
//! ```
//! # use std::time::Duration;
//! # use lockkeeper_core::store::{Keep, Standing, Store};
//! # use lockkeeper_core::{Claim, ClaimId, LockKind, Name, Owner, Patience};
//! use lockkeeper_sqlite::{Options, Sqlite};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> lockkeeper_core::Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! let store = Sqlite::open(Options::at(directory.path().join("locks.db"))).await?;
//! # let claim = Claim {
//! #     id: ClaimId::random()?, owner: Owner::new("doc")?, kind: LockKind::Mutex, weight: 1, capacity: 1,
//! #     lease: Duration::from_secs(30), delay: Duration::ZERO, fair: false, patience: Patience::Now, note: vec![],
//! # };
//! let lock = Name::new("orders/42")?;
//! assert!(matches!(store.enter(&lock, &claim).await?, Standing::Held { .. }));
//! store.leave(&lock, claim.id, Keep::Nothing).await?;
//! store.close().await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod cells;
mod doctor;
mod epoch;
#[doc(hidden)]
pub mod fuzzing;
mod hub;
mod lines;
mod place;
mod queue;
mod schema;
mod scribe;
mod sql;
mod store;
mod trouble;
mod wake;
mod work;

use std::path::PathBuf;

use lockkeeper_core::time::Clock;

pub use doctor::checkup;
pub use store::Sqlite;

/// How to open the file.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file; it and its directories are made if they are missing.
    pub path: PathBuf,
    /// What an answer is worth when the power fails.
    pub sync: Sync,
    /// The clock that leases are kept by.
    pub clock: Clock,
}

impl Options {
    /// The file at this path, with everything else as usual.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), sync: Sync::Full, clock: Clock::system() }
    }
}

/// What an answer is worth when the power fails. A crash of the program alone loses nothing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Every answer is on disk before it is given.
    #[default]
    Full,
    /// Faster; the last moments before a power loss may be gone, and a lock may then be given twice.
    Normal,
}
