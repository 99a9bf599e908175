//! Cells: small values that are changed by one known operation, atomically at the server.
//!
//! Each operation is one call of a script (`script`), or, where scripts are not allowed, a transaction that is repeated
//! when somebody came between (`watch`). Both keep the same hash (`state`), so clients of either sort share a cell.
//! Surprise: nothing is written with a client's clock; even the transaction is applied at a time that the server told.

mod script;
mod state;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::cell::{CellOp, CellReply, CellState, Versioned};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Name, Result};
use redis::{Cmd, Pipeline, Value};

use crate::fast::time_us;
use crate::keys;
use crate::link::Link;
use crate::options::Cells;
use crate::trouble;
use state::{FIELDS, Found};
use watch::Watch;

/// How often a hash that seems to be foreign is looked at: it may be a cell that just came or went between two commands.
const LOOKS: usize = 8;
/// Versions and µs are below this, and so exact in a script: the year 2255.
pub(crate) const EXACT: u64 = 9_000_000_000_000_000;
/// The longest time to be kept, over a century: what is longer counts as this, so that times stay exact in scripts.
const KEEP_MAX_US: u64 = 4_000_000_000_000_000;

/// An answer of the server's, and what its clock said then.
pub(crate) type Told = (Moment, Result<CellReply>);

/// How cells are changed.
pub(crate) enum Way {
    Script,
    Watch(Watch),
}

impl Way {
    pub(crate) fn new(cells: Cells, link: &Arc<Link>) -> Self {
        match cells {
            Cells::Script => Self::Script,
            Cells::Watch => Self::Watch(Watch::new(link.clone())),
        }
    }

    /// Applies one operation.
    pub(crate) async fn update(&self, link: &Link, cell: &Name, op: &CellOp) -> Result<Told> {
        op.check()?;
        let key = keys::cell(cell);
        match self {
            Self::Script => script::update(link, &key, op).await,
            Self::Watch(watch) => watch.update(&key, op).await,
        }
    }

    /// Gives up its connections.
    pub(crate) fn close(&self) {
        if let Self::Watch(watch) = self {
            watch.close();
        }
    }
}

/// What a reader sees, in one round trip and without a script.
pub(crate) async fn read(link: &Link, cell: &Name) -> Result<Option<Versioned>> {
    let key = keys::cell(cell);
    for _ in 0..LOOKS {
        let mut pipe = Pipeline::with_capacity(3);
        look(&mut pipe, &key);
        let answers = link.ask_all(&pipe).await?;
        if let Some((asked_us, found)) = seen(link, answers)? {
            return Ok(found.state.and_then(|state| state.read(moment(asked_us))));
        }
    }
    Err(trouble::foreign())
}

/// Asks for the time and the cell. The time comes first: what is found was there by then, and is judged at that time, or
/// came later, and is not over. The other way round, a cell that is renewed between the two would seem to be over.
fn look(pipe: &mut Pipeline, key: &str) {
    let mut fields = redis::cmd("HMGET");
    fields.arg(key).arg(&FIELDS);
    let mut exists = redis::cmd("EXISTS");
    exists.arg(key);
    pipe.add_command(redis::cmd("TIME")).add_command(fields).add_command(exists);
}

/// What [`look`] was told; nothing if it has to look again.
fn seen(link: &Link, answers: Vec<Value>) -> Result<Option<(u64, Found)>> {
    let mut answers = answers.into_iter();
    let mut next = || link.no_error(answers.next().unwrap_or_default());
    let (time, fields, exists) = (next()?, next()?, next()?);
    let asked_us = time_us(time)?;
    let Value::Array(fields) = fields else { return Err(trouble::unexpected("HMGET")) };
    let found = Found::parse(&fields)?;
    match (found.is_there, exists) {
        (false, Value::Int(1)) => Ok(None),
        _ => Ok(Some((asked_us, found))),
    }
}

/// The server's µs as a moment.
fn moment(us: u64) -> Moment {
    Moment::from_nanos(us.saturating_mul(1_000))
}

/// A time to be kept as the server counts it: whole µs, never less than asked for.
fn keep_us(keep: Duration) -> u64 {
    u64::try_from(keep.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(KEEP_MAX_US)
}

/// What an answer of a script means, for the fuzz targets.
pub(crate) fn script_told(op: &CellOp, answer: &Value) -> Option<Told> {
    script::told(op, answer)
}

/// What the fields of a cell mean, for the fuzz targets: its state, and what an operation at that time makes of it.
pub(crate) fn decided(
    fields: &[Value],
    op: &CellOp,
    asked_us: u64,
) -> Result<(Option<CellState>, Vec<Cmd>, Result<CellReply>)> {
    let found = Found::parse(fields)?;
    let (commands, reply) = watch::decide("key", op, &found, asked_us);
    Ok((found.state, commands, reply))
}
