//! What two processes note about one lock that goes back and forth between them, and what follows from it. Pure.
//!
//! Surprise: the stamps of two processes can be compared, because all read `CLOCK_BOOTTIME` of one host.

use std::time::Duration;

/// What is noted, with the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `lock()` has returned.
    Taken,
    /// `release()` is about to be called, and the other one stands in line.
    Passed,
    /// `release()` is about to be called, and nobody is known to wait.
    Dropped,
}

impl Event {
    const ALL: [(Self, char); 3] = [(Self::Taken, 'T'), (Self::Passed, 'P'), (Self::Dropped, 'D')];

    fn letter(self) -> char {
        Self::ALL.iter().find(|(event, _)| *event == self).map_or('?', |(_, letter)| *letter)
    }
}

/// An event and its time in nanoseconds.
pub type Noted = (u64, Event);

/// The hand-overs in what two processes noted, in microseconds.
pub fn hand_overs(processes: [&[Noted]; 2]) -> Vec<f64> {
    let tagged = |process: usize| processes[process].iter().map(move |(at, event)| (*at, process, *event));
    let mut all: Vec<_> = tagged(0).chain(tagged(1)).collect();
    all.sort_by_key(|(at, process, _)| (*at, *process));
    let is_one = |pair: &&[(u64, usize, Event)]| {
        pair[0].2 == Event::Passed && pair[1].2 == Event::Taken && pair[0].1 != pair[1].1
    };
    all.windows(2).filter(is_one).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e3).collect()
}

/// How often the holder was another process than the one before it, in the times of all takings.
pub fn changes(takings: [&[u64]; 2]) -> u64 {
    let tagged = |process: usize| takings[process].iter().map(move |at| (*at, process));
    let mut all: Vec<_> = tagged(0).chain(tagged(1)).collect();
    all.sort_unstable();
    all.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64
}

/// How many takings there were a second between the first and the last, and how many in all: at the end of a slice everyone
/// in line still has its turn, however long that takes.
pub fn rate(takings: [&[u64]; 2]) -> (f64, u64) {
    let all = || takings.iter().copied().flatten();
    let (count, first, last) = (all().count() as u64, all().min(), all().max());
    let took = last.zip(first).map_or(0.0, |(last, first)| (last - first) as f64 / 1e9);
    (count.saturating_sub(1) as f64 / took, count)
}

/// A process's line about a slice.
pub fn write_noted(cpu: Duration, noted: &[Noted]) -> String {
    let mut line = cpu.as_nanos().to_string();
    for (at, event) in noted {
        line.push_str(&format!(" {}{at}", event.letter()));
    }
    line
}

/// The words of such a line after the first.
pub fn read_noted(words: &str) -> Option<Vec<Noted>> {
    let read = |word: &str| {
        let letter = word.chars().next()?;
        let event = Event::ALL.iter().find(|(_, known)| *known == letter)?.0;
        Some((word[1..].parse().ok()?, event))
    };
    words.split_whitespace().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passes_to_the_other_one_count() {
        let one = [(10, Event::Taken), (20_000, Event::Passed), (90_000, Event::Taken), (99_000, Event::Dropped)];
        let two = [(25_000, Event::Taken), (80_000, Event::Passed), (120_000, Event::Taken)];
        assert_eq!(hand_overs([&one, &two]), [5.0, 10.0]);
        assert!(hand_overs([&one, &[]]).is_empty(), "taking it back is no hand-over");
    }

    #[test]
    fn a_task_that_takes_its_own_lock_again_changes_nothing() {
        assert_eq!(changes([&[1, 5, 2], &[9, 3, 4]]), 3);
        assert_eq!(changes([&[1, 2, 3], &[]]), 0);
    }

    #[test]
    fn a_rate_is_that_of_the_time_it_took() {
        assert_eq!(rate([&[3_000_000_000, 1_000_000_000], &[5_000_000_000]]), (0.5, 3));
        assert!(!rate([&[7], &[]]).0.is_finite(), "one taking has no rate");
    }

    #[test]
    fn a_processs_line_is_understood() {
        let noted = vec![(7, Event::Taken), (8, Event::Passed), (9, Event::Dropped)];
        let line = write_noted(Duration::from_nanos(5), &noted);
        assert_eq!(line, "5 T7 P8 D9");
        let (cpu, words) = crate::player::read_answer(&line).unwrap();
        assert_eq!((cpu, read_noted(words)), (Duration::from_nanos(5), Some(noted)));
        assert_eq!(read_noted("X7"), None);
        assert_eq!(read_noted("T"), None);
    }
}
