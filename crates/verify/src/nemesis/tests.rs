//! Tests of the nemesis: each fault really hurts, is seen to by somebody who is not told, and is over when it says so.

mod faults;

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, Once, mpsc};
use std::thread;

use super::schedule::{Deed, Schedule};
use super::*;
use crate::arena::Arena;
use crate::history::Fault;
use crate::plan::{MadeOf, Plan, Promised, Work};

/// Did anybody ask for servers? If not, that is said aloud.
pub(crate) fn servers_wanted() -> bool {
    static ONCE: Once = Once::new();
    let wanted = lockkeeper_rig::wanted();
    if !wanted {
        // To the stream itself: the test harness swallows `eprintln!`.
        let line = "\nNOT RUN: tests of verify with a real redis; `cargo xtask test` runs them\n";
        ONCE.call_once(|| drop(writeln!(std::io::stderr(), "{line}")));
    }
    wanted
}

/// A plan for a run that does this.
pub(crate) fn plan(nemesis: &[Nemesis], lease_ms: u64) -> Plan {
    Plan {
        target: "sqlite".to_owned(),
        nemesis: nemesis.to_vec(),
        work: Work::Mutex,
        for_ms: 1_000,
        seed: 7,
        workers: 2,
        tasks: 1,
        locks: 1,
        lease_ms,
        delay_ms: 0,
        think_us: 1_000,
        every_ms: None,
        mutant: None,
        store: Promised {
            scheme: "sqlite".to_owned(),
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
        made_of: MadeOf { lockkeeper: "0".to_owned(), commit: None, server: None, began: "never".to_owned() },
    }
}

/// For so long nobody waits here, neither the schedule nor a client.
const AGES: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(10);

fn worker(worker: u32) -> Life {
    Life { worker, life: 0 }
}

/// Two workers that are none, and all that was done to them.
#[derive(Default)]
struct Fake {
    /// Who holds, once it was asked for so often in vain.
    holds: Option<(Life, u32)>,
    /// The first that seems to hold is the other one, which has left before it can be stopped.
    leaves: bool,
    asked: AtomicU32,
    done: Mutex<Vec<String>>,
}

impl Fake {
    fn did(&self, what: String) {
        self.done.lock().unwrap().push(what);
    }

    fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.done.lock().unwrap())
    }
}

impl Workers for Fake {
    fn alive(&self) -> Vec<Life> {
        vec![worker(0), worker(1)]
    }

    fn holder(&self) -> Option<Life> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        if self.leaves && asked == 0 {
            return Some(worker(0));
        }
        // Nobody comes in before the one that was stopped goes on.
        if self.leaves && !self.done.lock().unwrap().iter().any(|done| done.starts_with("go on")) {
            return None;
        }
        self.holds.filter(|(_, after)| asked >= *after).map(|(life, _)| life)
    }

    fn kill(&self, life: Life) {
        self.did(format!("kill {life}"));
    }

    fn stop(&self, life: Life) {
        self.did(format!("stop {life}"));
    }

    fn go_on(&self, life: Life) {
        self.did(format!("go on {life}"));
    }

    fn step_clock(&self, life: Life, ahead: Duration, behind: bool) -> Option<()> {
        self.did(format!("step {life} {}{ahead:?}", if behind { '-' } else { '+' }));
        Some(())
    }
}

/// Ends a fault also when the test that looks at it fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Does it, lets somebody look while it hurts, ends the run, and sees that it heals at once although it was to take ages.
fn while_hurt(arena: &mut Arena, workers: &Fake, deed: &Deed, look: impl FnOnce()) {
    let ended = AtomicBool::new(false);
    let (sender, faults) = mpsc::channel();
    thread::scope(|scope| {
        let ending = Ending(&ended);
        let fight = scope.spawn(|| {
            let ended = || ended.load(Ordering::SeqCst);
            let mut note = move |fault| sender.send(fault).unwrap();
            arena.battle(workers, &ended, &mut note).act(deed)
        });
        let began = match faults.recv_timeout(SOON).expect("it hurts") {
            Fault::Hurt { at, id: 0, nemesis, .. } if nemesis == deed.nemesis() => at,
            other => panic!("{other:?}"),
        };
        look();
        drop(ending);
        match faults.recv_timeout(2 * SOON).expect("it heals") {
            Fault::Healed { at, id: 0 } => assert!(at >= began),
            other => panic!("{other:?}"),
        }
        fight.join().unwrap().unwrap();
        assert!(faults.recv().is_err(), "and that is all");
    });
}

fn on_a_file() -> (tempfile::TempDir, Arena) {
    let folder = tempfile::tempdir().unwrap();
    let arena = Arena::start("sqlite", &[], folder.path()).unwrap();
    (folder, arena)
}

#[test]
fn a_schedule_from_one_seed_is_the_same_twice() {
    let lease = Duration::from_secs(2);
    let draw = |seed| Schedule::new(seed, &ALL, lease, None).take(200).collect::<Vec<_>>();
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    assert_eq!(Schedule::new(7, &[], lease, None).next(), None);
    for (act, nemesis) in draw(7).iter().zip(ALL.into_iter().cycle()) {
        assert_eq!(act.deed.nemesis(), nemesis, "each in its turn");
        assert!(act.calm > lease && act.calm < 2 * lease + Duration::from_secs(1));
    }
}

#[test]
fn where_servers_are_killed_often_they_are_up_again_in_time() {
    let (lease, every) = (Duration::from_secs(10), Duration::from_secs(3));
    let downs = Schedule::new(7, &[Nemesis::KillStore], lease, Some(every)).take(40).map(|act| match act.deed {
        Deed::KillStore { down } => down,
        other => panic!("{other:?}"),
    });
    let downs: Vec<Duration> = downs.collect();
    assert!(downs.iter().all(|down| *down <= every / 2) && downs.iter().any(|down| !down.is_zero()), "{downs:?}");
}

#[test]
fn what_is_stopped_is_stopped_for_longer_than_a_lease_and_all_is_done_in_both_ways() {
    let lease = Duration::from_secs(2);
    let (mut at_once, mut later, mut short, mut long, mut ahead, mut back) = (0, 0, 0, 0, 0, 0);
    for act in Schedule::new(7, &ALL, lease, None).take(13 * 20) {
        match act.deed {
            Deed::PauseWorker { lasts, .. } | Deed::PauseHolder { lasts } | Deed::PauseStore { lasts } => {
                assert!(lasts > lease && lasts <= lease * 5 / 2);
            }
            Deed::KillStore { down: wait } | Deed::Cut { shut: wait } => {
                assert!(wait <= lease * 3 / 2);
                *if wait.is_zero() { &mut at_once } else { &mut later } += 1;
            }
            Deed::Delay { there, back, lasts } => {
                assert!(lasts >= there + back);
                *if there + back > lease { &mut long } else { &mut short } += 1;
            }
            Deed::StepClient { behind, .. } => *if behind { &mut back } else { &mut ahead } += 1,
            Deed::HalfOpen { lasts } | Deed::LoseReplies { lasts } => assert!(lasts <= 2 * lease),
            _ => {}
        }
    }
    for count in [at_once, later, short, long, ahead, back] {
        assert!(count >= 10, "{count}");
    }
}

#[test]
fn a_worker_is_killed_stopped_and_its_clock_stepped() {
    let (_folder, mut arena) = on_a_file();
    let fake = Fake::default();
    while_hurt(&mut arena, &fake, &Deed::KillWorker { lot: 5 }, || {});
    assert_eq!(fake.done(), ["kill worker 1.0"]);
    while_hurt(&mut arena, &fake, &Deed::PauseWorker { lot: 4, lasts: AGES }, || {
        assert_eq!(fake.done(), ["stop worker 0.0"]);
    });
    assert_eq!(fake.done(), ["go on worker 0.0"]);
    let step = Deed::StepClient { lot: 1, by: Duration::from_secs(3_600), behind: true, lasts: AGES };
    while_hurt(&mut arena, &fake, &step, || assert_eq!(fake.done(), ["step worker 1.0 -3600s"]));
    assert_eq!(fake.done(), ["step worker 1.0 +0ns"]);
}

#[test]
fn the_holder_is_waited_for_and_hit() {
    let (_folder, mut arena) = on_a_file();
    let fake = || Fake { holds: Some((worker(1), 20)), ..Fake::default() };
    let (kill, pause) = (fake(), fake());
    while_hurt(&mut arena, &kill, &Deed::KillHolder, || {});
    assert_eq!(kill.done(), ["stop worker 1.0", "kill worker 1.0"]);
    while_hurt(&mut arena, &pause, &Deed::PauseHolder { lasts: AGES }, || {
        assert_eq!(pause.done(), ["stop worker 1.0"]);
    });
    assert_eq!(pause.done(), ["go on worker 1.0"]);
    assert_eq!(pause.asked.load(Ordering::SeqCst), 22);
}

#[test]
fn one_that_has_left_before_it_was_stopped_goes_on_and_another_is_hit() {
    let (_folder, mut arena) = on_a_file();
    let fake = Fake { leaves: true, holds: Some((worker(1), 0)), ..Fake::default() };
    while_hurt(&mut arena, &fake, &Deed::KillHolder, || {});
    let done = ["stop worker 0.0", "go on worker 0.0", "stop worker 1.0", "kill worker 1.0"];
    assert_eq!(fake.done(), done);
}

#[test]
fn where_nobody_holds_nobody_is_hit() {
    let (_folder, mut arena) = on_a_file();
    let (fake, mut noted) = (Fake::default(), 0);
    // Over as soon as it was asked for a few times.
    let ended = || fake.asked.load(Ordering::SeqCst) > 3;
    arena.battle(&fake, &ended, &mut |_| noted += 1).act(&Deed::KillHolder).unwrap();
    assert_eq!((noted, fake.done().len()), (0, 0));
}

#[test]
fn a_rampage_takes_turns_and_ends_whole() {
    let (_folder, mut arena) = on_a_file();
    let fake = Fake { holds: Some((worker(0), 0)), ..Fake::default() };
    let faults = Mutex::new(Vec::new());
    let began = std::time::Instant::now();
    let ended = || faults.lock().unwrap().len() >= 5 || began.elapsed() > AGES;
    let plan = plan(&[Nemesis::PauseHolder, Nemesis::KillWorker], 100);
    arena.rampage(&plan, &fake, &ended, &mut |fault| faults.lock().unwrap().push(fault)).unwrap();
    let done = fake.done();
    assert_eq!((done[0].as_str(), done[1].as_str()), ("stop worker 0.0", "go on worker 0.0"));
    assert!(done[2].starts_with("kill worker ") && done[3..] == ["stop worker 0.0", "go on worker 0.0"], "{done:?}");
    let faults = faults.into_inner().unwrap();
    let ids = faults.iter().map(|fault| match fault {
        Fault::Hurt { id, .. } => (*id, true),
        Fault::Healed { id, .. } => (*id, false),
    });
    assert_eq!(ids.collect::<Vec<_>>(), [(0, true), (0, false), (1, true), (1, false), (2, true), (2, false)]);
}

#[test]
fn without_a_nemesis_nothing_happens() {
    let (_folder, mut arena) = on_a_file();
    arena.rampage(&plan(&[], 100), &Fake::default(), &|| false, &mut |fault| panic!("{fault:?}")).unwrap();
}

#[test]
fn what_cannot_be_hurt_is_said() {
    let (_folder, mut arena) = on_a_file();
    let fake = Fake::default();
    for deed in [Deed::KillStore { down: AGES }, Deed::WipeStore { times: 1, apart: AGES }, Deed::Cut { shut: AGES }] {
        let said = arena.battle(&fake, &|| false, &mut |_| {}).act(&deed).unwrap_err().to_string();
        assert!(said.contains(&word(deed.nemesis())), "{said}");
    }
}
