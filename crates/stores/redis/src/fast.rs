//! The fast lane: a free mutex is taken in native commands and released by one small script, one round trip each, many
//! of them in one write.
//!
//! Surprise: the pipeline is not atomic and need not be. `SET` decides who is in; `GET last` and `TIME` only number it, and
//! an answer that comes after the hold's own deadline is not a hold (C2). One `TIME` at the end numbers a whole write:
//! numbers have to rise on one name, not across names.

use std::sync::Arc;

use lockkeeper_core::{ClaimId, Result};
use redis::{Cmd, Value};

use crate::link::Link;
use crate::scripts::{NUMBER, RELEASE};
use crate::trouble;

/// A free lock, asked for.
#[derive(Debug)]
pub(crate) struct Take {
    pub(crate) holder: String,
    pub(crate) floor: String,
    pub(crate) record: Vec<u8>,
    pub(crate) lease_ms: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in, and this number stands.
    In(u64),
    /// It is in, but the clock is not above the floor: it needs [`number_above_the_floor`].
    Unnumbered,
    /// Somebody is in, or there is a line.
    Busy,
}

/// Takes free locks.
pub(crate) struct Takes(pub(crate) Arc<Link>);

impl crate::gather::Many for Takes {
    type Question = Take;
    type Answer = Taken;

    async fn answer(&self, questions: Vec<Take>) -> Result<Vec<Taken>> {
        let mut pipe = redis::Pipeline::with_capacity(questions.len() + 2);
        let mut floors = redis::cmd("MGET");
        for take in &questions {
            let mut set = Cmd::with_capacity(6, take.holder.len() + take.record.len() + 48);
            set.arg("SET").arg(&take.holder).arg(&take.record).arg("NX").arg("PX").arg(take.lease_ms);
            pipe.add_command(set);
            floors.arg(&take.floor);
        }
        pipe.add_command(floors).add_command(redis::cmd("TIME"));
        let mut answers = self.0.ask_all(&pipe).await?;
        let now_us = self.0.no_error(answers.pop().unwrap_or_default()).and_then(time_us)?;
        let floors = self.0.no_error(answers.pop().unwrap_or_default())?;
        let Value::Array(floors) = floors else { return Err(trouble::unexpected("MGET")) };
        let each = answers.into_iter().zip(floors);
        each.map(|(set, floor)| {
            Ok(match self.0.no_error(set)? {
                Value::Nil => Taken::Busy,
                _ if now_us > number(&floor).unwrap_or(0) => Taken::In(now_us),
                _ => Taken::Unnumbered,
            })
        })
        .collect()
    }
}

/// A fast-lane hold, to be released.
#[derive(Debug)]
pub(crate) struct Give {
    pub(crate) holder: String,
    pub(crate) line: String,
    pub(crate) id: ClaimId,
    pub(crate) number: u64,
}

/// Releases fast-lane holds; false for each that needs `leave` instead.
pub(crate) struct Gives(pub(crate) Arc<Link>);

impl crate::gather::Many for Gives {
    type Question = Give;
    type Answer = bool;

    async fn answer(&self, questions: Vec<Give>) -> Result<Vec<bool>> {
        let texts: Vec<[String; 2]> =
            questions.iter().map(|give| [give.id.to_string(), give.number.to_string()]).collect();
        let keys: Vec<&[u8]> =
            questions.iter().flat_map(|give| [give.holder.as_bytes(), give.line.as_bytes()]).collect();
        let args: Vec<&[u8]> = texts.iter().flatten().map(|text| text.as_bytes()).collect();
        match self.0.run(&RELEASE, &keys, &args).await? {
            Value::Array(released) => Ok(released.iter().map(|one| *one == Value::Int(1)).collect()),
            _ => Err(trouble::unexpected("release")),
        }
    }
}

/// The number of a hold for which the clock alone is not enough; `None` if the hold is gone again.
pub(crate) async fn number_above_the_floor(link: &Link, holder: &str, floor: &str, id: ClaimId) -> Result<Option<u64>> {
    let id = id.to_string();
    let answer = link.run(&NUMBER, &[holder.as_bytes(), floor.as_bytes()], &[id.as_bytes()]).await?;
    Ok(number(&answer))
}

/// The server's clock in µs.
pub(crate) fn time_us(value: Value) -> Result<u64> {
    let Value::Array(parts) = &value else { return Err(trouble::unexpected("TIME")) };
    let part = |at: usize| parts.get(at).and_then(number).ok_or_else(|| trouble::unexpected("TIME"));
    Ok(part(0)?.saturating_mul(1_000_000).saturating_add(part(1)?))
}

/// A whole number, however it is sent.
pub(crate) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::SimpleString(text) => text.parse().ok(),
        _ => None,
    }
}
