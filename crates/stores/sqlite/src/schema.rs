//! Opening the file: is it ours, is it a version we know, is it really in WAL mode.
//!
//! Surprise: nothing is written before the file is known to be ours or empty. Switching another program's database
//! to WAL would already be a change to it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use lockkeeper_core::{Effect, Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::Sync;
use crate::place::Place;
use crate::sql;
use crate::trouble::{explain, foreign};

/// `Lkpr` in ASCII: how `file` and we know the file.
const APPLICATION_ID: i32 = 0x4c6b_7072;
/// The version of the schema that this code writes.
const VERSION: i32 = 1;
/// How long other processes may keep the file busy.
const BUSY: Duration = Duration::from_secs(5);
/// How many pages the WAL grows to before it is written back.
const CHECKPOINT_PAGES: i64 = 1_000;
/// What is left of a WAL that grew much larger than usual, in bytes.
const WAL_BYTES: i64 = 16 * 1024 * 1024;

/// Opens the file, making it ours if it is empty.
pub(crate) fn open(place: &Place, sync: Sync) -> Result<Connection> {
    let explained = |error| explain(error, Effect::None, &place.path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&place.path, flags).map_err(explained)?;
    connection.busy_handler(Some(wait_a_little)).map_err(explained)?;
    connection.set_prepared_statement_cache_capacity(64);
    // A damaged or hostile schema shall not call functions.
    connection.pragma_update(None, "trusted_schema", false).map_err(explained)?;
    claim_file(&mut connection, place)?;
    switch_to_wal(&connection, place)?;
    let level = match sync {
        Sync::Full => "FULL",
        Sync::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", level).map_err(explained)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(explained)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES).map_err(explained)?;
    // The first read is what makes the shared memory beside the file: who may not, shall hear it now.
    connection.query_row(sql::TABLES, [], |_| Ok(())).map_err(explained)?;
    Ok(connection)
}

/// Is the file ours, or empty and to be made ours?
fn claim_file(connection: &mut Connection, place: &Place) -> Result<()> {
    let explained = |error| explain(error, Effect::None, &place.path);
    // In a transaction, so that all that is looked at is of one moment.
    let looking = connection.transaction_with_behavior(TransactionBehavior::Deferred).map_err(explained)?;
    if is_ours(&looking, place)? {
        return Ok(());
    }
    drop(looking);
    // Another process may be making it ours at this moment: look again with the write lock.
    let creating = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explained)?;
    if !is_ours(&creating, place)? {
        create(&creating).map_err(explained)?;
        creating.commit().map_err(explained)?;
    }
    Ok(())
}

fn is_ours(connection: &Connection, place: &Place) -> Result<bool> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let explained = |error| explain(error, Effect::None, &place.path);
    let id = number("application_id").map_err(explained)?;
    let version = number("user_version").map_err(explained)?;
    match (id, version) {
        (APPLICATION_ID, VERSION) => Ok(true),
        (APPLICATION_ID, newer) if newer > VERSION => Err(Error::new(
            ErrorKind::Unsupported,
            format!("the lock file {} has version {newer}, and this program knows {VERSION}", place.path.display()),
        )
        .with_hint("upgrade lockkeeper here, or use another file")),
        (0, 0) => {
            let tables: i64 = connection.query_row(sql::TABLES, [], |row| row.get(0)).map_err(explained)?;
            if tables == 0 { Ok(false) } else { Err(foreign("it is a database of another program")) }
        }
        _ => Err(foreign("it is a database of another program")),
    }
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(sql::SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)
}

fn switch_to_wal(connection: &Connection, place: &Place) -> Result<()> {
    let started = Instant::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                let message = format!("{} can only be kept in `{mode}` mode, not in WAL mode", place.path.display());
                return Err(Error::new(ErrorKind::Unsupported, message).with_hint("use a path on a local disk"));
            }
            // The switch needs the file for itself, and SQLite does not always wait for that.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && started.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(fastrand::u64(1..5)));
            }
            Err(error) => return Err(explain(error, Effect::None, &place.path)),
        }
    }
}

thread_local! {
    static BUSY_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Called by SQLite while another process writes. Its own handler soon sleeps 100 ms at a time, while a commit takes
/// less than one: short, uneven naps give every process its turn.
fn wait_a_little(tries: i32) -> bool {
    let now = Instant::now();
    let since = BUSY_SINCE.with(|since| {
        if tries == 0 {
            since.set(Some(now));
        }
        since.get().unwrap_or(now)
    });
    if now.duration_since(since) >= BUSY {
        return false;
    }
    let longest = if tries < 20 { 300 } else { 3_000 };
    std::thread::sleep(Duration::from_micros(fastrand::u64(50..longest)));
    true
}
