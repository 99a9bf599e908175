//! Histories made by hand, for the tests: a few lines say who held what when, in milliseconds.

use crate::history::{
    Asked, At, By, CellAnswer, CellCall, Clutter, Event, Fault, Guard, History, Life, Lived, LockKind, On, Register,
    Step, Verdict, Written,
};
use crate::judgement::{Finding, Judgement};
use crate::plan::{MadeOf, Nemesis, Plan, Promised, Work};

use super::facts::MS;

/// A plan that everything is promised for: a durable store with everything, and no faults.
pub(crate) fn a_plan() -> Plan {
    Plan {
        target: "redis".to_owned(),
        nemesis: Vec::new(),
        work: Work::Mutex,
        for_ms: 10_000,
        seed: 1,
        workers: 2,
        tasks: 1,
        locks: 1,
        lease_ms: 2_000,
        delay_ms: 0,
        think_us: 1_000,
        every_ms: None,
        mutant: None,
        store: Promised {
            scheme: "redis".to_owned(),
            tokens: true,
            fifo: true,
            push: true,
            has_time: true,
            expiry_slack_ms: 0,
            durable: true,
            quorum: false,
            ends_early: false,
            lease_min_ms: 100,
        },
        made_of: MadeOf { lockkeeper: "0.1.0".to_owned(), commit: None, server: None, began: String::new() },
    }
}

/// A history that is being made.
pub(crate) struct Sketch {
    pub(crate) history: History,
    next_op: u64,
}

/// A hold, in milliseconds; what is not said is as it should be.
#[derive(Clone)]
pub(crate) struct Take {
    pub(crate) lock: &'static str,
    pub(crate) kind: LockKind,
    pub(crate) again: bool,
    pub(crate) asked: At,
    pub(crate) held: At,
    pub(crate) left: Option<At>,
    /// The moment it was told, unless said otherwise.
    pub(crate) token: Option<u64>,
    pub(crate) claim: Option<&'static str>,
    /// A lease after it was told, unless said otherwise.
    pub(crate) deadline: Option<At>,
    pub(crate) by: By,
}

impl Default for Take {
    fn default() -> Self {
        Take {
            lock: "a",
            kind: LockKind::Mutex,
            again: false,
            asked: 0,
            held: 0,
            left: None,
            token: None,
            claim: None,
            deadline: None,
            by: By::Asking,
        }
    }
}

/// One that asked, was told, and released.
pub(crate) fn take(asked: At, held: At, left: At) -> Take {
    Take { asked, held, left: Some(left), ..Take::default() }
}

impl Sketch {
    pub(crate) fn new() -> Self {
        let history =
            History { plan: a_plan(), lives: Vec::new(), registers: Vec::new(), faults: Vec::new(), after: None };
        Sketch { history: History { after: Some(Clutter::default()), ..history }, next_op: 0 }
    }

    /// With these faults in the plan.
    pub(crate) fn under(nemesis: &[Nemesis]) -> Self {
        let mut sketch = Self::new();
        sketch.history.plan.nemesis = nemesis.to_vec();
        sketch
    }

    /// A line of a worker's first life.
    pub(crate) fn note(&mut self, worker: u32, event: Event) {
        let life = Life { worker, life: 0 };
        let known = self.history.lives.iter_mut().find(|lived| lived.life == life);
        match known {
            Some(lived) => lived.events.push(event),
            None => {
                self.history.lives.push(Lived { life, events: vec![event], cut_short: false });
                self.history.lives.sort_by_key(|lived| lived.life);
            }
        }
    }

    /// A question, without its answer.
    pub(crate) fn ask(&mut self, worker: u32, asked: At, kind: LockKind) -> u64 {
        self.next_op += 1;
        let (op, at, lock) = (self.next_op, asked * MS, "a".to_owned());
        self.note(worker, Event::Asked(Asked { at, op, lock, kind, again: false }));
        op
    }

    /// An acquisition; says its number.
    pub(crate) fn hold(&mut self, worker: u32, take: Take) -> u64 {
        self.next_op += 1;
        let op = self.next_op;
        let (lock, kind, again) = (take.lock.to_owned(), take.kind, take.again);
        self.note(worker, Event::Asked(Asked { at: take.asked * MS, op, lock, kind, again }));
        let lease = self.history.plan.lease_ms;
        self.note(
            worker,
            Event::Held {
                at: take.held * MS,
                op,
                lock: None,
                claim: take.claim.map_or_else(|| format!("{worker}-{op}"), str::to_owned),
                token: Some(take.token.unwrap_or(take.held << 10).to_string()),
                deadline: take.deadline.unwrap_or(take.held + lease) * MS,
                by: take.by,
            },
        );
        if let Some(left) = take.left {
            self.left(worker, op, left, "released");
        }
        op
    }

    pub(crate) fn left(&mut self, worker: u32, op: u64, left: At, answer: &str) {
        self.note(worker, Event::Left { sent: left * MS, at: left * MS + 1, op, answer: answer.to_owned() });
    }

    pub(crate) fn refused(&mut self, worker: u32, op: u64, at: At, why: &str) {
        self.note(worker, Event::NotHeld { at: at * MS, op, unknown: false, why: why.to_owned() });
    }

    pub(crate) fn seen(&mut self, worker: u32, op: u64, at: At, held: bool) {
        self.note(worker, Event::Seen { at: at * MS, op, held });
    }

    pub(crate) fn lost(&mut self, worker: u32, op: u64, at: At) {
        self.note(worker, Event::Lost { at: at * MS, op, why: "expired".to_owned() });
    }

    /// Everybody ends, if it was not killed.
    pub(crate) fn end(&mut self, at: At) -> &mut Self {
        let killed: Vec<Life> = self.history.faults.iter().filter_map(killed).collect();
        for lived in self.history.lives.iter_mut().filter(|lived| !killed.contains(&lived.life)) {
            lived.events.push(Event::Ended { at: at * MS });
        }
        self
    }

    /// A read and a write of a register, one after the other; the worker is told of it.
    pub(crate) fn update(&mut self, worker: u32, op: u64, guard: Guard, read: u64, at: At) {
        self.step(worker, op, guard, Step::Read, read, at, Verdict::Done);
        self.write(worker, op, guard, read, at);
    }

    pub(crate) fn write(&mut self, worker: u32, op: u64, guard: Guard, read: u64, at: At) {
        self.step(worker, op, guard, Step::Write, read + 1, at, Verdict::Done);
        let (lock, answer) = ("a".to_owned(), Written::Done);
        self.note(worker, Event::Wrote { sent: at * MS, at: at * MS, op, lock, guard, read, answer });
    }

    #[expect(clippy::too_many_arguments, reason = "one for each field of the line")]
    pub(crate) fn step(&mut self, worker: u32, op: u64, guard: Guard, step: Step, value: u64, at: At, answer: Verdict) {
        let life = Life { worker, life: 0 };
        self.history.registers.push(Register {
            at: at * MS,
            lock: "a".to_owned(),
            guard,
            life,
            op,
            step,
            shared: false,
            token: Some((at << 10).to_string()),
            value,
            answer,
        });
    }

    /// Something is hurt from one moment to another.
    pub(crate) fn hurt(&mut self, nemesis: Nemesis, from: At, to: At) {
        let on = match nemesis {
            Nemesis::KillStore | Nemesis::PauseStore | Nemesis::StepStore | Nemesis::WipeStore => On::Node { node: 0 },
            _ => On::Connections,
        };
        self.hurt_on(nemesis, on, from, to);
    }

    /// A worker is hurt from one moment to another.
    pub(crate) fn hurt_worker(&mut self, nemesis: Nemesis, worker: u32, from: At, to: At) {
        self.hurt_on(nemesis, On::Worker { life: Life { worker, life: 0 } }, from, to);
    }

    fn hurt_on(&mut self, nemesis: Nemesis, on: On, from: At, to: At) {
        let id = self.history.faults.len() as u64;
        self.history.faults.push(Fault::Hurt { at: from * MS, done: None, id, nemesis, on });
        self.history.faults.push(Fault::Healed { at: to * MS, id });
        if !self.history.plan.nemesis.contains(&nemesis) {
            self.history.plan.nemesis.push(nemesis);
        }
    }

    pub(crate) fn call(&mut self, worker: u32, times: (At, At), cell: &str, call: CellCall, answer: CellAnswer) {
        let (sent, at, cell) = (times.0 * MS, times.1 * MS, cell.to_owned());
        self.note(worker, Event::Called { sent, at, cell, call, answer });
    }

    pub(crate) fn judged(&self) -> Judgement {
        super::judge(&self.history).unwrap()
    }

    /// What one check says.
    pub(crate) fn finds(&self, check: &str) -> Finding {
        let all = self.judged().checks;
        all.into_iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("there is no `{check}`"))
    }
}

fn killed(fault: &Fault) -> Option<Life> {
    match fault {
        Fault::Hurt { nemesis: Nemesis::KillWorker | Nemesis::KillHolder, on: On::Worker { life }, .. } => Some(*life),
        _ => None,
    }
}
