//! Lines: from rows to the pure model, and the difference back.
//!
//! Surprise: a claim that was stamped in another epoch cannot be compared with our clock. It stands until somebody
//! of our epoch has seen it unchanged for as long as it was given; who saw it since when is kept in the file, since
//! a program that only starts, asks and ends would never see a whole lease by itself.

use std::time::Duration;

use lockkeeper_core::line::{Entry, Line, Step};
use lockkeeper_core::store::{LockView, Standing};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{ClaimId, Error, LockKind, Name, Owner, Token};
use rusqlite::{OptionalExtension, Row, params};

use crate::hub::Who;
use crate::sql;
use crate::trouble::{Trouble, foreign};
use crate::work::{Batch, duration, length, moment, signed, stamp, unsigned};

/// A line as it was read.
pub(crate) struct Loaded {
    pub(crate) line: Line,
    orders: Vec<(ClaimId, u64)>,
}

impl Loaded {
    /// What an observer would see, as a number; zero for an empty line.
    pub(crate) fn fingerprint(&self, lock: &Name, now: Moment) -> u64 {
        self.line.view(lock, now).map_or(0, |view| view.fingerprint())
    }

    /// Where a waiting claim stands, if it is in.
    pub(crate) fn standing(&self, who: Who, now: Moment) -> Option<Standing> {
        match who {
            Who::Claim(id) => self.line.held(id, now),
            Who::Observer(_) => None,
        }
    }

    /// Is asking again worth it? For a claim it is when it is in, and when it is not there any more.
    pub(crate) fn is_news(&self, lock: &Name, who: Who, now: Moment) -> bool {
        match who {
            Who::Claim(id) => {
                let stands = self.line.get(id).is_some_and(|entry| entry.expires > now);
                !stands || self.line.is_in(id, now)
            }
            Who::Observer(seen) => self.fingerprint(lock, now) != seen,
        }
    }
}

/// A claim as its row tells it, on the clock of `epoch`.
struct Kept {
    entry: Entry,
    lease: Duration,
    epoch: i64,
}

/// Reads a line, and sees to the claims of other epochs in it.
pub(crate) fn load(batch: &mut Batch<'_>, lock: &Name, now: Moment) -> Result<Loaded, Trouble> {
    read(batch, lock, now, true)
}

/// Reads a line and changes nothing: claims of other epochs that nobody has seen yet stand.
pub(crate) fn peek(batch: &mut Batch<'_>, lock: &Name, now: Moment) -> Result<Loaded, Trouble> {
    read(batch, lock, now, false)
}

fn read(batch: &mut Batch<'_>, lock: &Name, now: Moment, note: bool) -> Result<Loaded, Trouble> {
    let mut rows = batch.hot.line.query([lock.as_str()])?;
    // All rows are understood before anything is written.
    let mut kept = Vec::new();
    while let Some(row) = rows.next()? {
        kept.push(parse(row)?);
    }
    drop(rows);
    let mut entries = Vec::with_capacity(kept.len());
    for mut claim in kept {
        if claim.epoch != batch.setting.epoch.0 {
            claim.entry.expires = end_as_seen(batch, lock, &claim, now, note)?;
            claim.entry.entered = now;
            claim.entry.held_since = None;
        }
        entries.push(claim.entry);
    }
    let orders = entries.iter().map(|entry| (entry.id, entry.order)).collect();
    Ok(Loaded { line: Line::of(entries), orders })
}

/// When a claim of another epoch ends on our clock.
fn end_as_seen(batch: &mut Batch<'_>, lock: &Name, claim: &Kept, now: Moment, note: bool) -> Result<Moment, Trouble> {
    let (order, ours) = (signed(claim.entry.order), batch.setting.epoch.0);
    let as_it_is = (stamp(claim.entry.expires), claim.epoch);
    if batch.sightings {
        let mut statement = batch.connection.prepare_cached(sql::SIGHTING)?;
        let seen = statement
            .query_row(params![lock.as_str(), order, ours], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))
            .optional()?;
        if let Some((as_it_was, ends)) = seen
            && as_it_was == as_it_is
        {
            return moment(ends);
        }
    }
    let ends = now + claim.lease;
    if note && batch.writes {
        let mut statement = batch.connection.prepare_cached(sql::SIGHTING_PUT)?;
        statement.execute(params![lock.as_str(), order, ours, as_it_is.0, as_it_is.1, stamp(ends)])?;
        batch.sightings = true;
    }
    Ok(ends)
}

/// One row, for the fuzz targets: the claim, and how long it was given.
pub(crate) fn entry(row: &Row<'_>) -> Result<(Entry, Duration), Trouble> {
    parse(row).map(|kept| (kept.entry, kept.lease))
}

fn parse(row: &Row<'_>) -> Result<Kept, Trouble> {
    let order = unsigned(row.get(0)?)?;
    if order > Token::NUMBER_MAX {
        return Err(foreign("the number of a claim is not one of ours").into());
    }
    let (weight, capacity): (u32, u32) = (row.get(7)?, row.get(8)?);
    if weight == 0 || weight > capacity {
        return Err(foreign("the weight of a claim does not fit its capacity").into());
    }
    let owner: [u8; 16] = row.get(2)?;
    let owner = Owner::stored(
        u128::from_be_bytes(owner),
        row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?,
        row.get(4)?,
        row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?,
    );
    let entry = Entry {
        order,
        id: ClaimId::from_bytes(row.get(1)?),
        owner,
        kind: kind_named(row.get_ref(6)?.as_str().map_err(rusqlite::Error::from)?)?,
        weight,
        capacity,
        entered: moment(row.get(9)?)?,
        held_since: row.get::<_, Option<i64>>(10)?.map(moment).transpose()?,
        expires: moment(row.get(12)?)?,
        left: match row.get::<_, i64>(14)? {
            0 => false,
            1 => true,
            _ => return Err(foreign("a claim has neither left nor not left").into()),
        },
        note: row.get(15)?,
    };
    Ok(Kept { entry, lease: duration(row.get(11)?)?, epoch: row.get(13)? })
}

fn kind_named(text: &str) -> Result<LockKind, Trouble> {
    text.parse().map_err(|error: Error| foreign("a claim is of no kind known here").with_source(error).into())
}

/// Writes the difference that a step made.
pub(crate) fn save<T>(
    batch: &mut Batch<'_>,
    lock: &Name,
    loaded: &Loaded,
    step: &Step<T>,
    now: Moment,
) -> Result<(), Trouble> {
    // Removed before touched: a claim that ended and comes again is both, under two numbers.
    for id in &step.removed {
        for (_, order) in loaded.orders.iter().filter(|(known, _)| known == id) {
            remove(batch, lock, *order)?;
        }
    }
    match step.touched.and_then(|id| loaded.line.get(id)) {
        Some(entry) => put(batch, lock, entry, now),
        None => Ok(()),
    }
}

fn remove(batch: &mut Batch<'_>, lock: &Name, order: u64) -> Result<(), Trouble> {
    let key = params![lock.as_str(), signed(order)];
    batch.hot.claim_drop.execute(key)?;
    if batch.sightings {
        batch.connection.prepare_cached(sql::SIGHTING_DROP)?.execute(key)?;
    }
    Ok(())
}

/// What is written is stamped by our clock, whoever stamped it before.
fn put(batch: &mut Batch<'_>, lock: &Name, entry: &Entry, now: Moment) -> Result<(), Trouble> {
    batch.hot.claim_put.execute(params![
        lock.as_str(),
        signed(entry.order),
        entry.id.to_bytes(),
        entry.owner.id().to_be_bytes(),
        entry.owner.host(),
        entry.owner.pid(),
        entry.owner.label(),
        entry.kind.as_str(),
        entry.weight,
        entry.capacity,
        stamp(entry.entered),
        entry.held_since.map(stamp),
        length(now.until(entry.expires)),
        stamp(entry.expires),
        batch.setting.epoch.0,
        entry.left,
        entry.note,
    ])?;
    Ok(())
}

/// The lines as people see them, by name in byte order.
pub(crate) fn inspect(
    batch: &mut Batch<'_>,
    only: Option<&Name>,
    after: Option<&Name>,
    limit: usize,
) -> Result<Vec<LockView>, Trouble> {
    let mut views = Vec::new();
    if let Some(lock) = only {
        let is_on_page = limit > 0 && after.is_none_or(|after| after.as_str() < lock.as_str());
        if is_on_page {
            views.extend(view(batch, lock)?);
        }
        return Ok(views);
    }
    let mut after = after.map_or(String::new(), |name| name.as_str().to_owned());
    while views.len() < limit {
        let names = names(batch, &after, limit - views.len())?;
        // Lines in which all claims have ended are not shown, so that one page of names may not be enough.
        let Some(last) = names.last() else { break };
        after.clone_from(last);
        for name in &names {
            let name = Name::stored(name).map_err(|error| foreign("a name in it is not one").with_source(error))?;
            views.extend(view(batch, &name)?);
        }
    }
    Ok(views)
}

fn names(batch: &Batch<'_>, after: &str, limit: usize) -> Result<Vec<String>, Trouble> {
    let mut statement = batch.connection.prepare_cached(sql::NAMES)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![after, limit], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn view(batch: &mut Batch<'_>, lock: &Name) -> Result<Option<LockView>, Trouble> {
    let now = batch.now();
    Ok(peek(batch, lock, now)?.line.view(lock, now))
}
