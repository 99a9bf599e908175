//! What the registers lost, and whether the fence let anybody in out of order: their own book, gone through again.
//!
//! Surprise: a lost update is not always the doing of the lock. A holder that found out that its hold was gone, and had
//! written meanwhile without asking itself, has lost its own update; that is told, and the lock is not accused of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::bound;
use super::facts::Facts;
use super::look::{Against, Look};
use crate::history::{Event, Guard, Life, Register, Step, Verdict, Written};
use crate::judgement::Updates;

/// How the registers of one guard fared.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// Writes that were taken.
    pub(super) taken: u64,
    /// Of these, how many are not in the end's values.
    pub(super) lost: u64,
    overwritten: Vec<Overwritten>,
}

/// A write that did not know of others before it.
#[derive(Debug)]
struct Overwritten {
    line: usize,
    /// Had anybody in it found out that its hold was lost?
    found_lost: bool,
}

/// One register while the book is gone through.
#[derive(Default)]
struct Shelf {
    value: u64,
    taken: u64,
    /// The lines of the writes it took.
    writes: Vec<usize>,
    /// Where everybody last read, by line.
    reads: HashMap<(Life, u64), usize>,
    overwritten: Vec<(usize, Option<usize>)>,
}

impl Shelf {
    fn step(&mut self, line: usize, step: &Register) {
        if step.answer != Verdict::Done {
            return;
        }
        match step.step {
            Step::Enter | Step::Read => {
                self.reads.insert((step.life, step.op), line);
            }
            Step::Write => {
                let read = self.reads.remove(&(step.life, step.op));
                if step.value != self.value.saturating_add(1) {
                    self.overwritten.push((line, read));
                }
                self.value = step.value;
                self.taken += 1;
                self.writes.push(line);
            }
        }
    }
}

/// Goes through the book of the registers of one guard.
pub(super) fn replay(facts: &Facts<'_>, guard: Guard) -> Replayed {
    let book = &facts.history.registers;
    let mut shelves: BTreeMap<&str, Shelf> = BTreeMap::new();
    for (line, step) in book.iter().enumerate().filter(|(_, step)| step.guard == guard) {
        shelves.entry(step.lock.as_str()).or_default().step(line, step);
    }
    let mut all = Replayed::default();
    for shelf in shelves.values() {
        all.taken += shelf.taken;
        all.lost += shelf.taken.saturating_sub(shelf.value);
        for &(line, read) in &shelf.overwritten {
            // Everybody who wrote between its read and its write, and itself.
            let first = shelf.writes.partition_point(|write| Some(*write) < read);
            let between = shelf.writes[first..].iter().take_while(|write| **write <= line);
            let found_lost = read.is_some() && between.map(|write| &book[*write]).any(|step| had_lost(facts, step));
            all.overwritten.push(Overwritten { line, found_lost });
        }
    }
    all.overwritten.sort_by_key(|overwritten| overwritten.line);
    all
}

fn had_lost(facts: &Facts<'_>, step: &Register) -> bool {
    facts.of_op(step.life, step.op).any(|acquisition| acquisition.found_lost())
}

/// The figures of all registers that were used, by guard.
pub(super) fn updates(facts: &Facts<'_>) -> BTreeMap<Guard, Updates> {
    let mut all: BTreeMap<Guard, Updates> = BTreeMap::new();
    for event in facts.history.lives.iter().flat_map(|lived| &lived.events) {
        let Event::Wrote { guard, answer, .. } = event else { continue };
        let tally = &mut all.entry(*guard).or_default().tally;
        tally.attempted += 1;
        match answer {
            Written::Done => tally.acknowledged += 1,
            Written::Stale | Written::Withheld => tally.refused += 1,
            Written::Unknown => tally.unknown += 1,
        }
    }
    for (guard, updates) in &mut all {
        let replayed = replay(facts, *guard);
        updates.lost = replayed.lost;
        updates.lost_at_most = bound::at_most(replayed.lost, replayed.taken);
    }
    all
}

/// `bare-loses-nothing`: what was written under the lock alone is all there.
pub(super) fn bare_loses_nothing(facts: &Facts<'_>) -> Look {
    loses_nothing(facts, Guard::Bare)
}

/// `deadline-loses-nothing`: the same for who looks at its hold before it writes.
pub(super) fn deadline_loses_nothing(facts: &Facts<'_>) -> Look {
    loses_nothing(facts, Guard::Deadline)
}

/// `fenced-writes-lose-nothing`: the same where writes carry the token, and reads do not.
pub(super) fn fenced_writes_lose_nothing(facts: &Facts<'_>) -> Look {
    loses_nothing(facts, Guard::FencedWrites)
}

/// `fenced-loses-nothing`: the same where the fence is entered before the read. This is what a fence is for.
pub(super) fn fenced_loses_nothing(facts: &Facts<'_>) -> Look {
    loses_nothing(facts, Guard::Fenced)
}

fn loses_nothing(facts: &Facts<'_>, guard: Guard) -> Look {
    let replayed = replay(facts, guard);
    if replayed.taken == 0 {
        return Look::nothing("nothing was written to such a register");
    }
    let mut against = Against::default();
    for overwritten in &replayed.overwritten {
        let step = &facts.history.registers[overwritten.line];
        let why = if overwritten.found_lost { "; one of them had lost its hold by its own account" } else { "" };
        against.add(|| {
            let (lock, who, when) = (&step.lock, step.life, facts.when(step.at));
            format!("`{lock}` at {when}: {who} op {} wrote {} over what it had not read{why}", step.op, step.value)
        });
    }
    let bound = bound::at_most(replayed.lost, replayed.taken) * 100.0;
    let saw = format!("{} lost of {}, with 95 % confidence at most {bound:.3} %", replayed.lost, replayed.taken);
    // A fence has to keep out whoever lost its hold; nothing else can.
    let own_doing = guard != Guard::Fenced && replayed.overwritten.iter().all(|overwritten| overwritten.found_lost);
    let look = Look::at(saw, against);
    if own_doing { look.excused() } else { look }
}

/// `what-was-acknowledged-was-written`: every write that a worker was told is done is in the registers' book.
pub(super) fn acknowledged_is_written(facts: &Facts<'_>) -> Look {
    let taken = facts.history.registers.iter().filter(|step| step.step == Step::Write && step.answer == Verdict::Done);
    let taken: HashSet<(Life, u64, &str, Guard, u64)> =
        taken.map(|step| (step.life, step.op, step.lock.as_str(), step.guard, step.value)).collect();
    let (mut against, mut done) = (Against::default(), 0_u64);
    for lived in &facts.history.lives {
        for event in &lived.events {
            let Event::Wrote { at, op, lock, guard, read, answer: Written::Done, .. } = event else { continue };
            done += 1;
            if !taken.contains(&(lived.life, *op, lock.as_str(), *guard, read.saturating_add(1))) {
                against.add(|| format!("`{lock}` at {}: {} op {op}, {guard:?}", facts.when(*at), lived.life));
            }
        }
    }
    if done == 0 {
        return Look::nothing("no write was acknowledged");
    }
    Look::at(format!("{done} acknowledged, {} not in the registers' book", against.count()), against)
}

/// `fenced-order`: the fence lets nobody in with a token below one that it has let in, but readers among readers.
pub(super) fn fenced_order(facts: &Facts<'_>) -> Look {
    let mut marks: HashMap<&str, (u64, u64)> = HashMap::new();
    let (mut against, mut steps) = (Against::default(), 0_u64);
    let fenced = facts.history.registers.iter().filter(|step| step.guard == Guard::Fenced);
    for step in fenced.filter(|step| step.answer == Verdict::Done) {
        steps += 1;
        let Some(token) = step.token.as_deref().and_then(|token| token.parse::<u64>().ok()) else {
            against.add(|| format!("`{}` at {}: {} without a token", step.lock, facts.when(step.at), step.life));
            continue;
        };
        let (alone, shared) = marks.entry(step.lock.as_str()).or_default();
        let mark = if step.shared { *alone } else { (*alone).max(*shared) };
        if token < mark {
            against.add(|| {
                let (lock, when, who) = (&step.lock, facts.when(step.at), step.life);
                format!("`{lock}` at {when}: {who} op {} passed with token {token}, after {mark}", step.op)
            });
        }
        let raised = if step.shared { shared } else { alone };
        *raised = (*raised).max(token);
    }
    if steps == 0 {
        return Look::nothing("nobody used a fence");
    }
    Look::at(format!("{steps} steps behind fences, {} out of order", against.count()), against)
}
