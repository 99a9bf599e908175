//! Cells: every answer of the scripts, and of their twin that needs none, is what the core says it is.
//!
//! Surprise: the server's clock is not ours to set, so it is the other way round: states are planted that were touched
//! before or after now, and each answer says at what time it was given.

mod dice;
mod faults;
mod layout;
mod together;

use std::sync::Arc;

use fastrand::Rng;
use lockkeeper_conformance::rig::{Shared, shared};
use lockkeeper_core::cell::{CellOp, CellReply, CellState};
use lockkeeper_core::store::Store;
use lockkeeper_core::time::Moment;
use lockkeeper_core::{ErrorKind, Name, Result};
use lockkeeper_redis::{Address, Cells, Options, Redis};
use redis::aio::MultiplexedConnection;

use layout::{Raw, as_stored, dropped_at_ms, gone_at_ms, look, moment, plant, removes};

const CALLS: u32 = 4_000;
/// A client that comes anew after so many calls.
const RESTART_EVERY: u32 = 97;

/// The shared server's port; nothing if it is left out.
fn port() -> Option<u16> {
    match shared("redis") {
        Ok(Shared::Up(entry)) => Some(entry.members[0].port),
        Ok(Shared::LeftOut(_)) => None,
        Err(trouble) => panic!("{trouble}"),
    }
}

fn options(port: u16, cells: Cells) -> Options {
    let address = Address::Tcp { host: "127.0.0.1".into(), port, tls: None };
    Options { cells, ..Options::at(address) }
}

async fn open(port: u16, cells: Cells) -> Arc<Redis> {
    Redis::open(options(port, cells)).await.expect("the store opens")
}

async fn raw(port: u16) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("an address");
    client.get_multiplexed_async_connection().await.expect("a connection")
}

/// A name that no other test uses.
fn name(topic: &str) -> Name {
    Name::new(&format!("cells/{topic}/{:016x}", fastrand::u64(..))).expect("a name")
}

fn key(cell: &Name) -> String {
    format!("{{{cell}}}:cell")
}

/// Says how to run the same again, should the test fail.
struct Replay {
    test: &'static str,
    seed: u64,
}

impl Replay {
    fn of(test: &'static str) -> Self {
        let seed = std::env::var("LOCKKEEPER_SEED").map(|seed| seed.parse().expect("a seed"));
        Self { test, seed: seed.unwrap_or_else(|_| fastrand::u64(..)) }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            eprintln!("replay: LOCKKEEPER_SEED={seed} cargo test -p lockkeeper-redis --test redis {test}");
        }
    }
}

fn calls() -> u32 {
    std::env::var("LOCKKEEPER_CALLS").map_or(CALLS, |calls| calls.parse().expect("a number of calls"))
}

#[tokio::test]
async fn random_operations_by_script_agree_with_the_core() {
    random_operations(Cells::Script, "random_operations_by_script_agree_with_the_core").await;
}

#[tokio::test]
async fn random_operations_by_watch_agree_with_the_core() {
    random_operations(Cells::Watch, "random_operations_by_watch_agree_with_the_core").await;
}

async fn random_operations(cells: Cells, test: &'static str) {
    let Some(port) = port() else { return };
    let replay = Replay::of(test);
    let mut dice = Rng::with_seed(replay.seed);
    let mut raw = raw(port).await;
    let mut store = open(port, cells).await;
    let names: Vec<Name> = (0..6).map(|_| name("random")).collect();
    let mut tally = Tally::default();
    for call in 1..=calls() {
        if call % RESTART_EVERY == 0 {
            store.close().await.expect("it closes");
            store = open(port, cells).await;
        }
        let cell = &names[dice.usize(..names.len())];
        let now_us = look(&mut raw, "cells/nothing").await.now_us;
        if dice.u8(..3) == 0 {
            plant(&mut raw, &key(cell), &dice::state(&mut dice, now_us), now_us).await;
        }
        let before = look(&mut raw, &key(cell)).await;
        let op = dice::op(&mut dice, before.state().as_ref());
        let told = store.update_at(cell, &op).await;
        let after = look(&mut raw, &key(cell)).await;
        let verdict = judge(&op, &before, told, &after, &mut tally);
        assert!(verdict.is_ok(), "call {call}: {}\n{op:?}\nbefore {before:?}\nafter {after:?}", verdict.unwrap_err());
        reads_the_same(&store, cell, &mut raw).await;
    }
    tally.is_worth_something();
}

/// Which answers were seen: a test in which all calls fail alike shows nothing.
#[derive(Debug, Default)]
struct Tally(std::collections::BTreeMap<String, u32>);

impl Tally {
    fn note(&mut self, reply: &Result<CellReply>) {
        let word = match reply {
            Ok(reply) => format!("{reply:?}").split(' ').next().unwrap_or_default().to_owned(),
            Err(error) if error.kind() == ErrorKind::Invalid => error.to_string().chars().take(15).collect(),
            Err(error) => error.to_string(),
        };
        *self.0.entry(word).or_default() += 1;
    }

    fn is_worth_something(&self) {
        if calls() < CALLS {
            return;
        }
        let replies = ["Done", "Number", "Conflict", "TooLow", "Admitted", "Limited", "Entered", "Stale"];
        let errors = ["the cell is behind a fence", "invalid amount:"];
        for word in replies.into_iter().chain(errors) {
            let seen = self.0.get(word).copied().unwrap_or_default();
            assert!(seen > 20, "`{word}` was seen {seen} times: {:#?}", self.0);
        }
    }
}

/// Is this what the core says?
fn judge(
    op: &CellOp,
    before: &Raw,
    told: Result<(Moment, Result<CellReply>)>,
    after: &Raw,
    tally: &mut Tally,
) -> std::result::Result<(), String> {
    let (now, got) = match told {
        Ok(told) => told,
        // Refused before it was sent.
        Err(error) => (moment(before.now_us), Err(error)),
    };
    let asked_us = now.as_nanos() / 1_000;
    let state = before.state();
    let wanted = op.apply(state.as_ref(), now, asked_us.max(before.version() + 1));
    tally.note(&got);
    match (&wanted, &got) {
        (Ok((_, wanted)), Ok(got)) if wanted == got => {}
        (Err(wanted), Err(got)) if format!("{wanted:?}") == format!("{got:?}") => {}
        _ => return Err(format!("wanted {wanted:?}\n   got {got:?}")),
    }
    let changed = matches!(
        got,
        Ok(CellReply::Done { .. } | CellReply::Number { .. } | CellReply::Admitted { .. } | CellReply::Entered { .. })
    );
    match wanted {
        Ok((Some(state), _)) if changed => {
            let state = as_stored(state);
            let dropped = dropped_at_ms(&state, asked_us);
            // An entry that changes nothing writes nothing.
            if before.state().as_ref() == Some(&state) {
                return is_untouched(before, after);
            }
            stands(&state, dropped, after)
        }
        Ok((None, _)) if changed && removes(op) => is_gone(before, asked_us, after),
        _ => is_untouched(before, after),
    }
}

fn stands(state: &CellState, dropped: Option<u64>, after: &Raw) -> std::result::Result<(), String> {
    if after.fields.is_empty() && dropped.is_some_and(|ms| ms <= after.now_us / 1_000) {
        return Ok(());
    }
    match after.state().as_ref() == Some(state) && after.dropped_at_ms == dropped {
        true => Ok(()),
        false => Err(format!("the state should be {state:?}, dropped at {dropped:?}")),
    }
}

fn is_gone(before: &Raw, asked_us: u64, after: &Raw) -> std::result::Result<(), String> {
    let Some(_) = before.state() else { return is_untouched(before, after) };
    let wanted = Some(gone_at_ms(before.version(), asked_us));
    if after.fields.is_empty() && before.dropped_at_ms.is_some_and(|ms| ms <= after.now_us / 1_000) {
        return Ok(());
    }
    let fine = after.state().is_none() && after.version() == before.version() && after.dropped_at_ms == wanted;
    if fine { Ok(()) } else { Err(format!("only the version should be left, until {wanted:?}")) }
}

fn is_untouched(before: &Raw, after: &Raw) -> std::result::Result<(), String> {
    let dropped = before.dropped_at_ms.is_some_and(|ms| ms <= after.now_us / 1_000);
    let same = after.fields == before.fields && after.dropped_at_ms == before.dropped_at_ms;
    if same || (dropped && after.fields.is_empty()) { Ok(()) } else { Err("it should be untouched".into()) }
}

/// A reader sees what lies there, if that did not end meanwhile.
async fn reads_the_same(store: &Redis, cell: &Name, raw: &mut MultiplexedConnection) {
    let before = look(raw, &key(cell)).await;
    let got = store.read(cell).await.expect("an answer");
    let after = look(raw, &key(cell)).await;
    let seen = |at: &Raw| at.state().and_then(|state| state.read(moment(at.now_us)));
    let wanted = [seen(&before), seen(&after)];
    assert!(wanted.contains(&got), "read {got:?} of {before:?}");
}
