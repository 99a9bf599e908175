//! Random states and operations, often at the ends of their ranges and where two answers meet.

use std::time::Duration;

use fastrand::Rng;
use lockkeeper_core::Token;
use lockkeeper_core::cell::{CellAction, CellOp, CellState, CellValue};

use super::layout::moment;

const DAY: Duration = Duration::from_secs(86_400);
const LIMIT_MAX: u64 = 1_000_000;

/// A state as it may lie there now, also one from before the clock was set back.
pub fn state(dice: &mut Rng, now_us: u64) -> CellState {
    let value = match dice.u8(..11) {
        0 => CellValue::Empty,
        1..=3 => CellValue::Bytes(bytes(dice)),
        4..=6 => CellValue::Number(signed(dice)),
        7 | 8 => CellValue::Window { age: span(dice), used: dice.choice([0, 1, 3, LIMIT_MAX]).expect("one") },
        _ => CellValue::Gcra { ahead: span(dice) },
    };
    let fenced = match value {
        CellValue::Empty => dice.u8(..4) > 0,
        CellValue::Bytes(_) => dice.u8(..3) == 0,
        // No operation makes these, and none may change them.
        _ => dice.u8(..20) == 0,
    };
    let (read_mark, write_mark) = if fenced { (unsigned(dice), unsigned(dice)) } else { (0, 0) };
    let touched_us = around(dice, now_us);
    let version = match dice.u8(..8) {
        0 => dice.u64(1..100),
        1 => dice.u64(now_us..8_900_000_000_000_000),
        _ => around(dice, now_us),
    };
    let keep = match dice.u8(..6) {
        0 => Some(Duration::from_micros(now_us.saturating_sub(touched_us) + dice.u64(..3))),
        1 => Some(Duration::from_micros(dice.u64(..50_000))),
        2 => Some(Duration::from_micros(dice.u64(..90_000_000_000))),
        _ => None,
    };
    CellState { version, value, read_mark, write_mark, touched: moment(touched_us), keep }
}

/// An operation, often one that just fits the state, or just does not.
pub fn op(dice: &mut Rng, state: Option<&CellState>) -> CellOp {
    // Three of four fit what is there.
    let roll = match state {
        Some(state) if dice.u8(..4) > 0 => match state.value {
            _ if state.read_mark > 0 || state.write_mark > 0 => dice.u8(17..20),
            CellValue::Empty | CellValue::Bytes(_) => dice.u8(..4),
            CellValue::Number(_) => dice.u8(4..11),
            CellValue::Window { .. } => dice.u8(11..14),
            CellValue::Gcra { .. } => dice.u8(14..17),
        },
        _ => dice.u8(..20),
    };
    let action = match roll {
        0..=2 => CellAction::Put { value: bytes(dice), if_version: version(dice, state) },
        3 => CellAction::Remove { if_version: version(dice, state) },
        4..=6 => CellAction::Add { by: increment(dice, state) },
        7..=9 => take(dice, state),
        10 => CellAction::Max { at_least: signed(dice) },
        11..=13 => limit(dice, true),
        14..=16 => limit(dice, false),
        17 | 18 => CellAction::FenceEnter { token: token(dice, state), shared: dice.bool() },
        _ => CellAction::FencedPut { token: token(dice, state), value: dice.bool().then(|| bytes(dice)) },
    };
    let keep = match dice.u8(..24) {
        0 => Some(Duration::ZERO),
        1 => Some(Duration::from_nanos(dice.u64(..5_000))),
        2 => Some(Duration::from_millis(dice.u64(..50))),
        3 => Some(Duration::from_nanos(dice.u64(..100_000_000_000_000))),
        4 => Some(Duration::MAX),
        5 => Some(Duration::from_secs(dice.u64(..10_000_000_000))),
        _ => None,
    };
    CellOp { action, keep }
}

fn version(dice: &mut Rng, state: Option<&CellState>) -> Option<u64> {
    let there = state.map_or(0, |state| state.version);
    match dice.u8(..8) {
        0 => Some(0),
        1..=3 => Some(there),
        4 => Some(there + 1),
        5 => Some(unsigned(dice)),
        _ => None,
    }
}

fn increment(dice: &mut Rng, state: Option<&CellState>) -> i64 {
    match state.map(|state| &state.value) {
        // To the end of the range, or one beyond.
        Some(CellValue::Number(old)) if dice.bool() => {
            let end = if *old > 0 { i64::MAX } else { i64::MIN };
            end.saturating_sub(*old).saturating_add(dice.i64(-1..=1))
        }
        _ => signed(dice),
    }
}

fn take(dice: &mut Rng, state: Option<&CellState>) -> CellAction {
    let floor = signed(dice);
    let old = match state.map(|state| &state.value) {
        Some(CellValue::Number(old)) => *old,
        _ => 0,
    };
    let room = u64::try_from(i128::from(old) - i128::from(floor)).ok();
    let by = match room {
        Some(room) if dice.u8(..4) > 0 => room.saturating_add(1).saturating_sub(dice.u64(..3)),
        _ => unsigned(dice),
    };
    CellAction::Take { by, floor }
}

fn limit(dice: &mut Rng, fixed: bool) -> CellAction {
    let limit = match dice.u8(..12) {
        0 => LIMIT_MAX,
        1 | 2 => 1,
        3 => dice.u64(..=LIMIT_MAX),
        4 => unsigned(dice),
        _ => dice.u64(1..20),
    };
    let take = match dice.u8(..8) {
        0 => unsigned(dice),
        1 => limit,
        2 => limit.saturating_add(1),
        3 => dice.u64(..=limit),
        _ => dice.u64(..4),
    };
    let per = match dice.u8(..16) {
        0 => Duration::from_nanos(dice.u64(..2_000)),
        1 => DAY,
        2 => DAY + Duration::from_nanos(1),
        3 => Duration::from_micros(1),
        _ => span(dice).max(Duration::from_micros(1)),
    };
    match fixed {
        true => CellAction::Window { take, limit, per },
        false => CellAction::Gcra { take, limit, per },
    }
}

fn token(dice: &mut Rng, state: Option<&CellState>) -> Token {
    let marks = state.map_or((0, 0), |state| (state.read_mark, state.write_mark));
    let near = if dice.bool() { marks.0 } else { marks.1 };
    let number = match dice.u8(..4) {
        0 => near,
        1 => near.saturating_add(1),
        2 => near.saturating_sub(1),
        _ => unsigned(dice),
    };
    Token::from_u64(number)
}

fn bytes(dice: &mut Rng) -> Vec<u8> {
    let length = match dice.u8(..40) {
        0 => 65_536,
        1 => 65_537,
        2..6 => dice.usize(60..300),
        _ => dice.usize(..4),
    };
    let mut bytes = vec![0; length];
    dice.fill(&mut bytes);
    bytes
}

/// A few µs, ms, minutes or hours before or after.
fn around(dice: &mut Rng, now_us: u64) -> u64 {
    let by = [5, 3_000, 600_000_000, 180_000_000_000][dice.usize(..4)];
    match dice.u8(..3) {
        0 => now_us + dice.u64(..by),
        _ => now_us - dice.u64(..by),
    }
}

/// Up to a day, of any order of magnitude.
fn span(dice: &mut Rng) -> Duration {
    let most = 10_u64.pow(dice.u32(0..14));
    match dice.u8(..10) {
        0 => DAY,
        1 => Duration::ZERO,
        _ => Duration::from_nanos(dice.u64(..=most)),
    }
}

fn unsigned(dice: &mut Rng) -> u64 {
    match dice.u8(..8) {
        0 => 0,
        1 => u64::MAX - dice.u64(..2),
        2 => (1 << 63) + dice.u64(..3) - 1,
        3 => (1 << 53) + dice.u64(..3) - 1,
        4 => dice.u64(..),
        _ => dice.u64(..50),
    }
}

fn signed(dice: &mut Rng) -> i64 {
    match dice.u8(..8) {
        0 => i64::MIN + dice.i64(..2).rem_euclid(2),
        1 => i64::MAX - dice.i64(..2).rem_euclid(2),
        2 => (1 << 53) + dice.i64(-1..=1),
        3 => -(1 << 53) + dice.i64(-1..=1),
        4 => dice.i64(..),
        _ => dice.i64(-50..50),
    }
}
