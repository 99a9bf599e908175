//! What the fuzz targets reach that users do not: pure functions from a server's words to the core's. Not part of the API.
//!
//! Surprise: nothing here is used by the store itself; it only opens doors.

use lockkeeper_core::cell::{CellOp, CellReply, CellState};
use lockkeeper_core::checkup::Report;
use lockkeeper_core::store::{LockView, Renewal, Standing};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Claim, ClaimId, Error, Name, Owner, Result};
use redis::{Arg, PushInfo, PushKind, Value};

use crate::greet::NotIn;
use crate::hub::Hub;
use crate::options::Options;
use crate::record;
use crate::resp::Answers;
use crate::{cells, doctor, fast, lines, look, trouble};

/// What a record at a holder key says: the claim, its number, its longest lease in ms, its owner, its note.
pub type Record = (ClaimId, Option<u64>, u64, Owner, Vec<u8>);

/// Reads a holder key.
pub fn read_record(value: &[u8]) -> Option<Record> {
    let record = record::read(value)?;
    Some((record.id, record.number, record.lease_ms, record.owner, record.note))
}

/// Writes one.
pub fn write_record(claim: &Claim, lease_ms: u64) -> Vec<u8> {
    let (owner, note) = (record::owner_text(&claim.owner).into(), claim.note.clone());
    let mut written = Vec::new();
    record::New { id: claim.id, owner, note, lease_ms }.with_pieces(|pieces| written = pieces.concat());
    written
}

/// An owner as scripts keep it.
pub fn owner(text: &[u8]) -> Owner {
    record::owner_of(text)
}

/// A claim asks twice, hears these news, and is told where it stands.
pub fn hear(id: ClaimId, news: &[u8]) -> Option<Standing> {
    let hub = Hub::new("channel".to_owned());
    hub.asks(id);
    hub.asks(id);
    let data = vec![Value::BulkString(b"channel".to_vec()), Value::BulkString(news.to_vec())];
    hub.hear(&PushInfo { kind: PushKind::Message, data });
    hub.news_by_now(id)
}

/// What the answer to a question means.
pub fn standing(claim: &Claim, answer: &Value) -> Result<Standing> {
    lines::standing(claim, answer.clone())
}

/// What the answer to so many renewals means.
pub fn renewals(answer: &Value, count: usize) -> Result<Vec<Renewal>> {
    Ok(lines::renewals(answer, count)?.into_iter().map(lines::renewal).collect())
}

/// A line as people see it.
pub fn seen(name: &Name, answer: &Value) -> Result<Option<LockView>> {
    look::seen(&Hub::new(String::new()), name, answer)
}

/// A step of a walk through the keys.
pub fn step(answer: &Value) -> Result<(String, Vec<Vec<u8>>)> {
    look::step_of(answer.clone())
}

/// The server's clock.
pub fn time_us(answer: &Value) -> Result<u64> {
    fast::time_us(answer.clone())
}

/// What a script told of a cell.
pub fn cell_told(op: &CellOp, answer: &Value) -> Option<(Moment, Result<CellReply>)> {
    cells::script_told(op, answer)
}

/// What stands in the fields of a cell, and what an operation at that time makes of it: commands, word by word.
pub type Decided = (Option<CellState>, Vec<Vec<Vec<u8>>>, Result<CellReply>);

/// Reads the fields of a cell, and applies an operation.
pub fn cell_decided(fields: &[Value], op: &CellOp, asked_us: u64) -> Result<Decided> {
    let (state, commands, reply) = cells::decided(fields, op, asked_us)?;
    let word = |word: Arg<&[u8]>| match word {
        Arg::Simple(word) => word.to_vec(),
        _ => Vec::new(),
    };
    Ok((state, commands.iter().map(|command| command.args_iter().map(word).collect()).collect(), reply))
}

/// What a server that told this is said to be: `INFO`; `CONFIG GET`, `HELLO`, `SLOWLOG GET`, `ACL WHOAMI`; its clock.
pub fn judged(info: &str, answers: [&Value; 4], clock_us: [u64; 2]) -> Report {
    doctor::judged(info, answers, clock_us)
}

/// How an error reply is told to who comes in, which is when the password is sent.
pub fn not_let_in(options: &Options, answer: &Value) -> Option<Error> {
    match answer {
        Value::ServerError(error) => Some(trouble::not_let_in(options, NotIn::Refused(error.clone()))),
        _ => None,
    }
}

/// How an error reply is told to who asks.
pub fn refused(options: &Options, answer: &Value) -> Vec<Error> {
    match answer {
        Value::ServerError(error) => vec![trouble::refused(&options.address, error)],
        _ => Vec::new(),
    }
}

/// The answers in what a server sent, as it came in pieces of so many bytes; and whether all of it was the protocol.
pub fn answers(bytes: &[u8], piece: usize) -> (Vec<Value>, bool) {
    let (mut answers, mut found) = (Answers::new(), Vec::new());
    for mut piece in bytes.chunks(piece.max(1)) {
        while !piece.is_empty() {
            let room = answers.room();
            let count = room.len().min(piece.len());
            room[..count].copy_from_slice(&piece[..count]);
            answers.came(count);
            piece = &piece[count..];
            loop {
                match answers.next() {
                    Ok(Some(value)) => found.push(value),
                    Ok(None) => break,
                    Err(_) => return (found, false),
                }
            }
        }
    }
    (found, true)
}
