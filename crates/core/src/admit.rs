//! The admission rule: a claim is in when the weights ahead of it plus its own fit the capacity.
//!
//! Pure, and the only place that decides who is in. It looks only *ahead*: claims ahead can leave but never
//! arrive, so a stale view can keep a claim out but never let it in.

/// A claim as the rule sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Its place: smaller is earlier.
    pub order: u64,
    /// How much of the capacity it takes.
    pub weight: u32,
}

/// Where a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    In,
    /// It cannot be in before the claim of this order leaves: the only news worth waking for.
    Behind(u64),
    /// It waits with no single rival; any departure is news.
    InLine,
}

/// Decides for a claim of `weight` out of `capacity` behind the claims `ahead`, in order.
pub fn admit(ahead: &[Spot], weight: u32, capacity: u32) -> Verdict {
    let fits = |taken: u64| taken + u64::from(weight) <= u64::from(capacity);
    if fits(ahead.iter().map(|claim| u64::from(claim.weight)).sum()) {
        return Verdict::In;
    }
    // While a claim that cannot share with us stays, we cannot be in. The last such one is watched: the ones
    // before it leave first or, if they outstay it, asking again names them.
    match ahead.iter().rev().find(|claim| !fits(u64::from(claim.weight))) {
        Some(rival) => Verdict::Behind(rival.order),
        None => Verdict::InLine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of up to `longest` claims with weights up to `capacity`.
    fn lines(capacity: u32, longest: usize) -> Vec<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = vec![vec![]];
        let mut last = all.clone();
        for _ in 0..longest {
            last = last
                .iter()
                .flat_map(|line| (1..=capacity).map(move |weight| line.iter().copied().chain([weight]).collect()))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    fn spots(line: &[u32]) -> Vec<Spot> {
        line.iter().enumerate().map(|(at, weight)| Spot { order: at as u64, weight: *weight }).collect()
    }

    fn standing(line: &[Spot], at: usize, capacity: u32) -> Verdict {
        admit(&line[..at], line[at].weight, capacity)
    }

    #[test]
    fn exhaustively_up_to_capacity_four_and_six_claims() {
        for capacity in 1..=4 {
            for line in lines(capacity, 6) {
                let line = spots(&line);
                check_line(&line, capacity);
            }
        }
    }

    fn check_line(line: &[Spot], capacity: u32) {
        let inside: Vec<_> = (0..line.len()).filter(|at| standing(line, *at, capacity) == Verdict::In).collect();
        let taken: u32 = inside.iter().map(|at| line[*at].weight).sum();
        assert!(taken <= capacity, "those in always fit: {line:?}");
        assert!(line.is_empty() || inside.contains(&0), "someone is always in: {line:?}");
        for gone in 0..line.len() {
            let mut rest = line.to_vec();
            rest.remove(gone);
            for (at, spot) in rest.iter().enumerate() {
                let before = line.iter().position(|claim| claim.order == spot.order).unwrap();
                let (old, new) = (standing(line, before, capacity), standing(&rest, at, capacity));
                if old == Verdict::In {
                    assert_eq!(new, Verdict::In, "in stays in when anyone leaves: {line:?}");
                }
                // Watching the one rival loses no wake-up: whoever comes in was behind the one that left,
                // or had no single rival.
                if old != Verdict::In && new == Verdict::In {
                    assert!(
                        old == Verdict::InLine || old == Verdict::Behind(line[gone].order),
                        "{line:?} without {gone}: {old:?} -> {new:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn sums_do_not_overflow() {
        let ahead = [Spot { order: 1, weight: u32::MAX }, Spot { order: 2, weight: u32::MAX }];
        assert_eq!(admit(&ahead, u32::MAX, u32::MAX), Verdict::Behind(2));
    }
}
