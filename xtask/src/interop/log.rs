//! Who was inside when, by one clock, and what follows from it. Pure.
//!
//! The surprise: the order is that of the log, not of the stamps. The server did one after the other, so the log is
//! the truth even where two stamps are equal or the clock stepped.

use std::fmt;

use lockkeeper_rig::Trouble;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// For people.
    pub micros: u64,
    pub party: String,
    pub entered: bool,
}

impl Event {
    /// Reads `MICROS enter|leave PARTY`.
    pub fn read(line: &str) -> Result<Event, Trouble> {
        let garbled = || Trouble::new(format!("the log has a line that no party wrote: {line:?}"));
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().ok_or_else(garbled);
        let micros = word()?.parse().map_err(|_| garbled())?;
        let entered = match word()? {
            "enter" => true,
            "leave" => false,
            _ => return Err(garbled()),
        };
        Ok(Event { micros, entered, party: word()?.to_string() })
    }
}

/// Two that were inside together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Who was in.
    pub first: String,
    /// Who came in to it.
    pub second: String,
    /// When the second came in.
    pub from_micros: u64,
    /// How long the first had been in by then.
    pub after_micros: u64,
    /// How long both were in; nothing if neither left.
    pub lasted_micros: Option<u64>,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlap { first, second, .. } = self;
        let ms = |micros: u64| format!("{}.{:03} ms", micros / 1000, micros % 1000);
        let after = ms(self.after_micros);
        let lasted = self.lasted_micros.map_or("until the end".to_string(), |micros| format!("for {}", ms(micros)));
        let at = format!("{}.{:06}", self.from_micros / 1_000_000, self.from_micros % 1_000_000);
        write!(f, "`{second}` came in {after} after `{first}`, which was still in; both {lasted} (at {at})")
    }
}

/// Everyone who was ever inside with somebody else.
pub fn overlaps(log: &[Event]) -> Vec<Overlap> {
    let mut inside: Vec<&Event> = Vec::new();
    let mut found: Vec<Overlap> = Vec::new();
    for event in log {
        if event.entered {
            found.extend(inside.iter().map(|earlier| Overlap {
                first: earlier.party.clone(),
                second: event.party.clone(),
                from_micros: event.micros,
                after_micros: event.micros.saturating_sub(earlier.micros),
                lasted_micros: None,
            }));
            inside.push(event);
            continue;
        }
        let is_theirs = |overlap: &&mut Overlap| {
            overlap.lasted_micros.is_none() && (overlap.first == event.party || overlap.second == event.party)
        };
        for overlap in found.iter_mut().filter(is_theirs) {
            overlap.lasted_micros = Some(event.micros.saturating_sub(overlap.from_micros));
        }
        inside.retain(|earlier| earlier.party != event.party);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[&str]) -> Vec<Event> {
        lines.iter().map(|line| Event::read(line).unwrap()).collect()
    }

    #[test]
    fn one_after_the_other_is_no_overlap() {
        assert_eq!(overlaps(&log(&["1 enter a", "5 leave a", "5 enter b", "9 leave b", "9 enter a"])), []);
    }

    #[test]
    fn two_inside_are_named_with_their_times() {
        let found = overlaps(&log(&["1000000 enter a", "1002500 enter b", "1003000 leave a", "1009000 leave b"]));
        let says = "`b` came in 2.500 ms after `a`, which was still in; both for 0.500 ms (at 1.002500)";
        assert_eq!(found.iter().map(Overlap::to_string).collect::<Vec<_>>(), [says]);
    }

    #[test]
    fn three_inside_are_three_pairs_and_nobody_leaving_is_said() {
        let found = overlaps(&log(&["1 enter a", "2 enter b", "3 enter c", "4 leave b"]));
        let pairs: Vec<_> = found.iter().map(|o| (o.first.as_str(), o.second.as_str(), o.lasted_micros)).collect();
        assert_eq!(pairs, [("a", "b", Some(2)), ("a", "c", None), ("b", "c", Some(1))]);
        assert!(found[1].to_string().contains("both until the end"));
    }

    #[test]
    fn a_clock_that_steps_back_hides_nothing() {
        assert_eq!(overlaps(&log(&["9 enter a", "1 enter b", "2 leave a", "3 leave b"])).len(), 1);
        assert_eq!(overlaps(&log(&["9 enter a", "9 leave a", "1 enter b", "2 leave b"])), []);
    }

    #[test]
    fn lines_that_nobody_wrote_are_refused() {
        for line in ["", "1", "1 enter", "x enter a", "1 stays a"] {
            assert!(Event::read(line).is_err(), "{line:?}");
        }
        assert_eq!(Event::read("7 leave a b").unwrap().party, "a b");
    }
}
