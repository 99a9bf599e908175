//! Looking at lines, for people. Surprise: there is no list of locks, so listing walks the keys with `SCAN`, a few at a
//! time; the server is never kept from its work, and the walk keeps no more than one page of names. Long lines are read in
//! pieces for the same reason.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use lockkeeper_core::store::{ClaimState, ClaimView, LockView};
use lockkeeper_core::{ClaimId, ErrorKind, LockKind, Name, Owner, Result, Token};
use redis::Value;

use crate::fast::number;
use crate::hub::{Hub, Number};
use crate::keys::{self, Keys};
use crate::lines::signed;
use crate::link::{self, Link};
use crate::record::{self, owner_of};
use crate::scripts::INSPECT;
use crate::trouble;

/// How many keys the server looks at in one step of a walk.
const STEP: usize = 1_000;
/// How many lines are read in one write.
const LINES: usize = 100;
/// The most claims that are read of one line.
const CLAIMS: usize = 100_000;
/// What to ask with for the first piece of a line: nobody was read yet, of those that are in and of those that wait.
const FROM_THE_START: [&[u8]; 2] = [b"0", b"-inf"];

/// One line as people see it; `None` if nobody stands in it.
pub(crate) async fn line(link: &Link, hub: &Hub, name: &Name) -> Result<Option<LockView>> {
    let keys = Keys::of(name);
    let answer = link.run(&INSPECT, &keys.all()[..4], &FROM_THE_START).await?;
    whole(link, hub, name, &answer).await
}

/// A line whose first piece was read already.
async fn whole(link: &Link, hub: &Hub, name: &Name, first: &Value) -> Result<Option<LockView>> {
    let (keys, mut seen) = (Keys::of(name), piece(hub, first)?);
    while let Some([inside, waiting]) = seen.next.take()
        && seen.claims.len() < CLAIMS
    {
        let answer = link.run(&INSPECT, &keys.all()[..4], &[&inside, &waiting]).await?;
        let more = piece(hub, &answer)?;
        seen.claims.extend(more.claims);
        seen.next = more.next;
    }
    // Those who moved meanwhile are shown once.
    let mut known = HashSet::with_capacity(seen.claims.len());
    seen.claims.retain(|claim| known.insert(claim.id));
    Ok(view(hub, name, seen))
}

/// The first `limit` lines by name after `after`.
pub(crate) async fn lines(
    link: &Link,
    hub: &Hub,
    under: &str,
    after: Option<&Name>,
    limit: usize,
) -> Result<Vec<LockView>> {
    let mut views = Vec::new();
    let mut after = after.cloned();
    while views.len() < limit {
        let names = walk(link, under, after.as_ref(), limit).await?;
        for names in names.chunks(LINES) {
            views.extend(read(link, hub, names).await?);
        }
        // Fewer than there was room for: these were all. Otherwise some may have gone meanwhile, and others follow.
        match names.last() {
            Some(last) if names.len() >= limit => after = Some(last.clone()),
            _ => break,
        }
    }
    views.truncate(limit);
    Ok(views)
}

async fn read(link: &Link, hub: &Hub, names: &[Name]) -> Result<Vec<LockView>> {
    let calls = |out: &mut Vec<u8>| {
        for name in names {
            link::call(out, "EVALSHA", INSPECT.hash(), &Keys::of(name).all()[..4], &FROM_THE_START);
        }
    };
    let mut views = Vec::new();
    for (name, answer) in names.iter().zip(link.ask_written(names.len(), calls).await?) {
        let seen = match answer {
            Value::ServerError(error) if link::is_unknown_script(&error) => line(link, hub, name).await,
            answer => match link.no_error(answer) {
                Ok(first) => whole(link, hub, name, &first).await,
                Err(error) => Err(error),
            },
        };
        match seen {
            // Changed into something else meanwhile, or damaged: the others can still be read.
            Err(error) if error.kind() == ErrorKind::Foreign => {
                tracing::warn!(target: "lockkeeper", %name, %error, "a line cannot be read, and is not listed");
            }
            seen => views.extend(seen?),
        }
    }
    Ok(views)
}

/// The names that may be locks of ours, in order.
async fn walk(link: &Link, under: &str, after: Option<&Name>, limit: usize) -> Result<Vec<Name>> {
    let mut names: BTreeSet<Name> = BTreeSet::new();
    let pattern = format!("*{}*", escaped(under));
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(STEP);
        let (next, found) = step_of(link.ask(&scan).await?)?;
        let mut strings = Vec::new();
        for key in found {
            let Ok(key) = String::from_utf8(key) else { continue };
            let of_line = keys::name_of_line(&key);
            let Ok(name) = Name::stored(of_line.unwrap_or(&key)) else { continue };
            if !name.as_str().starts_with(under) || after.is_some_and(|after| name <= *after) {
                continue;
            }
            match of_line {
                Some(_) => drop(names.insert(name)),
                None => strings.push(name),
            }
        }
        names.extend(ours(link, strings).await?);
        while names.len() > limit {
            names.pop_last();
        }
        if next == "0" {
            return Ok(names.into_iter().collect());
        }
        cursor = next;
    }
}

/// Those of the keys whose value is a record or the marker of ours.
async fn ours(link: &Link, names: Vec<Name>) -> Result<Vec<Name>> {
    if names.is_empty() {
        return Ok(names);
    }
    let mut pipe = redis::pipe();
    for name in &names {
        pipe.cmd("GETRANGE").arg(name.as_str()).arg(0).arg(3);
    }
    let heads = link.ask_all(&pipe).await?;
    let ours = |head: &Value| matches!(head, Value::BulkString(head) if head == b"lk1:" || head == b"lk1=");
    Ok(names.into_iter().zip(heads).filter(|(_, head)| ours(head)).map(|(name, _)| name).collect())
}

pub(crate) fn step_of(answer: Value) -> Result<(String, Vec<Vec<u8>>)> {
    let wrong = || trouble::unexpected("SCAN");
    let Value::Array(parts) = answer else { return Err(wrong()) };
    let [Value::BulkString(cursor), Value::Array(found)] = &parts[..] else { return Err(wrong()) };
    let cursor = String::from_utf8(cursor.clone()).map_err(|_| wrong())?;
    let key = |value: &Value| match value {
        Value::BulkString(key) => Some(key.clone()),
        _ => None,
    };
    Ok((cursor, found.iter().filter_map(key).collect()))
}

/// Text that matches itself in a pattern of the server.
pub(crate) fn escaped(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '^' | '\\' | '-');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// What was read of a line.
struct Piece {
    now_ms: u64,
    /// What stands at the holder key, and for how long.
    held: Option<Vec<u8>>,
    left_ms: u64,
    kind: Option<(LockKind, u32)>,
    claims: Vec<ClaimView>,
    /// What to ask with for more.
    next: Option<[Vec<u8>; 2]>,
}

/// One line from one answer that is all of it.
pub(crate) fn seen(hub: &Hub, name: &Name, answer: &Value) -> Result<Option<LockView>> {
    Ok(view(hub, name, piece(hub, answer)?))
}

fn piece(hub: &Hub, answer: &Value) -> Result<Piece> {
    let wrong = || trouble::unexpected("inspect");
    let Value::Array(parts) = answer else { return Err(wrong()) };
    let [now, held, left, kind, capacity, Value::Array(claims), Value::Array(next)] = &parts[..] else {
        return Err(wrong());
    };
    let now_ms = number(now).ok_or_else(wrong)?;
    let kind = match (kind, number(capacity)) {
        (Value::BulkString(kind), Some(capacity)) => {
            Some((String::from_utf8_lossy(kind).parse()?, u32::try_from(capacity).unwrap_or(u32::MAX)))
        }
        _ => None,
    };
    let claims: Option<_> = claims.iter().map(|claim| claim_view(hub, now_ms, claim)).collect();
    let next = match &next[..] {
        [] => None,
        [inside, waiting] => Some([word(inside).ok_or_else(wrong)?, word(waiting).ok_or_else(wrong)?]),
        _ => return Err(wrong()),
    };
    Ok(Piece {
        now_ms,
        held: word(held),
        left_ms: signed(left).and_then(|left| u64::try_from(left).ok()).unwrap_or_default(),
        kind,
        claims: claims.ok_or_else(trouble::foreign)?,
        next,
    })
}

/// Text or a number, as it is sent back.
fn word(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

fn view(hub: &Hub, name: &Name, seen: Piece) -> Option<LockView> {
    // What stands in the line's keys while nobody stands in the line is of an earlier one.
    let (kind, capacity) = seen.kind.filter(|_| !seen.claims.is_empty()).unwrap_or((LockKind::Mutex, 1));
    let mut claims = seen.claims;
    if let Some(held) = seen.held.filter(|held| held != record::MARKER) {
        claims.insert(0, holder(hub, &held, seen.now_ms, seen.left_ms, capacity));
    }
    if claims.is_empty() {
        return None;
    }
    decide(&mut claims, capacity);
    Some(LockView { name: name.clone(), kind, capacity, claims })
}

/// The one that is in without a line: a fast-lane hold of ours, or another client's lock.
fn holder(hub: &Hub, held: &[u8], now_ms: u64, left_ms: u64, capacity: u32) -> ClaimView {
    let lease_left = Duration::from_millis(left_ms);
    let Some(record) = record::read(held) else { return stranger(held, lease_left, capacity) };
    let told = match hub.number(record.id) {
        Number::Told(number) => Some(number),
        _ => record.number,
    };
    // Until it is renewed, the time since it was taken is what is gone of its lease.
    let age = match record.number {
        Some(number) => Duration::from_millis(now_ms.saturating_sub(number / 1_000)),
        None => Duration::from_millis(record.lease_ms.saturating_sub(left_ms)),
    };
    ClaimView {
        id: record.id,
        owner: record.owner,
        weight: 1,
        state: ClaimState::Holding,
        token: told.and_then(Token::of_number),
        age: Some(age),
        held_for: Some(age),
        lease_left,
        note: record.note,
    }
}

/// A lock of another client: nothing is known but that it is there. Its id is made from its value and is good for nothing
/// else than to tell it from others.
fn stranger(held: &[u8], lease_left: Duration, capacity: u32) -> ClaimView {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hash = DefaultHasher::new();
    held.hash(&mut hash);
    let mut id = [0; 16];
    id[8..].copy_from_slice(&hash.finish().to_be_bytes());
    ClaimView {
        id: ClaimId::from_bytes(id),
        owner: Owner::stored(0, "another client", 0, ""),
        weight: capacity,
        state: ClaimState::Holding,
        token: None,
        age: None,
        held_for: None,
        lease_left,
        note: Vec::new(),
    }
}

fn claim_view(hub: &Hub, now_ms: u64, claim: &Value) -> Option<ClaimView> {
    let Value::Array(parts) = claim else { return None };
    let text = |at: usize| match parts.get(at) {
        Some(Value::BulkString(text)) => Some(&text[..]),
        _ => None,
    };
    let whole = |at: usize| parts.get(at).and_then(number);
    let id: ClaimId = std::str::from_utf8(text(0)?).ok()?.parse().ok()?;
    let state = match text(1)? {
        b"in" => ClaimState::Holding,
        b"left" => ClaimState::Leaving,
        _ => ClaimState::Waiting,
    };
    let stored = whole(3).filter(|number| *number > 0);
    let told = match hub.number(id) {
        Number::Told(number) => Some(number),
        _ => stored,
    };
    let since = whole(5).filter(|since| *since > 0 && state == ClaimState::Holding);
    let ago = |at: u64| Duration::from_millis(now_ms.saturating_sub(at));
    Some(ClaimView {
        id,
        owner: owner_of(text(7)?),
        weight: u32::try_from(whole(2)?).ok()?,
        state,
        token: told.and_then(Token::of_number).filter(|_| state != ClaimState::Waiting),
        age: Some(ago(whole(4)?)),
        held_for: since.map(ago),
        lease_left: Duration::from_millis(whole(6)?),
        note: text(8)?.to_vec(),
    })
}

/// Claims ahead may have ended without anybody having come by: who fits is in, as the next call will find.
fn decide(claims: &mut [ClaimView], capacity: u32) {
    let mut taken: u64 = 0;
    let waits = |claim: &ClaimView| claim.state == ClaimState::Waiting;
    for claim in claims {
        taken += u64::from(claim.weight);
        if waits(claim) && taken <= u64::from(capacity) {
            claim.state = ClaimState::Holding;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_themselves_only() {
        assert_eq!(escaped("a*b?[c]"), "a\\*b\\?\\[c\\]");
        assert_eq!(keys::name_of_line("{a/b}:line"), Some("a/b"));
        assert_eq!(keys::name_of_line("a/b"), None);
    }
}
