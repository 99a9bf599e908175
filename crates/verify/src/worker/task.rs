//! One task of a worker: a round is one acquisition, the registers it protects, and its release.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::mutants::{self, Mutant};
use lockkeeper::{Effect, Hold, Keeper, Owner};
use lockkeeper_rig::Trouble;

use super::Worker;
use super::cells::Cells;
use super::dice::dice;
use super::grip::{Grip, PERMITS, Want};
use super::how::watched;
use crate::history::write::now;
use crate::history::{Asked, By, Event, Guard, LockKind, Step, Verdict, Written};
use crate::plan::{Plan, Work};
use crate::registers::{Answer, Ask, Client};

/// How often somebody who dwells asks itself whether it holds.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// Goes round and round until it is over.
pub(super) async fn run(worker: &Arc<Worker>, keeper: &Keeper, number: u32) {
    let life = worker.orders.life;
    let made = Client::connect(&worker.orders.socket, life)
        .map_err(|error| Trouble::new(format!("the registers cannot be reached: {error}")))
        .and_then(|client| Ok((client, Owner::new(&format!("{life} task {number}")).map_err(|e| super::told(&e))?)));
    let (registers, owner) = match made {
        Ok(made) => made,
        Err(trouble) => return worker.fail(trouble),
    };
    let plan = &worker.orders.plan;
    let dice = dice(plan.seed, life, number);
    let mut task = Task { worker, keeper, plan, owner, registers, dice, cells: Cells::default(), asked: 0, held: 0 };
    while !worker.is_over() {
        if let Err(error) = task.round().await {
            // Whoever keeps the registers is gone, and with it the sense of going on.
            return worker.fail(Trouble::new(format!("the registers are gone: {error}")));
        }
    }
}

struct Task<'a> {
    worker: &'a Arc<Worker>,
    keeper: &'a Keeper,
    plan: &'a Plan,
    owner: Owner,
    registers: Client,
    dice: fastrand::Rng,
    cells: Cells,
    asked: u64,
    held: u64,
}

/// One register in one round.
struct At<'a> {
    op: u64,
    lock: &'a str,
    token: Option<u64>,
    guard: Guard,
}

impl Task<'_> {
    async fn round(&mut self) -> io::Result<()> {
        if self.plan.work == Work::Mutex
            && self.dice.u8(..10) == 0
            && let Some(called) = self.cells.call(self.keeper, self.plan, &mut self.dice).await
        {
            self.worker.note(&called);
        }
        if self.plan.work == Work::Nothing {
            self.round_without_lock()?;
        } else {
            let want = self.want();
            let op = self.worker.next_op();
            match self.take(&want, op, false).await {
                Some(grip) => self.round_with(&want, op, grip).await?,
                None => std::thread::sleep(Duration::from_millis(self.dice.u64(2..12))),
            }
        }
        self.registers.tell(self.asked, self.held)
    }

    /// What this round is for.
    fn want(&mut self) -> Want {
        let locks = self.plan.locks.max(1);
        let first = self.dice.u32(..locks);
        let mut names = vec![self.plan.lock(first)];
        if self.plan.work == Work::Multi && locks > 1 {
            names.push(self.plan.lock((first + self.dice.u32(1..locks)) % locks));
        }
        let kind = match self.plan.work {
            Work::ReadWrite if self.dice.u8(..3) > 0 => LockKind::Read,
            Work::ReadWrite => LockKind::Write,
            Work::Semaphore => LockKind::Permit { of: PERMITS },
            Work::Mutex | Work::Multi | Work::Reentrant | Work::Nothing => LockKind::Mutex,
        };
        let owner = (self.plan.work == Work::Reentrant).then(|| self.owner.clone());
        Want { locks: names, kind, owner, waits: self.dice.u8(..20) > 0 }
    }

    /// Asks for the lock, and writes down what came of it.
    async fn take(&mut self, want: &Want, op: u64, again: bool) -> Option<Grip> {
        self.asked += 1;
        let at = now();
        for lock in &want.locks {
            self.worker.note(&Event::Asked(Asked { at, op, lock: lock.clone(), kind: want.kind, again }));
        }
        let (taken, seen) = watched(want.take(self.keeper, self.plan)).await;
        let at = now();
        match taken {
            Ok(Some(grip)) => {
                self.held += 1;
                for hold in grip.holds() {
                    // One that comes in again asks nobody.
                    let by = if again { By::Asking } else { seen.how(hold.claim_id()) };
                    self.worker.note(&Event::Held {
                        at,
                        op,
                        lock: (want.locks.len() > 1).then(|| hold.name().to_string()),
                        claim: hold.claim_id().to_string(),
                        token: hold.token().map(|token| token.to_string()),
                        deadline: hold.deadline().as_nanos(),
                        by,
                    });
                }
                Some(grip)
            }
            Ok(None) => {
                self.worker.note(&Event::NotHeld { at, op, unknown: false, why: "busy".to_owned() });
                None
            }
            Err(error) => {
                let (unknown, why) = (error.effect() == Effect::Unknown, error.kind().as_str().to_owned());
                self.worker.note(&Event::NotHeld { at, op, unknown, why });
                None
            }
        }
    }

    async fn round_with(&mut self, want: &Want, op: u64, grip: Grip) -> io::Result<()> {
        let watchers: Vec<_> = grip.holds().iter().map(|hold| self.tell_when_lost(op, hold)).collect();
        if want.owner.is_some() {
            self.come_in_again(want).await;
        }
        self.look(op, &grip);
        let done = self.at_registers(want, op, &grip);
        if done.is_ok() {
            self.look(op, &grip);
        }
        for watcher in watchers {
            watcher.abort();
        }
        self.leave(op, grip).await;
        done
    }

    /// Says so at the moment it is told, while the work goes on: what that does to the bare register is what is shown.
    fn tell_when_lost(&self, op: u64, hold: &Hold) -> tokio::task::JoinHandle<()> {
        let (worker, lost) = (self.worker.clone(), hold.lost());
        tokio::spawn(async move {
            let why = lost.await.to_string();
            worker.note(&Event::Lost { at: now(), op, why });
        })
    }

    /// The inner hold is released first; the outer one has to stand.
    async fn come_in_again(&mut self, want: &Want) {
        let op = self.worker.next_op();
        if let Some(inner) = self.take(want, op, true).await {
            self.look(op, &inner);
            self.leave(op, inner).await;
        }
    }

    async fn leave(&self, op: u64, grip: Grip) {
        let sent = now();
        let answer = grip.release().await.to_owned();
        self.worker.note(&Event::Left { sent, at: now(), op, answer });
    }

    /// Asks itself whether it holds, and writes that down.
    fn look(&self, op: u64, grip: &Grip) -> bool {
        let at = now();
        let held = grip.is_held();
        self.worker.note(&Event::Seen { at, op, held });
        held
    }

    fn at_registers(&mut self, want: &Want, op: u64, grip: &Grip) -> io::Result<()> {
        if let LockKind::Permit { .. } = want.kind {
            self.registers.inside()?; // several are: there is no register that they could share
            self.dwell();
            return Ok(());
        }
        for hold in grip.holds() {
            let token = hold.token().map(|token| token.as_u64());
            for guard in self.guards(token.is_some()) {
                let at = At { op, lock: hold.name().as_str(), token, guard };
                if want.kind == LockKind::Read {
                    self.read(&at)?;
                } else {
                    self.change(&at, |task| task.look(op, grip))?;
                }
            }
        }
        Ok(())
    }

    /// Those that can be used, in an order drawn by lot.
    fn guards(&mut self, fenced: bool) -> Vec<Guard> {
        let mut guards = vec![Guard::Bare, Guard::Deadline];
        if fenced {
            guards.extend([Guard::FencedWrites, Guard::Fenced]);
        }
        self.dice.shuffle(&mut guards);
        guards
    }

    fn read(&mut self, at: &At<'_>) -> io::Result<()> {
        self.step(at, entry(at.guard), true, 0)?;
        self.dwell();
        Ok(())
    }

    /// Reads a register, dwells, and writes one more.
    fn change(&mut self, at: &At<'_>, still_held: impl Fn(&Self) -> bool) -> io::Result<()> {
        let entered = self.step(at, entry(at.guard), false, 0)?;
        let mut event = (now(), Written::Stale);
        if entered.answer == Verdict::Done {
            self.dwell_looking(&still_held);
            let withheld = at.guard == Guard::Deadline && !still_held(self);
            event = (now(), Written::Withheld);
            if !withheld {
                let written = self.write(at, entered.value + 1);
                event.1 = match written {
                    Ok(Answer { answer: Verdict::Done, .. }) => Written::Done,
                    Ok(Answer { answer: Verdict::Stale, .. }) => Written::Stale,
                    Err(_) => Written::Unknown,
                };
            }
        }
        let ((sent, answer), read) = (event, entered.value);
        let (op, lock, guard) = (at.op, at.lock.to_owned(), at.guard);
        self.worker.note(&Event::Wrote { sent, at: now(), op, lock, guard, read, answer });
        if answer == Written::Unknown { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn write(&mut self, at: &At<'_>, value: u64) -> io::Result<Answer> {
        if at.guard == Guard::Fenced && mutants::on(Mutant::WriteOnlyFence) {
            let entered = self.step(at, Step::Enter, false, 0)?;
            if entered.answer == Verdict::Stale {
                return Ok(entered);
            }
        }
        self.step(at, Step::Write, false, value)
    }

    fn step(&mut self, at: &At<'_>, step: Step, shared: bool, value: u64) -> io::Result<Answer> {
        let &At { op, lock, token, guard } = at;
        // A token is of no use where nobody looks at it.
        let token = token.filter(|_| matches!(guard, Guard::FencedWrites | Guard::Fenced));
        self.registers.ask(Ask { lock: lock.to_owned(), guard, op, step, shared, token, value })
    }

    /// The control: the registers can lose, and do where nobody holds anything.
    fn round_without_lock(&mut self) -> io::Result<()> {
        let lock = self.plan.lock(self.dice.u32(..self.plan.locks.max(1)));
        let op = self.worker.next_op();
        let at = now();
        self.worker.note(&Event::Asked(Asked { at, op, lock: lock.clone(), kind: LockKind::Mutex, again: false }));
        let claim = format!("{:032x}", self.dice.u128(..));
        let deadline = at + self.plan.lease_ms * 1_000_000;
        self.worker.note(&Event::Held { at, op, lock: None, claim, token: None, deadline, by: By::Asking });
        self.asked += 1;
        self.held += 1;
        for guard in self.guards(false) {
            self.change(&At { op, lock: &lock, token: None, guard }, |_| true)?;
        }
        let sent = now();
        self.worker.note(&Event::Left { sent, at: now(), op, answer: "released".to_owned() });
        Ok(())
    }

    /// A thread may sleep: it is this task's own.
    fn dwell(&mut self) {
        std::thread::sleep(self.dwells());
    }

    /// The same; who dwells for long asks itself now and then whether it still holds, or nobody would know what it believed.
    fn dwell_looking(&mut self, look: &impl Fn(&Self) -> bool) {
        let mut left = self.dwells();
        while left > LOOKS_EVERY {
            std::thread::sleep(LOOKS_EVERY);
            left -= LOOKS_EVERY;
            look(self);
        }
        std::thread::sleep(left);
    }

    fn dwells(&mut self) -> Duration {
        let think = self.plan.think_us;
        Duration::from_micros(self.dice.u64(think / 2..=think + think / 2))
    }
}

/// How a register is read before it is written.
fn entry(guard: Guard) -> Step {
    match guard {
        Guard::Fenced if !mutants::on(Mutant::WriteOnlyFence) => Step::Enter,
        _ => Step::Read,
    }
}
