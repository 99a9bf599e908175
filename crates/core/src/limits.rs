//! Every limit on what users may ask, in one place and the same on every store.
//!
//! Change a number here and nowhere else. Bad input is [`Invalid`](crate::ErrorKind::Invalid) with the field
//! and the reason, and nothing has been sent when it is raised.

use std::time::Duration;

use crate::error::{Error, Result};

/// The longest name, in bytes.
pub const NAME_BYTES: usize = 200;
/// The longest note a claim may carry, in bytes.
pub const NOTE_BYTES: usize = 4 * 1024;
/// The largest value of a cell, in bytes.
pub const VALUE_BYTES: usize = 64 * 1024;
/// The shortest lease any store accepts; a store's own profile may ask for more.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest lease any store accepts; a store's own profile may allow less.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest lock-delay.
pub const DELAY_MAX: Duration = Duration::from_secs(60);
/// The longest owner label, in bytes.
pub const LABEL_BYTES: usize = 200;
/// The most permits a semaphore may have.
pub const PERMITS_MAX: u32 = 1_000_000;
/// The most names one multi-lock may take.
pub const MULTI_NAMES: usize = 64;
/// The most locks one page of `inspect` returns.
pub const PAGE_ROWS: usize = 1_000;

/// The most locks that are looked at for circles of owners.
pub const DEADLOCK_LINES: usize = 10_000;

/// Refuses a lease outside `min..=max`.
pub fn lease(lease: Duration, min: Duration, max: Duration) -> Result<()> {
    let (min, max) = (min.max(LEASE_MIN), max.min(LEASE_MAX));
    if lease < min || lease > max {
        return Err(Error::invalid("lease", format!("{lease:?} is outside {min:?} to {max:?} on this store")));
    }
    Ok(())
}

/// Refuses a lock-delay above [`DELAY_MAX`].
pub fn delay(delay: Duration) -> Result<()> {
    if delay > DELAY_MAX {
        return Err(Error::invalid("lock_delay", format!("{delay:?} is more than {DELAY_MAX:?}")));
    }
    Ok(())
}

/// Refuses a note above [`NOTE_BYTES`].
pub fn note(note: &[u8]) -> Result<()> {
    at_most("note", note.len(), NOTE_BYTES)
}

/// Refuses a cell value above [`VALUE_BYTES`].
pub fn value(value: &[u8]) -> Result<()> {
    at_most("value", value.len(), VALUE_BYTES)
}

/// Refuses a label above [`LABEL_BYTES`] or one with control characters.
pub fn label(label: &str) -> Result<()> {
    if label.chars().any(char::is_control) {
        return Err(Error::invalid("label", "control characters are not allowed"));
    }
    at_most("label", label.len(), LABEL_BYTES)
}

fn at_most(field: &'static str, bytes: usize, limit: usize) -> Result<()> {
    if bytes > limit {
        return Err(Error::invalid(field, format!("{bytes} bytes are more than the {limit} allowed")));
    }
    Ok(())
}
