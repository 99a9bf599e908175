//! What a cell must always do, operation by operation, over all small cases and over random ones.
//!
//! Every operation in here goes through `Bench`, which checks what must hold of any: a refusal or an error
//! changes nothing, versions are never used again, marks never fall, and a cell's clock never goes back.

use std::time::Duration;

use crate::claim::Token;
use crate::error::{ErrorKind, Result};
use crate::time::Moment;

use super::{CellAction, CellOp, CellReply, CellState, CellValue, Versioned};

mod extremes;
mod fences;
mod gcra;
mod numbers;
mod values;
mod windows;

/// A cell in a store, with the clock in the caller's hand.
#[derive(Debug, Clone, Default)]
struct Bench {
    state: Option<CellState>,
    now: u64,
    last: u64,
}

impl Bench {
    fn apply(&mut self, action: CellAction) -> Result<CellReply> {
        self.op(&CellOp::new(action))
    }

    fn kept(&mut self, action: CellAction, keep: Duration) -> Result<CellReply> {
        self.op(&CellOp { action, keep: Some(keep) })
    }

    /// The reply of an operation that must not be an error.
    fn get(&mut self, action: CellAction) -> CellReply {
        self.apply(action).unwrap()
    }

    /// The kind of the error that an operation must be.
    fn refusal(&mut self, action: CellAction) -> ErrorKind {
        self.apply(action).unwrap_err().kind()
    }

    fn op(&mut self, op: &CellOp) -> Result<CellReply> {
        let now = Moment::from_nanos(self.now);
        self.last += 1;
        let before = self.state.clone();
        let (after, reply) = op.apply(before.as_ref(), now, self.last)?;
        let known = before.filter(|state| !state.is_over(now.max(state.touched)));
        let story = || format!("{op:?} at {now:?} on {known:?}: {reply:?}, {after:?}");
        match &reply {
            CellReply::Conflict { .. }
            | CellReply::TooLow { .. }
            | CellReply::Limited { .. }
            | CellReply::Stale { .. } => assert_eq!(after, known, "a refusal changes nothing: {}", story()),
            CellReply::Done { version: 0 } => assert_eq!(after, None, "{}", story()),
            CellReply::Done { version } | CellReply::Number { version, .. } => {
                assert_eq!(*version, self.last, "{}", story());
                assert_eq!(after.as_ref().unwrap().version, self.last, "{}", story());
            }
            CellReply::Admitted { .. } | CellReply::Entered { .. } => {}
        }
        if let (Some(old), Some(new)) = (&known, &after) {
            assert!(new.touched >= old.touched, "a cell's clock never goes back: {}", story());
            assert!(new.read_mark >= old.read_mark && new.write_mark >= old.write_mark, "{}", story());
            let same = new.value == old.value || new.version > old.version;
            assert!(same, "another value has another version: {}", story());
        }
        self.state = after;
        Ok(reply)
    }

    fn read(&self) -> Option<Versioned> {
        self.state.as_ref().and_then(|state| state.read(Moment::from_nanos(self.now)))
    }

    fn text(&self) -> Option<String> {
        self.read().map(|read| String::from_utf8(read.value).unwrap())
    }
}

fn put(value: &str, if_version: Option<u64>) -> CellAction {
    CellAction::Put { value: value.as_bytes().to_vec(), if_version }
}

fn enter(token: u64, shared: bool) -> CellAction {
    CellAction::FenceEnter { token: Token::from_u64(token), shared }
}

fn fenced(token: u64, value: Option<&str>) -> CellAction {
    CellAction::FencedPut { token: Token::from_u64(token), value: value.map(|value| value.as_bytes().to_vec()) }
}

const fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

/// A cell of every sort, by the operation that makes it.
fn one_of_each() -> Vec<(&'static str, Bench)> {
    let per = Duration::from_secs(1);
    let makers = [
        ("bytes", put("x", None)),
        ("number", CellAction::Add { by: 5 }),
        ("window", CellAction::Window { take: 1, limit: 3, per }),
        ("gcra", CellAction::Gcra { take: 1, limit: 3, per }),
        ("fenced", fenced(7, Some("x"))),
        ("emptied", fenced(7, None)),
    ];
    let make = |(word, action): (&'static str, CellAction)| {
        let mut bench = Bench { now: 1_000, ..Bench::default() };
        bench.get(action);
        (word, bench)
    };
    makers.into_iter().map(make).collect()
}
