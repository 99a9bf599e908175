//! One distributed lock over the stores people already run.
//!
//! ```
//! use std::time::Duration;
//! use lockkeeper::Keeper;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let keeper = Keeper::connect("memory:").await?; // or sqlite:/var/lib/app/locks.db
//! let hold = keeper.mutex("orders/42").wait(Duration::from_secs(5)).lock().await?;
//! tokio::select! {
//!     () = charge_card(hold.token()) => {}            // the token goes to the resource
//!     why = hold.lost() => return Err(why.into()),    // told before anyone else can hold
//! }
//! hold.release().await
//! # }).unwrap();
//! # async fn charge_card(_token: Option<lockkeeper::Token>) {}
//! ```
//!
//! Stores are features of this crate: `sqlite`, `redis`, `etcd`; `full` is all of them. The in-memory store is always
//! there. With the feature `blocking` the module of that name has the same API for programs without async code.

#[cfg(feature = "blocking")]
pub mod blocking;
pub mod checkup;
mod connect;
#[cfg(feature = "etcd")]
mod etcd;
/// For the fuzz targets: URLs are read, and nothing is opened. Not part of the API.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::connect::{Asked, read};
}
#[cfg(any(test, doctest))]
mod guide;
mod location;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "etcd", feature = "redis"))]
mod server;

use std::ops::Deref;

pub use checkup::checkup;
pub use connect::{Access, STORES, open, open_as};
pub use lockkeeper_core::access::Secret;
pub use lockkeeper_core::{
    Builder, ClaimId, Effect, Error, ErrorKind, Hold, LockKind, Lost, Name, Owner, Result, Token, cell, deadlock,
    kinds, layers, limits, stores, time,
};

#[doc(hidden)]
pub use lockkeeper_core::mutants;

/// The seam that stores implement, and what they promise. It may change in 0.x minor versions.
pub mod store {
    pub use lockkeeper_core::line::{self, Line};
    pub use lockkeeper_core::store::*;
    pub use lockkeeper_core::{Claim, Patience, Spot, Verdict, admit};
}

/// Use this as the one client of a store in a program; clones are cheap and share everything.
///
/// It is [`lockkeeper_core::Keeper`], which it stands for everywhere, plus [`connect`](Self::connect).
#[derive(Debug, Clone)]
pub struct Keeper(lockkeeper_core::Keeper);

impl Keeper {
    /// Connects to the store that a URL names, and sees that it answers.
    ///
    /// `memory:` is a store of its own, `memory:NAME` one shared by that name in this process;
    /// `sqlite:PATH` is a file, made if it is missing; `redis://[user[:password]@]host[:port][/database]` is a server,
    /// `rediss://` the same by TLS, `redis+unix:///path?db=` one on this host;
    /// `etcd://[user[:password]@]host[:port][,host[:port]…]` is a cluster, `etcds://` the same by TLS. Options follow a
    /// `?`: `prefix` on every store (default `lockkeeper`; empty to share names with other clients), `sync=full|normal` on
    /// sqlite, `cells=script|watch` on Redis, `lease=30s` on etcd (the one that a client's claims share), `ca`, `cert`,
    /// `key` and `server_name` where TLS is used.
    ///
    /// # Errors
    /// `Invalid` for a URL that cannot be read or has an unknown option, `Unsupported` for a store that is not
    /// built in, and whatever keeps the store from answering.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_as(url, &Access::default()).await
    }

    /// The same with a password that does not stand in the URL.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `Invalid` if the store has no passwords.
    pub async fn connect_as(url: &str, access: &Access) -> Result<Self> {
        let (store, names_are_shared) = connect::open_shared(url, access).await?;
        let keeper = Self(Self::builder().hand_over(!names_are_shared).with_store(store));
        keeper.ping().await?;
        Ok(keeper)
    }

    /// A keeper on a store that was opened already.
    pub fn with_store(store: store::SharedStore) -> Self {
        Self(lockkeeper_core::Keeper::with_store(store))
    }

    /// A keeper made to measure; give it a store with [`open`].
    pub fn builder() -> Builder {
        lockkeeper_core::Keeper::builder()
    }
}

impl Deref for Keeper {
    type Target = lockkeeper_core::Keeper;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<lockkeeper_core::Keeper> for Keeper {
    fn from(keeper: lockkeeper_core::Keeper) -> Self {
        Self(keeper)
    }
}
