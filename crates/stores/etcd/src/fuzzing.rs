//! What the fuzz targets reach that users do not: pure functions from a server's words to the core's. Not part of the API.
//!
//! Surprise: nothing here is used by the store itself; it only opens doors.

use std::collections::HashMap;
use std::time::Duration;

use lockkeeper_core::access::Secret;
use lockkeeper_core::cell::{CellOp, CellReply, CellState};
use lockkeeper_core::checkup::Report;
use lockkeeper_core::store::LockView;
use lockkeeper_core::{Claim, ClaimId, Error, LockKind, Name, Owner, Result, Verdict};
use tonic::{Code, Status};

use crate::line::Line;
use crate::news::{Ear, Rehearsal};
use crate::options::{Endpoint, Options};
use crate::proto::cluster::{Alarm, Member, StatusResponse};
use crate::proto::watch::{WatchResponse, Watching};
use crate::proto::{KeyValue, TxnResponse};
use crate::record::Record;
use crate::{cells, doctor, keys, look, trouble};

/// What a claim's value says: its id, kind, weight, capacity and lease, whether its holder is out, its owner, its note.
pub type Recorded = (ClaimId, LockKind, u32, u32, Duration, bool, Owner, Vec<u8>);

/// Reads a claim's value; what it says, and how we write that.
pub fn record(value: &[u8]) -> Option<(Recorded, Vec<u8>)> {
    let record = Record::read(value)?;
    let written = record.write();
    let Record { id, kind, weight, capacity, lease, left, owner, note } = record;
    Some(((id, kind, weight, capacity, lease, left, owner, note), written))
}

/// The value of a claim that comes.
pub fn write_record(claim: &Claim) -> Vec<u8> {
    Record::of(claim).write()
}

/// Can one of ours stand at this key?
pub fn is_slot(lock: &Name, key: &[u8]) -> bool {
    key.strip_prefix(&keys::line(lock)[..]).is_some_and(keys::is_slot)
}

/// One who stands in a line.
#[derive(Debug, Clone)]
pub struct Stood {
    /// Its place.
    pub order: u64,
    /// Its key.
    pub key: Vec<u8>,
    /// The id that it is shown with.
    pub id: ClaimId,
    /// Did one of ours make it?
    pub ours: bool,
    /// Where it stands.
    pub verdict: Verdict,
}

/// A line out of the keys that were found.
pub struct Lined(Line);

impl Lined {
    /// Reads it.
    pub fn of(lock: &Name, found: Vec<KeyValue>) -> Self {
        Self(Line::of(lock, found))
    }

    /// All who stand, in order.
    pub fn all(&self) -> Vec<Stood> {
        let stood = |(at, standee): (usize, &crate::line::Standee)| Stood {
            order: standee.order,
            key: standee.key.clone(),
            id: standee.id,
            ours: standee.record.is_some(),
            verdict: self.0.verdict(at),
        };
        self.0.0.iter().enumerate().map(stood).collect()
    }

    /// Where this claim is.
    pub fn position(&self, id: ClaimId) -> Option<usize> {
        self.0.position(id)
    }

    /// Where this claim would stand behind the first `ahead`, if they agree with it.
    ///
    /// # Errors
    /// `Mismatch` if they do not.
    pub fn newcomer(&self, ahead: usize, claim: &Claim) -> Result<Verdict> {
        self.0.agree(ahead, claim)?;
        Ok(self.0.judge(ahead, claim.weight, claim.capacity))
    }

    /// The key of the one with this order.
    pub fn key_of(&self, order: u64) -> Option<&[u8]> {
        self.0.key_of(order)
    }

    /// The line as people see it.
    pub fn view(&self, lock: &Name, left: &HashMap<i64, Duration>) -> Option<LockView> {
        look::view(lock, &self.0, left)
    }
}

/// The lines of these names, out of the answer to all of them.
///
/// # Errors
/// `Foreign` if it does not answer that.
pub fn lines(names: Vec<Name>, answer: TxnResponse) -> Result<Vec<(Name, Lined)>> {
    Ok(look::read(names, answer)?.into_iter().map(|(name, line)| (name, Lined(line))).collect())
}

/// What stands in a cell's key.
///
/// # Errors
/// `Foreign` if it is not ours.
pub fn cell(cell: &Name, found: Option<&KeyValue>) -> Result<Option<CellState>> {
    cells::state(cell, found)
}

/// What an operation makes of a cell: the new value (none: it is deleted) if it changes anything, and the reply once the
/// change has been given this revision.
///
/// # Errors
/// What `update` says.
pub fn cell_changed(
    before: Option<&CellState>,
    op: &CellOp,
    revision: u64,
) -> Result<(Option<Option<Vec<u8>>>, CellReply)> {
    cells::possible(op)?;
    let (change, reply) = cells::decided(before, op)?;
    let change = match change {
        cells::Change::Nothing => None,
        cells::Change::Delete => Some(None),
        cells::Change::Put(value) => Some(Some(value)),
    };
    Ok((change, cells::versioned(reply, revision)))
}

/// A stream of news without a network.
#[derive(Default)]
pub struct News(Rehearsal);

/// Somebody who listens, until dropped.
pub struct Listener(Ear);

/// What a listener was told: since when, the last revision, the last one of a key that was not only added, and is it over?
pub type Heard = (Option<i64>, i64, i64, bool);

impl News {
    /// Another stream begins.
    pub fn begin(&mut self) {
        self.0.begin();
    }

    /// Listens to a key, or with an end to a range.
    pub fn listen(&self, key: &[u8], range_end: &[u8]) -> Listener {
        Listener(self.0.listen(key, range_end))
    }

    /// The stream of so many streams ago tells this.
    pub fn hears(&self, ago: u64, response: WatchResponse) {
        self.0.hears(ago, response);
    }

    /// The stream ends.
    pub fn end(&self) {
        self.0.end();
    }

    /// What the stream was asked since the last look.
    pub fn asked(&mut self) -> Vec<Watching> {
        self.0.asked()
    }

    /// How many watches there are.
    pub fn watches(&self) -> usize {
        self.0.watches()
    }
}

impl Listener {
    /// What it was told so far.
    pub fn heard(&self) -> Heard {
        let heard = *self.0.hearing().borrow();
        (heard.since, heard.last, heard.last_not_new, heard.over)
    }
}

/// What the members of a cluster tell of themselves.
#[derive(Debug, Default)]
pub struct Told {
    /// How each is, in the order of the options, or what it said instead: a code of gRPC and a text.
    pub statuses: Vec<std::result::Result<StatusResponse, (i32, String)>>,
    /// The counts of each, before and after.
    pub counts: Vec<[String; 2]>,
    /// Who belongs to the cluster.
    pub members: Option<Vec<Member>>,
    /// What it complains of.
    pub alarms: Option<Vec<Alarm>>,
    /// The term when all was over.
    pub term_after: u64,
}

/// What is said of a cluster that told this.
pub fn judged(options: &Options, told: Told) -> Report {
    let said = |(endpoint, status): (&Endpoint, std::result::Result<_, (i32, String)>)| {
        status.map_err(|(code, text)| trouble::refused(endpoint, &Status::new(Code::from_i32(code), text)))
    };
    let statuses = options.endpoints.iter().zip(told.statuses).map(said).collect();
    let Told { counts, members, alarms, term_after, .. } = told;
    doctor::judged(options, doctor::Told { statuses, counts, members, alarms, term_after })
}

/// The address in a URL that a member tells.
pub fn address(url: &str) -> Option<Endpoint> {
    doctor::endpoint(url)
}

/// How a status is told: to who comes in, and to who asks. With a cause it is the way there that broke.
pub fn refused(endpoint: &Endpoint, password: &Secret, code: i32, text: &str, cause: Option<&str>) -> [Error; 2] {
    let mut status = Status::new(Code::from_i32(code), text);
    if let Some(cause) = cause {
        status.set_source(std::sync::Arc::new(std::io::Error::other(cause.to_owned())));
    }
    [trouble::not_let_in(endpoint, Some(password), &status), trouble::refused(endpoint, &status)]
}
