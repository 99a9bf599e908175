//! The smooth limit: never faster than asked, in exact arithmetic, and exact about when to ask again.

use proptest::prelude::*;

use super::*;

fn gcra(take: u64, limit: u64, per: u64) -> CellAction {
    CellAction::Gcra { take, limit, per: nanos(per) }
}

/// The same limit as a bucket that fills: one unit comes every `each` nanoseconds.
#[derive(Debug)]
struct Bucket {
    each: u64,
    most: u64,
    credit: u64,
    seen: u64,
}

impl Bucket {
    fn full(limit: u64, per: u64) -> Self {
        let each = per / limit + u64::from(!per.is_multiple_of(limit));
        Self { each, most: each * limit, credit: each * limit, seen: 0 }
    }

    fn ask(&mut self, take: u64, limit: u64, asked: u64) -> CellReply {
        if asked >= self.seen + self.most {
            // It is full: it is forgotten, and its clock with it.
            (self.credit, self.seen) = (self.most, 0);
        }
        let now = asked.max(self.seen);
        let credit = self.most.min(self.credit + (now - self.seen));
        let cost = take.saturating_mul(self.each);
        if take > limit || cost > credit {
            let retry_after = (take <= limit).then(|| nanos(cost - credit + (now - asked)));
            return CellReply::Limited { remaining: credit / self.each, retry_after };
        }
        (self.credit, self.seen) = (credit - cost, now);
        let full_in = nanos(self.most - self.credit + (now - asked));
        CellReply::Admitted { remaining: self.credit / self.each, full_in }
    }
}

#[test]
fn three_a_second_are_three_at_once_and_then_one_each_third() {
    let second = 1_000_000_000;
    let mut bench = Bench { now: 5 * second, ..Bench::default() };
    for left in [2, 1, 0] {
        assert!(matches!(bench.get(gcra(1, 3, second)), CellReply::Admitted { remaining, .. } if remaining == left));
    }
    let reply = bench.get(gcra(1, 3, second));
    assert_eq!(reply, CellReply::Limited { remaining: 0, retry_after: Some(nanos(333_333_334)) });
    bench.now += 333_333_334;
    assert!(matches!(bench.get(gcra(1, 3, second)), CellReply::Admitted { remaining: 0, .. }));
    assert_eq!(bench.get(gcra(4, 3, second)), CellReply::Limited { remaining: 0, retry_after: None });
}

#[test]
fn more_than_one_a_nanosecond_is_still_limited() {
    let mut bench = Bench { now: 5_000, ..Bench::default() };
    let (limit, per) = (1_000_000, 1_000);
    assert!(matches!(bench.get(gcra(limit, limit, per)), CellReply::Admitted { remaining: 0, .. }));
    assert!(matches!(bench.get(gcra(1, limit, per)), CellReply::Limited { remaining: 0, .. }));
}

#[test]
fn a_limit_that_is_full_again_is_forgotten_by_itself_and_not_before() {
    for (limit, per) in [(3, 1_000), (7, 1_001), (1, 1_000), (1_000_000, 1_000)] {
        let mut bench = Bench { now: 5_000, ..Bench::default() };
        let CellReply::Admitted { full_in, .. } = bench.get(gcra(limit, limit, per)) else { panic!() };
        let state = bench.state.clone().unwrap();
        let full = Moment::from_nanos(5_000) + full_in;
        assert!(!state.is_over(full - nanos(1)) && state.is_over(full), "{limit} per {per}");
        bench.kept(gcra(0, limit, per), nanos(1)).unwrap();
        assert!(!bench.state.unwrap().is_over(full - nanos(1)), "a shorter time would let more through");
    }
}

#[test]
fn a_smaller_limit_or_period_holds_at_once_and_comes_right_again() {
    let mut bench = Bench { now: 5_000, ..Bench::default() };
    bench.get(gcra(10, 10, 10_000));
    for (limit, per) in [(5, 10_000), (10, 1_000), (1, 1_000)] {
        let mut bench = bench.clone();
        let CellReply::Limited { remaining: 0, retry_after: Some(wait) } = bench.get(gcra(1, limit, per)) else {
            panic!("{limit} per {per}")
        };
        bench.now += wait.as_nanos() as u64;
        assert!(matches!(bench.get(gcra(1, limit, per)), CellReply::Admitted { .. }));
    }
}

/// Limits and periods of all sizes, also those that do not divide.
fn rates() -> impl Strategy<Value = (u64, u64)> {
    let limit = prop_oneof![3 => 1..10_u64, 1 => 1..=1_000_000_u64];
    let per = prop_oneof![1_000..1_050_u64, 1_000..10_000_000_u64, Just(1_000_000_000), Just(86_400_000_000_000)];
    (limit, per)
}

/// What a reply says of the future is so to the nanosecond.
fn exact(bench: &Bench, reply: &CellReply, take: u64, (limit, per): (u64, u64)) {
    let admits = |after: u64, take: u64| {
        let mut later = Bench { now: bench.now + after, ..bench.clone() };
        matches!(later.get(gcra(take, limit, per)), CellReply::Admitted { .. })
    };
    match reply {
        CellReply::Admitted { remaining, full_in } => {
            let full_in = full_in.as_nanos() as u64;
            assert!(admits(0, *remaining) && !admits(0, remaining + 1));
            assert!(admits(full_in, limit) && (*remaining == limit || !admits(full_in - 1, limit)));
        }
        CellReply::Limited { remaining, retry_after } => {
            assert!(admits(0, *remaining) && !admits(0, remaining + 1));
            assert_eq!(retry_after.is_none(), take > limit);
            if let Some(wait) = retry_after.map(|wait| wait.as_nanos() as u64) {
                assert!(admits(wait, take) && !admits(wait - 1, take));
            }
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_interval_sees_more_than_the_limit_and_what_came_meanwhile(
        (limit, per) in rates(),
        asks in prop::collection::vec((0..1_000_u64, 0..1_000_u64, 0..10_u8), 1..60),
    ) {
        let start = 10 * per;
        let mut bench = Bench { now: start, ..Bench::default() };
        let mut admitted = Vec::<(u64, u64)>::new();
        for (wait, take, mood) in asks {
            let (wait, take) = (wait * per / 2_000, 1 + take * limit / 900);
            // Every tenth question comes from a clock that is behind; the cell keeps the latest it has seen.
            bench.now = if mood == 0 { bench.now.saturating_sub(wait) } else { bench.now + wait };
            let reply = bench.get(gcra(take, limit, per));
            exact(&bench, &reply, take, (limit, per));
            match &bench.state {
                Some(state) if matches!(reply, CellReply::Admitted { .. }) => {
                    admitted.push((state.touched.as_nanos(), take));
                }
                Some(_) => {}
                // Full again by a clock that was right, and forgotten: whoever is behind that clock begins anew.
                None => admitted.clear(),
            }
        }
        for from in 0..admitted.len() {
            let mut sum: u128 = 0;
            for (at, take) in &admitted[from..] {
                sum += u128::from(*take);
                let passed = u128::from(at - admitted[from].0);
                // sum ≤ limit + passed · limit / per, in whole numbers.
                let (limit, per) = (u128::from(limit), u128::from(per));
                prop_assert!(sum * per <= limit * per + passed * limit, "{sum} in {passed} ns");
            }
        }
    }

    #[test]
    fn a_limit_goes_as_a_bucket_that_fills(
        (limit, per) in rates(),
        asks in prop::collection::vec((0..1_000_u64, 0..1_100_u64, 0..10_u8), 1..60),
    ) {
        let mut bench = Bench { now: 10 * per, ..Bench::default() };
        let mut bucket = Bucket::full(limit, per);
        for (wait, take, mood) in asks {
            let (wait, take) = (wait * per / 1_000, take * limit / 1_000);
            bench.now = if mood == 0 { bench.now.saturating_sub(wait) } else { bench.now + wait };
            let reply = bench.get(gcra(take, limit, per));
            prop_assert_eq!(reply, bucket.ask(take, limit, bench.now));
        }
    }
}
