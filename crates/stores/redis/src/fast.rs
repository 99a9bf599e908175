//! The fast lane: a free mutex is taken in native commands and released by one small script, one round trip each, many
//! of them in one write.
//!
//! Surprise: the pipeline is not atomic and need not be. `SET` decides who is in; `GET last` and `TIME` only number it, and
//! an answer that comes after the hold's own deadline is not a hold (C2). One `TIME` at the end numbers a whole write:
//! numbers have to rise on one name, not across names.

use std::sync::Arc;

use lockkeeper_core::mutants::{self, Mutant};
use lockkeeper_core::{ClaimId, Effect, Name, Result, Token};
use redis::Value;

use crate::cells::EXACT;
use crate::gather::Many;
use crate::keys::{self, CLOCK};
use crate::link::{self, Link};
use crate::record::New;
use crate::scripts::{NUMBER, RELEASE};
use crate::{resp, trouble};

/// What the fast lane is asked.
#[derive(Debug)]
pub(crate) enum Question {
    /// To take a lock that may be free.
    Take { lock: Name, record: New },
    /// To release one that was taken so, whose holder was told this number.
    Give { lock: Name, id: ClaimId, number: u64 },
}

impl Question {
    fn give(&self) -> Option<(&Name, ClaimId, u64)> {
        match self {
            Self::Give { lock, id, number } => Some((lock, *id, *number)),
            Self::Take { .. } => None,
        }
    }

    fn take(&self) -> Option<(&Name, &New)> {
        match self {
            Self::Take { lock, record } => Some((lock, record)),
            Self::Give { .. } => None,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is in, and this number stands.
    In(u64),
    /// It is in, but the clock is not above the floor: it needs [`number_above_the_floor`].
    Unnumbered,
    /// Somebody is in, or there is a line.
    Busy,
    /// It is out.
    Released,
    /// It is not to be released so: it needs [`leave`](crate::lines::leave).
    NotSo,
}

/// A command of the seeded bugs alone: nobody is asked for the right to it.
const COUNT: &str = "INCR";

/// The lane, many at a time.
pub(crate) struct Lane(pub(crate) Arc<Link>);

impl Many for Lane {
    type Question = Question;
    type Answer = Answer;

    async fn one(&self, question: Question) -> Result<Answer> {
        match &question {
            Question::Take { .. } => {
                let questions = std::slice::from_ref(&question);
                let answers = self.0.ask_written(3, |out| takes(out, questions, 1)).await?;
                let [set, floors, time]: [Value; 3] = answers.try_into().map_err(|_| trouble::unexpected("SET"))?;
                self.taken(set, &self.numbers(floors, time), 0)
            }
            Question::Give { lock, id, number } => {
                let keys = [keys::holder(lock).as_bytes(), CLOCK.as_bytes()];
                let given = self.0.run(&RELEASE, &keys, &[&id.to_hex(), number.to_string().as_bytes()]).await?;
                Ok(if given == Value::Int(1) { Answer::Released } else { Answer::NotSo })
            }
        }
    }

    async fn many(&self, questions: Vec<Question>) -> Result<Vec<Result<Answer>>> {
        let gives = questions.iter().filter(|question| question.give().is_some()).count();
        let takes = questions.len() - gives;
        let commands = usize::from(gives > 0) + if takes > 0 { takes + 2 } else { 0 };
        let mut answers = self.0.ask_written(commands, |out| write(out, &questions, gives)).await?.into_iter();
        let given = if gives > 0 { answers.next() } else { None };
        let mut given = match given {
            // A server that does not know the script is given it now; the next batch finds it there.
            Some(Value::ServerError(error)) if link::is_unknown_script(&error) => {
                let by_text = |out: &mut Vec<u8>| release(out, "EVAL", RELEASE.text(), &questions, gives);
                let mut again = self.0.ask_written(1, by_text).await?;
                all_given(self.0.no_error(again.pop().unwrap_or_default())?)
            }
            given => given.map(all_given).unwrap_or_default(),
        }
        .into_iter();
        let mut taken = Vec::new();
        if takes > 0 {
            let mut rest: Vec<Value> = answers.collect();
            let time = rest.pop().unwrap_or_default();
            let numbers = self.numbers(rest.pop().unwrap_or_default(), time);
            taken.extend(rest.into_iter().enumerate().map(|(at, set)| self.taken(set, &numbers, at)));
        }
        let mut taken = taken.into_iter();
        let answer = |question: &Question| match question {
            Question::Take { .. } => taken.next().unwrap_or_else(|| Err(trouble::unexpected("SET"))),
            Question::Give { .. } => match given.next() {
                Some(Value::Int(1)) => Ok(Answer::Released),
                _ => Ok(Answer::NotSo),
            },
        };
        Ok(questions.iter().map(answer).collect())
    }
}

impl Lane {
    /// What came of the claim at this place of a write: its number stands if the clock is above the floor of the lock, and
    /// not behind where it was when other holds ended.
    fn taken(&self, set: Value, numbers: &Result<(u64, Vec<u64>)>, at: usize) -> Result<Answer> {
        if self.0.no_error(set)? == Value::Nil {
            return Ok(Answer::Busy);
        }
        // From here on it is in: whatever else went wrong, it has to leave again.
        let (now_us, floors) = numbers.as_ref().map_err(|error| error.clone().with_effect(Effect::Unknown))?;
        match floors.get(at) {
            Some(floor) if now_us > floor => Ok(Answer::In(*now_us)),
            _ => Ok(Answer::Unnumbered),
        }
    }

    /// What numbers the claims of a write: the clock, and what it has to be above for each.
    fn numbers(&self, floors: Value, time: Value) -> Result<(u64, Vec<u64>)> {
        let now_us = self.0.no_error(time).and_then(time_us)?;
        let Value::Array(floors) = self.0.no_error(floors)? else { return Err(trouble::unexpected("MGET")) };
        let mut floors = floors.iter().map(|floor| number(floor).unwrap_or(0));
        let mark = floors.next().unwrap_or(0);
        if mutants::on(Mutant::PlainCounterToken) {
            return Ok((now_us, floors.map(|_| 0).collect()));
        }
        Ok((now_us, floors.map(|floor| floor.max(mark)).collect()))
    }
}

/// Many questions in one write: the releases as one script, then `SET` for each that is taken, then what numbers them.
fn write(out: &mut Vec<u8>, questions: &[Question], gives: usize) {
    if gives > 0 {
        // First: what is given back can be taken in the same write.
        release(out, "EVALSHA", RELEASE.hash(), questions, gives);
    }
    if gives < questions.len() {
        takes(out, questions, questions.len() - gives);
    }
}

/// All releases among the questions, by one call.
fn release(out: &mut Vec<u8>, command: &str, script: &str, questions: &[Question], count: usize) {
    let gives = || questions.iter().filter_map(Question::give);
    resp::begin(out, command, 3 + 3 * count);
    resp::word(out, script.as_bytes());
    resp::number(out, count as u64 + 1);
    gives().for_each(|(lock, ..)| resp::word(out, keys::holder(lock).as_bytes()));
    resp::word(out, CLOCK.as_bytes());
    for (_, id, number) in gives() {
        resp::word(out, &id.to_hex());
        resp::number(out, number);
    }
}

/// `SET` for each that is taken, so many, then what numbers them.
fn takes(out: &mut Vec<u8>, questions: &[Question], count: usize) {
    let takes = || questions.iter().filter_map(Question::take);
    for (lock, record) in takes() {
        let ends = !mutants::on(Mutant::SetThenExpire);
        resp::begin(out, "SET", if ends { 5 } else { 3 });
        resp::word(out, keys::holder(lock).as_bytes());
        record.with_pieces(|pieces| resp::joined(out, pieces));
        resp::word(out, b"NX");
        if ends {
            resp::word(out, b"PX");
            resp::number(out, record.lease_ms);
        }
    }
    resp::begin(out, "MGET", count + 1);
    resp::word(out, CLOCK.as_bytes());
    takes().for_each(|(lock, _)| resp::joined(out, &keys::floor_pieces(lock).map(str::as_bytes)));
    match mutants::on(Mutant::PlainCounterToken) {
        true => resp::command(out, COUNT, &[b"lockkeeper:count"]),
        false => resp::command(out, "TIME", &[]),
    }
}

/// The answer for each release of a call: one alone has no list around it.
fn all_given(answer: Value) -> Vec<Value> {
    match answer {
        Value::Array(given) => given,
        Value::Int(_) => vec![answer],
        // Refused for one of them: each is tried by itself.
        _ => Vec::new(),
    }
}

/// A seeded bug: the end of a lock that was taken without one.
pub(crate) async fn expire(link: &Link, lock: &Name, lease_ms: u64) -> Result<()> {
    link.ask(redis::cmd("PEXPIRE").arg(keys::holder(lock)).arg(lease_ms)).await.map(|_| ())
}

/// The number of a hold for which the clock alone is not enough; `None` if the hold is gone again.
pub(crate) async fn number_above_the_floor(link: &Link, lock: &Name, id: ClaimId) -> Result<Option<u64>> {
    let floor = keys::floor(lock);
    let keys = [keys::holder(lock).as_bytes(), floor.as_bytes(), CLOCK.as_bytes()];
    let answer = link.run(&NUMBER, &keys, &[&id.to_hex()]).await;
    // It is in, whatever this was answered.
    answer
        .map(|answer| number(&answer).filter(|number| *number <= Token::NUMBER_MAX))
        .map_err(|error| error.with_effect(Effect::Unknown))
}

/// The server's clock in µs.
pub(crate) fn time_us(value: Value) -> Result<u64> {
    if let (Value::Int(count), true) = (&value, mutants::on(Mutant::PlainCounterToken)) {
        return u64::try_from(*count).map_err(|_| trouble::unexpected(COUNT));
    }
    let Value::Array(parts) = &value else { return Err(trouble::unexpected("TIME")) };
    let part = |at: usize| parts.get(at).and_then(number).ok_or_else(|| trouble::unexpected("TIME"));
    let us = part(0)?.saturating_mul(1_000_000).saturating_add(part(1)?);
    // Numbers and versions are made of it, and end there; a clock that far ahead is broken.
    if us < EXACT { Ok(us) } else { Err(trouble::unexpected("TIME")) }
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
