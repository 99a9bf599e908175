//! SQLite without any of this library: the same statements on the same tables, with the same rows.
//!
//! The statements are the store's own `.sql` files, so that the limit moves with them. What is left out is all that
//! the library adds: the model, the layers, the watchdog, the wake-ups, the checks of what was read.

use std::path::Path;

use lockkeeper_sqlite::Sync;
use rusqlite::{Connection, params};

use crate::{Outcome, machine};

macro_rules! query {
    ($name:literal) => {
        include_str!(concat!("../../../stores/sqlite/queries/", $name, ".sql"))
    };
}

const LEASE_NANOS: i64 = 30_000_000_000;
/// Stands for the clock's epoch, which is a hash in the store's own rows.
const EPOCH: i64 = 0x6c6b_7072_6c6b_7072;

/// One connection, set up as the store sets up its own.
pub struct Raw {
    connection: Connection,
    last: i64,
    last_written: i64,
}

/// A claim, as far as it is not the same in every row.
#[derive(Debug, Clone, Copy)]
pub struct RawClaim {
    /// Its 16 bytes.
    pub id: [u8; 16],
    /// Is it in, or does it wait?
    pub held: bool,
}

impl Raw {
    /// Makes a new file.
    pub fn create(path: &Path, sync: Sync) -> Outcome<Self> {
        let connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(query!("schema"))?;
        let level = if sync == Sync::Full { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
        connection.pragma_update(None, "synchronous", level)?;
        connection.pragma_update(None, "wal_autocheckpoint", 1_000)?;
        connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)?;
        Ok(Self { connection, last: 0, last_written: 0 })
    }

    /// Begins a transaction.
    pub fn begin(&mut self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut start = self.connection.prepare_cached(query!("start"))?;
        self.last = start.query_row([], |row| row.get(0))?;
        self.last_written = self.last;
        Ok(())
    }

    /// Puts a claim in line, or writes it again under its number.
    pub fn enter(&mut self, lock: &str, claim: RawClaim) -> rusqlite::Result<()> {
        let wall = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as i64);
        let order = match self.find(lock, claim.id)? {
            Some(order) => order,
            None => {
                self.last = wall.max(self.last + 1);
                self.last
            }
        };
        let now = machine::boottime_nanos() as i64;
        self.connection.prepare_cached(query!("claim_put"))?.execute(params![
            lock,
            order,
            claim.id,
            [7_u8; 16],
            "a-host-name",
            std::process::id(),
            "",
            "mutex",
            1,
            1,
            now,
            claim.held.then_some(now),
            LEASE_NANOS,
            now + LEASE_NANOS,
            EPOCH,
            false,
            [0_u8; 0],
        ])?;
        Ok(())
    }

    /// Takes a claim out; says whether it was there.
    pub fn leave(&mut self, lock: &str, id: [u8; 16]) -> rusqlite::Result<bool> {
        let Some(order) = self.find(lock, id)? else { return Ok(false) };
        Ok(self.connection.prepare_cached(query!("claim_drop"))?.execute(params![lock, order])? == 1)
    }

    /// Reads the whole line, as the store must, and finds a claim in it.
    fn find(&self, lock: &str, id: [u8; 16]) -> rusqlite::Result<Option<i64>> {
        let mut line = self.connection.prepare_cached(query!("line"))?;
        let mut rows = line.query([lock])?;
        let mut found = None;
        while let Some(row) = rows.next()? {
            let (order, known): (i64, [u8; 16]) = (row.get(0)?, row.get(1)?);
            if known == id {
                found = Some(order);
            }
        }
        Ok(found)
    }

    /// Ends the transaction; after this it is on disk, if so asked.
    pub fn commit(&mut self) -> rusqlite::Result<()> {
        if self.last != self.last_written {
            self.connection.prepare_cached(query!("last"))?.execute([self.last])?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_enters_asks_again_and_leaves_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut raw = Raw::create(&folder.path().join("raw.db"), Sync::Normal).unwrap();
        raw.begin().unwrap();
        raw.enter("a", RawClaim { id: [1; 16], held: false }).unwrap();
        let first = raw.last;
        raw.enter("a", RawClaim { id: [1; 16], held: true }).unwrap();
        assert_eq!(raw.last, first, "asking again takes no new number");
        raw.enter("a", RawClaim { id: [2; 16], held: false }).unwrap();
        assert!(raw.last > first);
        raw.commit().unwrap();
        raw.begin().unwrap();
        assert!(raw.last > first, "the last number was kept");
        assert!(raw.leave("a", [1; 16]).unwrap() && raw.leave("a", [2; 16]).unwrap());
        assert!(!raw.leave("a", [1; 16]).unwrap());
        raw.commit().unwrap();
    }
}
