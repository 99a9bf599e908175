//! The ends of all ranges, clocks that jump, and states that no operation makes: nothing panics.

use proptest::prelude::*;

use super::*;

fn edgy() -> BoxedStrategy<u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1), Just(1 << 63), 0..2_000_u64, any::<u64>()].boxed()
}

fn edgy_signed() -> BoxedStrategy<i64> {
    prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), any::<i64>()].boxed()
}

fn spans() -> BoxedStrategy<Duration> {
    let day = Duration::from_secs(24 * 3_600);
    prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), Just(day), edgy().prop_map(Duration::from_nanos)].boxed()
}

fn limits() -> BoxedStrategy<(u64, u64, Duration)> {
    let limit = prop_oneof![2 => 1..=1_000_000_u64, 1 => edgy()];
    let per = prop_oneof![2 => (1_000..86_400_000_000_000_u64).prop_map(Duration::from_nanos), 1 => spans()];
    (edgy(), limit, per).boxed()
}

fn bytes() -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..3).boxed()
}

fn actions() -> BoxedStrategy<CellAction> {
    let token = || edgy().prop_map(Token::from_u64);
    prop_oneof![
        (bytes(), prop::option::of(edgy())).prop_map(|(value, if_version)| CellAction::Put { value, if_version }),
        prop::option::of(edgy()).prop_map(|if_version| CellAction::Remove { if_version }),
        edgy_signed().prop_map(|by| CellAction::Add { by }),
        (edgy(), edgy_signed()).prop_map(|(by, floor)| CellAction::Take { by, floor }),
        edgy_signed().prop_map(|at_least| CellAction::Max { at_least }),
        limits().prop_map(|(take, limit, per)| CellAction::Window { take, limit, per }),
        limits().prop_map(|(take, limit, per)| CellAction::Gcra { take, limit, per }),
        (token(), any::<bool>()).prop_map(|(token, shared)| CellAction::FenceEnter { token, shared }),
        (token(), prop::option::of(bytes())).prop_map(|(token, value)| CellAction::FencedPut { token, value }),
    ]
    .boxed()
}

fn ops() -> BoxedStrategy<CellOp> {
    (actions(), prop::option::weighted(0.3, spans())).prop_map(|(action, keep)| CellOp { action, keep }).boxed()
}

/// States as a store might read them back, also ones that no operation makes.
fn states() -> BoxedStrategy<CellState> {
    let value = prop_oneof![
        Just(CellValue::Empty),
        bytes().prop_map(CellValue::Bytes),
        edgy_signed().prop_map(CellValue::Number),
        (spans(), edgy()).prop_map(|(age, used)| CellValue::Window { age, used }),
        spans().prop_map(|ahead| CellValue::Gcra { ahead }),
    ];
    let marks = prop_oneof![3 => Just((0, 0)), 1 => (edgy(), edgy())];
    (value, marks, edgy(), prop::option::of(spans()))
        .prop_map(|(value, (read_mark, write_mark), touched, keep)| CellState {
            version: 1,
            value,
            read_mark,
            write_mark,
            touched: Moment::from_nanos(touched),
            keep,
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_at_the_ends_of_the_ranges(
        state in prop::option::of(states()),
        calls in prop::collection::vec((ops(), edgy()), 1..8),
    ) {
        let mut bench = Bench { state, now: 0, last: 9 };
        for (op, now) in calls {
            bench.now = now;
            let before = bench.state.clone();
            match bench.op(&op) {
                Ok(_) => prop_assert!(op.check().is_ok()),
                Err(error) => {
                    prop_assert_eq!(&bench.state, &before);
                    prop_assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Mismatch), "{error:?}");
                }
            }
        }
    }
}
