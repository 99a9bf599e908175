//! The fixed window: never more than its limit in one window, and exact about when to ask again.

use proptest::prelude::*;

use super::*;

fn window(take: u64, limit: u64, per: u64) -> CellAction {
    CellAction::Window { take, limit, per: nanos(per) }
}

/// What a window is, said plainly: it opens with the first that is let in, and lasts for `per`.
#[derive(Debug, Default)]
struct Plain {
    opened: Option<u64>,
    used: u64,
    seen: u64,
}

impl Plain {
    fn ask(&mut self, take: u64, limit: u64, per: u64, asked: u64) -> CellReply {
        if asked >= self.seen + per {
            // Nothing of it counts any more: it is forgotten, and its clock with it.
            *self = Self::default();
        }
        let now = asked.max(self.seen);
        let opened = self.opened.filter(|opened| now - opened < per);
        let used = opened.map_or(0, |_| self.used);
        let ends = opened.unwrap_or(now) + per;
        if used + take > limit {
            let retry_after = (take <= limit).then(|| nanos(ends - asked));
            return CellReply::Limited { remaining: limit - used, retry_after };
        }
        (self.opened, self.used, self.seen) = (Some(ends - per), used + take, now);
        CellReply::Admitted { remaining: limit - self.used, full_in: nanos(ends - asked) }
    }
}

#[test]
fn a_window_opens_with_the_first_that_is_let_in() {
    let mut bench = Bench { now: 5_000, ..Bench::default() };
    let ask = |bench: &mut Bench, now, take| {
        bench.now = now;
        bench.get(window(take, 3, 1_000))
    };
    let limited = |remaining, retry_after| CellReply::Limited { remaining, retry_after };
    assert_eq!(ask(&mut bench, 5_000, 4), limited(3, None), "more than the limit never fits");
    assert_eq!(bench.state, None);
    let admitted = CellReply::Admitted { remaining: 1, full_in: nanos(1_000) };
    assert_eq!(ask(&mut bench, 5_100, 2), admitted);
    assert_eq!(ask(&mut bench, 5_600, 2), limited(1, Some(nanos(500))));
    assert_eq!(ask(&mut bench, 5_700, 1), CellReply::Admitted { remaining: 0, full_in: nanos(400) });
    assert_eq!(ask(&mut bench, 6_099, 1), limited(0, Some(nanos(1))));
    assert_eq!(ask(&mut bench, 6_100, 3), CellReply::Admitted { remaining: 0, full_in: nanos(1_000) });
}

#[test]
fn a_window_that_is_over_is_forgotten_by_itself() {
    let mut bench = Bench { now: 5_000, ..Bench::default() };
    bench.get(window(1, 3, 1_000));
    let state = bench.state.clone().unwrap();
    assert!(!state.is_over(Moment::from_nanos(5_999)));
    assert!(state.is_over(Moment::from_nanos(6_000)));
    // A shorter time to be kept would let more through than the limit; a longer one is the user's wish.
    bench.kept(window(1, 3, 1_000), nanos(10)).unwrap();
    assert!(!bench.state.as_ref().unwrap().is_over(Moment::from_nanos(5_999)));
    bench.kept(window(1, 3, 1_000), nanos(5_000)).unwrap();
    assert!(!bench.state.as_ref().unwrap().is_over(Moment::from_nanos(9_999)));
}

#[test]
fn a_smaller_limit_or_period_holds_at_once() {
    let mut bench = Bench { now: 5_000, ..Bench::default() };
    bench.get(window(9, 10, 1_000));
    let reply = bench.get(window(1, 5, 1_000));
    assert_eq!(reply, CellReply::Limited { remaining: 0, retry_after: Some(nanos(1_000)) });
    assert!(matches!(bench.get(window(0, 5, 1_000)), CellReply::Admitted { remaining: 0, .. }));
    bench.now += 999;
    assert_eq!(bench.get(window(1, 5, 1_000)), CellReply::Limited { remaining: 0, retry_after: Some(nanos(1)) });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_go_as_said_plainly(
        limit in 1..6_u64,
        per in 1_000..1_020_u64,
        asks in prop::collection::vec((0..700_u64, 0..8_u64, 0..10_u8), 1..60),
    ) {
        let mut bench = Bench { now: 50_000, ..Bench::default() };
        let mut plain = Plain::default();
        for (wait, take, mood) in asks {
            // Every tenth question comes from a clock that is behind.
            bench.now = if mood == 0 { bench.now - wait } else { bench.now + wait };
            let reply = bench.get(window(take, limit, per));
            prop_assert_eq!(&reply, &plain.ask(take, limit, per, bench.now));
            exact(&bench, &reply, take, limit, per);
        }
    }

    #[test]
    fn no_window_lets_more_through_than_its_limit(
        limit in 1..6_u64,
        asks in prop::collection::vec((0..300_u64, 1..4_u64), 1..80),
    ) {
        let per = 1_000;
        let mut bench = Bench { now: 50_000, ..Bench::default() };
        let mut admitted: Vec<(u64, u64)> = vec![];
        for (wait, take) in asks {
            bench.now += wait;
            if let CellReply::Admitted { .. } = bench.get(window(take, limit, per)) {
                admitted.push((bench.now, take));
            }
        }
        // Windows, found anew from what was let in.
        let mut rest = &admitted[..];
        while let Some((opened, _)) = rest.first() {
            let inside = rest.iter().take_while(|(at, _)| at - opened < per).count();
            prop_assert!(rest[..inside].iter().map(|(_, take)| take).sum::<u64>() <= limit);
            rest = &rest[inside..];
        }
    }
}

/// What a reply says of the future is so to the nanosecond.
fn exact(bench: &Bench, reply: &CellReply, take: u64, limit: u64, per: u64) {
    let admits = |after: u64, take: u64| {
        let mut later = Bench { now: bench.now + after, ..bench.clone() };
        matches!(later.get(window(take, limit, per)), CellReply::Admitted { .. })
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
