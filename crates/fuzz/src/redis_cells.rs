//! What a Redis server sends of cells: the fields of a hash, and the answers of scripts.
//!
//! An input is a line with an operation (`window 1 10 60000 -`), a line with the server's clock (`1700000000 123456`), and
//! an answer as the protocol has it.

use std::collections::HashMap;
use std::time::Duration;

use lockkeeper_core::Token;
use lockkeeper_core::cell::{CellAction, CellOp, CellReply};
use lockkeeper_redis::fuzzing;
use redis::Value;

use crate::redis_lines::answer;

const FIELDS: [&[u8]; 8] = [b"kind", b"version", b"touched", b"keep", b"value", b"span", b"read", b"write"];

/// Versions end here: a cell that has come so far can be read, but not written any more.
const LAST_VERSION: u64 = 9_000_000_000_000_000;

/// What was read and changed can be read again, with the version that was told; an answer of a script is understood or not,
/// and never makes a counter of something else.
pub(crate) fn cells(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (op, clock) = (text(), text());
    let Some(op) = operation(&op).filter(|op| op.check().is_ok()) else { return };
    let Some(answer) = lines.next().and_then(answer) else { return };
    if let Some((_, Ok(reply))) = fuzzing::cell_told(&op, &answer) {
        let _ = format!("{reply:?}");
    }
    let parts = clock.split(' ').map(|part| Value::BulkString(part.as_bytes().to_vec())).collect();
    let Ok(asked_us) = fuzzing::time_us(&Value::Array(parts)) else { return };
    let Value::Array(fields) = answer else { return };
    let Ok((before, commands, reply)) = fuzzing::cell_decided(&fields, &op, asked_us) else { return };
    // A hash without a kind is foreign, which is seen by asking whether it is there.
    let text = |value: &Value| matches!(value, Value::BulkString(_));
    if !text(&fields[0]) && fields.iter().any(text) {
        return;
    }
    if before.as_ref().is_some_and(|state| state.version + 1 >= LAST_VERSION) {
        return;
    }
    let mut hash: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for (field, value) in FIELDS.iter().zip(&fields) {
        if let Value::BulkString(value) = value {
            hash.insert(field.to_vec(), value.clone());
        }
    }
    for command in &commands {
        obey(command, &mut hash, asked_us);
    }
    let field = |field: &&[u8]| hash.get(*field).map_or(Value::Nil, |value| Value::BulkString(value.clone()));
    let after: Vec<Value> = FIELDS.iter().map(field).collect();
    let read = CellOp::new(CellAction::Max { at_least: i64::MIN });
    let (state, ..) = fuzzing::cell_decided(&after, &read, asked_us)
        .unwrap_or_else(|error| panic!("{op:?} on {before:?} wrote {after:?}: {error}"));
    match reply {
        Ok(CellReply::Done { version: 0 }) => assert_eq!(state, None),
        Ok(CellReply::Done { version } | CellReply::Number { version, .. }) => {
            assert_eq!(state.map(|state| state.version), Some(version), "{op:?} on {before:?}");
        }
        Ok(CellReply::Conflict { .. } | CellReply::TooLow { .. } | CellReply::Limited { .. }) | Err(_) => {
            assert!(commands.is_empty(), "{op:?} on {before:?} was refused and wrote {commands:?}");
        }
        Ok(_) => {}
    }
}

/// What the server would do.
fn obey(command: &[Vec<u8>], hash: &mut HashMap<Vec<u8>, Vec<u8>>, asked_us: u64) {
    let rest = &command[2..];
    match &command[0][..] {
        b"DEL" => hash.clear(),
        b"HSET" => hash.extend(rest.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()))),
        b"HDEL" => hash.retain(|field, _| !rest.contains(field)),
        b"PERSIST" => {}
        b"PEXPIREAT" => {
            let at: i64 = String::from_utf8_lossy(&rest[0]).parse().expect("a time that the server can read");
            assert!(at >= i64::try_from(asked_us / 1_000).unwrap_or(i64::MAX), "it would be dropped at once: {at}");
        }
        other => panic!("{:?} is none of ours", String::from_utf8_lossy(other)),
    }
}

/// `ACTION N N N KEEP_MS`, where what is missing is zero and `-` keeps for ever.
pub(crate) fn operation(text: &str) -> Option<CellOp> {
    let words: Vec<&str> = text.split(' ').collect();
    let word = |at: usize| words.get(at).copied().unwrap_or("0");
    let unsigned = |at: usize| word(at).parse::<u64>().unwrap_or_default();
    let signed = |at: usize| word(at).parse::<i64>().unwrap_or_default();
    let time = |at: usize| Duration::from_millis(unsigned(at));
    let version = |at: usize| word(at).parse::<u64>().ok();
    let action = match word(0) {
        "put" => CellAction::Put { value: word(1).as_bytes().to_vec(), if_version: version(2) },
        "remove" => CellAction::Remove { if_version: version(1) },
        "add" => CellAction::Add { by: signed(1) },
        "take" => CellAction::Take { by: unsigned(1), floor: signed(2) },
        "max" => CellAction::Max { at_least: signed(1) },
        "window" => CellAction::Window { take: unsigned(1), limit: unsigned(2), per: time(3) },
        "gcra" => CellAction::Gcra { take: unsigned(1), limit: unsigned(2), per: time(3) },
        "enter" => CellAction::FenceEnter { token: Token::from_u64(unsigned(1)), shared: word(2) == "1" },
        "write" => {
            let value = (word(2) != "-").then(|| word(2).as_bytes().to_vec());
            CellAction::FencedPut { token: Token::from_u64(unsigned(1)), value }
        }
        _ => return None,
    };
    Some(CellOp { action, keep: word(4).parse().ok().map(Duration::from_millis) })
}
