//! The server's own lock, tried for the fault that it is known for: does it grant to a waiter whose lease has ended
//! (etcd#11456)?
//!
//! One call holds it, a second one waits, the second's lease is ended, the first lets go. Surprise: this is the only place
//! that calls that lock, and nothing here depends on how it answers.

use std::time::Duration;

use futures_util::future::join;
use lockkeeper_core::checkup::{Finding, Level, Report};
use lockkeeper_core::{Error, ErrorKind, Result};
use tokio::time::{sleep, timeout};

use crate::keys;
use crate::link::Link;
use crate::proto::cluster::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use crate::proto::{RangeRequest, RangeResponse, path};
use crate::session::Session;
use crate::txn;

/// Long enough for all of it, short enough to be forgotten soon.
const LEASE: Duration = Duration::from_secs(15);
/// How long the second call may take to stand in line, and then to be answered.
const STANDS_WITHIN: Duration = Duration::from_secs(2);
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OwnLock {
    /// It granted to one that was out of the line.
    Grants,
    /// It said that the lease had ended.
    Refuses,
    /// It was not found out, and why not.
    Unknown(String),
}

/// Tries it under this name.
pub(super) async fn try_out(link: &Link, name: &str) -> OwnLock {
    let granted = async { Ok([Session::grant(link, LEASE, false).await?, Session::grant(link, LEASE, false).await?]) };
    let leases = match granted.await {
        Ok(leases) => leases,
        Err(error) => return unknown(error),
    };
    let ids = (leases[0].id, leases[1].id);
    let seen = steps(link, name.as_bytes(), ids, leases[1].revoke(link)).await;
    for lease in leases {
        // The second one has ended, and both would soon.
        let _ = lease.revoke(link).await;
    }
    seen.unwrap_or_else(unknown)
}

fn unknown(error: Error) -> OwnLock {
    OwnLock::Unknown(error.to_string())
}

async fn steps(link: &Link, name: &[u8], ids: (i64, i64), end: impl Future<Output = Result<()>>) -> Result<OwnLock> {
    // Both calls and the letting go are put to one member: the calls are a matter of that member.
    let at = link.first();
    let lock = |lease: i64| LockRequest { name: name.to_vec(), lease };
    let first: LockResponse = link.ask_member(at, path::LOCK, &lock(ids.0)).await?;
    let second = lock(ids.1);
    let waiting = timeout(STANDS_WITHIN + ANSWERED_WITHIN, link.ask_member::<_, LockResponse>(at, path::LOCK, &second));
    let acting = async {
        both_stand(link, name).await?;
        end.await?;
        let unlock = UnlockRequest { key: first.key.clone() };
        link.ask_member::<_, UnlockResponse>(at, path::UNLOCK, &unlock).await.map(|_| ())
    };
    let (answer, acted) = join(waiting, acting).await;
    acted?;
    Ok(match answer {
        Ok(Ok(_)) => OwnLock::Grants,
        Ok(Err(error)) if error.to_string().contains("session is expired") => OwnLock::Refuses,
        Ok(Err(error)) => unknown(error),
        Err(_) => OwnLock::Unknown("it did not answer in time".to_owned()),
    })
}

/// Waits until both calls stand in line.
async fn both_stand(link: &Link, name: &[u8]) -> Result<()> {
    let key = [name, b"/"].concat();
    let question = RangeRequest { range_end: keys::end_of(&key), count_only: true, ..txn::get(&key) };
    let looking = async {
        loop {
            let answer: RangeResponse = link.ask(path::RANGE, &question).await?.answer;
            if answer.count >= 2 {
                return Ok(());
            }
            // Watching it would be a second thing to go wrong.
            sleep(LOOK_EVERY).await;
        }
    };
    let late = || Error::new(ErrorKind::Unavailable, "a second call did not stand in line in time");
    timeout(STANDS_WITHIN, looking).await.unwrap_or_else(|_| Err(late()))
}

/// What that means.
pub(super) fn tell(own_lock: &OwnLock, report: &mut Report) {
    report.find(match own_lock {
        OwnLock::Grants => {
            let found = "the server's own lock grants to a waiter whose lease has ended (etcd#11456)";
            let means = "etcd's Lock call must not be used: two may have it at once. Lockkeeper does not use it, and is \
                not touched";
            let finding = Finding::new("own lock", Level::Note, found, means);
            finding.with_change("let programs that call it take their locks here instead")
        }
        OwnLock::Refuses => {
            Finding::good("own lock", "the server's own lock refuses a waiter whose lease has ended; it is not used here")
        }
        OwnLock::Unknown(why) => {
            let found = format!("whether the server's own lock has the fault of etcd#11456 was not found out: {why}");
            let means = "etcd's Lock call must not be used. Lockkeeper does not use it, and is not touched";
            Finding::new("own lock", Level::Note, found, means)
        }
    });
}
