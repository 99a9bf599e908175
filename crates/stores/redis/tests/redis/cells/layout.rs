//! What lies on the server, read and written by this file's own understanding of the layout, so that a change of it in the
//! store is noticed. Other programs, and later versions of this one, find it as it is told here.

use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellState, CellValue};
use lockkeeper_core::time::Moment;
use redis::aio::MultiplexedConnection;

/// The fields of a hash.
pub type Fields = BTreeMap<String, Vec<u8>>;

const MINUTE_US: u64 = 60_000_000;
const DAY_US: u64 = 86_400_000_000;
const CENTURY_US: u64 = 4_000_000_000_000_000;

/// A cell's key at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    pub fields: Fields,
    /// When the server drops the key, in ms.
    pub dropped_at_ms: Option<u64>,
    /// The server's clock.
    pub now_us: u64,
}

pub fn moment(us: u64) -> Moment {
    Moment::from_nanos(us * 1_000)
}

/// Looks at a key.
pub async fn look(raw: &mut MultiplexedConnection, key: &str) -> Raw {
    let mut pipe = redis::pipe();
    pipe.atomic().hgetall(key).cmd("PEXPIRETIME").arg(key).cmd("TIME");
    let (fields, ends, (s, us)): (Fields, i64, (u64, u64)) = pipe.query_async(raw).await.expect("an answer");
    Raw { fields, dropped_at_ms: u64::try_from(ends).ok(), now_us: s * 1_000_000 + us }
}

impl Raw {
    /// The version, if only a remembered one; zero if there is none.
    pub fn version(&self) -> u64 {
        self.fields.get("version").map_or(0, |text| number(text))
    }

    /// The state; it may be over.
    pub fn state(&self) -> Option<CellState> {
        let mut fields = self.fields.clone();
        let kind = text(&fields.remove("kind")?);
        let version = number(&fields.remove("version").expect("a version"));
        if kind == "gone" {
            assert!(fields.is_empty(), "more than a version: {fields:?}");
            return None;
        }
        let mut take = |field: &str| fields.remove(field);
        let mut value = || take("value").expect("a value");
        let value = match kind.as_str() {
            "empty" => CellValue::Empty,
            "bytes" => CellValue::Bytes(value()),
            "number" => CellValue::Number(text(&value()).parse().expect("a number")),
            "window" => {
                let used = number(&value());
                CellValue::Window { age: nanos(&take("span").expect("an age")), used }
            }
            "gcra" => CellValue::Gcra { ahead: nanos(&take("span").expect("a span")) },
            other => panic!("an unknown kind {other}"),
        };
        let mut mark = |field| take(field).map_or(0, |digits| token(&digits));
        let (read_mark, write_mark) = (mark("read"), mark("write"));
        let touched = moment(number(&take("touched").expect("a time")));
        let keep = take("keep").map(|keep| Duration::from_micros(number(&keep)));
        assert!(fields.is_empty(), "more than was expected: {fields:?}");
        Some(CellState { version, value, read_mark, write_mark, touched, keep })
    }
}

/// Puts a state at a key, as an earlier operation would have left it.
pub async fn plant(raw: &mut MultiplexedConnection, key: &str, state: &CellState, now_us: u64) {
    let mut fields = vec![("version", state.version.to_string().into_bytes())];
    let mut add = |field, value: String| fields.push((field, value.into_bytes()));
    let kind = match &state.value {
        CellValue::Empty => "empty",
        CellValue::Bytes(_) => "bytes",
        CellValue::Number(number) => {
            add("value", number.to_string());
            "number"
        }
        CellValue::Window { age, used } => {
            add("value", used.to_string());
            add("span", age.as_nanos().to_string());
            "window"
        }
        CellValue::Gcra { ahead } => {
            add("span", ahead.as_nanos().to_string());
            "gcra"
        }
    };
    add("kind", kind.to_owned());
    add("touched", (state.touched.as_nanos() / 1_000).to_string());
    for (field, mark) in [("read", state.read_mark), ("write", state.write_mark)] {
        if mark > 0 {
            add(field, format!("{mark:020}"));
        }
    }
    if let Some(keep) = state.keep {
        add("keep", whole_us(keep).to_string());
    }
    if let CellValue::Bytes(bytes) = &state.value {
        fields.push(("value", bytes.clone()));
    }
    let mut pipe = redis::pipe();
    pipe.atomic().del(key).hset_multiple(key, &fields);
    if let Some(ms) = dropped_at_ms(state, now_us) {
        pipe.cmd("PEXPIREAT").arg(key).arg(ms);
    }
    pipe.exec_async(raw).await.expect("an answer");
}

/// When the server shall drop a state that was written then: not before it is over and the clock is past its version.
pub fn dropped_at_ms(state: &CellState, asked_us: u64) -> Option<u64> {
    let ends_us = state.touched.as_nanos() / 1_000 + whole_us(state.keep?);
    let limiter = matches!(state.value, CellValue::Window { .. } | CellValue::Gcra { .. });
    Some(dropped_ms(ends_us, state.version, asked_us, if limiter { 0 } else { MINUTE_US }))
}

/// When the server shall drop what is left of a removed cell.
pub fn gone_at_ms(version: u64, asked_us: u64) -> u64 {
    dropped_ms(asked_us, version, asked_us, MINUTE_US)
}

fn dropped_ms(us: u64, version: u64, asked_us: u64, linger_us: u64) -> u64 {
    (us.max(version) + if version > asked_us { DAY_US } else { linger_us }).div_ceil(1_000)
}

/// Times to be kept are rounded up to µs, and are at most a century.
pub fn as_stored(mut state: CellState) -> CellState {
    state.keep = state.keep.map(|keep| Duration::from_micros(whole_us(keep)));
    state
}

fn whole_us(keep: Duration) -> u64 {
    u64::try_from(keep.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(CENTURY_US)
}

/// Is it an operation that ends a cell?
pub fn removes(op: &CellOp) -> bool {
    matches!(op.action, CellAction::Remove { .. })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn number(bytes: &[u8]) -> u64 {
    text(bytes).parse().expect("a whole number")
}

fn nanos(bytes: &[u8]) -> Duration {
    Duration::from_nanos(number(bytes))
}

fn token(digits: &[u8]) -> u64 {
    assert_eq!(digits.len(), 20, "marks have 20 digits");
    number(digits)
}
