//! What the workers of a repro share: sets that are read whole and written back whole, and the count of what was lost.
//!
//! Surprise: a set has no lock of its own. Whoever writes replaces all that was written since it read, and that is the
//! point: only the lock under test stands between.

use std::collections::BTreeSet;

/// One set, and the greatest token that was shown to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedSet {
    elements: BTreeSet<u64>,
    mark: u64,
}

impl SharedSet {
    /// All of it.
    pub(super) fn read(&self) -> BTreeSet<u64> {
        self.elements.clone()
    }

    /// Puts this in its place.
    pub(super) fn write(&mut self, elements: BTreeSet<u64>) {
        self.elements = elements;
    }

    /// Enters the fence with a token and reads; nothing for one that comes after a greater one.
    pub(super) fn enter(&mut self, token: u64) -> Option<BTreeSet<u64>> {
        if token < self.mark {
            return None;
        }
        self.mark = token;
        Some(self.read())
    }

    /// Writes behind the fence; says whether it was done.
    pub(super) fn write_fenced(&mut self, token: u64, elements: BTreeSet<u64>) -> bool {
        let may = token >= self.mark;
        if may {
            self.mark = token;
            self.write(elements);
        }
        may
    }

    /// How many of those that were acknowledged are not in it.
    pub(super) fn lost(&self, acknowledged: &[u64]) -> u64 {
        acknowledged.iter().filter(|element| !self.elements.contains(element)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(mut elements: BTreeSet<u64>, one: u64) -> BTreeSet<u64> {
        elements.insert(one);
        elements
    }

    #[test]
    fn one_after_the_other_loses_nothing() {
        let mut set = SharedSet::default();
        for element in 0..10 {
            set.write(with(set.read(), element));
        }
        assert_eq!(set.lost(&(0..10).collect::<Vec<_>>()), 0);
        assert_eq!(set.lost(&[3, 10, 11]), 2, "what was acknowledged and never came");
    }

    #[test]
    fn two_at_once_lose_what_came_between_read_and_write() {
        let mut set = SharedSet::default();
        set.write(with(set.read(), 1));
        let late = set.read();
        for element in [2, 3] {
            set.write(with(set.read(), element));
        }
        set.write(with(late, 4));
        assert_eq!(set.lost(&[1, 2, 3, 4]), 2);
    }

    #[test]
    fn a_fence_refuses_who_comes_late_to_read_and_to_write() {
        let mut set = SharedSet::default();
        let old = set.enter(7).unwrap();
        let new = set.enter(9).unwrap();
        assert_eq!(set.enter(8), None);
        assert!(!set.write_fenced(7, with(old, 1)), "the next one has read already");
        assert!(set.write_fenced(9, with(new, 2)));
        assert_eq!(set.lost(&[2]), 0);
        assert!(set.enter(9).is_some(), "the same one may come again");
    }
}
