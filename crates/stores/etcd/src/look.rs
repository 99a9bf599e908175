//! The lines as people see them.
//!
//! Surprise: keys are not in the order of names (`a-b/…` comes before `a/…`), so a page of names is picked from all keys
//! under the prefix. Reading only keys is cheap; the lines of the page are then read whole.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use lockkeeper_core::store::{ClaimState, ClaimView, LockView};
use lockkeeper_core::{LockKind, Name, Owner, Result, Token, Verdict};

use crate::keys;
use crate::line::{Line, Standee};
use crate::link::Link;
use crate::proto::lease::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::proto::{Do, RangeRequest, RangeResponse, TxnResponse, path};
use crate::{trouble, txn};

/// How many keys are listed at a time, lines read by one question, and leases asked for at once.
const KEYS: i64 = 5_000;
const LINES: usize = 50;
const LEASES: usize = 16;

/// The line of one lock.
pub(crate) async fn line(link: &Link, lock: &Name) -> Result<Option<LockView>> {
    let answer: RangeResponse = link.ask(path::RANGE, &txn::line(lock)).await?.answer;
    Ok(views(link, vec![(lock.clone(), Line::of(lock, answer.kvs))]).await?.pop())
}

/// A page of lines in the order of names.
pub(crate) async fn lines(link: &Link, after: Option<&Name>, limit: usize) -> Result<Vec<LockView>> {
    let mut names = names(link, after, limit).await?.into_iter().peekable();
    let mut all = Vec::new();
    // A line that has emptied meanwhile makes room for the next name.
    while all.len() < limit && names.peek().is_some() {
        let piece: Vec<Name> = names.by_ref().take(LINES.min(limit - all.len())).collect();
        let looks = piece.iter().map(|name| Do::Range(txn::line(name))).collect();
        let answer: TxnResponse = link.ask(path::TXN, &txn::txn(Vec::new(), looks, Vec::new())).await?.answer;
        all.extend(views(link, read(piece, answer)?).await?);
    }
    Ok(all)
}

/// The lines of these names, out of the answer to all of them.
pub(crate) fn read(names: Vec<Name>, answer: TxnResponse) -> Result<Vec<(Name, Line)>> {
    let ranges: Vec<RangeResponse> = txn::ranges(answer).collect();
    if ranges.len() != names.len() {
        return Err(trouble::garbled("other lines than were asked for"));
    }
    let line = |(name, range): (Name, RangeResponse)| {
        let line = Line::of(&name, range.kvs);
        (name, line)
    };
    Ok(names.into_iter().zip(ranges).map(line).collect())
}

/// The names in use, after this one: somewhat more than asked for, for those that are gone when they are looked at.
async fn names(link: &Link, after: Option<&Name>, limit: usize) -> Result<BTreeSet<Name>> {
    let prefix = link.options().listed_under.as_bytes();
    let mut names = BTreeSet::new();
    let mut from = if prefix.is_empty() { vec![0] } else { prefix.to_vec() };
    let mut revision = 0;
    loop {
        let question = RangeRequest {
            key: from,
            range_end: keys::end_of(prefix),
            limit: KEYS,
            keys_only: true,
            revision,
            ..RangeRequest::default()
        };
        let answer: RangeResponse = link.ask(path::RANGE, &question).await?.answer;
        // All pages are of one moment.
        revision = answer.header.map_or(0, |header| header.revision);
        let last = answer.kvs.last().map(|kv| kv.key.clone());
        for kv in answer.kvs {
            let Some((name, _)) = keys::parse(&kv.key).filter(|_| kv.lease != 0) else { continue };
            if after.is_none_or(|after| name > *after) {
                names.insert(name);
            }
        }
        while names.len() > limit + LINES {
            names.pop_last();
        }
        match last {
            Some(mut last) if answer.more => {
                last.push(0);
                from = last;
            }
            _ => return Ok(names),
        }
    }
}

async fn views(link: &Link, lines: Vec<(Name, Line)>) -> Result<Vec<LockView>> {
    let leases: BTreeSet<i64> = lines.iter().flat_map(|(_, line)| &line.0).map(|standee| standee.lease).collect();
    let asking = stream::iter(leases.into_iter().filter(|lease| *lease != 0)).map(|id| async move {
        let question = LeaseTimeToLiveRequest { id, keys: false };
        let answer = link.ask::<_, LeaseTimeToLiveResponse>(path::LEASE_TIME_TO_LIVE, &question).await?.answer;
        Ok((id, Duration::from_secs(u64::try_from(answer.ttl).unwrap_or(0))))
    });
    let left: Vec<Result<(i64, Duration)>> = asking.buffer_unordered(LEASES).collect().await;
    let left = left.into_iter().collect::<Result<HashMap<_, _>>>()?;
    Ok(lines.iter().filter_map(|(name, line)| view(name, line, &left)).collect())
}

pub(crate) fn view(name: &Name, line: &Line, left: &HashMap<i64, Duration>) -> Option<LockView> {
    line.0.first()?;
    let ours = line.first_of_ours(line.0.len());
    let (kind, capacity) = ours.map_or((LockKind::Mutex, 1), |(_, record)| (record.kind, record.capacity));
    let claims = line.0.iter().enumerate().map(|(at, standee)| {
        let lease_left = left.get(&standee.lease).copied().unwrap_or_default();
        claim(line, at, standee, capacity, lease_left)
    });
    Some(LockView { name: name.clone(), kind, capacity, claims: claims.collect() })
}

fn claim(line: &Line, at: usize, standee: &Standee, capacity: u32, lease_left: Duration) -> ClaimView {
    let record = standee.record.as_ref();
    let state = match line.verdict(at) {
        _ if record.is_some_and(|record| record.left) => ClaimState::Leaving,
        Verdict::In => ClaimState::Holding,
        _ => ClaimState::Waiting,
    };
    // The server keeps no times, and no client's clock is believed.
    let (age, held_for) = (None, None);
    ClaimView {
        id: standee.id,
        owner: record.map_or_else(another_client, |record| record.owner.clone()),
        weight: record.map_or(capacity, |record| record.weight),
        state,
        token: Token::of_number(standee.order).filter(|_| state != ClaimState::Waiting),
        age,
        held_for,
        lease_left,
        note: record.map_or_else(Vec::new, |record| record.note.clone()),
    }
}

fn another_client() -> Owner {
    Owner::stored(0, "unknown", 0, "another client of etcd")
}
