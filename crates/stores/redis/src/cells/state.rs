//! A cell as it lies on the server: from the hash to the pure state of the core, and back as the commands that write it.
//!
//! The fields are told in `scripts/cell.lua`, which reads and writes the same: change both. Surprise: a removed cell
//! leaves its version behind for a while, so that one made again has a greater one even if the clock was set back.

use std::time::Duration;

use lockkeeper_core::Result;
use lockkeeper_core::cell::{CellState, CellValue};
use lockkeeper_core::time::Moment;
use redis::{Cmd, Value};

use super::{EXACT, keep_us};
use crate::trouble;

/// The fields, in the order they are read.
pub(super) const FIELDS: [&str; 8] = ["kind", "version", "touched", "keep", "value", "span", "read", "write"];

const SPAN_MAX: u64 = 1_000_000_000_000_000;
const MARK_DIGITS: usize = 20;
const MINUTE_US: u64 = 60_000_000;
const DAY_US: u64 = 86_400_000_000;

/// What was found at a cell's key.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Is there a hash of ours, if only to remember a version?
    pub(super) is_there: bool,
    /// Its version; zero if there is nothing.
    pub(super) version: u64,
    /// The state; it may be over.
    pub(super) state: Option<CellState>,
}

impl Found {
    /// Reads the fields; what cannot be read is foreign (C13).
    pub(super) fn parse(fields: &[Value]) -> Result<Self> {
        let [kind, version, touched, keep, value, span, read, write] = fields else {
            return Err(trouble::unexpected("HMGET"));
        };
        let Some(kind) = bytes(kind) else { return Ok(Self::default()) };
        let state = read_state(kind, [version, touched, keep, value, span, read, write]);
        state.ok_or_else(trouble::foreign)
    }

    /// A version above all that the cell ever had, also when the clock went back.
    pub(super) fn fresh(&self, asked_us: u64) -> u64 {
        asked_us.max(self.version + 1)
    }

    fn is_live(&self, now: Moment) -> bool {
        self.state.as_ref().is_some_and(|state| !state.is_over(now.max(state.touched)))
    }

    /// The commands that turn what was found into `after`; none if it is the same.
    pub(super) fn become_after(&self, key: &str, after: Option<&CellState>, asked_us: u64) -> Vec<Cmd> {
        let Some(after) = after else { return self.become_gone(key, asked_us) };
        let live = self.state.as_ref().filter(|_| self.is_live(super::moment(asked_us)));
        if live == Some(after) {
            return Vec::new();
        }
        let mut commands = Vec::new();
        if self.is_there && live.is_none() {
            commands.push(on("DEL", key));
        }
        let (old, new) = (live.map(fields_of).unwrap_or_default(), fields_of(after));
        let (mut set, mut unset) = (on("HSET", key), on("HDEL", key));
        let (mut sets, mut unsets) = (0, 0);
        for (field, (old, new)) in FIELDS.iter().zip(old.iter().zip(&new)) {
            match new {
                Some(text) if old.as_ref() != Some(text) => {
                    set.arg(field).arg(text);
                    sets += 1;
                }
                None if old.is_some() => {
                    unset.arg(field);
                    unsets += 1;
                }
                _ => {}
            }
        }
        commands.extend((sets > 0).then_some(set));
        commands.extend((unsets > 0).then_some(unset));
        match after.keep {
            Some(keep) => {
                let ends_us = after.touched.as_nanos() / 1_000 + keep_us(keep);
                let linger_us = match after.value {
                    // Nobody is told the version of a limiter.
                    CellValue::Window { .. } | CellValue::Gcra { .. } => 0,
                    _ => MINUTE_US,
                };
                commands.push(drop_at(key, ends_us, after.version, asked_us, linger_us));
            }
            None => commands.extend(live.and_then(|live| live.keep).map(|_| on("PERSIST", key))),
        }
        commands
    }

    fn become_gone(&self, key: &str, asked_us: u64) -> Vec<Cmd> {
        if self.state.is_none() {
            return Vec::new();
        }
        let mut gone = on("HSET", key);
        gone.arg("kind").arg("gone").arg("version").arg(self.version);
        vec![on("DEL", key), gone, drop_at(key, asked_us, self.version, asked_us, MINUTE_US)]
    }
}

/// The server drops the key at this time, or when its clock is past the version, whichever is later; a version that is
/// ahead of the clock has seen it go back, and stays for a day.
fn drop_at(key: &str, us: u64, version: u64, asked_us: u64, linger_us: u64) -> Cmd {
    let linger_us = if version > asked_us { DAY_US } else { linger_us };
    let mut expire = on("PEXPIREAT", key);
    expire.arg((us.max(version) + linger_us).div_ceil(1_000));
    expire
}

fn on(command: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(command);
    command.arg(key);
    command
}

/// What a state writes, in the order of [`FIELDS`].
fn fields_of(state: &CellState) -> [Option<Vec<u8>>; 8] {
    let text = |number: u64| Some(number.to_string().into_bytes());
    let ns = |span: Duration| text(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    let (kind, value, span) = match &state.value {
        CellValue::Empty => ("empty", None, None),
        CellValue::Bytes(bytes) => ("bytes", Some(bytes.clone()), None),
        CellValue::Number(number) => ("number", Some(number.to_string().into_bytes()), None),
        CellValue::Window { age, used } => ("window", text(*used), ns(*age)),
        CellValue::Gcra { ahead } => ("gcra", None, ns(*ahead)),
    };
    [
        Some(kind.as_bytes().to_vec()),
        text(state.version),
        text(state.touched.as_nanos() / 1_000),
        state.keep.and_then(|keep| text(keep_us(keep))),
        value,
        span,
        mark_text(state.read_mark),
        mark_text(state.write_mark),
    ]
}

/// A mark or token as it is compared: 20 digits.
pub(super) fn digits(token: u64) -> String {
    format!("{token:0MARK_DIGITS$}")
}

fn mark_text(mark: u64) -> Option<Vec<u8>> {
    (mark > 0).then(|| digits(mark).into_bytes())
}

fn read_state(kind: &[u8], fields: [&Value; 7]) -> Option<Found> {
    let [version, touched, keep, value, span, read, write] = fields;
    let version = exact(version, EXACT).filter(|version| *version > 0)?;
    if kind == b"gone" {
        return Some(Found { is_there: true, version, state: None });
    }
    let span = || exact(span, SPAN_MAX).map(Duration::from_nanos);
    let value = match kind {
        b"empty" => CellValue::Empty,
        b"bytes" => CellValue::Bytes(bytes(value)?.to_vec()),
        b"number" => CellValue::Number(canonical(bytes(value)?)?),
        b"window" => CellValue::Window { age: span()?, used: exact(value, SPAN_MAX)? },
        b"gcra" => CellValue::Gcra { ahead: span()? },
        _ => return None,
    };
    let keep = match keep {
        Value::Nil => None,
        keep => Some(Duration::from_micros(exact(keep, EXACT)?)),
    };
    let state = CellState {
        version,
        value,
        read_mark: mark(read)?,
        write_mark: mark(write)?,
        touched: super::moment(exact(touched, EXACT)?),
        keep,
    };
    Some(Found { is_there: true, version, state: Some(state) })
}

pub(super) fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

/// A number in the one way of writing it.
pub(super) fn canonical<T: std::str::FromStr + ToString>(text: &[u8]) -> Option<T> {
    let number: T = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn exact(value: &Value, below: u64) -> Option<u64> {
    bytes(value).and_then(canonical).filter(|number| *number < below)
}

fn mark(value: &Value) -> Option<u64> {
    match value {
        Value::Nil => Some(0),
        value => {
            let text = bytes(value).filter(|text| text.len() == MARK_DIGITS && text.iter().all(u8::is_ascii_digit))?;
            std::str::from_utf8(text).ok()?.parse().ok()
        }
    }
}
