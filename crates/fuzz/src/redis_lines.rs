//! What a Redis server sends of locks: records, news, answers, errors. Answers come as the protocol has them.

use std::time::Duration;

use lockkeeper_core::access::Secret;
use lockkeeper_core::store::{ClaimState, Renewal, Standing};
use lockkeeper_core::{Claim, ClaimId, Effect, ErrorKind, LockKind, Name, Owner, Patience, Token};
use lockkeeper_redis::{Address, Options, fuzzing};
use redis::Value;

use crate::urls::PASSWORD;

/// A claim that asks.
pub(crate) fn claim() -> Claim {
    Claim {
        id: ID,
        owner: Owner::stored(7, "web-3", 42, "importer"),
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease: Duration::from_secs(30),
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    }
}

const ID: ClaimId = ClaimId::from_bytes([0x11; 16]);

/// An answer as the protocol has it; nothing if it is not one.
pub(crate) fn answer(input: &[u8]) -> Option<Value> {
    redis::parse_redis_value(input).ok()
}

/// Answers are the same in whatever pieces they come, and the same that another reader of the protocol finds.
pub(crate) fn answers(input: &[u8]) {
    let Some((piece, bytes)) = input.split_first() else { return };
    let (whole, is_fine) = fuzzing::answers(bytes, bytes.len());
    let (pieces, pieces_are_fine) = fuzzing::answers(bytes, usize::from(*piece) % 7 + 1);
    assert_eq!((format!("{whole:?}"), is_fine), (format!("{pieces:?}"), pieces_are_fine));
    // What the other reader takes for one answer is one here too. Numbers beyond 64 bits and remarks about values are not
    // used by locks, and are told in another way.
    let told_in_another_way = bytes.iter().any(|byte| matches!(byte, b'(' | b'|' | b'>' | b',' | b'=' | b'!' | b'-'));
    if let Some(other) = answer(bytes).filter(|_| !told_in_another_way && is_fine && !whole.is_empty()) {
        assert_eq!(whole[0], other);
    }
}

/// What is read is written to the same record; an owner can be shown, and read again.
pub(crate) fn record(input: &[u8]) {
    let owner = fuzzing::owner(input);
    assert!(!owner.to_string().contains(char::is_control), "{owner:?}");
    let Some((id, number, lease_ms, owner, note)) = fuzzing::read_record(input) else { return };
    assert!(input.starts_with(b"lk1:"), "a record that does not begin as one");
    assert!(input.ends_with(&note));
    let claim = Claim { id, owner: owner.clone(), note: note.clone(), ..claim() };
    let again = fuzzing::read_record(&fuzzing::write_record(&claim, lease_ms)).expect("what is written can be read");
    assert_eq!(again, (id, None, lease_ms, owner, note), "the number {number:?} is not written");
}

/// Only news of the last question of that very claim count, and only whole ones.
pub(crate) fn news(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let words: Vec<&str> = text.split([' ', ':']).collect();
    match fuzzing::hear(ID, input) {
        Some(Standing::Held { token, lease }) => {
            assert!(
                words.len() == 4 && words[0].strip_prefix("lk1=").map(str::parse) == Some(Ok(Probe(ID))),
                "{text:?}"
            );
            assert_eq!(words[3].parse(), Ok(2), "{text:?} follows another question");
            let number = words[1].parse().ok().and_then(Token::of_number);
            assert!(token.is_some() && token == number, "{text:?}");
            let [number, until]: [u64; 2] = [1, 2].map(|at| words[at].parse().expect("a number"));
            assert_eq!(lease, Duration::from_millis(until.saturating_sub(number / 1_000)), "{text:?}");
        }
        Some(other) => panic!("{text:?} is news of {other:?}"),
        None => {
            let whole = format!("lk1={ID}:1700000000000000 1700000030000 2");
            assert_ne!(text, whole);
        }
    }
}

/// A claim id that can be compared with what could not be read.
#[derive(Debug, PartialEq)]
struct Probe(ClaimId);

impl std::str::FromStr for Probe {
    type Err = u8;
    fn from_str(text: &str) -> Result<Self, u8> {
        text.parse().map(Probe).map_err(|_| 0)
    }
}

/// Nobody holds by an answer that is not understood; what cannot be read may have taken effect; lines are within bounds.
pub(crate) fn lines(input: &[u8]) {
    let Some(answer) = answer(input) else { return };
    match fuzzing::standing(&claim(), &answer) {
        Ok(Standing::Held { token, lease }) => {
            assert!(first_word(&answer).is_some_and(|word| word.starts_with('H')), "{answer:?}");
            assert!(token.is_some(), "{answer:?} gives no token, for {lease:?}");
        }
        Ok(Standing::Waiting { .. }) => {
            assert!(first_word(&answer).is_some_and(|word| word.starts_with('W')), "{answer:?}");
        }
        Ok(_) => {}
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Bug | ErrorKind::Mismatch | ErrorKind::Foreign), "{error:?}");
            assert!(error.kind() != ErrorKind::Bug || error.effect() == Effect::Unknown, "{error:?}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
    let count = if let Value::Array(parts) = &answer { parts.len() } else { 0 };
    assert!(fuzzing::renewals(&answer, count + 1).is_err());
    if let Ok(renewals) = fuzzing::renewals(&answer, count) {
        assert_eq!(renewals.len(), count);
        let Value::Array(parts) = &answer else { panic!("{answer:?}") };
        for (part, renewal) in parts.iter().zip(renewals) {
            let gone = matches!(part, Value::Int(left) if *left < 0);
            assert!(!gone || renewal == Renewal::Gone, "{part:?}");
        }
    }
    if let Ok((_, keys)) = fuzzing::step(&answer) {
        assert!(count == 2, "{keys:?}");
    }
    let _ = fuzzing::time_us(&answer).map(|us| assert!(Token::of_number(us).is_some(), "{us} is no time"));
}

fn first_word(answer: &Value) -> Option<String> {
    match answer {
        Value::Array(parts) => match parts.first() {
            Some(Value::BulkString(word)) => Some(String::from_utf8_lossy(word).into_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// What is shown of a line has claims, each within the capacity's rule, and nothing that a terminal obeys.
pub(crate) fn inspect(input: &[u8]) {
    let Some(answer) = answer(input) else { return };
    let name = Name::new("orders/42").expect("a name");
    match fuzzing::seen(&name, &answer) {
        Ok(Some(view)) => {
            assert!(!view.claims.is_empty() && view.name == name);
            let mut ahead = 0u64;
            for claim in &view.claims {
                ahead += u64::from(claim.weight);
                if claim.state == ClaimState::Waiting {
                    assert!(ahead > u64::from(view.capacity), "{claim:?} waits though there is room");
                    assert!(claim.token.is_none());
                }
                assert!(!claim.owner.to_string().contains(char::is_control), "{claim:?}");
            }
            let _ = view.fingerprint();
        }
        Ok(None) => {}
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Bug | ErrorKind::Foreign), "{error:?}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}

/// A server may say anything, our password too: that is not passed on, nor is what a terminal obeys.
pub(crate) fn errors(input: &[u8]) {
    let Some(answer) = answer(input) else { return };
    let mut options = Options::at(Address::Tcp { host: "h".to_owned(), port: 1, tls: None });
    options.password = Some(Secret::new(PASSWORD));
    // The password is sent when coming in, and never again.
    let not_let_in = fuzzing::not_let_in(&options, &answer);
    if let Some(error) = &not_let_in {
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
    }
    for error in fuzzing::refused(&options, &answer).into_iter().chain(not_let_in) {
        let shown = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(error.hint().is_some(), "{error:?}");
        assert!(!shown.contains(char::is_control), "{error:?}");
        assert!(error.kind() != ErrorKind::Bug && error.kind() != ErrorKind::Invalid, "{error:?}");
    }
}
