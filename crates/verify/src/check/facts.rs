//! The history, put in order once for all checks: acquisitions with everything known of them, lives, and what was hurt when.
//!
//! Surprise: what a worker *believed* ends with the last thing that proves it, not with the first that disproves it. A
//! process that is stopped says nothing, and nobody may conclude from its silence that it went on believing.

use std::collections::HashMap;

use lockkeeper_rig::Trouble;

use super::spans::Spans;
use crate::history::{At, By, Event, Fault, History, Life, LockKind, On};
use crate::plan::{Nemesis, Plan};

/// Nanoseconds of a millisecond.
pub(super) const MS: At = 1_000_000;

/// How many locks can be asked for at once: as many as the library takes.
const NAMES_AT_ONCE: usize = 64;

/// Everything the checks ask for.
pub(super) struct Facts<'h> {
    /// The history itself.
    pub(super) history: &'h History,
    /// Every question for a lock, one for each name, by life and in the order of their lines.
    pub(super) acquisitions: Vec<Acquisition<'h>>,
    /// The names of the locks.
    pub(super) locks: Vec<&'h str>,
    /// What is known of each life, in the history's order.
    pub(super) lives: Vec<LifeFacts>,
    /// What was hurt.
    pub(super) hurts: Vec<Hurt>,
    /// The first question, and the last answer.
    pub(super) ran: (At, At),
    index: HashMap<(Life, u64), Vec<usize>>,
}

/// One question for one lock, and all that came of it.
pub(super) struct Acquisition<'h> {
    /// Whose: the number of its life.
    pub(super) life: usize,
    pub(super) op: u64,
    /// The number of its lock.
    pub(super) lock: usize,
    pub(super) kind: LockKind,
    pub(super) again: bool,
    pub(super) asked: At,
    pub(super) held: Option<Held<'h>>,
    pub(super) not_held: Option<NotHeld<'h>>,
    /// The last time it asked itself and was told yes.
    pub(super) last_seen: Option<At>,
    /// The first time it asked itself and was told no.
    pub(super) first_unseen: Option<At>,
    pub(super) lost: Option<At>,
    pub(super) left: Option<Left<'h>>,
}

/// The answer yes.
#[derive(Clone, Copy)]
pub(super) struct Held<'h> {
    pub(super) at: At,
    pub(super) claim: &'h str,
    pub(super) token: Option<u64>,
    pub(super) deadline: At,
    pub(super) by: By,
}

/// The answer no, or none.
#[derive(Clone, Copy)]
pub(super) struct NotHeld<'h> {
    pub(super) at: At,
    pub(super) unknown: bool,
    pub(super) why: &'h str,
}

/// The release.
#[derive(Clone, Copy)]
pub(super) struct Left<'h> {
    pub(super) sent: At,
    pub(super) at: At,
    pub(super) answer: &'h str,
}

/// One life of a worker.
pub(super) struct LifeFacts {
    pub(super) life: Life,
    /// Its first and its last line.
    pub(super) wrote: (At, At),
    /// Did it end of its own accord?
    pub(super) ended: bool,
    /// When it was killed, noted before that was done.
    pub(super) killed: Option<At>,
    /// When it was stopped.
    pub(super) stopped: Spans,
}

impl LifeFacts {
    /// When it was killed, or else its last line.
    pub(super) fn end(&self) -> At {
        self.killed.unwrap_or(self.wrote.1)
    }
}

/// One thing that was hurt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hurt {
    pub(super) from: At,
    /// When it was done; the same where that takes no time.
    pub(super) done: At,
    /// When it was whole again; the end of everything if that was not written down.
    pub(super) to: At,
    pub(super) nemesis: Nemesis,
}

impl Hurt {
    /// Is it a worker that was stopped?
    pub(super) fn is_a_stop(&self) -> bool {
        matches!(self.nemesis, Nemesis::PauseWorker | Nemesis::PauseHolder)
    }

    /// Is it the store that was hurt, or the way to it?
    pub(super) fn is_the_stores(&self) -> bool {
        use Nemesis::{
            Cut, Delay, HalfOpen, KillHolder, KillStore, KillWorker, LoseReplies, PauseHolder, PauseStore, PauseWorker,
            StepClient, StepStore, WipeStore,
        };
        match self.nemesis {
            KillStore | PauseStore | StepStore | WipeStore | Cut | Delay | HalfOpen | LoseReplies => true,
            KillWorker | KillHolder | PauseWorker | PauseHolder | StepClient => false,
        }
    }
}

impl<'h> Acquisition<'h> {
    /// From when to when it surely believed that it held, with the answer itself.
    ///
    /// An answer that was noted after its own deadline is of a process that stood still in between: its hold was over
    /// before it could believe anything.
    pub(super) fn believed(&self) -> Option<(At, At)> {
        let held = self.held.filter(|held| held.at <= held.deadline)?;
        let released = self.left.filter(|left| left.answer == "released").map(|left| left.sent);
        let end = [self.last_seen, released].into_iter().flatten().fold(held.at, At::max);
        Some((held.at, end))
    }

    /// Did it find out, by its own account, that it had lost what it held?
    pub(super) fn found_lost(&self) -> bool {
        self.lost.is_some() || self.first_unseen.is_some() || self.left.is_some_and(|left| left.answer == "not-held")
    }

    /// When its question was answered; nothing if it never was.
    pub(super) fn answered(&self) -> Option<At> {
        self.held.map(|held| held.at).or(self.not_held.map(|not| not.at))
    }
}

impl<'h> Facts<'h> {
    /// Puts a history in order.
    ///
    /// # Errors
    /// Lines that cannot be of one story: an answer without a question.
    pub(super) fn of(history: &'h History) -> Result<Self, Trouble> {
        let (faults, hurts) = hurts(&history.faults);
        let mut facts = Facts {
            history,
            acquisitions: Vec::new(),
            locks: Vec::new(),
            lives: Vec::with_capacity(history.lives.len()),
            hurts,
            ran: (At::MAX, 0),
            index: HashMap::new(),
        };
        let mut locks = HashMap::new();
        for (number, lived) in history.lives.iter().enumerate() {
            facts.lives.push(life_facts(lived.life, &lived.events, &faults));
            for event in &lived.events {
                facts.take(number, lived.life, event, &mut locks)?;
            }
        }
        if facts.ran.0 > facts.ran.1 {
            facts.ran = (0, 0);
        }
        Ok(facts)
    }

    /// What the run was to do.
    pub(super) fn plan(&self) -> &'h Plan {
        &self.history.plan
    }

    /// The acquisitions of a life by its own number: several for several names.
    pub(super) fn of_op(&self, life: Life, op: u64) -> impl Iterator<Item = &Acquisition<'h>> {
        self.index.get(&(life, op)).into_iter().flatten().map(|&number| &self.acquisitions[number])
    }

    /// Every question once, also one for several names.
    pub(super) fn questions(&self) -> impl Iterator<Item = &Acquisition<'h>> {
        let first = |one: &Acquisition<'h>| self.index.get(&(self.lives[one.life].life, one.op))?.first().copied();
        self.acquisitions
            .iter()
            .enumerate()
            .filter(move |(number, one)| first(one) == Some(*number))
            .map(|(_, one)| one)
    }

    /// The acquisitions that were held, by lock and then by when they were told so.
    pub(super) fn holds_by_lock(&self) -> Vec<Vec<&Acquisition<'h>>> {
        let mut holds: Vec<Vec<_>> = vec![Vec::new(); self.locks.len()];
        for acquisition in self.acquisitions.iter().filter(|acquisition| acquisition.held.is_some()) {
            holds[acquisition.lock].push(acquisition);
        }
        for line in &mut holds {
            line.sort_by_key(|acquisition| acquisition.held.map_or(0, |held| held.at));
        }
        holds
    }

    /// When something was hurt, and for how long after that it may show.
    pub(super) fn hurt_spans(&self, show_for: At, which: impl Fn(&Hurt) -> bool) -> Spans {
        let hurts = self.hurts.iter().filter(|hurt| which(hurt));
        Spans::union(hurts.map(|hurt| (hurt.from, hurt.to.saturating_add(show_for))).collect())
    }

    /// After that long everything that a fault has left is over: lease, lock-delay, what the store takes to notice, 1 s.
    pub(super) fn over_after(&self) -> At {
        let plan = self.plan();
        let ms = plan.lease_ms.saturating_add(plan.delay_ms).saturating_add(plan.store.expiry_slack_ms);
        ms.saturating_add(1_000).saturating_mul(MS)
    }

    /// What a person reads of an acquisition.
    pub(super) fn who(&self, acquisition: &Acquisition<'_>) -> String {
        format!("{} op {}", self.lives[acquisition.life].life, acquisition.op)
    }

    /// What a person reads of a moment: seconds since the first question.
    pub(super) fn when(&self, at: At) -> String {
        match at.checked_sub(self.ran.0) {
            Some(since) => format!("{}.{:06}s", since / 1_000_000_000, since / 1_000 % 1_000_000),
            None => "before the start".to_owned(),
        }
    }

    fn take(
        &mut self,
        life: usize,
        who: Life,
        event: &'h Event,
        locks: &mut HashMap<&'h str, usize>,
    ) -> Result<(), Trouble> {
        match event {
            Event::Began { .. } | Event::Ended { .. } | Event::Called { .. } => {}
            Event::Asked(asked) => {
                let lock = *locks.entry(asked.lock.as_str()).or_insert_with(|| {
                    self.locks.push(&asked.lock);
                    self.locks.len() - 1
                });
                self.ran.0 = self.ran.0.min(asked.at);
                self.ran.1 = self.ran.1.max(asked.at);
                let of_op = self.index.entry((who, asked.op)).or_default();
                if of_op.len() >= NAMES_AT_ONCE {
                    return Err(Trouble::new(format!("op {} of {who} asks for more locks than can be", asked.op)));
                }
                of_op.push(self.acquisitions.len());
                self.acquisitions.push(Acquisition::new(life, lock, asked));
            }
            Event::Held { at, op, lock, claim, token, deadline, by } => {
                let token = token.as_deref().and_then(|token| token.parse().ok());
                let lock = match lock {
                    Some(lock) => Some(*locks.get(lock.as_str()).ok_or_else(|| unasked(who, *op))?),
                    None => None,
                };
                let mut held = Some(Held { at: *at, claim, token, deadline: *deadline, by: *by });
                self.tell(who, *op, |one| {
                    if one.held.is_none() && lock.is_none_or(|lock| lock == one.lock) {
                        one.held = held.take();
                    }
                })?;
                if held.is_some() {
                    return Err(unasked(who, *op));
                }
                self.ran.1 = self.ran.1.max(*at);
            }
            Event::NotHeld { at, op, unknown, why } => {
                let not = NotHeld { at: *at, unknown: *unknown, why };
                self.tell(who, *op, |one| one.not_held = Some(not))?;
                self.ran.1 = self.ran.1.max(*at);
            }
            Event::Seen { at, op, held: true } => {
                self.tell(who, *op, |one| one.last_seen = one.last_seen.max(Some(*at)))?;
            }
            Event::Seen { at, op, held: false } => {
                self.tell(who, *op, |one| one.first_unseen = earliest(one.first_unseen, *at))?;
            }
            Event::Wrote { at, .. } => self.ran.1 = self.ran.1.max(*at),
            Event::Lost { at, op, .. } => {
                self.tell(who, *op, |one| one.lost = earliest(one.lost, *at))?;
            }
            Event::Left { sent, at, op, answer } => {
                let left = Left { sent: *sent, at: *at, answer };
                self.tell(who, *op, |one| one.left = Some(left))?;
                self.ran.1 = self.ran.1.max(*at);
            }
        }
        Ok(())
    }

    /// Tells all acquisitions of an op, of which there must be one.
    fn tell(&mut self, who: Life, op: u64, mut change: impl FnMut(&mut Acquisition<'h>)) -> Result<(), Trouble> {
        let numbers = self.index.get(&(who, op)).ok_or_else(|| unasked(who, op))?;
        numbers.iter().for_each(|&number| change(&mut self.acquisitions[number]));
        Ok(())
    }
}

impl<'h> Acquisition<'h> {
    fn new(life: usize, lock: usize, asked: &crate::history::Asked) -> Self {
        Acquisition {
            life,
            op: asked.op,
            lock,
            kind: asked.kind,
            again: asked.again,
            asked: asked.at,
            held: None,
            not_held: None,
            last_seen: None,
            first_unseen: None,
            lost: None,
            left: None,
        }
    }
}

fn earliest(known: Option<At>, at: At) -> Option<At> {
    Some(known.map_or(at, |known| known.min(at)))
}

fn unasked(who: Life, op: u64) -> Trouble {
    Trouble::new(format!("the history of {who} has an answer in op {op} that nobody asked for"))
        .hint("a history that was changed or cut proves nothing: run it again")
}

/// What was done to workers, and everything that was hurt.
fn hurts(faults: &[Fault]) -> (HashMap<Life, Vec<Hurt>>, Vec<Hurt>) {
    let healed: HashMap<u64, At> = faults
        .iter()
        .filter_map(|fault| match fault {
            Fault::Healed { at, id } => Some((*id, *at)),
            Fault::Hurt { .. } => None,
        })
        .collect();
    let (mut workers, mut all): (HashMap<Life, Vec<Hurt>>, _) = (HashMap::new(), Vec::new());
    for fault in faults {
        let Fault::Hurt { at, done, id, nemesis, on } = fault else { continue };
        let is_a_kill = matches!(nemesis, Nemesis::KillWorker | Nemesis::KillHolder);
        // Somebody who was killed needs no healing, so nobody may have written that down.
        let never = if is_a_kill { *at } else { At::MAX };
        let (done, to) = (done.unwrap_or(*at), healed.get(id).copied().unwrap_or(never));
        let hurt = Hurt { from: *at, done, to, nemesis: *nemesis };
        if let On::Worker { life } = on {
            workers.entry(*life).or_default().push(hurt);
        }
        all.push(hurt);
    }
    (workers, all)
}

fn life_facts(life: Life, events: &[Event], faults: &HashMap<Life, Vec<Hurt>>) -> LifeFacts {
    let faults = faults.get(&life).map_or(&[][..], Vec::as_slice);
    let of = |which: [Nemesis; 2]| faults.iter().filter(move |hurt| which.contains(&hurt.nemesis));
    let stops = of([Nemesis::PauseWorker, Nemesis::PauseHolder]).map(|hurt| (hurt.from, hurt.to));
    let wrote = events.iter().map(Event::moment).fold((At::MAX, 0), |all, at| (all.0.min(at), all.1.max(at)));
    LifeFacts {
        life,
        wrote: if wrote.0 > wrote.1 { (0, 0) } else { wrote },
        ended: events.iter().any(|event| matches!(event, Event::Ended { .. })),
        killed: of([Nemesis::KillWorker, Nemesis::KillHolder]).map(|hurt| hurt.from).min(),
        stopped: Spans::union(stops.collect()),
    }
}
