//! Cells: from a row to the pure state, and back.
//!
//! Surprise: a cell of another epoch starts its time again when it is first seen from ours. It is kept too long by
//! that, never too short. So that reading alone makes it end one day, even a read writes that down.

use lockkeeper_core::Name;
use lockkeeper_core::cell::{CellOp, CellReply, CellState, CellValue, Versioned};
use lockkeeper_core::time::Moment;
use rusqlite::{Row, params};

use crate::sql;
use crate::trouble::{Trouble, foreign};
use crate::work::{Batch, duration, length, moment, signed, stamp, unsigned};

const EMPTY: &str = "empty";
const BYTES: &str = "bytes";
const NUMBER: &str = "number";
const WINDOW: &str = "window";
const GCRA: &str = "gcra";

/// A cell as it was read.
struct Found {
    state: CellState,
    /// Was it of another epoch?
    rebased: bool,
}

impl Batch<'_> {
    /// Reads a cell.
    pub(crate) fn read(&mut self, cell: &Name) -> Result<Option<Versioned>, Trouble> {
        let now = self.now();
        let Some(found) = self.find(cell, now)? else { return Ok(None) };
        if found.rebased && found.state.keep.is_some() {
            if !self.writes {
                return Err(Trouble::MustWrite);
            }
            self.put(cell, &found.state)?;
        }
        Ok(found.state.read(now))
    }

    /// Applies one operation.
    pub(crate) fn update(&mut self, cell: &Name, op: &CellOp) -> Result<CellReply, Trouble> {
        let now = self.now();
        let number = self.next_number()?;
        let found = self.find(cell, now)?;
        let before = found.as_ref().map(|found| &found.state);
        let (after, reply) = op.apply(before, now, number)?;
        match after {
            None if found.is_some() => {
                self.connection.prepare_cached(sql::CELL_DROP)?.execute([cell.as_str()])?;
            }
            None => {}
            Some(after) => {
                if after.version == number {
                    self.spend(number);
                }
                if found.is_none_or(|found| found.rebased || found.state != after) {
                    self.put(cell, &after)?;
                }
            }
        }
        Ok(reply)
    }

    fn find(&self, cell: &Name, now: Moment) -> Result<Option<Found>, Trouble> {
        let mut statement = self.connection.prepare_cached(sql::CELL)?;
        let mut rows = statement.query([cell.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut state = parse(row)?;
        let rebased = row.get::<_, i64>(9)? != self.setting.epoch.0;
        if rebased {
            state.touched = now;
        }
        Ok(Some(Found { state, rebased }))
    }

    fn put(&self, cell: &Name, state: &CellState) -> Result<(), Trouble> {
        let (kind, bytes, number, span) = match &state.value {
            CellValue::Empty => (EMPTY, None, None, None),
            CellValue::Bytes(bytes) => (BYTES, Some(bytes.as_slice()), None, None),
            CellValue::Number(number) => (NUMBER, None, Some(*number), None),
            CellValue::Window { age, used } => (WINDOW, None, Some(signed(*used)), Some(length(*age))),
            CellValue::Gcra { ahead } => (GCRA, None, None, Some(length(*ahead))),
        };
        self.connection.prepare_cached(sql::CELL_PUT)?.execute(params![
            cell.as_str(),
            signed(state.version),
            kind,
            bytes,
            number,
            span,
            // Marks are tokens, which users may bring: all 64 bits count.
            state.read_mark.cast_signed(),
            state.write_mark.cast_signed(),
            stamp(state.touched),
            state.keep.map(length),
            self.setting.epoch.0,
            state.keep.map(|keep| stamp(state.touched + keep)),
        ])?;
        Ok(())
    }
}

/// Reads a row.
pub(crate) fn parse(row: &Row<'_>) -> Result<CellState, Trouble> {
    let number = || row.get::<_, i64>(3);
    let span = || duration(row.get(4)?);
    let value = match row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)? {
        EMPTY => CellValue::Empty,
        BYTES => CellValue::Bytes(row.get(2)?),
        NUMBER => CellValue::Number(number()?),
        WINDOW => CellValue::Window { age: span()?, used: unsigned(number()?)? },
        GCRA => CellValue::Gcra { ahead: span()? },
        _ => return Err(foreign("a cell is of no kind known here").into()),
    };
    Ok(CellState {
        version: unsigned(row.get(0)?)?,
        value,
        read_mark: row.get::<_, i64>(5)?.cast_unsigned(),
        write_mark: row.get::<_, i64>(6)?.cast_unsigned(),
        touched: moment(row.get(7)?)?,
        keep: row.get::<_, Option<i64>>(8)?.map(duration).transpose()?,
    })
}
