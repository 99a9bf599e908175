//! From a history to what is drawn of it: who waited, who held, what hurt, and where something went wrong.
//!
//! Surprise: it is not all drawn. Of a hundred thousand holds most are thinner than a pixel; the marked ones stay, then the
//! longest, and how many were left out is said.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::words::{span_us, word};
use crate::history::{Event, Fault, Guard, History, Life, LockKind, On, Register, Step, Verdict};
use crate::plan::Nemesis;

/// No more acquisitions than this are drawn.
pub const DRAWN: usize = 5_000;
/// No more marks than this of each sort.
pub const MARKED: usize = 1_000;

/// What is drawn. All times are microseconds since the first line of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// How long it is.
    pub length: u64,
    /// The names of the locks, in order.
    pub locks: Vec<String>,
    /// The workers, in order.
    pub lanes: Vec<Lane>,
    /// Faults that are not of one worker.
    pub windows: Vec<Window>,
    /// Acquisitions that are not drawn.
    pub left_out: u64,
    /// Marks that are not drawn.
    pub unmarked: u64,
}

/// One worker through all of its lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Which.
    pub worker: u32,
    /// How many of its acquisitions there are side by side.
    pub rows: usize,
    /// Its acquisitions.
    pub bars: Vec<Bar>,
    /// When it was hurt.
    pub windows: Vec<Window>,
    /// What happened at one moment.
    pub marks: Vec<Mark>,
}

/// One acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// In which row of its lane.
    pub row: usize,
    /// When it was asked for.
    pub asked: u64,
    /// When it was held, if it was.
    pub held: Option<u64>,
    /// When it was over.
    pub ended: u64,
    /// The first of its locks, as an index.
    pub lock: usize,
    /// What there is to say.
    pub said: String,
}

/// A time in which something was hurt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// What it was.
    pub said: String,
}

/// Something that happened at one moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// When.
    pub at: u64,
    /// What.
    pub sort: Sort,
    /// The same in words.
    pub said: String,
}

/// What is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Two believed at once that they hold.
    Two,
    /// An acknowledged update was overwritten.
    Overwritten,
    /// A fence refused a late holder.
    Refused,
    /// A holder was told that it holds no longer.
    Lost,
    /// A worker was killed.
    Killed,
}

/// One acquisition as it is put together, in nanoseconds of the history.
#[derive(Debug)]
struct Op {
    life: Life,
    op: u64,
    locks: Vec<String>,
    alone: bool,
    again: bool,
    asked: u64,
    held: Option<u64>,
    deadline: u64,
    token: Option<String>,
    ended: u64,
    how: String,
    lost: bool,
    marked: bool,
}

/// Makes the timeline.
pub fn draw(seen: &History) -> Timeline {
    let killed = kills(&seen.faults);
    let mut ops: Vec<Op> = seen.lives.iter().flat_map(|lived| of_life(lived.life, &lived.events, &killed)).collect();
    ops.sort_by_key(|op| (op.asked, op.life, op.op));
    let moments = seen
        .lives
        .iter()
        .flat_map(|lived| lived.events.iter().map(Event::moment))
        .chain(seen.faults.iter().map(fault_at));
    let (begin, end) = moments.fold((u64::MAX, 0), |(begin, end), at| (begin.min(at), end.max(at)));
    let scale = Scale { begin: begin.min(end), end };
    let names: BTreeSet<&String> = ops.iter().flat_map(|op| &op.locks).collect();
    let locks: Vec<String> = names.into_iter().cloned().collect();
    let mut lanes: BTreeMap<u32, Lane> = BTreeMap::new();
    for lived in &seen.lives {
        lanes.entry(lived.life.worker).or_default().worker = lived.life.worker;
    }
    let marks = [at_once(&mut ops), overwritten(&seen.registers, &mut ops), told(&ops), deaths(&seen.faults)];
    let mut timeline = Timeline { length: scale.of(end), locks, ..Timeline::default() };
    for mut marks in marks {
        marks.sort();
        timeline.unmarked += marks.len().saturating_sub(MARKED) as u64;
        for (worker, mark) in marks.into_iter().take(MARKED) {
            let mark = Mark { at: scale.of(mark.at), ..mark };
            lanes.entry(worker).or_default().marks.push(mark);
        }
    }
    windows(&seen.faults, &scale, &mut timeline.windows, &mut lanes);
    timeline.left_out = bars(&ops, &scale, &timeline.locks, &mut lanes);
    timeline.lanes = lanes.into_values().collect();
    timeline
}

/// From the history's clock to the drawing's.
struct Scale {
    begin: u64,
    end: u64,
}

impl Scale {
    fn of(&self, at: u64) -> u64 {
        at.clamp(self.begin, self.end.max(self.begin)).saturating_sub(self.begin) / 1_000
    }
}

/// When each life that was killed was killed.
fn kills(faults: &[Fault]) -> HashMap<Life, u64> {
    let kill = |fault: &Fault| match fault {
        Fault::Hurt { at, nemesis: Nemesis::KillWorker | Nemesis::KillHolder, on: On::Worker { life }, .. } => {
            Some((*life, *at))
        }
        _ => None,
    };
    faults.iter().filter_map(kill).collect()
}

/// The acquisitions of one life, in the order in which they were asked for.
fn of_life(life: Life, events: &[Event], killed: &HashMap<Life, u64>) -> Vec<Op> {
    let last = events.iter().map(Event::moment).max().unwrap_or_default();
    let death = killed.get(&life).copied();
    let mut ops: BTreeMap<u64, Op> = BTreeMap::new();
    for event in events {
        if let Event::Asked(asked) = event {
            let alone = matches!(asked.kind, LockKind::Mutex | LockKind::Write);
            let op = ops.entry(asked.op).or_insert_with(|| Op {
                life,
                op: asked.op,
                locks: Vec::new(),
                alone,
                again: asked.again,
                asked: asked.at,
                held: None,
                deadline: u64::MAX,
                token: None,
                ended: death.unwrap_or(last).max(asked.at),
                how: if death.is_some() { "killed".to_owned() } else { "not over at the end".to_owned() },
                lost: false,
                marked: false,
            });
            op.locks.push(asked.lock.clone());
            continue;
        }
        let Some(op) = op_of(event).and_then(|op| ops.get_mut(&op)) else { continue };
        op.take(event);
    }
    ops.into_values().collect()
}

impl Op {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Held { at, token, deadline, by, .. } => {
                (self.held, self.deadline) = (Some(*at), self.deadline.min(*deadline));
                // Of several names at once the first is shown.
                if self.token.is_none() {
                    self.token = token.as_ref().map(|token| format!("{token} by {}", word(by)));
                }
            }
            Event::NotHeld { at, why, unknown, .. } => {
                self.end(*at, if *unknown { format!("not held, perhaps: {why}") } else { format!("not held: {why}") });
            }
            Event::Lost { at, why, .. } if !self.lost => {
                self.end(*at, format!("lost: {why}"));
                self.lost = true;
            }
            Event::Left { sent, answer, .. } if !self.lost => self.end(*sent, format!("left: {answer}")),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, how: String) {
        (self.ended, self.how) = (at.max(self.asked), how);
    }

    /// Until when it believed that it holds, at most.
    fn believed(&self) -> u64 {
        self.ended.min(self.deadline)
    }
}

fn fault_at(fault: &Fault) -> u64 {
    match fault {
        Fault::Hurt { at, .. } | Fault::Healed { at, .. } => *at,
    }
}

fn op_of(event: &Event) -> Option<u64> {
    match event {
        Event::Held { op, .. } | Event::NotHeld { op, .. } | Event::Lost { op, .. } | Event::Left { op, .. } => {
            Some(*op)
        }
        _ => None,
    }
}

/// A mark of a worker, on the history's clock.
type Marked = (u32, Mark);

/// Holders of one lock that believed it at the same time, where one of them should be alone.
fn at_once(ops: &mut [Op]) -> Vec<Marked> {
    let mut by_lock: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.held.is_some() && !op.again) {
        for lock in &op.locks {
            by_lock.entry(lock).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for (lock, mut holds) in by_lock {
        holds.sort_by_key(|index| (ops[*index].held, *index));
        // Whoever believes it longest of those before; one suffices to see that somebody is in the way.
        let mut longest: Option<usize> = None;
        for index in holds {
            let (op, held) = (&ops[index], ops[index].held.unwrap_or_default());
            if let Some(other) = longest.filter(|other| ops[*other].believed() > held)
                && (op.alone || ops[other].alone)
            {
                let said = format!("`{lock}` is held by {} op {} already", ops[other].life, ops[other].op);
                found.push((index, other, op.life.worker, Mark { at: held, sort: Sort::Two, said }));
            }
            if longest.is_none_or(|other| ops[other].believed() < op.believed()) {
                longest = Some(index);
            }
        }
    }
    let mut marks = Vec::new();
    for (index, other, worker, mark) in found {
        (ops[index].marked, ops[other].marked) = (true, true);
        marks.push((worker, mark));
    }
    marks
}

/// Writes over values that somebody else had written since they were read, and writes that a fence refused.
fn overwritten(registers: &[Register], ops: &mut [Op]) -> Vec<Marked> {
    let mut values: HashMap<(&str, Guard), u64> = HashMap::new();
    let index: HashMap<(Life, u64), usize> = ops.iter().enumerate().map(|(at, op)| ((op.life, op.op), at)).collect();
    let mut marks = Vec::new();
    for line in registers {
        let guard = word(&line.guard);
        let mark = match (line.answer, line.step) {
            (Verdict::Stale, _) => Some((Sort::Refused, format!("the {guard} register of `{}` refused it", line.lock))),
            (Verdict::Done, Step::Write) => {
                let before = values.insert((&line.lock, line.guard), line.value).unwrap_or_default();
                let said =
                    format!("the {guard} register of `{}` had {before} and was set to {}", line.lock, line.value);
                (line.value <= before).then_some((Sort::Overwritten, said))
            }
            _ => None,
        };
        let Some((sort, said)) = mark else { continue };
        if let Some(at) = index.get(&(line.life, line.op)) {
            ops[*at].marked = true;
        }
        marks.push((
            line.life.worker,
            Mark { at: line.at, sort, said: format!("{} op {}: {said}", line.life, line.op) },
        ));
    }
    marks
}

/// Holders that were told that they hold no longer.
fn told(ops: &[Op]) -> Vec<Marked> {
    let lost = ops.iter().filter(|op| op.lost);
    let mark = |op: &Op| Mark { at: op.ended, sort: Sort::Lost, said: format!("{} op {} {}", op.life, op.op, op.how) };
    lost.map(|op| (op.life.worker, mark(op))).collect()
}

fn deaths(faults: &[Fault]) -> Vec<Marked> {
    let mark =
        |(life, at): (Life, u64)| (life.worker, Mark { at, sort: Sort::Killed, said: format!("{life} is killed") });
    kills(faults).into_iter().map(mark).collect()
}

/// The times in which something hurt; what was never healed hurts until the end.
fn windows(faults: &[Fault], scale: &Scale, all: &mut Vec<Window>, lanes: &mut BTreeMap<u32, Lane>) {
    let healed = |fault: &Fault| match fault {
        Fault::Healed { at, id } => Some((*id, *at)),
        Fault::Hurt { .. } => None,
    };
    let healed: HashMap<u64, u64> = faults.iter().filter_map(healed).collect();
    for fault in faults {
        let Fault::Hurt { at, id, nemesis, on, .. } = fault else { continue };
        let to = healed.get(id).copied().unwrap_or(scale.end);
        let whom = match on {
            On::Worker { life } => life.to_string(),
            On::Node { node } => format!("node {node}"),
            On::Connections => "connections".to_owned(),
        };
        let window = Window { from: scale.of(*at), to: scale.of(to), said: format!("{} {whom}", word(nemesis)) };
        match on {
            On::Worker { life } => lanes.entry(life.worker).or_default().windows.push(window),
            On::Node { .. } | On::Connections => all.push(window),
        }
    }
}

/// Puts the acquisitions into rows, and the most telling of them into the drawing. Says how many are not.
fn bars(ops: &[Op], scale: &Scale, locks: &[String], lanes: &mut BTreeMap<u32, Lane>) -> u64 {
    let mut rows: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut placed = Vec::with_capacity(ops.len());
    for op in ops {
        let free = rows.entry(op.life.worker).or_default();
        let row = free.iter().position(|until| *until <= op.asked).unwrap_or(free.len());
        match free.get_mut(row) {
            Some(until) => *until = op.ended,
            None => free.push(op.ended),
        }
        placed.push((op, row));
    }
    for (worker, rows) in rows {
        lanes.entry(worker).or_default().rows = rows.len();
    }
    placed
        .sort_by_key(|(op, _)| (Reverse(op.marked || op.lost), Reverse(op.ended - op.asked), op.asked, op.life, op.op));
    let left_out = placed.len().saturating_sub(DRAWN) as u64;
    placed.truncate(DRAWN);
    placed.sort_by_key(|(op, _)| (op.asked, op.life, op.op));
    for (op, row) in placed {
        let lock = op.locks.first().and_then(|name| locks.iter().position(|lock| lock == name)).unwrap_or_default();
        let bar = Bar {
            row,
            asked: scale.of(op.asked),
            held: op.held.map(|held| scale.of(held)),
            ended: scale.of(op.ended),
            lock,
            said: op.said(),
        };
        lanes.entry(op.life.worker).or_default().bars.push(bar);
    }
    left_out
}

impl Op {
    fn said(&self) -> String {
        let until = self.held.unwrap_or(self.ended);
        let waited = span_us(until.saturating_sub(self.asked) / 1_000);
        let held = match self.held {
            Some(held) => format!(", held for {}", span_us(self.ended.saturating_sub(held) / 1_000)),
            None => String::new(),
        };
        let token = self.token.as_ref().map(|token| format!("\ntoken {token}")).unwrap_or_default();
        format!("{} op {} of {}\nwaited {waited}{held}, {}{token}", self.life, self.op, self.locks.join(", "), self.how)
    }
}

#[cfg(test)]
mod tests;
