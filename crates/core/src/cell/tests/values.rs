//! Bytes and their versions: put, remove, the ABA problem, sorts that do not mix, and being forgotten.

use proptest::prelude::*;

use super::*;

fn versioned(value: &str, version: u64) -> Option<Versioned> {
    Some(Versioned { value: value.as_bytes().to_vec(), version })
}

#[test]
fn a_put_on_version_zero_is_a_put_if_there_is_nothing() {
    let mut bench = Bench::default();
    assert_eq!(bench.get(put("a", Some(1))), CellReply::Conflict { current: None });
    assert_eq!(bench.get(put("a", Some(0))), CellReply::Done { version: 2 });
    assert_eq!(bench.get(put("b", Some(0))), CellReply::Conflict { current: versioned("a", 2) });
    assert_eq!(bench.read(), versioned("a", 2));
}

#[test]
fn a_put_needs_the_version_that_is_there() {
    let mut bench = Bench::default();
    bench.get(put("a", None));
    assert_eq!(bench.get(put("b", Some(1))), CellReply::Done { version: 2 });
    assert_eq!(bench.get(put("c", Some(1))), CellReply::Conflict { current: versioned("b", 2) });
    assert_eq!(bench.get(put("c", None)), CellReply::Done { version: 4 });
    assert_eq!(bench.text().as_deref(), Some("c"));
}

#[test]
fn a_remove_needs_the_version_that_is_there() {
    let mut bench = Bench::default();
    assert_eq!(bench.get(CellAction::Remove { if_version: None }), CellReply::Done { version: 0 });
    assert_eq!(bench.get(CellAction::Remove { if_version: Some(0) }), CellReply::Done { version: 0 });
    bench.get(put("a", None));
    for wrong in [0, 2, 9] {
        let reply = bench.get(CellAction::Remove { if_version: Some(wrong) });
        assert_eq!(reply, CellReply::Conflict { current: versioned("a", 3) });
    }
    assert_eq!(bench.get(CellAction::Remove { if_version: Some(3) }), CellReply::Done { version: 0 });
    assert_eq!(bench.read(), None);
}

#[test]
fn a_value_that_came_back_is_not_the_value_that_was_read() {
    let mut bench = Bench::default();
    bench.get(put("a", None));
    let read = bench.read().unwrap().version;
    bench.get(put("b", None));
    bench.get(put("a", None));
    assert!(matches!(bench.get(put("c", Some(read))), CellReply::Conflict { .. }));
    bench.get(CellAction::Remove { if_version: None });
    bench.get(put("a", None));
    assert!(matches!(bench.get(put("c", Some(read))), CellReply::Conflict { .. }));
}

#[test]
fn sorts_do_not_mix_and_trying_changes_nothing() {
    let per = Duration::from_secs(1);
    let actions = [
        ("bytes", put("y", None)),
        ("number", CellAction::Add { by: 1 }),
        ("number", CellAction::Take { by: 1, floor: 0 }),
        ("number", CellAction::Max { at_least: 9 }),
        ("window", CellAction::Window { take: 1, limit: 3, per }),
        ("gcra", CellAction::Gcra { take: 1, limit: 3, per }),
    ];
    for (word, bench) in one_of_each() {
        for (fits, action) in &actions {
            let mut bench = bench.clone();
            let before = bench.state.clone();
            let outcome = bench.apply(action.clone());
            if word == *fits {
                assert!(outcome.is_ok(), "{word}: {action:?}");
                continue;
            }
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Mismatch, "{word}: {action:?}");
            assert_eq!(bench.state, before);
        }
    }
}

#[test]
fn fences_are_around_bytes_only() {
    for (word, bench) in one_of_each() {
        for action in [enter(9, true), enter(9, false), fenced(9, Some("y")), fenced(9, None)] {
            let outcome = bench.clone().apply(action.clone());
            match word {
                "bytes" | "fenced" | "emptied" => assert!(outcome.is_ok(), "{word}: {action:?}"),
                _ => assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Mismatch, "{word}: {action:?}"),
            }
        }
    }
}

#[test]
fn a_limiter_has_no_value_and_no_version_condition_resets_it() {
    for (word, bench) in one_of_each().into_iter().filter(|(word, _)| matches!(*word, "window" | "gcra")) {
        assert_eq!(bench.read(), None);
        for version in [0, 1, 7] {
            let mut bench = bench.clone();
            assert_eq!(bench.refusal(put("y", Some(version))), ErrorKind::Mismatch, "{word}");
        }
        let reply = bench.clone().get(CellAction::Remove { if_version: Some(0) });
        assert_eq!(reply, CellReply::Conflict { current: None }, "{word}: there is something");
        let reply = bench.clone().get(CellAction::Remove { if_version: None });
        assert_eq!(reply, CellReply::Done { version: 0 }, "{word}: whatever is there");
    }
}

#[test]
fn values_and_limits_outside_the_bounds_are_invalid() {
    let (second, day) = (Duration::from_secs(1), Duration::from_secs(24 * 3_600));
    let value = |bytes: usize| vec![b'x'; bytes];
    let good = [
        CellAction::Put { value: value(64 * 1_024), if_version: None },
        CellAction::FencedPut { token: Token::from_u64(1), value: Some(value(64 * 1_024)) },
        CellAction::Window { take: 0, limit: 1, per: Duration::from_micros(1) },
        CellAction::Gcra { take: 0, limit: 1_000_000, per: day },
    ];
    let bad = [
        CellAction::Put { value: value(64 * 1_024 + 1), if_version: None },
        CellAction::FencedPut { token: Token::from_u64(1), value: Some(value(64 * 1_024 + 1)) },
        CellAction::Window { take: 1, limit: 0, per: second },
        CellAction::Window { take: 1, limit: 1_000_001, per: second },
        CellAction::Window { take: 1, limit: 1, per: nanos(999) },
        CellAction::Gcra { take: 1, limit: 0, per: second },
        CellAction::Gcra { take: 1, limit: u64::MAX, per: second },
        CellAction::Gcra { take: 1, limit: 1, per: day + nanos(1) },
        CellAction::Gcra { take: 1, limit: 1, per: Duration::ZERO },
    ];
    for action in good {
        assert!(Bench::default().apply(action).is_ok());
    }
    for action in bad {
        assert!(CellOp::new(action.clone()).check().is_err());
        assert_eq!(Bench::default().refusal(action), ErrorKind::Invalid);
    }
}

#[test]
fn a_cell_is_forgotten_when_its_time_is_over_without_a_change() {
    let keep = nanos(100);
    let mut bench = Bench { now: 1_000, ..Bench::default() };
    bench.kept(put("a", None), keep).unwrap();
    bench.now = 1_099;
    assert_eq!(bench.text().as_deref(), Some("a"));
    bench.kept(put("b", Some(1)), keep).unwrap();
    bench.now = 1_198;
    assert_eq!(bench.text().as_deref(), Some("b"), "a change begins its time anew");
    assert!(matches!(bench.get(put("c", Some(1))), CellReply::Conflict { .. }));
    bench.now = 1_199;
    assert_eq!(bench.text(), None, "a refusal does not");
    assert_eq!(bench.get(put("c", Some(0))), CellReply::Done { version: bench.last });
    bench.now = u64::MAX;
    assert_eq!(bench.text().as_deref(), Some("c"), "without a time it is kept");
}

#[test]
fn every_change_says_anew_how_long_the_cell_is_kept() {
    let mut bench = Bench::default();
    bench.kept(CellAction::Add { by: 1 }, nanos(100)).unwrap();
    bench.get(CellAction::Add { by: 1 });
    bench.now = 1_000;
    assert_eq!(bench.text().as_deref(), Some("2"), "a change without a time keeps it");
    bench.kept(CellAction::Add { by: 1 }, nanos(100)).unwrap();
    bench.now = 1_100;
    assert_eq!(bench.text(), None);
}

#[test]
fn a_forgotten_cell_may_become_another_sort() {
    let makers = one_of_each();
    for (word, mut bench) in makers.iter().cloned() {
        bench.state.as_mut().unwrap().keep = Some(nanos(10));
        bench.now += 10;
        for (_, other) in &makers {
            assert_eq!(other.state.as_ref().map(|state| state.version), Some(1));
        }
        assert_eq!(bench.clone().get(CellAction::Add { by: 2 }), CellReply::Number { value: 2, version: 2 }, "{word}");
        assert_eq!(bench.clone().get(put("y", Some(0))), CellReply::Done { version: 2 }, "{word}");
        assert_eq!(bench.clone().get(enter(1, false)), CellReply::Entered { current: None }, "{word}");
    }
}

#[test]
fn what_may_be_repeated_is_the_same_when_done_twice() {
    for (_, bench) in one_of_each() {
        for action in [CellAction::Max { at_least: 9 }, enter(7, false), enter(7, true), enter(8, false)] {
            assert!(CellOp::new(action.clone()).is_repeatable());
            let (mut once, mut twice) = (bench.clone(), bench.clone());
            let first = once.apply(action.clone());
            let _ = twice.apply(action.clone());
            let second = twice.apply(action);
            assert_eq!(first.is_ok(), second.is_ok());
            assert_eq!(once.read().map(|read| read.value), twice.read().map(|read| read.value));
            if let (Ok(CellReply::Entered { current }), Ok(again)) = (first, second) {
                assert_eq!(again, CellReply::Entered { current });
            }
        }
    }
    for action in [put("x", Some(1)), CellAction::Add { by: 1 }, CellAction::Take { by: 1, floor: 0 }] {
        assert!(!CellOp::new(action).is_repeatable());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two clients read, think and write on the version they read: every write that was acknowledged counts.
    #[test]
    fn read_modify_write_on_a_version_loses_nothing(turns in prop::collection::vec((0..2_usize, 0..4_u8), 1..60)) {
        let mut bench = Bench::default();
        let mut seen: [Option<(u64, u64)>; 2] = [None; 2];
        let mut acknowledged = 0;
        for (who, what) in turns {
            match (what, seen[who]) {
                (0 | 1, _) => {
                    let read = bench.read();
                    let count = read.as_ref().map_or(0, |read| String::from_utf8_lossy(&read.value).parse().unwrap());
                    seen[who] = Some((count, read.map_or(0, |read| read.version)));
                }
                (_, Some((count, version))) => {
                    if let CellReply::Done { .. } = bench.get(put(&(count + 1).to_string(), Some(version))) {
                        acknowledged += 1;
                    }
                }
                _ => {}
            }
        }
        let count: u64 = bench.text().map_or(0, |text| text.parse().unwrap());
        prop_assert_eq!(count, acknowledged);
    }
}
