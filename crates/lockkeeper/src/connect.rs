//! From a URL to a store. A new store is one arm in `read`, one in `open_asked` and one row in `STORES`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use lockkeeper_core::access::Secret;
use lockkeeper_core::layers::{Prefix, wrap};
use lockkeeper_core::store::SharedStore;
use lockkeeper_core::stores::Memory;
use lockkeeper_core::{Error, ErrorKind, Result};

use crate::location::Location;

/// The stores there are: the scheme of their URLs, and whether they are built in.
pub const STORES: &[(&str, bool)] = &[
    ("memory", true),
    ("sqlite", cfg!(feature = "sqlite")),
    ("redis", cfg!(feature = "redis")),
    ("rediss", cfg!(all(feature = "redis", feature = "tls"))),
    ("redis+unix", cfg!(feature = "redis")),
    ("etcd", cfg!(feature = "etcd")),
    ("etcds", cfg!(all(feature = "etcd", feature = "tls"))),
];

/// What names stand under if nothing else is asked for.
const PREFIX: &str = "lockkeeper";

/// What lets us in that does not stand in the URL.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The password; one in the URL goes first.
    pub password: Option<Secret>,
}

/// Opens the store that a URL names, with its prefix; see [`Keeper::connect`](crate::Keeper::connect) for URLs.
pub async fn open(url: &str) -> Result<SharedStore> {
    open_as(url, &Access::default()).await
}

/// The same with a password that does not stand in the URL.
pub async fn open_as(url: &str, access: &Access) -> Result<SharedStore> {
    open_shared(url, access).await.map(|(store, _)| store)
}

/// The same, and whether its names are shared with other clients (an empty prefix).
pub(crate) async fn open_shared(url: &str, access: &Access) -> Result<(SharedStore, bool)> {
    let (asked, prefix) = read(url, access)?;
    let store = open_asked(asked).await?;
    Ok(match prefix {
        Some(prefix) => (wrap(store, prefix), false),
        None => (store, true),
    })
}

/// What a URL asks for, with everything of it understood and nothing opened.
#[derive(Debug)]
pub enum Asked {
    /// The store of this name in this process, or a fresh one if it is empty.
    Memory(String),
    /// A file.
    #[cfg(feature = "sqlite")]
    Sqlite(lockkeeper_sqlite::Options),
    /// A server.
    #[cfg(feature = "redis")]
    Redis(lockkeeper_redis::Options),
    /// A cluster.
    #[cfg(feature = "etcd")]
    Etcd(lockkeeper_etcd::Options),
}

/// Reads a URL, and the prefix that names stand under.
///
/// # Errors
/// `Invalid` for one that cannot be read or has an unknown option, `Unsupported` for a store that is not built in.
pub fn read(url: &str, access: &Access) -> Result<(Asked, Option<Prefix>)> {
    let mut location = Location::parse(url)?;
    let under = location.take("prefix").unwrap_or_else(|| PREFIX.to_owned());
    let prefix = Prefix::new(&under)?;
    let asked = match location.scheme.as_str() {
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+unix" => Asked::Redis(crate::redis::options(location, access, &under)?),
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => Asked::Etcd(crate::etcd::options(location, access, &under)?),
        "memory" | "sqlite" if access.password.is_some() => return Err(no_password(&location.scheme)),
        "memory" => {
            let name = location.place.clone();
            location.finish(&["prefix"])?;
            Asked::Memory(name)
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => Asked::Sqlite(sqlite_options(location)?),
        scheme => return Err(not_built_in(scheme)),
    };
    Ok((asked, prefix))
}

async fn open_asked(asked: Asked) -> Result<SharedStore> {
    match asked {
        Asked::Memory(name) => Ok(memory(name)),
        #[cfg(feature = "sqlite")]
        Asked::Sqlite(options) => Ok(lockkeeper_sqlite::Sqlite::open(options).await?),
        #[cfg(feature = "redis")]
        Asked::Redis(options) => Ok(lockkeeper_redis::Redis::open(options).await?),
        #[cfg(feature = "etcd")]
        Asked::Etcd(options) => Ok(lockkeeper_etcd::Etcd::open(options).await?),
    }
}

fn no_password(scheme: &str) -> Error {
    Error::invalid("password", format!("the store `{scheme}:` has none"))
}

fn not_built_in(scheme: &str) -> Error {
    if STORES.iter().any(|(known, _)| *known == scheme) {
        let feature = match scheme {
            "rediss" => "redis` and `tls",
            "redis+unix" => "redis",
            "etcds" => "etcd` and `tls",
            scheme => scheme,
        };
        return Error::new(ErrorKind::Unsupported, format!("the store `{scheme}:` is not built in"))
            .with_hint(format!("build `lockkeeper` with the feature `{feature}`"));
    }
    let known: Vec<_> =
        STORES.iter().filter(|(_, built_in)| *built_in).map(|(known, _)| format!("`{known}:`")).collect();
    Error::invalid("store", format!("there is no store `{scheme}:`"))
        .with_hint(format!("the stores built in are {}", known.join(", ")))
}

/// `memory:` is a fresh store, `memory:NAME` one shared by all of this process who say that name.
fn memory(name: String) -> SharedStore {
    static NAMED: LazyLock<Mutex<HashMap<String, Weak<Memory>>>> = LazyLock::new(Mutex::default);
    if name.is_empty() {
        return Memory::shared();
    }
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|_, store| store.strong_count() > 0);
    if let Some(store) = named.get(&name).and_then(Weak::upgrade) {
        return store;
    }
    let store = Memory::shared();
    named.insert(name, Arc::downgrade(&store));
    store
}

#[cfg(feature = "sqlite")]
fn sqlite_options(mut location: Location) -> Result<lockkeeper_sqlite::Options> {
    use lockkeeper_sqlite::{Options, Sync};

    let path = match location.place.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(_) => {
            return Err(Error::invalid("store", "`sqlite:` is a file on this host, and has no host name")
                .with_hint("write an absolute path as `sqlite:/path/locks.db`, a relative one as `sqlite:locks.db`"));
        }
        None => location.place.clone(),
    };
    if path.is_empty() {
        return Err(
            Error::invalid("store", "`sqlite:` needs a path").with_hint("for example `sqlite:/var/lib/app/locks.db`")
        );
    }
    let sync = match location.take("sync").as_deref() {
        None | Some("full") => Sync::Full,
        Some("normal") => Sync::Normal,
        Some(_) => {
            return Err(Error::invalid("store", "its option `sync` is neither `full` nor `normal`")
                .with_hint("it is `full` (the default) or `normal` (faster; a power loss may take the last commits)"));
        }
    };
    location.finish(&["sync", "prefix"])?;
    Ok(Options { sync, ..Options::at(path) })
}
