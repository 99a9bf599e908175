//! What a store promises under a fault, as a table by facts: `docs/promises.md` for the checks.
//!
//! | what the fault does | faults | the lock | so these may fail, and are reported |
//! |---|---|---|---|
//! | nothing that a lock may notice | a client killed or its clock stepped; slow or lost replies; a durable server killed, also the one that leads a cluster | holds | none |
//! | a holder loses touch, and knows | a client stopped; the way cut or half-open; a server stopped, also the one that leads a cluster | passes on | what is not fenced |
//! | the server ends a hold early | the leader of a cluster of old etcds stopped, and back | passes on | also beliefs |
//! | the server forgets | its data wiped; killed without having written | passes on | also beliefs, cells and counters |
//! | the server's time moves | its wall clock stepped, if it lives by that | passes on | also beliefs, cells, counters, and how long it takes |
//! | it forgets *and* its time moves | both in one run | breaks | all but that everybody is answered |
//! | the store goes with its process | any worker of `memory:` killed | breaks | the same |
//!
//! Surprise: a stopped client must not *believe* anything false, for its clock fires before any call of the hold succeeds;
//! only what it does without asking itself goes wrong. And a store without tokens has nothing to fence with, so what
//! passes on with tokens breaks without.

use crate::judgement::Promise;
use crate::plan::{Nemesis, Plan, Promised};

/// What a fault does to a store's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Does {
    /// Nothing that a lock may notice, but that it cannot be had for a while.
    Nothing,
    /// A holder cannot keep its hold, and knows it in time.
    LosesTouch,
    /// The server ends holds that it has kept alive, while holders believe it.
    EndsEarly,
    /// The server forgets what it answered, while holders believe it.
    Forgets,
    /// The server's time moves: what it keeps ends early or late.
    MovesTime,
    /// Nothing of it is left.
    Ends,
}

/// What may be asked of a run: what does not keep to it has failed, and what was not promised is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// What the lock keeps.
    pub promise: Promise,
    /// Who believes that it holds is right.
    pub beliefs: bool,
    /// Cells and counters keep what was answered.
    pub cells: bool,
    /// What nobody holds any more is free in time.
    pub on_time: bool,
}

/// What a check asks of a store: each stands for a column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// That the run itself is sound: always.
    Soundness,
    /// That who believes to hold does.
    Belief,
    /// That nothing is lost without a fence.
    Unfenced,
    /// That nothing is lost behind a fence, and tokens are in order.
    Fenced,
    /// That nothing stays for longer than it may.
    Promptness,
    /// That cells and counters keep what was answered.
    Cells,
}

impl Expected {
    /// Is this promised?
    pub fn keeps(&self, asks: Asks) -> bool {
        match asks {
            Asks::Soundness => true,
            Asks::Belief => self.beliefs,
            Asks::Unfenced => self.promise == Promise::Holds,
            Asks::Fenced => self.promise != Promise::Breaks,
            Asks::Promptness => self.on_time,
            Asks::Cells => self.cells,
        }
    }
}

/// What may be asked of a run under all the faults of its plan together.
pub fn expected(plan: &Plan) -> Expected {
    let all: Vec<Does> = plan.nemesis.iter().map(|nemesis| does(&plan.store, *nemesis)).collect();
    let any = |does: Does| all.contains(&does);
    let breaks = any(Does::Ends) || (any(Does::Forgets) && any(Does::MovesTime));
    let passes_on = all.iter().any(|does| *does != Does::Nothing);
    let promise = match (breaks, passes_on) {
        (true, _) => Promise::Breaks,
        // There is nothing to fence with.
        (false, true) if !plan.store.tokens => Promise::Breaks,
        (false, true) => Promise::PassesOn,
        (false, false) => Promise::Holds,
    };
    let remembers = !breaks && !any(Does::Forgets) && !any(Does::MovesTime);
    let beliefs = remembers && !any(Does::EndsEarly);
    Expected { promise, beliefs, cells: remembers, on_time: !breaks && !any(Does::MovesTime) }
}

/// What the lock itself keeps under one fault.
pub fn promise(store: &Promised, nemesis: Nemesis) -> Promise {
    match does(store, nemesis) {
        Does::Nothing => Promise::Holds,
        Does::Ends => Promise::Breaks,
        Does::LosesTouch | Does::EndsEarly | Does::Forgets | Does::MovesTime if store.tokens => Promise::PassesOn,
        Does::LosesTouch | Does::EndsEarly | Does::Forgets | Does::MovesTime => Promise::Breaks,
    }
}

/// What a fault does to a store, by what is known of it.
pub fn does(store: &Promised, nemesis: Nemesis) -> Does {
    let family = Family::of(&store.scheme);
    match nemesis {
        Nemesis::KillWorker | Nemesis::KillHolder if family == Family::InProcess => Does::Ends,
        Nemesis::KillWorker | Nemesis::KillHolder | Nemesis::StepClient => Does::Nothing,
        Nemesis::PauseWorker | Nemesis::PauseHolder => Does::LosesTouch,
        Nemesis::PauseStore if store.quorum && store.ends_early => Does::EndsEarly,
        Nemesis::Cut | Nemesis::HalfOpen | Nemesis::PauseStore => Does::LosesTouch,
        Nemesis::Delay | Nemesis::LoseReplies => Does::Nothing,
        Nemesis::KillStore if family == Family::InProcess => Does::Ends,
        // There is no server to kill, and what the killed process wrote is with the kernel. Of a cluster the leader is
        // killed: another one takes over with all that was answered, and gives every lease its full length once more.
        Nemesis::KillStore if family == Family::File || store.durable => Does::Nothing,
        Nemesis::KillStore => Does::Forgets,
        Nemesis::WipeStore if family == Family::InProcess => Does::Ends,
        Nemesis::WipeStore => Does::Forgets,
        Nemesis::StepStore if family == Family::WallClock => Does::MovesTime,
        Nemesis::StepStore => Does::Nothing,
    }
}

/// Does a client that is stopped hold up the whole store? One that is stopped in the middle of a change to a file has locked
/// it, and nobody can change anything until it goes on.
pub fn stops_with_its_clients(store: &Promised) -> bool {
    Family::of(&store.scheme) == Family::File
}

/// Stores that are alike in what they live by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// In the memory of the process that uses it.
    InProcess,
    /// A file, and the kernel's clock.
    File,
    /// A server whose leases end by its wall clock. One that nobody has told us about is taken for such.
    WallClock,
    /// A server that counts the time itself.
    Monotonic,
}

impl Family {
    fn of(scheme: &str) -> Self {
        // `redis+cluster` is of the family of `redis`.
        match scheme.split('+').next().unwrap_or(scheme) {
            "memory" => Family::InProcess,
            "sqlite" => Family::File,
            "etcd" | "etcds" | "zk" | "memcached" => Family::Monotonic,
            _ => Family::WallClock,
        }
    }
}

#[cfg(test)]
mod tests {
    use Nemesis::{
        Cut, Delay, HalfOpen, KillHolder, KillStore, KillWorker, LoseReplies, PauseHolder, PauseStore, PauseWorker,
        StepClient, StepStore, WipeStore,
    };

    use super::*;
    use crate::check::sketch::a_plan;

    fn store(scheme: &str, durable: bool) -> Promised {
        Promised { scheme: scheme.to_owned(), durable, ..a_plan().store }
    }

    /// The table of `docs/promises.md`, fault by fault.
    #[test]
    fn the_table_is_that_of_the_docs() {
        use Promise::{Breaks, Holds, PassesOn};
        let columns = [
            store("memory", false),
            store("sqlite", true),
            store("redis", true),
            store("redis+unix", false),
            store("etcd", true),
            Promised { quorum: true, ..store("etcd", true) },
        ];
        let rows = [
            (KillWorker, [Breaks, Holds, Holds, Holds, Holds, Holds]),
            (KillHolder, [Breaks, Holds, Holds, Holds, Holds, Holds]),
            (PauseWorker, [PassesOn; 6]),
            (PauseHolder, [PassesOn; 6]),
            (StepClient, [Holds; 6]),
            (KillStore, [Breaks, Holds, Holds, PassesOn, Holds, Holds]),
            (PauseStore, [PassesOn; 6]),
            (StepStore, [Holds, Holds, PassesOn, PassesOn, Holds, Holds]),
            (WipeStore, [Breaks, PassesOn, PassesOn, PassesOn, PassesOn, PassesOn]),
            (Cut, [PassesOn; 6]),
            (Delay, [Holds; 6]),
            (HalfOpen, [PassesOn; 6]),
            (LoseReplies, [Holds; 6]),
        ];
        for (nemesis, promises) in rows {
            for (store, promised) in columns.iter().zip(promises) {
                assert_eq!(promise(store, nemesis), promised, "{nemesis:?} on {store:?}");
            }
        }
    }

    /// A leader that comes back can end only what another one has kept alive.
    #[test]
    fn only_a_cluster_of_old_etcds_ends_holds_early() {
        let after = |nemesis, quorum, ends_early| {
            let store = Promised { quorum, ends_early, ..store("etcd", true) };
            expected(&Plan { nemesis: vec![nemesis], store, ..a_plan() })
        };
        let early = after(PauseStore, true, true);
        assert_eq!((early.promise, early.beliefs, early.cells, early.on_time), (Promise::PassesOn, false, true, true));
        assert!(after(PauseStore, true, false).beliefs && after(PauseStore, false, true).beliefs);
        assert!(after(KillStore, true, true).beliefs, "one that was killed has forgotten that it led");
    }

    fn of(nemesis: &[Nemesis], durable: bool) -> Expected {
        expected(&Plan { nemesis: nemesis.to_vec(), store: store("redis", durable), ..a_plan() })
    }

    #[test]
    fn the_worst_of_all_faults_counts() {
        assert_eq!(of(&[], true).promise, Promise::Holds);
        assert_eq!(of(&[KillHolder, PauseHolder, Delay], true).promise, Promise::PassesOn);
        assert_eq!(of(&[StepStore, PauseHolder], true).promise, Promise::PassesOn);
        assert_eq!(of(&[KillStore, StepStore], true).promise, Promise::PassesOn);
        assert_eq!(of(&[KillStore, StepStore], false).promise, Promise::Breaks, "data lost and clock set back");
        assert_eq!(of(&[WipeStore, StepStore], true).promise, Promise::Breaks);
    }

    #[test]
    fn without_tokens_nothing_is_fenced() {
        let store = Promised { tokens: false, ..store("memcached", false) };
        let plan = |nemesis| Plan { nemesis: vec![nemesis], store: store.clone(), ..a_plan() };
        assert_eq!(expected(&plan(PauseWorker)).promise, Promise::Breaks);
        assert_eq!(expected(&plan(KillWorker)).promise, Promise::Holds);
        assert!(expected(&plan(PauseWorker)).beliefs, "it is still told in time");
    }

    #[test]
    fn what_is_asked_of_each() {
        let asked = |expected: Expected| {
            [Asks::Soundness, Asks::Belief, Asks::Unfenced, Asks::Fenced, Asks::Promptness, Asks::Cells]
                .map(|asks| expected.keeps(asks))
        };
        assert_eq!(asked(of(&[KillWorker, LoseReplies], true)), [true; 6]);
        // A client that was stopped still knows, and does wrong only what it does without asking.
        assert_eq!(asked(of(&[PauseHolder], true)), [true, true, false, true, true, true]);
        assert_eq!(asked(of(&[KillStore], false)), [true, false, false, true, true, false]);
        assert_eq!(asked(of(&[StepStore], true)), [true, false, false, true, false, false]);
        assert_eq!(asked(of(&[WipeStore, StepStore], true)), [true, false, false, false, false, false]);
    }
}
