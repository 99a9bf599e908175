//! `recovers-in-time`, and the figures of it.

use super::assert_finds;
use crate::check::sketch::{Sketch, take};
use crate::history::By;
use crate::judgement::Outcome::{Failed, NotRun, Passed};
use crate::judgement::Recovery;
use crate::plan::Nemesis::KillStore;

/// A server is killed at second 1 and back at second 2; somebody asks at second 1.5 and is in at this moment.
fn in_at(held: u64, quorum: bool) -> Sketch {
    let mut sketch = Sketch::under(&[KillStore]);
    sketch.history.plan.store.quorum = quorum;
    sketch.hold(0, take(0, 10, 100));
    sketch.hurt(KillStore, 1_000, 2_000);
    sketch.hold(1, take(1_500, held, held + 10));
    sketch
}

/// The lease is 2 s and a round takes 6 ms at most, so 3,006 ms are borne besides.
#[test]
fn a_cluster_has_an_election_and_a_server_its_absence() {
    for (quorum, bound) in [(true, 5_006), (false, 4_006)] {
        assert_finds(&in_at(1_000 + bound, quorum), "recovers-in-time", Passed);
        assert_finds(&in_at(1_001 + bound, quorum), "recovers-in-time", Failed);
        let figures = in_at(2_500, quorum).judged().figures.recovery;
        let expected = Recovery { times: 1, least_ms: 1_500, median_ms: 1_500, most_ms: 1_500, bound_ms: bound };
        assert_eq!(figures, Some(expected));
    }
    assert_finds(&Sketch::new(), "recovers-in-time", NotRun);
    assert_eq!(Sketch::new().judged().figures.recovery, None);
}

#[test]
fn an_answer_on_its_way_and_a_hand_over_are_no_recovery() {
    let mut sketch = in_at(3_000, true);
    sketch.hold(2, take(990, 1_001, 1_002));
    let mut handed = take(1_010, 1_020, 1_030);
    handed.by = By::HandOver;
    sketch.hold(2, handed);
    assert_eq!(sketch.judged().figures.recovery.map(|it| it.least_ms), Some(2_000));
}

#[test]
fn every_end_of_a_server_counts_and_the_last_may_be_too_near_to_the_end() {
    let mut sketch = in_at(2_000, true);
    sketch.hurt(KillStore, 10_000, 11_000);
    sketch.hold(0, take(10_100, 13_000, 13_100));
    sketch.hurt(KillStore, 14_000, 15_000);
    let figures = sketch.judged().figures.recovery.unwrap();
    assert_eq!((figures.times, figures.least_ms, figures.median_ms, figures.most_ms), (2, 1_000, 1_000, 3_000));
    assert_finds(&sketch, "recovers-in-time", Passed);
    let op = sketch.ask(1, 14_100, crate::history::LockKind::Mutex);
    sketch.refused(1, op, 20_000, "timeout");
    assert_finds(&sketch, "recovers-in-time", Failed);
}
