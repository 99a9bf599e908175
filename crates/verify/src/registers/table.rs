//! What the registers hold and how they answer. No sockets in here.

use std::collections::{BTreeMap, HashMap};

use crate::history::{Guard, Life, Step, Verdict};

use super::wire::{Answer, Ask};

/// How far a run is, as the registers see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Questions for locks.
    pub asked: u64,
    /// Of these, held.
    pub held: u64,
    /// Writes that were acknowledged.
    pub written: u64,
    /// Of the bare registers' acknowledged writes, those that are not in their values.
    pub lost_bare: u64,
    /// The same of the fenced ones.
    pub lost_fenced: u64,
}

/// One register.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    value: u64,
    /// Writes that were acknowledged.
    written: u64,
    /// The greatest token that came to write, and to read with others.
    write_mark: u64,
    read_mark: u64,
}

/// All registers, and who is at them.
#[derive(Debug, Default)]
pub(super) struct Table {
    cells: HashMap<(String, Guard), Cell>,
    /// Connections whose last step was a read: their workers are about to write. In the order in which they came, and
    /// with those that hold what has no register.
    inside: Vec<(u64, Life)>,
    /// What each connection told of itself; one that is gone still counts.
    told: BTreeMap<u64, (u64, u64)>,
}

impl Table {
    /// Does a step, and says how it went.
    pub(super) fn step(&mut self, connection: u64, life: Life, ask: &Ask) -> Answer {
        self.forget(connection);
        let cell = self.cells.entry((ask.lock.clone(), ask.guard)).or_default();
        let answer = match ask.step {
            Step::Enter | Step::Read => cell.read(ask),
            Step::Write => cell.write(ask),
        };
        if ask.step != Step::Write && answer.answer == Verdict::Done {
            self.inside.push((connection, life));
        }
        answer
    }

    /// This connection's worker holds a lock that has no register.
    pub(super) fn inside(&mut self, connection: u64, life: Life) {
        self.forget(connection);
        self.inside.push((connection, life));
    }

    /// This connection is not between a read and a write, nor inside of anything else.
    pub(super) fn forget(&mut self, connection: u64) {
        self.inside.retain(|(inside, _)| *inside != connection);
    }

    /// How far this connection's task is.
    pub(super) fn tell(&mut self, connection: u64, asked: u64, held: u64) {
        self.forget(connection);
        self.told.insert(connection, (asked, held));
    }

    /// The one that came last and has not left: it is likely to be there for the longest.
    pub(super) fn holder(&self) -> Option<Life> {
        self.inside.last().map(|(_, life)| *life)
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for (asked, held) in self.told.values() {
            tally.asked += asked;
            tally.held += held;
        }
        for ((_, guard), cell) in &self.cells {
            tally.written += cell.written;
            match guard {
                Guard::Bare => tally.lost_bare += cell.lost(),
                Guard::Fenced => tally.lost_fenced += cell.lost(),
                Guard::Deadline | Guard::FencedWrites => {}
            }
        }
        tally
    }
}

impl Cell {
    /// Every write adds one to what its writer had read, so the value is the number of writes that were not lost.
    fn lost(&self) -> u64 {
        self.written.saturating_sub(self.value)
    }

    fn read(&mut self, ask: &Ask) -> Answer {
        if ask.guard == Guard::Fenced {
            let (token, enters) = (ask.token.unwrap_or(0), ask.step == Step::Enter);
            let mark = if ask.shared { self.write_mark } else { self.write_mark.max(self.read_mark) };
            if token < mark {
                return Answer { answer: Verdict::Stale, value: 0 };
            }
            match (enters, ask.shared) {
                (true, true) => self.read_mark = self.read_mark.max(token),
                (true, false) => self.write_mark = self.write_mark.max(token),
                (false, _) => {}
            }
        }
        Answer { answer: Verdict::Done, value: self.value }
    }

    fn write(&mut self, ask: &Ask) -> Answer {
        let token = ask.token.unwrap_or(0);
        let mark = match ask.guard {
            Guard::Bare | Guard::Deadline => 0,
            Guard::FencedWrites => self.write_mark,
            Guard::Fenced => self.write_mark.max(self.read_mark),
        };
        if token < mark {
            return Answer { answer: Verdict::Stale, value: ask.value };
        }
        if ask.guard == Guard::FencedWrites {
            self.write_mark = token;
        }
        self.value = ask.value;
        self.written += 1;
        Answer { answer: Verdict::Done, value: ask.value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life = Life { worker: 0, life: 0 };

    fn ask(guard: Guard, step: Step, token: u64, value: u64) -> Ask {
        Ask { lock: "l".to_owned(), guard, op: 0, step, shared: false, token: Some(token), value }
    }

    fn done(value: u64) -> Answer {
        Answer { answer: Verdict::Done, value }
    }

    fn stale(value: u64) -> Answer {
        Answer { answer: Verdict::Stale, value }
    }

    #[test]
    fn a_bare_register_takes_everything_and_counts_what_was_lost() {
        let mut table = Table::default();
        for (connection, token) in [(1, 7), (2, 5)] {
            assert_eq!(table.step(connection, LIFE, &ask(Guard::Bare, Step::Read, token, 0)), done(0));
        }
        for (connection, token) in [(1, 7), (2, 5)] {
            assert_eq!(table.step(connection, LIFE, &ask(Guard::Bare, Step::Write, token, 1)), done(1));
        }
        assert_eq!(table.tally(), Tally { written: 2, lost_bare: 1, ..Tally::default() });
    }

    #[test]
    fn a_stale_write_back_loses_all_that_came_between() {
        let mut table = Table::default();
        for value in 1..=5 {
            table.step(1, LIFE, &ask(Guard::Bare, Step::Write, 0, value));
        }
        table.step(2, LIFE, &ask(Guard::Bare, Step::Write, 0, 1));
        assert_eq!(table.tally().lost_bare, 5);
    }

    #[test]
    fn fenced_writes_look_at_writes_only() {
        let mut table = Table::default();
        let guard = Guard::FencedWrites;
        assert_eq!(table.step(1, LIFE, &ask(guard, Step::Write, 9, 1)), done(1));
        assert_eq!(table.step(2, LIFE, &ask(guard, Step::Read, 3, 0)), done(1));
        assert_eq!(table.step(2, LIFE, &ask(guard, Step::Write, 8, 2)), stale(2));
        assert_eq!(table.step(1, LIFE, &ask(guard, Step::Write, 9, 2)), done(2));
    }

    #[test]
    fn a_fence_that_was_entered_later_refuses_reads_and_writes() {
        let mut table = Table::default();
        let guard = Guard::Fenced;
        assert_eq!(table.step(1, LIFE, &ask(guard, Step::Enter, 5, 0)), done(0));
        assert_eq!(table.step(2, LIFE, &ask(guard, Step::Enter, 6, 0)), done(0));
        assert_eq!(table.step(1, LIFE, &ask(guard, Step::Write, 5, 1)), stale(1));
        assert_eq!(table.step(1, LIFE, &ask(guard, Step::Enter, 5, 0)), stale(0));
        assert_eq!(table.step(2, LIFE, &ask(guard, Step::Write, 6, 1)), done(1));
        assert_eq!(table.step(2, LIFE, &ask(guard, Step::Write, 6, 2)), done(2), "equal passes");
    }

    #[test]
    fn readers_share_a_fence_and_keep_older_writers_out() {
        let mut table = Table::default();
        let read = |token| Ask { shared: true, ..ask(Guard::Fenced, Step::Enter, token, 0) };
        let write = |token| ask(Guard::Fenced, Step::Enter, token, 0);
        assert_eq!(table.step(1, LIFE, &read(8)), done(0));
        assert_eq!(table.step(2, LIFE, &read(7)), done(0), "an older reader shares it");
        assert_eq!(table.step(3, LIFE, &write(6)), stale(0));
        assert_eq!(table.step(3, LIFE, &write(9)), done(0));
        assert_eq!(table.step(1, LIFE, &read(8)), stale(0));
    }

    #[test]
    fn the_holder_is_who_read_and_has_not_written() {
        let mut table = Table::default();
        let (first, second) = (LIFE, Life { worker: 1, life: 3 });
        assert_eq!(table.holder(), None);
        table.step(1, first, &ask(Guard::Bare, Step::Read, 0, 0));
        table.step(2, second, &ask(Guard::Deadline, Step::Read, 0, 0));
        assert_eq!(table.holder(), Some(second));
        table.step(2, second, &ask(Guard::Deadline, Step::Write, 0, 1));
        assert_eq!(table.holder(), Some(first));
        table.forget(1);
        assert_eq!(table.holder(), None);
        table.inside(2, second);
        assert_eq!(table.holder(), Some(second));
        table.tell(2, 1, 1);
        assert_eq!(table.holder(), None);
    }
}
