//! Cells: small values with a version, changed by one known operation at a time.
//!
//! [`CellOp::apply`] is the whole meaning of every operation, pure and in one place; stores apply it inside their
//! own compare-and-set, or mirror it in a script that is held to it. Surprise: times inside a state are all
//! relative to `touched`, so that a state survives a store whose clock starts again.

use std::time::Duration;

use crate::claim::Token;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::time::Moment;

/// What a reader of a cell sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The bytes; a number is its decimal text.
    pub value: Vec<u8>,
    /// Changes with every change of the cell, and is never used again for it.
    pub version: u64,
}

/// One operation on a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellOp {
    /// What to do.
    pub action: CellAction,
    /// Forget the cell after so long without a change; `None` keeps it.
    pub keep: Option<Duration>,
}

/// What to do with a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellAction {
    /// Sets the bytes, if the version is still this one (zero: if there is nothing).
    Put {
        /// The new bytes.
        value: Vec<u8>,
        /// `None` sets it whatever is there.
        if_version: Option<u64>,
    },
    /// Removes the cell, if the version is still this one.
    Remove {
        /// `None` removes it whatever is there.
        if_version: Option<u64>,
    },
    /// Adds to a number that starts at zero.
    Add {
        /// How much; may be negative.
        by: i64,
    },
    /// Takes from a number, never below a floor: stock without overselling.
    Take {
        /// How much.
        by: u64,
        /// The least that may be left.
        floor: i64,
    },
    /// Raises a number to at least this.
    Max {
        /// The least it shall be.
        at_least: i64,
    },
    /// Takes from a fixed window of `limit` per `per`.
    Window {
        /// How much to take.
        take: u64,
        /// How much there is in one window.
        limit: u64,
        /// How long a window is.
        per: Duration,
    },
    /// Takes from a smooth limit of `limit` per `per` with bursts of up to `limit` (the generic cell rate algorithm).
    Gcra {
        /// How much to take.
        take: u64,
        /// How much may be taken at once, and in one period.
        limit: u64,
        /// The period.
        per: Duration,
    },
    /// Enters the fence with a token, before the read it protects.
    FenceEnter {
        /// The token of the hold.
        token: Token,
        /// A reader's entry, which other readers may share.
        shared: bool,
    },
    /// Sets (or with `None` clears) the bytes behind the fence.
    FencedPut {
        /// The token of the hold.
        token: Token,
        /// The new bytes.
        value: Option<Vec<u8>>,
    },
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellReply {
    /// It was done, and this is the version now (zero: the cell is gone).
    Done {
        /// The version after it.
        version: u64,
    },
    /// It was done, and this is the number now.
    Number {
        /// The number after it.
        value: i64,
        /// The version after it.
        version: u64,
    },
    /// The version was another one; nothing changed.
    Conflict {
        /// What is there.
        current: Option<Versioned>,
    },
    /// Taking so much would go below the floor; nothing changed.
    TooLow {
        /// The number as it is.
        value: i64,
    },
    /// The limiter let it through.
    Admitted {
        /// How much could be taken now.
        remaining: u64,
        /// When all of it is there again.
        full_in: Duration,
    },
    /// The limiter did not let it through; nothing changed.
    Limited {
        /// How much could be taken now.
        remaining: u64,
        /// When asking again for the same can succeed; `None` if it never can.
        retry_after: Option<Duration>,
    },
    /// The fence was entered; here is what it protects, read in the same step.
    Entered {
        /// What is there.
        current: Option<Versioned>,
    },
    /// A later holder has been here: the token is too old, and nothing changed.
    Stale {
        /// The token that was seen.
        seen: Token,
    },
}

/// What a store keeps of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellState {
    /// The version.
    pub version: u64,
    /// What is in it.
    pub value: CellValue,
    /// The greatest token that entered to read (zero: none).
    pub read_mark: u64,
    /// The greatest token that entered to write (zero: none).
    pub write_mark: u64,
    /// When it was last changed; all durations in the state count from here.
    pub touched: Moment,
    /// How long after `touched` it is forgotten.
    pub keep: Option<Duration>,
}

/// What is in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellValue {
    /// Nothing, but there are marks to remember.
    Empty,
    /// Bytes.
    Bytes(Vec<u8>),
    /// A number.
    Number(i64),
    /// A fixed window: how old it is and what was taken.
    Window {
        /// Its age at `touched`.
        age: Duration,
        /// What was taken.
        used: u64,
    },
    /// A smooth limit: how far ahead of the clock it is used up.
    Gcra {
        /// How far ahead at `touched`.
        ahead: Duration,
    },
}

impl CellValue {
    fn word(&self) -> &'static str {
        match self {
            Self::Empty => "nothing",
            Self::Bytes(_) => "bytes",
            Self::Number(_) => "a counter",
            Self::Window { .. } | Self::Gcra { .. } => "a limiter",
        }
    }
}

impl CellState {
    /// What a reader sees at `now`.
    pub fn read(&self, now: Moment) -> Option<Versioned> {
        if self.is_over(now) {
            return None;
        }
        let value = match &self.value {
            CellValue::Empty | CellValue::Window { .. } | CellValue::Gcra { .. } => return None,
            CellValue::Bytes(bytes) => bytes.clone(),
            CellValue::Number(number) => number.to_string().into_bytes(),
        };
        Some(Versioned { value, version: self.version })
    }

    /// Has its time to be kept run out?
    pub fn is_over(&self, now: Moment) -> bool {
        self.keep.is_some_and(|keep| now >= self.touched + keep)
    }

    fn is_fenced(&self) -> bool {
        self.read_mark > 0 || self.write_mark > 0
    }
}

/// The state after an operation, and its answer.
pub type Applied = (Option<CellState>, CellReply);

impl CellOp {
    /// An operation on a cell that is kept.
    pub fn new(action: CellAction) -> Self {
        Self { action, keep: None }
    }

    /// Refuses an operation outside the limits, before anything is sent.
    pub fn check(&self) -> Result<()> {
        match &self.action {
            CellAction::FenceEnter { token, .. } | CellAction::FencedPut { token, .. } if token.as_u64() == 0 => {
                Err(Error::invalid("token", "zero is no token"))
            }
            CellAction::Put { value, .. } | CellAction::FencedPut { value: Some(value), .. } => limits::value(value),
            CellAction::Window { limit, per, .. } | CellAction::Gcra { limit, per, .. } => {
                if *limit == 0 || u64::from(limits::PERMITS_MAX) < *limit {
                    return Err(Error::invalid(
                        "limit",
                        format!("{limit} is not between 1 and {}", limits::PERMITS_MAX),
                    ));
                }
                if per.as_micros() < 1 || *per > limits::LEASE_MAX {
                    return Err(Error::invalid(
                        "period",
                        format!("{per:?} is not between 1µs and {:?}", limits::LEASE_MAX),
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// May it be repeated when its answer was lost? Only where doing it twice is doing it once.
    pub fn is_repeatable(&self) -> bool {
        matches!(self.action, CellAction::Max { .. } | CellAction::FenceEnter { .. })
    }

    /// Does it need a clock at the store?
    pub fn needs_time(&self) -> bool {
        self.keep.is_some() || matches!(self.action, CellAction::Window { .. } | CellAction::Gcra { .. })
    }

    /// What the operation does to `state` at `now`. `fresh` is a version above all that the cell ever had.
    ///
    /// # Errors
    /// `Mismatch` if the cell is something else than the operation expects; nothing changes then.
    pub fn apply(&self, state: Option<&CellState>, now: Moment, fresh: u64) -> Result<Applied> {
        self.check()?;
        // Two clients' clocks, or two threads' looks at one, come in any order. A cell that followed them back
        // would count the same time twice, and a limiter would let more through each time.
        let asked = now;
        let now = state.map_or(asked, |state| asked.max(state.touched));
        let state = state.filter(|state| !state.is_over(now));
        let change = Change { op: self, state, now, behind: asked.until(now), fresh };
        match &self.action {
            CellAction::Put { value, if_version } => change.put(value, *if_version),
            CellAction::Remove { if_version } => change.remove(*if_version),
            CellAction::Add { by } => change.number(|old| old.checked_add(*by)),
            CellAction::Take { by, floor } => change.take(*by, *floor),
            CellAction::Max { at_least } => change.number(|old| Some(old.max(*at_least))),
            CellAction::Window { take, limit, per } => change.window(*take, *limit, *per),
            CellAction::Gcra { take, limit, per } => change.gcra(*take, *limit, *per),
            CellAction::FenceEnter { token, shared } => change.fence_enter(*token, *shared),
            CellAction::FencedPut { token, value } => change.fenced_put(*token, value.as_deref()),
        }
    }
}

/// One application: the operation, the state it meets, the moment, and the next version.
struct Change<'a> {
    op: &'a CellOp,
    state: Option<&'a CellState>,
    /// Never before the cell's last change.
    now: Moment,
    /// How far the clock that asked is behind `now`.
    behind: Duration,
    fresh: u64,
}

impl Change<'_> {
    fn put(&self, value: &[u8], if_version: Option<u64>) -> Result<Applied> {
        self.unfenced()?;
        // Before the version: a limiter reads as nothing, and a retry that believes that would never end.
        if let Some(state) = self.state
            && !matches!(state.value, CellValue::Bytes(_) | CellValue::Empty)
        {
            return Err(self.mismatch(state, "bytes"));
        }
        if let Some(conflict) = self.conflict(if_version) {
            return Ok(conflict);
        }
        Ok((Some(self.next(CellValue::Bytes(value.to_vec()))), CellReply::Done { version: self.fresh }))
    }

    fn remove(&self, if_version: Option<u64>) -> Result<Applied> {
        self.unfenced()?;
        Ok(self.conflict(if_version).unwrap_or((None, CellReply::Done { version: 0 })))
    }

    fn take(&self, by: u64, floor: i64) -> Result<Applied> {
        let old = self.old_number()?;
        let left = old.checked_sub_unsigned(by).filter(|left| *left >= floor);
        match left {
            Some(_) => self.number(|_| left),
            None => Ok((self.state.cloned(), CellReply::TooLow { value: old })),
        }
    }

    fn number(&self, change: impl FnOnce(i64) -> Option<i64>) -> Result<Applied> {
        let value = change(self.old_number()?)
            .ok_or_else(|| Error::invalid("amount", "the counter would go beyond 64 bits"))?;
        Ok((Some(self.next(CellValue::Number(value))), CellReply::Number { value, version: self.fresh }))
    }

    fn old_number(&self) -> Result<i64> {
        self.unfenced()?;
        match self.state {
            None => Ok(0),
            Some(CellState { value: CellValue::Number(old), .. }) => Ok(*old),
            Some(state) => Err(self.mismatch(state, "a counter")),
        }
    }

    fn window(&self, take: u64, limit: u64, per: Duration) -> Result<Applied> {
        self.unfenced()?;
        let (age, used) = match self.state {
            None => (Duration::ZERO, 0),
            Some(state) => match state.value {
                CellValue::Window { age, used } => match age.saturating_add(self.elapsed(state)) {
                    age if age < per => (age, used),
                    _ => (Duration::ZERO, 0),
                },
                _ => return Err(self.mismatch(state, "a fixed-window limiter")),
            },
        };
        let remaining = limit.saturating_sub(used);
        if take > remaining {
            let retry_after = (take <= limit).then(|| self.as_asked(per - age));
            return Ok((self.state.cloned(), CellReply::Limited { remaining, retry_after }));
        }
        let next = self.limiter(CellValue::Window { age, used: used + take }, per);
        let full_in = self.as_asked(per - age);
        Ok((Some(next), CellReply::Admitted { remaining: remaining - take, full_in }))
    }

    fn gcra(&self, take: u64, limit: u64, per: Duration) -> Result<Applied> {
        self.unfenced()?;
        let ahead = match self.state {
            None => Duration::ZERO,
            Some(state) => match state.value {
                CellValue::Gcra { ahead } => ahead.saturating_sub(self.elapsed(state)),
                _ => return Err(self.mismatch(state, "a smooth limiter")),
            },
        };
        // One unit costs whole nanoseconds, rounded up, and the burst is as many of these: exact from then on, and
        // never faster than asked. Rounded down, a unit of a fast limit costs less than it should, or nothing.
        let each = per.as_nanos().div_ceil(u128::from(limit));
        let full = nanos(each * u128::from(limit));
        let remaining = |ahead: Duration| {
            let room = full.saturating_sub(ahead).as_nanos() / each;
            u64::try_from(room).unwrap_or(limit)
        };
        let after = (take <= limit).then(|| ahead.saturating_add(nanos(each * u128::from(take))));
        match after {
            Some(after) if after <= full => {
                let next = self.limiter(CellValue::Gcra { ahead: after }, full);
                let full_in = self.as_asked(after);
                Ok((Some(next), CellReply::Admitted { remaining: remaining(after), full_in }))
            }
            _ => {
                let retry_after = after.map(|after| self.as_asked(after - full));
                Ok((self.state.cloned(), CellReply::Limited { remaining: remaining(ahead), retry_after }))
            }
        }
    }

    fn fence_enter(&self, token: Token, shared: bool) -> Result<Applied> {
        if let Some(stale) = self.stale(token, shared)? {
            return Ok(stale);
        }
        let mut next = self.next(self.state.map_or(CellValue::Empty, |state| state.value.clone()));
        // Entering changes the marks, not the value: its version stays.
        next.version = self.state.map_or(self.fresh, |state| state.version);
        if shared {
            next.read_mark = next.read_mark.max(token.as_u64());
        } else {
            next.write_mark = next.write_mark.max(token.as_u64());
        }
        let current = self.state.and_then(|state| state.read(self.now));
        Ok((Some(next), CellReply::Entered { current }))
    }

    fn fenced_put(&self, token: Token, value: Option<&[u8]>) -> Result<Applied> {
        if let Some(stale) = self.stale(token, false)? {
            return Ok(stale);
        }
        let mut next = self.next(value.map_or(CellValue::Empty, |value| CellValue::Bytes(value.to_vec())));
        next.write_mark = next.write_mark.max(token.as_u64());
        Ok((Some(next), CellReply::Done { version: self.fresh }))
    }

    /// A shared entry must not be behind a writer; an exclusive one not behind anybody. Equal passes.
    fn stale(&self, token: Token, shared: bool) -> Result<Option<Applied>> {
        let Some(state) = self.state else { return Ok(None) };
        if !matches!(state.value, CellValue::Bytes(_) | CellValue::Empty) {
            return Err(self.mismatch(state, "a fenced cell"));
        }
        let mark = if shared { state.write_mark } else { state.write_mark.max(state.read_mark) };
        if token.as_u64() >= mark {
            return Ok(None);
        }
        Ok(Some((Some(state.clone()), CellReply::Stale { seen: Token::from_u64(mark) })))
    }

    fn conflict(&self, if_version: Option<u64>) -> Option<Applied> {
        let wanted = if_version?;
        // Not the version that is read: a limiter reads as nothing, and is something.
        let found = self.state.map_or(0, |state| state.version);
        let current = self.state.and_then(|state| state.read(self.now));
        (found != wanted).then(|| (self.state.cloned(), CellReply::Conflict { current }))
    }

    /// A fenced cell is only changed behind its fence.
    fn unfenced(&self) -> Result<()> {
        match self.state {
            Some(state) if state.is_fenced() => Err(Error::new(ErrorKind::Mismatch, "the cell is behind a fence")
                .with_hint("write it with the token of a hold, as all its other writers do")),
            _ => Ok(()),
        }
    }

    fn mismatch(&self, state: &CellState, wanted: &str) -> Error {
        Error::new(ErrorKind::Mismatch, format!("the cell holds {}, not {wanted}", state.value.word()))
            .with_hint("use another name for it")
    }

    /// What a limiter says of the future is told on the clock that asked.
    fn as_asked(&self, wait: Duration) -> Duration {
        wait.saturating_add(self.behind)
    }

    fn elapsed(&self, state: &CellState) -> Duration {
        self.now.since(state.touched)
    }

    /// A limiter that is full again is as good as none: it is forgotten by itself.
    fn limiter(&self, value: CellValue, full_in: Duration) -> CellState {
        let mut next = self.next(value);
        next.keep = Some(next.keep.map_or(full_in, |keep| keep.max(full_in)));
        next
    }

    fn next(&self, value: CellValue) -> CellState {
        CellState {
            version: self.fresh,
            value,
            read_mark: self.state.map_or(0, |state| state.read_mark),
            write_mark: self.state.map_or(0, |state| state.write_mark),
            touched: self.now,
            keep: self.op.keep,
        }
    }
}

fn nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
