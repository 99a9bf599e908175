//! Is a store fit to be trusted with locks? A new store is one arm in `checkup`.
//!
//! Surprise: `memory:` is looked over too, and found to exclude nobody but the tasks of its own process.

pub use lockkeeper_core::checkup::*;
use lockkeeper_core::store::Store;
use lockkeeper_core::stores::Memory;
use lockkeeper_core::{ClaimId, Name, Result};

use crate::connect::{self, Access, Asked};

/// Looks over the store that a URL names: what there is, what it means for locks, and what may be trusted.
///
/// A lock is really taken, handed over and released, under a name of its own.
///
/// # Errors
/// As [`open_as`](crate::open_as): what is wrong with the URL, or keeps the store from answering at all. What is wrong
/// with a store that answers is in the report.
///
/// # Example
/// ```
/// use lockkeeper::checkup::{Kept, Promise};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let report = lockkeeper::checkup("memory:", &lockkeeper::Access::default()).await?;
/// assert_eq!(report.kept(Promise::Tokens), Kept::Yes);
/// assert_eq!(report.kept(Promise::Restart), Kept::No);
/// println!("{}", report.trust());
/// # Ok::<(), lockkeeper::Error>(())
/// # }).unwrap();
/// ```
pub async fn checkup(url: &str, access: &Access) -> Result<Report> {
    match connect::read(url, access)?.0 {
        Asked::Memory(_) => memory().await,
        #[cfg(feature = "sqlite")]
        Asked::Sqlite(options) => lockkeeper_sqlite::checkup(options).await,
        #[cfg(feature = "redis")]
        Asked::Redis(options) => lockkeeper_redis::checkup(options).await,
        #[cfg(feature = "etcd")]
        Asked::Etcd(options) => lockkeeper_etcd::checkup(options).await,
    }
}

async fn memory() -> Result<Report> {
    let store = Memory::shared();
    let mut report = Report::new("memory", "this process");
    trial(&*store, &Name::new(&format!("doctor/{}", ClaimId::random()?))?).await?;
    report.promise_of(store.profile());
    report.promise(Promise::Usable, true, "a lock was taken, renewed, handed over and released", None);
    report.promise(Promise::WritablePrimary, true, "there is only this process", None);
    report.promise(Promise::NoEviction, true, "nothing is ever thrown away", None);
    let change = "use `sqlite:PATH`, or a store with a server";
    for promise in [Promise::Restart, Promise::PowerLoss, Promise::Failover] {
        report.promise(promise, false, "locks are gone with the process", Some(change.to_owned()));
    }
    let means = "another process has locks of its own: it excludes nobody";
    let finding = Finding::new("reach", Level::Danger, "locks are kept in the memory of one process", means);
    report.find(finding.with_change(change));
    Ok(report.sorted())
}
