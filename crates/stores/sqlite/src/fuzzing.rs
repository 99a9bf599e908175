//! What the fuzz targets reach that users do not: rows of a file that others may have written. Not part of the API.
//!
//! Surprise: nothing here is used by the store itself; it only opens doors.

use std::time::Duration;

use lockkeeper_core::cell::CellState;
use lockkeeper_core::line::Entry;
use lockkeeper_core::{Error, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::trouble::Trouble;
use crate::{cells, lines};

/// A database in memory that holds nothing, and gives back the rows that it is given.
pub struct Mirror(Connection);

impl Mirror {
    /// A new one.
    ///
    /// # Errors
    /// When SQLite has no memory for it.
    pub fn new() -> rusqlite::Result<Self> {
        Connection::open_in_memory().map(Self)
    }

    /// What a row of claims means: the claim, and how long it was given.
    ///
    /// # Errors
    /// `Foreign` if it is not a claim of ours.
    pub fn claim(&self, row: &[Value]) -> Result<(Entry, Duration)> {
        self.read(row, 16, lines::entry)
    }

    /// What a row of cells means.
    ///
    /// # Errors
    /// `Foreign` if it is not a cell of ours.
    pub fn cell(&self, row: &[Value]) -> Result<CellState> {
        self.read(row, 10, cells::parse)
    }

    fn read<T>(&self, row: &[Value], columns: usize, parse: fn(&Row<'_>) -> Result<T, Trouble>) -> Result<T> {
        let row: Vec<&Value> = row.iter().chain(std::iter::repeat(&Value::Null)).take(columns).collect();
        let marks = vec!["?"; columns].join(", ");
        let done = || -> Result<T, Trouble> {
            let mut statement = self.0.prepare_cached(&format!("SELECT {marks}"))?;
            let mut rows = statement.query(params_from_iter(row))?;
            match rows.next()? {
                Some(row) => parse(row),
                None => Err(Error::bug("a row is missing").into()),
            }
        };
        done().map_err(|trouble| match trouble {
            Trouble::Known(error) => error,
            other => Error::bug(format!("{other:?}")),
        })
    }
}
