//! Cells: a key each, changed on the condition that nobody changed it meanwhile.
//!
//! The value is a line for people and for us, `lk1` sort version read-mark write-mark, a line feed, and the bytes or the
//! digits. The version is the key's mod-revision, written out only where a change left it as it was. Surprise: what is
//! to be forgotten after a time hangs on a lease of that length, because the server has no clock that anybody could read.

use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply, CellState, CellValue, Versioned};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Error, ErrorKind, Name, Result};

use crate::keys;
use crate::link::Link;
use crate::proto::{Do, KeyValue, RangeResponse, TxnResponse, path};
use crate::session::Session;
use crate::txn;

/// How often a change is tried when others are always faster.
const TRIES: usize = 200;

pub(crate) async fn read(link: &Link, cell: &Name) -> Result<Option<Versioned>> {
    let answer: RangeResponse = link.ask(path::RANGE, &txn::get(&keys::cell(cell))).await?.answer;
    Ok(state(cell, answer.kvs.first())?.and_then(|state| state.read(NOW)))
}

/// There is no time in here: what is over is gone.
const NOW: Moment = Moment::from_nanos(0);

pub(crate) async fn update(link: &Link, cell: &Name, op: &CellOp) -> Result<CellReply> {
    possible(op)?;
    let key = keys::cell(cell);
    let answer: RangeResponse = link.ask(path::RANGE, &txn::get(&key)).await?.answer;
    let mut found = answer.kvs.into_iter().next();
    for tried in 0..TRIES {
        let before = state(cell, found.as_ref())?;
        let (change, reply) = decided(before.as_ref(), op)?;
        let changes = match change {
            Change::Nothing => return Ok(reply),
            Change::Delete => vec![txn::delete(&key)],
            Change::Put(value) => {
                let lease = match op.keep {
                    Some(keep) => Session::grant(link, keep, false).await?.id,
                    None => 0,
                };
                vec![txn::put(&key, value, lease)]
            }
        };
        let seen = found.as_ref().map_or(0, |kv| kv.mod_revision);
        let question = txn::txn(vec![txn::changed(&key, seen)], changes, vec![Do::Range(txn::get(&key))]);
        let answer: TxnResponse = link.ask_once(path::TXN, &question).await?;
        if answer.succeeded {
            let revision = answer.header.map_or(0, |header| header.revision);
            return Ok(versioned(reply, u64::try_from(revision).unwrap_or(0)));
        }
        found = txn::last_range(answer)?.into_iter().next();
        tokio::time::sleep(Duration::from_millis(1).mul_f64(fastrand::f64() * tried.min(20) as f64)).await;
    }
    Err(Error::new(ErrorKind::Unavailable, format!("`{cell}` is changed by others all the time"))
        .with_hint("nothing was changed; try again"))
}

/// Refuses what can be done with no cell here.
pub(crate) fn possible(op: &CellOp) -> Result<()> {
    op.check()?;
    if matches!(op.action, CellAction::Window { .. } | CellAction::Gcra { .. }) {
        return Err(Error::new(ErrorKind::Unsupported, "etcd has no clock that a limiter could use")
            .with_hint("keep limiters on a store with one: `redis://…` or `sqlite:…`"));
    }
    Ok(())
}

/// Versions are revisions, and a change's is only known once it is made: this stands for it until then. No revision is as
/// great.
const FRESH: u64 = u64::MAX;

/// What becomes of the key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    Delete,
    Put(Vec<u8>),
}

/// What an operation makes of a cell, and what it answers if nobody changes the cell meanwhile.
pub(crate) fn decided(before: Option<&CellState>, op: &CellOp) -> Result<(Change, CellReply)> {
    let timeless = CellOp { action: op.action.clone(), keep: None };
    let (after, reply) = timeless.apply(before, NOW, FRESH)?;
    let change = match &after {
        after if after.as_ref() == before => Change::Nothing,
        None => Change::Delete,
        Some(after) => Change::Put(write(after)),
    };
    Ok((change, reply))
}

/// The reply with the version that the change was given.
pub(crate) fn versioned(reply: CellReply, revision: u64) -> CellReply {
    match reply {
        CellReply::Done { version: FRESH } => CellReply::Done { version: revision },
        CellReply::Number { value, version: FRESH } => CellReply::Number { value, version: revision },
        reply => reply,
    }
}

fn write(state: &CellState) -> Vec<u8> {
    // Zero: the mod-revision of the key.
    let version = if state.version == FRESH { 0 } else { state.version };
    let (sort, rest) = match &state.value {
        CellValue::Bytes(bytes) => ("bytes", bytes.clone()),
        CellValue::Number(number) => ("number", number.to_string().into_bytes()),
        CellValue::Empty | CellValue::Window { .. } | CellValue::Gcra { .. } => ("empty", Vec::new()),
    };
    let mut text = format!("lk1 {sort} {version} {} {}\n", state.read_mark, state.write_mark).into_bytes();
    text.extend_from_slice(&rest);
    text
}

pub(crate) fn state(cell: &Name, kv: Option<&KeyValue>) -> Result<Option<CellState>> {
    let Some(kv) = kv else { return Ok(None) };
    parse(kv).map(Some).ok_or_else(|| {
        let why = format!("the key of the cell `{cell}` holds something that is not ours");
        Error::new(ErrorKind::Foreign, why).with_hint("it was not touched; use another name, or another prefix")
    })
}

fn parse(kv: &KeyValue) -> Option<CellState> {
    let end = kv.value.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = (std::str::from_utf8(&kv.value[..end]).ok()?, &kv.value[end + 1..]);
    let mut parts = line.strip_prefix("lk1 ")?.split(' ');
    let sort = parts.next()?;
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (version, read_mark, write_mark) = (number()?, number()?, number()?);
    // What we do not know we would lose by writing.
    if parts.next().is_some() {
        return None;
    }
    let value = match sort {
        "bytes" => CellValue::Bytes(rest.to_vec()),
        "number" => CellValue::Number(std::str::from_utf8(rest).ok()?.parse().ok()?),
        "empty" if rest.is_empty() => CellValue::Empty,
        _ => return None,
    };
    let version = if version == 0 { kv.mod_revision } else { i64::try_from(version).ok()? };
    // No revision is zero: it is the version of a cell that is not there.
    let version = u64::try_from(version).ok().filter(|version| *version > 0)?;
    Some(CellState { version, value, read_mark, write_mark, touched: NOW, keep: None })
}
