//! One operation, one call of a script: what is sent, and what the answer means.
//!
//! Surprise: what does not fit a double is worked out here where it can be (how much a counter must hold for a `Take`), so
//! that the script only compares and adds. An error that the script reports is told in the words of the core, by asking
//! [`CellOp::apply`] about a cell of the same kind.

use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply, CellState, CellValue, Versioned};
use lockkeeper_core::{Error, ErrorKind, Result, Token};
use redis::Value;

use super::state::{bytes, canonical, digits};
use super::{Told, keep_us, moment};
use crate::fast::number;
use crate::link::Link;
use crate::scripts::{CELL_COUNT, CELL_FENCE, CELL_LIMIT, CELL_VALUE, Script};
use crate::trouble;

/// Applies one operation.
pub(super) async fn update(link: &Link, key: &str, op: &CellOp) -> Result<Told> {
    let (script, args) = call(op);
    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    let answer = link.run(script, &[key.as_bytes()], &args).await.map_err(|error| match error.kind() {
        ErrorKind::Denied => error.with_hint("let the user run scripts, or use `?cells=watch`, which needs none"),
        _ => error,
    })?;
    told(op, &answer).ok_or_else(|| trouble::unexpected("a cell"))
}

fn call(op: &CellOp) -> (&'static Script, Vec<Vec<u8>>) {
    let (script, word) = match op.action {
        CellAction::Put { .. } => (&CELL_VALUE, "put"),
        CellAction::Remove { .. } => (&CELL_VALUE, "remove"),
        CellAction::Add { .. } => (&CELL_COUNT, "add"),
        CellAction::Take { .. } => (&CELL_COUNT, "take"),
        CellAction::Max { .. } => (&CELL_COUNT, "max"),
        CellAction::Window { .. } => (&CELL_LIMIT, "window"),
        CellAction::Gcra { .. } => (&CELL_LIMIT, "gcra"),
        CellAction::FenceEnter { .. } => (&CELL_FENCE, "enter"),
        CellAction::FencedPut { .. } => (&CELL_FENCE, "put"),
    };
    let mut args = vec![word.as_bytes().to_vec(), text_or_nothing(op.keep.map(keep_us))];
    match &op.action {
        CellAction::Put { value, if_version } => args.extend([text_or_nothing(*if_version), value.clone()]),
        CellAction::Remove { if_version } => args.push(text_or_nothing(*if_version)),
        CellAction::Add { by } => args.push(text(by)),
        CellAction::Take { by, floor } => {
            // Nothing may be enough: then no counter is.
            let enough = i64::try_from(i128::from(*floor) + i128::from(*by)).ok();
            let (half, rest) = (by / 2, by - by / 2);
            let minus = |part: u64| text(&0_i64.wrapping_sub_unsigned(part));
            args.push(text_or_nothing(enough));
            args.extend(if i64::try_from(*by).is_ok() { [minus(*by), minus(0)] } else { [minus(half), minus(rest)] });
        }
        CellAction::Max { at_least } => args.push(text(at_least)),
        CellAction::Window { take, limit, per } | CellAction::Gcra { take, limit, per } => {
            args.extend([text(take), text(limit), text(&per.as_nanos())]);
        }
        CellAction::FenceEnter { token, shared } => {
            args.extend([digits(token.as_u64()).into_bytes(), text(&u8::from(*shared))]);
        }
        CellAction::FencedPut { token, value } => {
            args.extend([digits(token.as_u64()).into_bytes(), text(&u8::from(value.is_some()))]);
            args.push(value.clone().unwrap_or_default());
        }
    }
    (script, args)
}

fn text(number: &impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn text_or_nothing(number: Option<impl ToString>) -> Vec<u8> {
    number.map(|number| text(&number)).unwrap_or_default()
}

/// What an answer means; nothing if no script of ours gives such a one.
pub(super) fn told(op: &CellOp, answer: &Value) -> Option<Told> {
    let Value::Array(parts) = answer else { return None };
    let word = bytes(parts.first()?)?;
    let asked = moment(number(parts.get(1)?)?);
    let part = |at: usize| parts.get(at + 2);
    let unsigned = |at: usize| part(at).and_then(number);
    let reply = match word {
        b"D" => Ok(CellReply::Done { version: unsigned(0)? }),
        b"N" => Ok(CellReply::Number { value: canonical(bytes(part(0)?)?)?, version: unsigned(1)? }),
        b"T" => Ok(CellReply::TooLow { value: canonical(bytes(part(0)?)?)? }),
        b"C" => Ok(CellReply::Conflict { current: versioned(part(0)?, part(1)?)? }),
        b"E" => Ok(CellReply::Entered { current: versioned(part(0)?, part(1)?)? }),
        b"S" => Ok(CellReply::Stale { seen: Token::from_u64(unsigned(0)?) }),
        b"A" => {
            let full_in = Duration::from_nanos(unsigned(1)?).saturating_add(Duration::from_micros(unsigned(2)?));
            Ok(CellReply::Admitted { remaining: unsigned(0)?, full_in })
        }
        b"L" => {
            let behind = Duration::from_micros(unsigned(2)?);
            let retry_after = match part(1)? {
                Value::Nil => None,
                ns => Some(Duration::from_nanos(number(ns)?).saturating_add(behind)),
            };
            Ok(CellReply::Limited { remaining: unsigned(0)?, retry_after })
        }
        b"M" => Err(refusal(op, like(bytes(part(0)?)?)?, 0)?),
        b"F" => Err(refusal(op, CellValue::Empty, 1)?),
        b"O" => {
            let full = if matches!(op.action, CellAction::Add { by } if by < 0) { i64::MIN } else { i64::MAX };
            Err(refusal(op, CellValue::Number(full), 0)?)
        }
        _ => return None,
    };
    Some((asked, reply))
}

/// What a reader sees; the outer `None` if it cannot be read.
fn versioned(value: &Value, version: &Value) -> Option<Option<Versioned>> {
    match value {
        Value::Nil => Some(None),
        value => Some(Some(Versioned { value: bytes(value)?.to_vec(), version: number(version)? })),
    }
}

/// A value of the same kind.
fn like(kind: &[u8]) -> Option<CellValue> {
    Some(match kind {
        b"empty" => CellValue::Empty,
        b"bytes" => CellValue::Bytes(Vec::new()),
        b"number" => CellValue::Number(0),
        b"window" => CellValue::Window { age: Duration::ZERO, used: 0 },
        b"gcra" => CellValue::Gcra { ahead: Duration::ZERO },
        _ => return None,
    })
}

/// How the core refuses the operation on such a cell; nothing if it does not.
fn refusal(op: &CellOp, value: CellValue, write_mark: u64) -> Option<Error> {
    let touched = moment(0);
    let state = CellState { version: 1, value, read_mark: 0, write_mark, touched, keep: None };
    op.apply(Some(&state), touched, 2).err()
}
