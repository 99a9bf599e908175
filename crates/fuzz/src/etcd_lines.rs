//! What an etcd sends of locks: the values of claims, and the keys of lines.
//!
//! An input of lines is the answer to a question for the lines `a` and `a/b`, as bytes of the protocol, or as words: `range`
//! begins what was found for the next line, `kv 5 5 9 a/1 value` is one key of it, `put` is what was not asked for.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use lockkeeper_core::store::ClaimState;
use lockkeeper_core::{Claim, ClaimId, ErrorKind, LockKind, Name, Token, Verdict};
use lockkeeper_etcd::fuzzing::{self, Lined, Stood};
use lockkeeper_etcd::proto::{Done, KeyValue, PutResponse, RangeResponse, ResponseOp, TxnResponse};
use prost::Message;

use crate::etcd_words::key_value;
use crate::redis_lines::claim;

/// What is read is written to the same record, and can be shown; whatever does not begin as ours stays foreign.
pub(crate) fn record(input: &[u8]) {
    let note = input.to_vec();
    let ours = fuzzing::write_record(&Claim { note: note.clone(), ..claim() });
    let (read, _) = fuzzing::record(&ours).expect("what a claim writes can be read");
    assert_eq!(read, (claim().id, LockKind::Mutex, 1, 1, Duration::from_secs(30), false, claim().owner, note));
    let Some((read, written)) = fuzzing::record(input) else { return };
    assert!(input.starts_with(b"lk1 "), "a record that does not begin as one");
    let (_, _, weight, capacity, _, _, owner, note) = &read;
    assert!((1..=*capacity).contains(weight) && input.ends_with(note));
    assert!(!owner.to_string().contains(char::is_control), "{owner:?}");
    assert_eq!(fuzzing::record(&written).map(|(again, _)| again).as_ref(), Some(&read), "{input:?}");
}

/// Those who are in fit the capacity; what others made shares with nobody; places are by revision; keys of other names are
/// left out; and what is shown is what was judged.
pub(crate) fn lines(input: &[u8]) {
    let [a, ab] = ["a", "a/b"].map(|name| Name::new(name).expect("a name"));
    if let Ok(range) = RangeResponse::decode(input) {
        line(&a, range.kvs);
    }
    let answer = TxnResponse::decode(input).unwrap_or_else(|_| of_words(&String::from_utf8_lossy(input)));
    let again = TxnResponse::decode(&answer.encode_to_vec()[..]).expect("what is written can be read");
    assert_eq!(again, answer);
    let ranges: Vec<Vec<KeyValue>> = answer.responses.iter().filter_map(|step| kvs(step.response.as_ref()?)).collect();
    for kvs in &ranges {
        line(&a, kvs.clone());
        line(&ab, kvs.clone());
    }
    match fuzzing::lines(vec![a.clone(), ab.clone()], answer) {
        Ok(lines) => {
            assert_eq!(ranges.len(), 2);
            assert!(lines.iter().map(|(name, _)| name).eq([&a, &ab]));
        }
        Err(error) => {
            assert!(error.kind() == ErrorKind::Foreign && ranges.len() != 2, "{error:?}");
        }
    }
}

fn kvs(done: &Done) -> Option<Vec<KeyValue>> {
    match done {
        Done::Range(range) => Some(range.kvs.clone()),
        Done::Put(_) | Done::Delete(_) => None,
    }
}

fn of_words(text: &str) -> TxnResponse {
    let mut steps: Vec<Done> = Vec::new();
    for line in text.lines() {
        match (line.split_once(' ').unwrap_or((line, "")), steps.last_mut()) {
            (("kv", rest), Some(Done::Range(range))) => range.kvs.push(key_value(rest)),
            (("range", _), _) => steps.push(Done::Range(RangeResponse::default())),
            (("put", _), _) => steps.push(Done::Put(PutResponse::default())),
            _ => {}
        }
    }
    let responses = steps.into_iter().map(|step| ResponseOp { response: Some(step) }).collect();
    TxnResponse { responses, ..TxnResponse::default() }
}

fn line(lock: &Name, found: Vec<KeyValue>) {
    let lined = Lined::of(lock, found.clone());
    let all = lined.all();
    stand_where_they_should(lock, &found, &all);
    strangers_share_with_nobody(&all);
    for (at, one) in all.iter().enumerate() {
        if let Verdict::Behind(order) = one.verdict {
            assert!(all[..at].iter().any(|ahead| ahead.order == order), "{one:?} waits for one behind it");
            assert!(lined.key_of(order).is_some());
        }
        // A random id has neither; ids of what others made do.
        let high = one.id.to_bytes()[..8] != [0; 8] && one.id.to_bytes()[..8] != [0xff; 8];
        let ids: HashSet<ClaimId> = all.iter().map(|one| one.id).collect();
        if one.ours && high && ids.len() == all.len() {
            assert_eq!(lined.position(one.id), Some(at), "{one:?} is taken for another");
        }
    }
    newcomers(&lined, &all);
    shown(lock, &lined, &all, &found);
}

fn stand_where_they_should(lock: &Name, found: &[KeyValue], all: &[Stood]) {
    let begin = format!("{lock}/").into_bytes();
    let belongs = |key: &[u8]| key.strip_prefix(&begin[..]).is_some_and(|claim| !claim.contains(&b'/'));
    assert_eq!(all.len(), found.iter().filter(|kv| belongs(&kv.key)).count(), "nobody is lost, and nobody invented");
    assert!(all.iter().all(|one| belongs(&one.key)), "{all:?}");
    assert!(all.is_sorted_by_key(|one| one.order), "{all:?}");
    for one in all {
        let is_it = |kv: &&KeyValue| kv.key == one.key && u64::try_from(kv.create_revision).unwrap_or(0) == one.order;
        let mut is = found.iter().filter(is_it).peekable();
        assert!(is.peek().is_some(), "{one:?} was not found");
        let is_its = |kv: &KeyValue| fuzzing::record(&kv.value).is_some_and(|(read, _)| read.0 == one.id);
        let ours = fuzzing::is_slot(lock, &one.key) && is.any(is_its);
        assert!(ours || !one.ours, "{one:?} is none of ours");
    }
}

fn strangers_share_with_nobody(all: &[Stood]) {
    for (at, one) in all.iter().enumerate().filter(|(_, one)| !one.ours) {
        assert_eq!(one.verdict == Verdict::In, at == 0, "{one:?} is in at {at}");
        assert!(all[at + 1..].iter().all(|behind| behind.verdict != Verdict::In), "{one:?} shares: {all:?}");
    }
}

/// Whoever comes is told to wait behind a stranger, and is refused behind another kind.
fn newcomers(lined: &Lined, all: &[Stood]) {
    let permit = |weight, capacity| Claim { kind: LockKind::Semaphore, weight, capacity, ..claim() };
    for newcomer in [claim(), permit(1, 5), permit(u32::MAX, u32::MAX), permit(1, u32::MAX)] {
        for ahead in 0..=all.len().min(8) {
            match lined.newcomer(ahead, &newcomer) {
                Ok(Verdict::In) => assert!(all[..ahead].iter().all(|one| one.ours), "{newcomer:?} gets past {all:?}"),
                Ok(_) => assert!(ahead > 0, "nobody is in the way of {newcomer:?}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Mismatch, "{error:?}"),
            }
        }
    }
}

fn shown(lock: &Name, lined: &Lined, all: &[Stood], found: &[KeyValue]) {
    let left: HashMap<i64, Duration> = found.iter().map(|kv| (kv.lease, Duration::from_secs(7))).collect();
    let Some(view) = lined.view(lock, &left) else { return assert!(all.is_empty()) };
    assert_eq!((view.claims.len(), &view.name), (all.len(), lock));
    let mut taken = 0u64;
    for (claim, one) in view.claims.iter().zip(all) {
        assert_eq!((claim.id, claim.token.is_some()), (one.id, claim.state != ClaimState::Waiting && fits(one.order)));
        assert_eq!(
            claim.state == ClaimState::Waiting,
            one.verdict != Verdict::In && claim.state != ClaimState::Leaving
        );
        assert!(!claim.owner.to_string().contains(char::is_control), "{claim:?}");
        if one.verdict == Verdict::In {
            taken += u64::from(claim.weight);
        }
    }
    assert!(taken <= u64::from(view.capacity), "{taken} of {} are taken: {view:?}", view.capacity);
    let _ = view.fingerprint();
}

fn fits(order: u64) -> bool {
    Token::of_number(order).is_some()
}
