//! What only a run that started an etcd may ask of it, past every layer and proxy: all its keys, and that they be gone.
//!
//! Surprise: leases are not looked for. A lease that nothing hangs on any more runs out by itself, and one that something
//! hangs on is found by its key.

use std::io;

use lockkeeper_rig::ask_etcd;
use serde_json::Value;

use super::leftovers::leftover;
use crate::history::Leftover;

/// From the first possible key on, without an end: the byte 0, in base 64, is etcd's own sign for both.
const ALL: &str = r#""key":"AA==","range_end":"AA==""#;
/// How many keys are listed. An answer is of a limited length.
const LISTED: u32 = 200;
/// A member that has just come back, or has much to do, is asked again.
const TRIES: usize = 5;

/// Deletes all keys. Doing so twice does no more.
pub(crate) fn wipe(members: &[u16]) -> io::Result<()> {
    ask(members, "/v3/kv/deleterange", &format!("{{{ALL}}}")).map(drop)
}

/// Keys that nobody needs any more and that never go. Cells may stay, if they forget themselves.
pub(super) fn left(members: &[u16]) -> io::Result<Vec<Leftover>> {
    let question = format!(r#"{{{ALL},"keys_only":true,"limit":"{LISTED}"}}"#);
    let answer = ask(members, "/v3/kv/range", &question)?;
    let mut left = Vec::new();
    for kv in answer["kvs"].as_array().into_iter().flatten() {
        let key = kv["key"].as_str().and_then(decoded).ok_or_else(|| strange("a key that cannot be read"))?;
        let is_leased = kv["lease"].as_str().is_some_and(|lease| lease != "0");
        if !(is_leased && key.starts_with("{cell}/")) {
            left.push(leftover("key", key));
        }
    }
    Ok(left)
}

/// Whether a leader of this version, stopped and come back, revokes leases that its successor has kept alive: by its own
/// count they have run out, and what it proposes before it knows of the successor is passed on to it (etcd issue 15247,
/// repaired in 3.4.31 and 3.5.13).
pub(super) fn ends_early(version: &str) -> bool {
    let parts: Vec<u32> =
        version.trim_start_matches('v').split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    match parts[..] {
        [3, 5, patch, ..] => patch < 13,
        [3, 4, patch, ..] => patch < 31,
        [3, minor, ..] => minor < 4,
        _ => false,
    }
}

fn ask(members: &[u16], path: &str, question: &str) -> io::Result<Value> {
    let mut asked = members.iter().cycle().take(members.len() * TRIES);
    let answer = asked.find_map(|port| ask_etcd(*port, path, question).filter(|answer| answer["header"].is_object()));
    answer.ok_or_else(|| strange("no member answered"))
}

fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Base 64 as JSON from etcd has it: the usual alphabet, filled up with `=`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_end_leases_early_are_known() {
        for early in ["3.3.25", "3.4.23", "v3.4.30", "3.5.12", "3.5.0-rc.1"] {
            assert!(ends_early(early), "{early}");
        }
        for sound in ["3.4.31", "3.5.13", "3.5.21", "3.6.0", "4.0.0", "", "of late"] {
            assert!(!ends_early(sound), "{sound}");
        }
    }

    #[test]
    fn keys_are_read() {
        let texts = [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc"), ("e2NlbGx9L3g/", "{cell}/x?")];
        for (text, meant) in texts {
            assert_eq!(decoded(text).as_deref(), Some(meant), "{text}");
        }
        assert_eq!(decoded("a b"), None);
    }
}
