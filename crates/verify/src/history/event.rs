//! The lines of a history. Additive only: a folder of an older version stays readable.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::Nemesis;

/// Nanoseconds of `CLOCK_BOOTTIME`.
pub type At = u64;

/// One life of one worker: a worker that is killed is followed by its next life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Life {
    /// Which worker.
    pub worker: u32,
    /// Which of its lives.
    pub life: u32,
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}.{}", self.worker, self.life)
    }
}

/// A line of a worker's file. `op` numbers its acquisitions within one life; all lines of one acquisition share it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The process has begun.
    Began {
        /// When.
        at: At,
        /// Who.
        #[serde(flatten)]
        life: Life,
        /// Its process.
        pid: u32,
    },
    /// It is about to ask for a lock.
    Asked(Asked),
    /// It was told that it holds.
    Held {
        /// When `lock()` had returned.
        at: At,
        /// Which acquisition.
        op: u64,
        /// Which lock, where the acquisition is of several: each has a line of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lock: Option<String>,
        /// The claim behind it, in hex.
        claim: String,
        /// The token, in decimal, where the store has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// Until when, as it was told.
        deadline: At,
        /// How it came in.
        by: By,
    },
    /// It did not get the lock.
    NotHeld {
        /// When `lock()` had returned.
        at: At,
        /// Which acquisition.
        op: u64,
        /// May it have taken effect? A refusal and a time-out say no, an unanswered call says yes.
        unknown: bool,
        /// The kind of the error, or `busy`.
        why: String,
    },
    /// It asked itself whether it holds.
    Seen {
        /// Noted *before* it asked.
        at: At,
        /// Which acquisition.
        op: u64,
        /// The answer.
        held: bool,
    },
    /// It read a register, dwelt, and wrote one more than it had read.
    Wrote {
        /// Noted before the write was sent, or when it was decided not to write.
        sent: At,
        /// Noted when the answer was there.
        at: At,
        /// Which acquisition.
        op: u64,
        /// Whose register: the lock's.
        lock: String,
        /// How it was guarded.
        guard: Guard,
        /// What was read.
        read: u64,
        /// What came of it.
        answer: Written,
    },
    /// It was told that it holds no longer.
    Lost {
        /// When it was told.
        at: At,
        /// Which acquisition.
        op: u64,
        /// The reason given.
        why: String,
    },
    /// It released.
    Left {
        /// Noted before the release was sent: from here on it does not believe that it holds.
        sent: At,
        /// Noted when the answer was there.
        at: At,
        /// Which acquisition.
        op: u64,
        /// `released`, `not-held` (the hold had been lost), or `unknown`.
        answer: String,
    },
    /// It called a cell or a counter of the store.
    Called {
        /// Noted before the call.
        sent: At,
        /// Noted when the answer was there.
        at: At,
        /// Which cell. Names are used for a short while only, so that each has a short history.
        cell: String,
        /// What was asked.
        call: CellCall,
        /// What was answered.
        answer: CellAnswer,
    },
    /// The process ends of its own accord.
    Ended {
        /// When.
        at: At,
    },
}

impl Event {
    /// When the line was written, about.
    pub fn moment(&self) -> At {
        match self {
            Event::Asked(asked) => asked.at,
            Event::Began { at, .. }
            | Event::Held { at, .. }
            | Event::NotHeld { at, .. }
            | Event::Seen { at, .. }
            | Event::Wrote { at, .. }
            | Event::Lost { at, .. }
            | Event::Left { at, .. }
            | Event::Called { at, .. }
            | Event::Ended { at } => *at,
        }
    }
}

/// The question for a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Noted before it was asked.
    pub at: At,
    /// Which acquisition.
    pub op: u64,
    /// The lock; of several names at once each has a line of its own with the same `op`.
    pub lock: String,
    /// What sort of hold.
    pub kind: LockKind,
    /// Does it come in again over a hold it has already?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// What sort of hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// Alone.
    Mutex,
    /// With other readers.
    Read,
    /// Alone, where there are readers.
    Write,
    /// One permit of so many.
    Permit {
        /// How many there are.
        of: u32,
    },
}

/// How a claim came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The first question was answered so.
    Asking,
    /// A wake-up carried it, or its question came right after one.
    Push,
    /// It asked again because it was time to.
    Poll,
    /// Another task of its process handed it on.
    HandOver,
}

/// How a register's read-modify-write is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// By the lock alone.
    Bare,
    /// It writes only if it still believes that it holds.
    Deadline,
    /// The register refuses writes with a token below the greatest it has seen.
    FencedWrites,
    /// The fence is entered with the token before the read; reads and writes below its mark are refused.
    Fenced,
}

/// What came of a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Written {
    /// It was acknowledged.
    Done,
    /// The register refused it: the token was too old.
    Stale,
    /// It did not write: it believed no longer that it holds.
    Withheld,
    /// No answer: it may have been written.
    Unknown,
}

/// A call to a cell or a counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum CellCall {
    /// Reads a cell.
    Read,
    /// Writes a cell if it still has this version; 0 stands for a cell that is not there.
    Swap {
        /// The version.
        version: u64,
        /// The value.
        value: u64,
    },
    /// Adds to a counter.
    Add {
        /// How much.
        by: i64,
    },
    /// Reads a counter.
    Get,
}

/// What a call to a cell or a counter was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "got", rename_all = "kebab-case")]
pub enum CellAnswer {
    /// The cell as it was read.
    Cell {
        /// Its version, 0 if it is not there.
        version: u64,
        /// Its value.
        value: Option<u64>,
    },
    /// Swapped, and this is its version now.
    Swapped {
        /// The version.
        version: u64,
    },
    /// Not swapped: it had another version.
    Kept,
    /// The counter after the call.
    Count {
        /// How much.
        value: i64,
    },
    /// Refused: certainly without effect.
    Refused,
    /// No answer: it may have taken effect, now or later.
    Unknown,
}

/// A line of `registers.jsonl`, in the order in which the registers did it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// When.
    pub at: At,
    /// Whose register: the lock's.
    pub lock: String,
    /// Which of its four.
    pub guard: Guard,
    /// Who asked.
    #[serde(flatten)]
    pub life: Life,
    /// In which acquisition.
    pub op: u64,
    /// What was asked.
    pub step: Step,
    /// Was the fence entered to read, together with others?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// With which token, in decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What was read, or is to be written.
    pub value: u64,
    /// What was answered.
    pub answer: Verdict,
}

/// A step at a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The fence is entered, and the value read.
    Enter,
    /// The value is read.
    Read,
    /// The value is written.
    Write,
}

/// A register's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Done.
    Done,
    /// Refused: the token is older than one that was seen.
    Stale,
}

/// A line of `faults.jsonl`: something was hurt, or is whole again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Fault {
    /// It begins to hurt.
    Hurt {
        /// Noted before it was done.
        at: At,
        /// Noted after it was done, where that takes a while.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done: Option<At>,
        /// Which one, in order.
        id: u64,
        /// What is done.
        nemesis: Nemesis,
        /// To whom.
        on: On,
    },
    /// It is over: the process goes on, the server answers again, bytes come through.
    Healed {
        /// Noted after it was done.
        at: At,
        /// Which one.
        id: u64,
    },
}

/// Whom a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "kebab-case")]
pub enum On {
    /// A worker.
    Worker {
        /// Which.
        #[serde(flatten)]
        life: Life,
    },
    /// A server.
    Node {
        /// Which.
        node: u32,
    },
    /// All connections through the proxy.
    Connections,
}

/// `after.json`: what is left at the store when every worker has gone and every lease is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clutter {
    /// When it was looked at.
    pub at: At,
    /// What is left.
    pub left: Vec<Leftover>,
    /// What could not be looked at, and why.
    pub unseen: Vec<String>,
}

/// Something left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// `claim`, `key`, `subscription`, `connection`, `lease`, `process`.
    pub what: String,
    /// Its name.
    pub name: String,
}
