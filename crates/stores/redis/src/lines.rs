//! Calls of the line's scripts, and what their answers mean.

use std::time::Duration;

use lockkeeper_core::store::{Keep, Left, Renewal, Standing};
use lockkeeper_core::{Claim, ClaimId, Error, ErrorKind, Name, Patience, Result, Token};
use redis::Value;

use crate::fast::number;
use crate::hub::Number;
use crate::keys::Keys;
use crate::link::Link;
use crate::scripts::{ENTER, LEAVE, PROLONG};
use crate::trouble;

/// A lock that another client holds is looked at so often: it will not tell us when it is free (C13).
const POLL_FIRST_MS: u64 = 5;
const POLL_LAST_MS: u64 = 100;

/// A duration as the server counts it: whole milliseconds, never less than asked for.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// How a claim asks: where it is told of news, which question this is, and what it was told already.
pub(crate) struct Asking<'a> {
    pub(crate) channel: &'a str,
    pub(crate) question: u32,
    pub(crate) told: Number,
    /// Who asks, as it is kept.
    pub(crate) owner: &'a str,
}

/// A claim comes into the line, or asks again.
pub(crate) async fn enter(link: &Link, keys: &Keys, claim: &Claim, asking: Asking<'_>) -> Result<Standing> {
    let patience = match claim.patience {
        Patience::Now => "now",
        Patience::Queue => "queue",
        Patience::Present => "present",
    };
    let id = claim.id.to_hex();
    let [weight, capacity, question] = [claim.weight, claim.capacity, asking.question].map(|number| number.to_string());
    let [lease, waiting] = [claim.store_lease(), claim.waiting_lease()].map(|lease| millis(lease).to_string());
    let told = number_text(asking.told);
    let args: [&[u8]; 12] = [
        &id,
        claim.kind.as_str().as_bytes(),
        weight.as_bytes(),
        capacity.as_bytes(),
        lease.as_bytes(),
        waiting.as_bytes(),
        patience.as_bytes(),
        asking.channel.as_bytes(),
        question.as_bytes(),
        asking.owner.as_bytes(),
        &claim.note,
        told.as_bytes(),
    ];
    standing(claim, link.run(&ENTER, &keys.all(), &args).await?)
}

/// What the answer to a question means.
pub(crate) fn standing(claim: &Claim, answer: Value) -> Result<Standing> {
    let Value::Array(parts) = answer else { return Err(trouble::unexpected("enter")) };
    let word = match parts.first() {
        Some(Value::BulkString(word)) => word.first().copied().unwrap_or_default(),
        _ => return Err(trouble::unexpected("enter")),
    };
    let part = |at: usize| parts.get(at).and_then(signed).ok_or_else(|| trouble::unexpected("enter"));
    match word {
        b'H' => {
            let given = parts.get(1).and_then(number).and_then(Token::of_number);
            // Without a token its holder would believe that what it writes is fenced.
            let token = Some(given.ok_or_else(|| trouble::unexpected("enter"))?);
            let left = u64::try_from(part(2)?).unwrap_or_default();
            Ok(Standing::Held { token, lease: Duration::from_millis(left) })
        }
        b'W' => {
            let moves_in = sooner(wait(part(2)?), poll(part(3)?));
            Ok(Standing::Waiting { ahead: u32::try_from(part(1)?).unwrap_or(u32::MAX), behind: None, moves_in })
        }
        b'R' => Ok(Standing::Refused { retry_after: wait(part(1)?) }),
        b'M' => {
            let kind = match parts.get(1) {
                Some(Value::BulkString(kind)) => trouble::shown(&String::from_utf8_lossy(kind)),
                _ => return Err(trouble::unexpected("enter")),
            };
            Err(mismatch(&kind, part(2)?, claim))
        }
        b'G' => {
            let stands = part(1)?;
            let what = format!("the claim stands with weight {stands} and cannot grow to {}", claim.weight);
            Err(Error::new(ErrorKind::Mismatch, what).with_hint("leave, then enter with the larger weight"))
        }
        _ => Err(trouble::unexpected("enter")),
    }
}

fn mismatch(kind: &str, capacity: i64, claim: &Claim) -> Error {
    let describe = |kind: &str, capacity: i64| match kind {
        "semaphore" => format!("a {kind} of {capacity}"),
        _ => format!("a {kind}"),
    };
    let (found, asked) = (describe(kind, capacity), describe(claim.kind.as_str(), i64::from(claim.capacity)));
    Error::new(ErrorKind::Mismatch, format!("the name is in use as {found}, and was asked for as {asked}"))
        .with_hint("use another name, or the same kind and capacity everywhere")
}

/// Milliseconds that may be missing.
fn wait(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// How soon to look again behind another client's lock: from 5 to 100 ms, the longer the older the wait, with jitter.
fn poll(age_ms: i64) -> Option<Duration> {
    let age = u64::try_from(age_ms).ok()?;
    let pause = (age / 4).clamp(POLL_FIRST_MS, POLL_LAST_MS);
    Some(Duration::from_millis(pause).mul_f64(0.5 + fastrand::f64() / 2.0))
}

fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// A claim leaves, whatever it is.
pub(crate) async fn leave(link: &Link, lock: &Name, id: ClaimId, keep: Keep, told: Number) -> Result<Left> {
    let (word, keep_ms) = match keep {
        Keep::Nothing => ("", 0),
        Keep::For(keep) => ("for", millis(keep)),
        Keep::Lease => ("lease", 0),
    };
    let told = match told {
        Number::Told(number) => number.to_string(),
        Number::Untold => "-".to_owned(),
        Number::Unknown => "?".to_owned(),
    };
    let (id, keep_ms) = (id.to_hex(), keep_ms.to_string());
    let args: [&[u8]; 4] = [&id, told.as_bytes(), word.as_bytes(), keep_ms.as_bytes()];
    let args = if keep == Keep::Nothing { &args[..2] } else { &args };
    match link.run_telling(&LEAVE, &Keys::of(lock).all(), args).await? {
        Value::BulkString(word) if word == b"R" => Ok(Left::Released),
        Value::BulkString(word) if word == b"N" => Ok(Left::NotHeld),
        _ => Err(trouble::unexpected("leave")),
    }
}

/// A hold that is in a line is renewed.
pub(crate) async fn prolong(link: &Link, keys: &Keys, id: ClaimId, lease_ms: u64, told: Number) -> Result<Renewal> {
    let told = number_text(told);
    let (id, lease) = (id.to_string(), lease_ms.to_string());
    let answer = link.run(&PROLONG, &keys.all(), &[id.as_bytes(), lease.as_bytes(), told.as_bytes()]).await?;
    Ok(renewal(signed(&answer).ok_or_else(|| trouble::unexpected("renew"))?))
}

/// The number as the scripts that renew want it.
pub(crate) fn number_text(told: Number) -> String {
    match told {
        Number::Told(number) => number.to_string(),
        Number::Untold | Number::Unknown => "?".to_owned(),
    }
}

/// The answers to so many renewals.
pub(crate) fn renewals(answer: &Value, count: usize) -> Result<Vec<i64>> {
    let wrong = || trouble::unexpected("renew");
    match answer {
        Value::Array(answers) if answers.len() == count => {
            answers.iter().map(|answer| signed(answer).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

/// What a renewal's answer means.
pub(crate) fn renewal(left_ms: i64) -> Renewal {
    match u64::try_from(left_ms) {
        Ok(left) => Renewal::Renewed { lease: Duration::from_millis(left) },
        Err(_) => Renewal::Gone,
    }
}

/// A whole number with a sign.
pub(crate) fn signed(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
