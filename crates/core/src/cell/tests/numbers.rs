//! Numbers: adding, taking without overselling, raising.

use proptest::prelude::*;

use super::*;

const EDGES: [i64; 9] = [i64::MIN, i64::MIN + 1, -5, -1, 0, 1, 5, i64::MAX - 1, i64::MAX];

fn of(value: i64) -> Bench {
    let mut bench = Bench::default();
    bench.get(CellAction::Add { by: value });
    bench
}

fn number(bench: &Bench) -> i64 {
    bench.text().map_or(0, |text| text.parse().unwrap())
}

#[test]
fn a_number_starts_at_zero_and_reads_as_decimal_text() {
    let mut bench = Bench::default();
    assert_eq!(bench.get(CellAction::Add { by: -3 }), CellReply::Number { value: -3, version: 1 });
    assert_eq!(bench.text().as_deref(), Some("-3"));
    assert_eq!(Bench::default().get(CellAction::Max { at_least: -3 }), CellReply::Number { value: 0, version: 1 });
    assert_eq!(Bench::default().get(CellAction::Take { by: 1, floor: 0 }), CellReply::TooLow { value: 0 });
    let reply = Bench::default().get(CellAction::Take { by: 1, floor: -1 });
    assert_eq!(reply, CellReply::Number { value: -1, version: 1 });
}

#[test]
fn adding_beyond_the_range_is_invalid_and_changes_nothing() {
    for start in EDGES {
        for by in EDGES {
            let mut bench = of(start);
            match i64::try_from(i128::from(start) + i128::from(by)) {
                Ok(sum) => assert_eq!(bench.get(CellAction::Add { by }), CellReply::Number { value: sum, version: 2 }),
                Err(_) => {
                    assert_eq!(bench.refusal(CellAction::Add { by }), ErrorKind::Invalid);
                    assert_eq!(bench.read().map(|read| read.version), Some(1));
                }
            }
            assert!(number(&bench) == start || i128::from(number(&bench)) == i128::from(start) + i128::from(by));
        }
    }
}

#[test]
fn taking_succeeds_exactly_when_the_floor_is_kept() {
    let amounts = [0, 1, 5, 6, i64::MAX as u64, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    for start in EDGES {
        for by in amounts {
            for floor in EDGES {
                let mut bench = of(start);
                let left = i128::from(start) - i128::from(by);
                let expected = match i64::try_from(left) {
                    Ok(value) if value >= floor => CellReply::Number { value, version: 2 },
                    _ => CellReply::TooLow { value: start },
                };
                assert_eq!(bench.get(CellAction::Take { by, floor }), expected, "{start} - {by}, floor {floor}");
            }
        }
    }
}

#[test]
fn raising_never_lowers() {
    for start in EDGES {
        for at_least in EDGES {
            let reply = of(start).get(CellAction::Max { at_least });
            assert_eq!(reply, CellReply::Number { value: start.max(at_least), version: 2 });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stock_is_never_oversold(start in 0..500_i64, floor in -50..50_i64, takes in prop::collection::vec(0..40_u64, 0..60)) {
        let mut bench = of(start);
        let mut taken = 0;
        for by in takes {
            let before = number(&bench);
            match bench.get(CellAction::Take { by, floor }) {
                CellReply::Number { value, .. } => {
                    taken += by;
                    prop_assert!(value >= floor);
                    prop_assert_eq!(value, before - by as i64);
                }
                CellReply::TooLow { value } => {
                    prop_assert_eq!(value, before);
                    prop_assert!(before - (by as i64) < floor, "it is refused only when it must be");
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!(taken as i64 + number(&bench), start);
    }

    #[test]
    fn mixed_operations_go_as_plain_arithmetic(ops in prop::collection::vec((0..3_u8, any::<i64>(), any::<i64>()), 0..30)) {
        let mut bench = Bench::default();
        let mut expected: i128 = 0;
        for (sort, a, b) in ops {
            match sort {
                0 => match bench.apply(CellAction::Add { by: a }) {
                    Ok(_) => expected += i128::from(a),
                    Err(_) => prop_assert!(i64::try_from(expected + i128::from(a)).is_err()),
                },
                1 => {
                    bench.get(CellAction::Max { at_least: a });
                    expected = expected.max(i128::from(a));
                }
                _ => {
                    let by = a.unsigned_abs();
                    let is_enough = expected - i128::from(by) >= i128::from(b);
                    let reply = bench.get(CellAction::Take { by, floor: b });
                    let is_taken = matches!(reply, CellReply::Number { .. });
                    prop_assert_eq!(is_taken, is_enough);
                    expected -= if is_enough { i128::from(by) } else { 0 };
                }
            }
            prop_assert_eq!(i128::from(number(&bench)), expected);
        }
    }
}
