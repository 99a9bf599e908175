//! What can go wrong, told in the words of the core: what happened, may it have taken effect, what now.
//!
//! Surprise: there are two sorts. *Known* is an answer to one caller (a mismatch, a row that is not ours) and hurts
//! nobody else; *Sql* means that the transaction cannot be trusted and is rolled back.

use std::path::Path;

use lockkeeper_core::{Effect, Error, ErrorKind};
use rusqlite::{ErrorCode, ffi};

use crate::place::may_write;

/// Why an operation inside a transaction stopped.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// SQLite failed: the transaction is rolled back.
    Sql(rusqlite::Error),
    /// An answer for the caller; nothing was written for it.
    Known(Error),
    /// It was tried in a read-only transaction and turned out to write.
    MustWrite,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Known(error)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error {
            E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::Utf8Error(..)
            | E::InvalidColumnType(..) => Self::Known(foreign("a row of it cannot be read").with_source(error)),
            other => Self::Sql(other),
        }
    }
}

/// Something in the file that this library did not write. It is not touched, and never taken for free.
pub(crate) fn foreign(what: &str) -> Error {
    Error::new(ErrorKind::Foreign, format!("the lock file holds something that is not ours: {what}"))
        .with_hint("see what it is with `sqlite3`, or use another file")
}

/// What SQLite said, in our words. `effect` is unknown only for a COMMIT.
pub(crate) fn explain(error: rusqlite::Error, effect: Effect, path: &Path) -> Error {
    let may_write = || may_write(path);
    let was_moved = extended_code(&error) == Some(ffi::SQLITE_READONLY_DBMOVED);
    let path = path.display();
    let (kind, what, hint) = match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly) if was_moved => (
            ErrorKind::Unavailable,
            "was removed or replaced",
            "ask again: the file that is there now is used".to_owned(),
        ),
        Some(ErrorCode::CannotOpen) if may_write() => (
            ErrorKind::Unavailable,
            "could not be opened",
            "look whether this process may open more files (`ulimit -n`), and at the system's log".to_owned(),
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "is kept busy by another process",
            format!("see who has it open with `fuser {path}`; a backup or `sqlite3` in a transaction blocks it"),
        ),
        Some(ErrorCode::DiskFull) => {
            (ErrorKind::Unavailable, "cannot grow: the disk is full", "free some space on its file system".to_owned())
        }
        Some(
            ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::CannotOpen
            | ErrorCode::AuthorizationForStatementDenied,
        ) => (
            ErrorKind::Denied,
            "cannot be opened for writing",
            "this user needs to write the file, its directory and the files beside it (`-wal`, `-shm`); \
             for a group, `chmod g+rwxs` the directory"
                .to_owned(),
        ),
        Some(ErrorCode::NotADatabase) => {
            (ErrorKind::Foreign, "is not a lock file", "use another path; it was not touched".to_owned())
        }
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Foreign,
            "is damaged",
            "stop what uses it, move it and the files beside it (`-wal`, `-shm`) away, and start again".to_owned(),
        ),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::Unknown) | None => {
            (ErrorKind::Foreign, "has been changed by something else", "use another file".to_owned())
        }
        Some(_) => (
            ErrorKind::Unavailable,
            "could not be read or written",
            "look at the disk and at the system's log".to_owned(),
        ),
    };
    Error::new(kind, format!("the lock file {path} {what}")).with_effect(effect).with_hint(hint).with_source(error)
}

fn extended_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

/// What the file system said.
pub(crate) fn explain_io(error: std::io::Error, what: &str, path: &Path) -> Error {
    use std::io::ErrorKind as Io;
    let path = path.display();
    let (kind, hint) = match error.kind() {
        Io::PermissionDenied | Io::ReadOnlyFilesystem => {
            (ErrorKind::Denied, "this user needs to write there; or use another path")
        }
        Io::NotADirectory | Io::IsADirectory | Io::AlreadyExists | Io::InvalidInput | Io::InvalidFilename => {
            (ErrorKind::Invalid, "use the path of a file in a directory")
        }
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::Unavailable, "free some space on its file system"),
        _ => (ErrorKind::Unavailable, "look at the disk and at the system's log"),
    };
    Error::new(kind, format!("{what} {path}: {error}")).with_hint(hint).with_source(error)
}

/// After `close`, and while it is under way.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the sqlite store is closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_kind_and_a_hint() {
        let cases = [
            (ffi::SQLITE_BUSY, ErrorKind::Unavailable),
            (ffi::SQLITE_BUSY_SNAPSHOT, ErrorKind::Unavailable),
            (ffi::SQLITE_FULL, ErrorKind::Unavailable),
            (ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable),
            (ffi::SQLITE_READONLY_DBMOVED, ErrorKind::Unavailable),
            (ffi::SQLITE_READONLY_DIRECTORY, ErrorKind::Denied),
            (ffi::SQLITE_PERM, ErrorKind::Denied),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Denied),
            (ffi::SQLITE_NOTADB, ErrorKind::Foreign),
            (ffi::SQLITE_CORRUPT, ErrorKind::Foreign),
            (ffi::SQLITE_CONSTRAINT_TRIGGER, ErrorKind::Foreign),
            (ffi::SQLITE_ERROR, ErrorKind::Foreign),
        ];
        for (code, kind) in cases {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = explain(error, Effect::Unknown, Path::new("/nowhere/locks.db"));
            assert_eq!((error.kind(), error.effect()), (kind, Effect::Unknown), "{code}");
            assert!(error.hint().is_some() && error.to_string().contains("/nowhere/locks.db"), "{error}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_answer_and_not_a_failure() {
        let error = rusqlite::Error::IntegralValueOutOfRange(3, -1);
        assert!(matches!(Trouble::from(error), Trouble::Known(error) if error.kind() == ErrorKind::Foreign));
        assert!(matches!(Trouble::from(rusqlite::Error::QueryReturnedNoRows), Trouble::Sql(_)));
    }
}
