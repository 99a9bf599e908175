//! Stretches of time: when something was hurt, wanted or stopped.
//!
//! Surprise: a stretch is half-open, from its first moment to before its last, so stretches that touch are one.

use crate::history::At;

/// Stretches that are in order and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<(At, At)>);

impl Spans {
    /// The moments that are in any of these.
    pub(super) fn union(mut spans: Vec<(At, At)>) -> Self {
        spans.retain(|(from, to)| from < to);
        spans.sort_unstable();
        let mut merged: Vec<(At, At)> = Vec::with_capacity(spans.len());
        for (from, to) in spans {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Self(merged)
    }

    /// The moments that are in these, and not in those.
    pub(super) fn without(&self, those: &Spans) -> Self {
        let mut left = Vec::with_capacity(self.0.len());
        let mut first = 0;
        for &(mut from, to) in &self.0 {
            while those.0.get(first).is_some_and(|that| that.1 <= from) {
                first += 1;
            }
            for &(out_from, out_to) in those.0[first..].iter().take_while(|that| that.0 < to) {
                if from < out_from {
                    left.push((from, out_from));
                }
                from = from.max(out_to);
            }
            if from < to {
                left.push((from, to));
            }
        }
        Self(left)
    }

    /// What of these is between two moments.
    pub(super) fn within(&self, from: At, to: At) -> Self {
        let cut = self.overlapping(from, to).map(|&(begin, end)| (begin.max(from), end.min(to)));
        Self(cut.filter(|(begin, end)| begin < end).collect())
    }

    /// Is this moment in one of them?
    pub(super) fn contains(&self, at: At) -> bool {
        self.touches(at, at.saturating_add(1))
    }

    /// Is any moment of this stretch in one of them?
    pub(super) fn touches(&self, from: At, to: At) -> bool {
        self.overlapping(from, to).next().is_some()
    }

    /// All of them together.
    pub(super) fn total(&self) -> At {
        self.0.iter().map(|(from, to)| to - from).fold(0, At::saturating_add)
    }

    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (At, At)> + '_ {
        self.0.iter().copied()
    }

    fn overlapping(&self, from: At, to: At) -> impl Iterator<Item = &(At, At)> {
        let first = self.0.partition_point(|span| span.1 <= from);
        self.0[first..].iter().take_while(move |span| span.0 < to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stretches_that_touch_are_one() {
        let spans = Spans::union(vec![(5, 7), (1, 3), (3, 4), (6, 9), (9, 9)]);
        assert_eq!(spans.iter().collect::<Vec<_>>(), [(1, 4), (5, 9)]);
        assert_eq!((spans.total(), spans.contains(4), spans.contains(5)), (7, false, true));
    }

    fn some_spans() -> impl Strategy<Value = Vec<(At, At)>> {
        prop::collection::vec((0_u64..40, 0_u64..40), 0..8)
    }

    proptest! {
        /// Every operation says of every moment what the plain definition says of it.
        #[test]
        fn spans_are_sets_of_moments(these in some_spans(), those in some_spans(), (from, to) in (0_u64..40, 0_u64..40)) {
            let is_in = |spans: &[(At, At)], at| spans.iter().any(|span| span.0 <= at && at < span.1);
            let (left, right) = (Spans::union(these.clone()), Spans::union(those.clone()));
            for at in 0..41 {
                prop_assert_eq!(left.contains(at), is_in(&these, at));
                prop_assert_eq!(left.without(&right).contains(at), is_in(&these, at) && !is_in(&those, at));
                prop_assert_eq!(left.within(from, to).contains(at), is_in(&these, at) && from <= at && at < to);
            }
            prop_assert_eq!(left.total(), (0..41).filter(|at| is_in(&these, *at)).count() as u64);
        }
    }
}
