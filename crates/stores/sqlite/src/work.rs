//! What can be asked of the file, as data, and how each is done inside a transaction.
//!
//! Operations are data and not closures because a transaction that fails is taken back and its operations are run
//! again, each by itself.

use std::time::Duration;

use lockkeeper_core::cell::{CellOp, CellReply, Versioned};
use lockkeeper_core::line::Step;
use lockkeeper_core::store::{Held, Keep, Left, LockView, Renewal, Standing};
use lockkeeper_core::time::{Clock, Moment};
use lockkeeper_core::{Claim, ClaimId, Name, Token};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::epoch::Epoch;
use crate::hub::{Hub, News, Waiting, Who};
use crate::lines::{self, Loaded};
use crate::sql;
use crate::trouble::{Trouble, foreign};

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Op {
    Enter {
        lock: Name,
        claim: Claim,
    },
    Leave {
        lock: Name,
        id: ClaimId,
        keep: Keep,
    },
    Renew(Vec<Held>),
    Inspect {
        only: Option<Name>,
        after: Option<Name>,
        limit: usize,
    },
    Read(Name),
    Update {
        cell: Name,
        op: CellOp,
    },
    /// Is there news for this waiter already?
    Look {
        lock: Name,
        who: Who,
    },
    /// The same, and other processes shall tell us of changes for so long.
    Observe {
        lock: Name,
        who: Who,
        lasting: Duration,
    },
    /// There was news in a bucket: ring whom it concerns.
    Scan {
        bucket: usize,
    },
    /// Take out what nobody comes by for any more.
    Tidy,
}

impl Op {
    /// Does it need the write lock?
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::Enter { .. } | Self::Leave { .. } | Self::Renew(_) | Self::Update { .. } => true,
            Self::Observe { .. } | Self::Tidy => true,
            Self::Inspect { .. } | Self::Read(_) | Self::Look { .. } | Self::Scan { .. } => false,
        }
    }

    /// How many renewals it is.
    pub(crate) fn renewals(&self) -> usize {
        if let Self::Renew(held) = self { held.len() } else { 0 }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Answer {
    Standing(Standing),
    Left(Left),
    Renewals(Vec<Renewal>),
    Views(Vec<LockView>),
    Value(Option<Versioned>),
    Cell(CellReply),
    /// If asking again is worth it, and where the claim stands if it is in.
    News(Option<Option<Standing>>),
    Nothing,
}

/// What stays the same from one transaction to the next.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) clock: Clock,
    pub(crate) epoch: Epoch,
    pub(crate) hub: std::sync::Arc<Hub>,
}

/// The three statements of every call, looked up once for a whole transaction: finding a statement by its text
/// costs about as much as the rest of this library does.
pub(crate) struct Hot<'a> {
    pub(crate) line: CachedStatement<'a>,
    pub(crate) claim_put: CachedStatement<'a>,
    pub(crate) claim_drop: CachedStatement<'a>,
}

/// One transaction under way.
pub(crate) struct Batch<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) hot: Hot<'a>,
    pub(crate) setting: &'a Setting,
    /// May it write?
    pub(crate) writes: bool,
    /// Are there any sightings at all? Mostly not, and then nobody needs to look for them.
    pub(crate) sightings: bool,
    observers: bool,
    last: u64,
    last_written: u64,
    news: Vec<News>,
    to_ring: Vec<(Waiting, Option<Standing>)>,
}

/// What a committed transaction has to tell.
pub(crate) struct Told {
    pub(crate) news: Vec<News>,
    pub(crate) to_ring: Vec<(Waiting, Option<Standing>)>,
}

impl<'a> Batch<'a> {
    /// Begins inside a transaction that has been opened.
    pub(crate) fn start(connection: &'a Connection, setting: &'a Setting, writes: bool) -> Result<Self, Trouble> {
        let mut statement = connection.prepare_cached(sql::START)?;
        let found = statement.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?))).optional()?;
        let (last, sightings, observers) = found.ok_or_else(|| foreign("its last number is gone"))?;
        let last = u64::try_from(last).ok().filter(|last| *last < Token::NUMBER_MAX);
        let last = last.ok_or_else(|| foreign("its last number is not one of ours"))?;
        let hot = Hot {
            line: connection.prepare_cached(sql::LINE)?,
            claim_put: connection.prepare_cached(sql::CLAIM_PUT)?,
            claim_drop: connection.prepare_cached(sql::CLAIM_DROP)?,
        };
        let (news, to_ring) = (Vec::new(), Vec::new());
        Ok(Self { connection, hot, setting, writes, sightings, observers, last, last_written: last, news, to_ring })
    }

    /// Writes what is kept for all operations together. What is left is to commit and to tell.
    pub(crate) fn finish(self) -> Result<Told, Trouble> {
        if self.last != self.last_written {
            self.connection.prepare_cached(sql::LAST)?.execute([signed(self.last)])?;
        }
        Ok(Told { news: self.news, to_ring: self.to_ring })
    }

    pub(crate) fn run(&mut self, op: &Op) -> Result<Answer, Trouble> {
        match op {
            Op::Enter { lock, claim } => self.enter(lock, claim).map(Answer::Standing),
            Op::Leave { lock, id, keep } => self.leave(lock, *id, *keep).map(Answer::Left),
            Op::Renew(held) => self.renew(held).map(Answer::Renewals),
            Op::Inspect { only, after, limit } => {
                lines::inspect(self, only.as_ref(), after.as_ref(), *limit).map(Answer::Views)
            }
            Op::Read(cell) => self.read(cell).map(Answer::Value),
            Op::Update { cell, op } => self.update(cell, op).map(Answer::Cell),
            Op::Look { lock, who } => self.look(lock, *who).map(Answer::News),
            Op::Observe { lock, who, lasting } => {
                self.register(lock, *lasting)?;
                self.look(lock, *who).map(Answer::News)
            }
            Op::Scan { bucket } => self.scan(*bucket).map(|()| Answer::Nothing),
            Op::Tidy => self.tidy().map(|()| Answer::Nothing),
        }
    }

    /// Now, on the store's clock. Never taken before the write lock was had.
    pub(crate) fn now(&self) -> Moment {
        self.setting.clock.now()
    }

    /// The number that is handed out next. Wall-clock time is its floor, so that a power loss that took the last
    /// commits with it does not make a number come twice.
    pub(crate) fn next_number(&self) -> Result<u64, Trouble> {
        let wall = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros());
        let next = u64::try_from(wall).unwrap_or(0).max(self.last + 1);
        if next < Token::NUMBER_MAX {
            Ok(next)
        } else {
            Err(foreign("the clock or the last number is too far ahead").into())
        }
    }

    /// The number has been used.
    pub(crate) fn spend(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    fn enter(&mut self, lock: &Name, claim: &Claim) -> Result<Standing, Trouble> {
        let now = self.now();
        let number = self.next_number()?;
        let mut loaded = lines::load(self, lock, now)?;
        let step = loaded.line.enter(claim, now, number)?;
        if loaded.line.get(claim.id).is_some_and(|entry| entry.order == number) {
            self.spend(number);
        }
        self.write(lock, &loaded, &step, now, step.changed())?;
        Ok(step.answer)
    }

    fn leave(&mut self, lock: &Name, id: ClaimId, keep: Keep) -> Result<Left, Trouble> {
        let now = self.now();
        let mut loaded = lines::load(self, lock, now)?;
        let step = loaded.line.leave(id, keep, now);
        self.write(lock, &loaded, &step, now, step.changed())?;
        Ok(step.answer)
    }

    fn renew(&mut self, held: &[Held]) -> Result<Vec<Renewal>, Trouble> {
        held.iter()
            .map(|hold| match self.renew_one(hold) {
                // One line that cannot be read must not cost a client all its holds. Of this one we cannot say
                // that it stands, so it counts as lost.
                Err(Trouble::Known(error)) => {
                    tracing::warn!(lock = %hold.lock, %error, "a hold could not be renewed and counts as lost");
                    Ok(Renewal::Gone)
                }
                other => other,
            })
            .collect()
    }

    fn renew_one(&mut self, hold: &Held) -> Result<Renewal, Trouble> {
        let now = self.now();
        let mut loaded = lines::load(self, &hold.lock, now)?;
        let step = loaded.line.renew(hold.id, hold.lease, now);
        // More time is nothing that an observer sees.
        self.write(&hold.lock, &loaded, &step, now, !step.removed.is_empty())?;
        Ok(step.answer)
    }

    /// Writes what a step changed, and notes whom it concerns.
    fn write<T>(
        &mut self,
        lock: &Name,
        loaded: &Loaded,
        step: &Step<T>,
        now: Moment,
        seen: bool,
    ) -> Result<(), Trouble> {
        lines::save(self, lock, loaded, step, now)?;
        if !seen && step.admitted.is_empty() {
            return Ok(());
        }
        let observed = self.observers && self.is_observed(lock, now)?;
        let fingerprint = self.setting.hub.observes(lock).then(|| loaded.fingerprint(lock, now));
        if observed || fingerprint.is_some() || !step.admitted.is_empty() {
            let admitted = step.admitted.iter().map(|id| (*id, loaded.line.held(*id, now))).collect();
            self.news.push(News { lock: lock.clone(), admitted, fingerprint, observed });
        }
        Ok(())
    }

    fn is_observed(&self, lock: &Name, now: Moment) -> Result<bool, Trouble> {
        let mut statement = self.connection.prepare_cached(sql::OBSERVER)?;
        let known = params![lock.as_str(), self.setting.epoch.0, stamp(now)];
        Ok(statement.query_row(known, |row| row.get(0))?)
    }

    /// Other processes of any epoch tell of changes of the line from now on, at least for so long.
    fn register(&mut self, lock: &Name, lasting: Duration) -> Result<(), Trouble> {
        let (now, epoch) = (self.now(), self.setting.epoch.0);
        let mut statement = self.connection.prepare_cached(sql::OBSERVER_UNTIL)?;
        let until: Option<i64> = statement.query_row(params![lock.as_str(), epoch], |row| row.get(0)).optional()?;
        if until.is_some_and(|until| until >= stamp(now + lasting)) {
            return Ok(());
        }
        // Longer than asked for, so that the next question finds it still there.
        let until = now + lasting.max(Duration::from_secs(5)) * 2;
        self.connection.prepare_cached(sql::OBSERVER_PUT)?.execute(params![lock.as_str(), epoch, stamp(until)])?;
        self.observers = true;
        Ok(())
    }

    fn look(&mut self, lock: &Name, who: Who) -> Result<Option<Option<Standing>>, Trouble> {
        let now = self.now();
        let loaded = lines::peek(self, lock, now)?;
        Ok(loaded.is_news(lock, who, now).then(|| loaded.standing(who, now)))
    }

    /// A line that cannot be read rings everybody: asking again tells them what is wrong.
    fn scan(&mut self, bucket: usize) -> Result<(), Trouble> {
        self.setting.hub.mark_read(bucket);
        for (lock, waiting) in self.setting.hub.waiting_in(bucket) {
            let now = self.now();
            match lines::peek(self, &lock, now) {
                Ok(loaded) => {
                    let concerned = waiting.into_iter().filter(|one| loaded.is_news(&lock, one.who, now));
                    self.to_ring.extend(concerned.map(|one| {
                        let standing = loaded.standing(one.who, now);
                        (one, standing)
                    }));
                }
                Err(Trouble::Known(_)) => self.to_ring.extend(waiting.into_iter().map(|one| (one, None))),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }

    /// A few at a time: it is done often enough.
    fn tidy(&mut self) -> Result<(), Trouble> {
        const SOME: i64 = 32;
        const NOBODY: ClaimId = ClaimId::from_bytes([0; 16]);
        let (now, epoch) = (self.now(), self.setting.epoch.0);
        let long_ago = stamp(now - Duration::from_secs(60));
        let mut statement = self.connection.prepare_cached(sql::TIDY_LINES)?;
        let rows = statement.query_map(params![epoch, long_ago, SOME], |row| row.get::<_, String>(0))?;
        for lock in rows.collect::<rusqlite::Result<Vec<_>>>()? {
            // Whoever comes by takes out what has ended; here nobody comes by.
            if let Ok(lock) = Name::stored(&lock) {
                match self.leave(&lock, NOBODY, Keep::Nothing) {
                    Ok(_) | Err(Trouble::Known(_)) => {}
                    Err(trouble) => return Err(trouble),
                }
            }
        }
        self.connection.prepare_cached(sql::TIDY_CELLS)?.execute(params![epoch, stamp(now), SOME])?;
        self.connection.prepare_cached(sql::TIDY_CELLS_OF_OTHERS)?.execute(params![epoch, stamp(now), SOME])?;
        self.connection.prepare_cached(sql::TIDY_OBSERVERS)?.execute(params![epoch, stamp(now)])?;
        Ok(())
    }
}

/// A moment as it is kept. The clock starts with the machine, so it fits for 292 years.
pub(crate) fn stamp(moment: Moment) -> i64 {
    signed(moment.as_nanos())
}

/// A length as it is kept.
pub(crate) fn length(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A moment read back.
pub(crate) fn moment(kept: i64) -> Result<Moment, Trouble> {
    Ok(Moment::from_nanos(unsigned(kept)?))
}

/// A length read back.
pub(crate) fn duration(kept: i64) -> Result<Duration, Trouble> {
    Ok(Duration::from_nanos(unsigned(kept)?))
}

pub(crate) fn unsigned(kept: i64) -> Result<u64, Trouble> {
    u64::try_from(kept).map_err(|_| foreign("a number in it is negative").into())
}
