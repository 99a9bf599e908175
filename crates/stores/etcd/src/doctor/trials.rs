//! What is done for real, all of it under a name of its own and on leases that end: rights, how long things take, how long
//! the shortest lease is, and what the server's own lock does.

use std::time::Duration;

use lockkeeper_core::{Error, ErrorKind, Name, Result};

use super::own_lock::{self, OwnLock};
use super::rights::{Right, Rights};
use super::speed::{self, Speed};
use crate::keys;
use crate::link::Link;
use crate::proto::cluster::{AuthenticateRequest, AuthenticateResponse};
use crate::proto::{Do, RangeRequest, RangeResponse, TxnResponse, path};
use crate::session::Session;
use crate::{trouble, txn};

/// The shortest lease that anybody asks for here.
pub(super) const SHORTEST: Duration = Duration::from_secs(2);
/// How long what is tried may stay if it cannot be taken away again.
const KEPT: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Debug)]
pub(super) struct Trials {
    /// Does the cluster ask who one is? `None` if that was not found out.
    pub(super) users: Option<bool>,
    pub(super) rights: Rights,
    /// `None` if it may not be measured.
    pub(super) speed: Option<Speed>,
    /// What the server gave when it was asked for [`SHORTEST`].
    pub(super) shortest: Option<Duration>,
    pub(super) own_lock: OwnLock,
}

impl Trials {
    /// Tries everything below this name.
    pub(super) async fn make(link: &Link, place: &str) -> Result<Self> {
        let users = users(link).await;
        let name = Name::stored(&format!("{place}/tried"))?;
        let Ok(lease) = Session::grant(link, KEPT, false).await else {
            // A cluster that is full, or has just lost its leader: the trial of a lock says why.
            let unknown = || Right::Unknown("no lease was given to try it with".to_owned());
            let rights = Rights { lines: unknown(), cells: unknown(), listing: unknown() };
            let own_lock = OwnLock::Unknown("no lease was given to try it with".to_owned());
            return Ok(Self { users, rights, speed: None, shortest: None, own_lock });
        };
        let in_line = [keys::line(&name), b"tried".to_vec()].concat();
        let rights = Rights {
            lines: may_write(link, &in_line, lease.id).await,
            cells: may_write(link, &keys::cell(&name), lease.id).await,
            listing: may_list(link).await,
        };
        let speed = match rights.lines {
            Right::Yes => speed::measure(link, &in_line, lease.id).await,
            _ => None,
        };
        let shortest = match Session::grant(link, SHORTEST, false).await {
            Ok(session) => {
                let length = session.length;
                // It would end by itself soon.
                let _ = session.revoke(link).await;
                Some(length)
            }
            Err(_) => None,
        };
        let own_lock = match rights.lines {
            Right::Yes => own_lock::try_out(link, &format!("{place}/own")).await,
            _ => OwnLock::Unknown("this user may not write there".to_owned()),
        };
        // And all that hangs on it.
        let _ = lease.revoke(link).await;
        Ok(Self { users, rights, speed, shortest, own_lock })
    }
}

/// Does the cluster ask who one is? Found out by asking to be let in as nobody.
async fn users(link: &Link) -> Option<bool> {
    let question = AuthenticateRequest { name: String::new(), password: String::new() };
    let judge = |answer: Result<AuthenticateResponse, tonic::Status>| match answer {
        Err(status) if trouble::needs_no_badge(&status) => Ok(false),
        Err(status) if trouble::is_refusal(&status) => Ok(true),
        Ok(_) => Ok(true),
        Err(status) => Err(status),
    };
    link.ask_for(path::AUTHENTICATE, &question, judge).await.ok().map(|told| told.answer)
}

/// Puts a key, reads it and deletes it.
async fn may_write(link: &Link, key: &[u8], lease: i64) -> Right {
    let put = txn::txn(Vec::new(), vec![txn::put(key, Vec::new(), lease), Do::Range(txn::get(key))], Vec::new());
    let delete = txn::txn(Vec::new(), vec![txn::delete(key)], Vec::new());
    for question in [put, delete] {
        if let Err(error) = link.ask::<_, TxnResponse>(path::TXN, &question).await {
            return refused(&error);
        }
    }
    Right::Yes
}

/// Reads what `ls` reads.
async fn may_list(link: &Link) -> Right {
    let prefix = link.options().listed_under.as_bytes();
    let key = if prefix.is_empty() { vec![0] } else { prefix.to_vec() };
    let question =
        RangeRequest { key, range_end: keys::end_of(prefix), limit: 1, keys_only: true, ..RangeRequest::default() };
    match link.ask::<_, RangeResponse>(path::RANGE, &question).await {
        Ok(_) => Right::Yes,
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> Right {
    match error.kind() {
        ErrorKind::Denied => Right::No,
        _ => Right::Unknown(error.to_string()),
    }
}
